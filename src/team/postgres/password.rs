//! Finds the password of a database where other clients of PostgreSQL find it.

use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::address::DatabaseAddress;

/// Returns the password from the variable `PGPASSWORD`, or from the file of passwords.
pub fn find_password(address: &DatabaseAddress) -> Option<SecretString> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(password) = variable("PGPASSWORD") {
        return Some(password.into());
    }
    let file =
        variable("PGPASSFILE").map(PathBuf::from).or_else(|| Some(Path::new(&variable("HOME")?).join(".pgpass")))?;
    if is_open_to_others(&file) {
        tracing::warn!(path = %file.display(), "passwords that others may read are not used; `chmod 600` keeps them");
        return None;
    }
    find_in_file(&std::fs::read_to_string(file).ok()?, &address.account()).map(SecretString::from)
}

/// Returns true for a file that not only its owner may read; libpq ignores such a file, too.
#[cfg(unix)]
fn is_open_to_others(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).is_ok_and(|seen| seen.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_file: &Path) -> bool {
    false
}

/// Returns the password of the first line that fits: `host:port:database:user:password`, `*` for any, `\` before a character
/// that is meant as it is (PostgreSQL documentation, "The Password File").
fn find_in_file(text: &str, account: &[String; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = split_fields(line);
        let (password, names) = fields.split_last()?;
        let fits = names.len() == account.len()
            && names.iter().zip(account).all(|(field, name)| field == "*" || field == name);
        fits.then(|| password.clone())
    })
}

fn split_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let last = fields.last_mut().expect("there is always a field");
        match letter {
            '\\' => last.extend(letters.next()),
            ':' => fields.push(String::new()),
            _ => last.push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# mine\ndb.example.org:5432:team:ada:one\n*:*:team:*:t\\:w\\\\o\nlocalhost:*:*:*:three\nbroken\n";
        for (account, expected) in [
            (["db.example.org", "5432", "team", "ada"], Some("one")),
            (["db.example.org", "6432", "team", "ada"], Some("t:w\\o")),
            (["localhost", "5432", "other", "bob"], Some("three")),
            (["elsewhere", "5432", "other", "bob"], None),
        ] {
            assert_eq!(find_in_file(text, &account.map(str::to_owned)).as_deref(), expected, "{account:?}");
        }
    }
}
