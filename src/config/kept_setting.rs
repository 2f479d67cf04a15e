//! Writes one setting into the user's settings file, as the cockpit does when the user asks for it.

use std::io::Write as _;
use std::path::Path;

use toml_edit::DocumentMut;

use super::error::{ConfigError, SettingLocation};
use super::settings_file::{SettingsFile, SymlinkPolicy};

/// Sets the text `key` of the top level in the user's settings file; comments and everything else stay as they are. A
/// missing file is created. A link stays a link: the file to which it points is replaced.
///
/// # Errors
///
/// Fails if the file is not TOML, or cannot be read or written; it is then unchanged.
pub fn set_user_setting(path: &Path, key: &str, value: &str) -> Result<(), ConfigError> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = SettingsFile::read(real.clone(), SymlinkPolicy::Follow)?.map_or(String::new(), |file| file.text);
    let mut document: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| ConfigError::Syntax {
        place: SettingLocation::from_offset(path, &before, error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
    })?;
    match document.get_mut(key).and_then(toml_edit::Item::as_value_mut) {
        // The comment behind the old value stays.
        Some(old) => {
            let mut new = toml_edit::Value::from(value);
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        None => document[key] = toml_edit::value(value),
    }
    let failed = |source| ConfigError::Write { path: path.to_owned(), source };
    let folder = real.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    temporary.write_all(document.to_string().as_bytes()).map_err(failed)?;
    if let Ok(metadata) = std::fs::metadata(&real) {
        temporary.as_file().set_permissions(metadata.permissions()).map_err(failed)?;
    }
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(&real).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_written_and_everything_else_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("new").join("config.toml");
        for (before, expected) in [
            (None, "theme = \"light\"\n"),
            (Some("# mine\nascii = true\n"), "# mine\nascii = true\ntheme = \"light\"\n"),
            (
                Some("theme = \"dark\" # at night\n[window]\nmax_turns = 3\n"),
                "theme = \"light\" # at night\n[window]\nmax_turns = 3\n",
            ),
            (Some("[window]\nmax_turns = 3\n"), "theme = \"light\"\n[window]\nmax_turns = 3\n"),
        ] {
            if let Some(before) = before {
                std::fs::write(&file, before).expect("a file");
            }
            set_user_setting(&file, "theme", "light").expect("it is written");
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), expected, "{before:?}");
        }
        std::fs::write(&file, "theme = ").expect("a file");
        let error = set_user_setting(&file, "theme", "light").expect_err("this is not TOML").to_string();
        assert!(error.contains("config.toml:1:"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "theme = ", "it is unchanged");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_the_settings_stays_a_link() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (link, real) = (folder.path().join("config.toml"), folder.path().join("dotfile.toml"));
        std::fs::write(&real, "").expect("a file");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        set_user_setting(&link, "theme", "mono").expect("it is written");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&real).expect("a file"), "theme = \"mono\"\n");
    }
}
