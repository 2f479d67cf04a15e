//! Writes one setting into the user's settings file, as the cockpit does when the user asks for it.

use std::io::Write as _;
use std::path::Path;

use toml_edit::DocumentMut;

use super::error::{ConfigError, SettingLocation};
use super::settings_file::{SettingsFile, SymlinkPolicy};

/// Sets a text in the user's settings file, or removes it; comments and everything else stay as they are. `keys` are the
/// names of its tables, from the outside, and its own. A missing file or table is created. A link stays a link: the file to
/// which it points is replaced.
///
/// # Errors
///
/// Fails if the file is not TOML, has something else in the place of a table, or cannot be read or written; it is then
/// unchanged.
pub fn set_user_setting(path: &Path, keys: &[&str], value: Option<&str>) -> Result<(), ConfigError> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = SettingsFile::read(real.clone(), SymlinkPolicy::Follow)?.map_or(String::new(), |file| file.text);
    let mut document: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| ConfigError::Syntax {
        place: SettingLocation::from_offset(path, &before, error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
    })?;
    let Some((key, tables)) = keys.split_last() else { return Ok(()) };
    let mut table = document.as_table_mut();
    for name in tables {
        let inner = table.entry(name).or_insert_with(toml_edit::table).as_table_mut();
        table = inner.ok_or_else(|| ConfigError::Value {
            place: SettingLocation::from_offset(path, &before, 0),
            key: (*name).to_owned(),
            problem: "is no table with a line of its own".to_owned(),
            allowed: format!("[{name}]"),
        })?;
    }
    match (table.get_mut(key).and_then(toml_edit::Item::as_value_mut), value) {
        // The comment behind the old value stays.
        (Some(old), Some(value)) => {
            let mut new = toml_edit::Value::from(value);
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        (None, Some(value)) => table[key] = toml_edit::value(value),
        (_, None) => drop(table.remove(key)),
    }
    replace_file(path, &real, &document.to_string())
}

/// Replaces the file at `real` by one with this text and the same permissions; creates its folder. Errors name `path`.
///
/// # Errors
///
/// Fails if the file cannot be written; it is then unchanged.
pub(super) fn replace_file(path: &Path, real: &Path, text: &str) -> Result<(), ConfigError> {
    let failed = |source| ConfigError::Write { path: path.to_owned(), source };
    let folder = real.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    temporary.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(metadata) = std::fs::metadata(real) {
        temporary.as_file().set_permissions(metadata.permissions()).map_err(failed)?;
    }
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(real).map_err(|error| failed(error.error))?;
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
            set_user_setting(&file, &["theme"], Some("light")).expect("it is written");
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), expected, "{before:?}");
        }
        std::fs::write(&file, "theme = ").expect("a file");
        let error = set_user_setting(&file, &["theme"], Some("light")).expect_err("this is not TOML").to_string();
        assert!(error.contains("config.toml:1:"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "theme = ", "it is unchanged");
    }

    #[test]
    fn a_setting_in_a_table_is_written_and_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("config.toml");
        for (before, value, expected) in [
            ("", Some("p:0"), "[filters]\nurgent = \"p:0\"\n"),
            ("[filters]\na = 'x' # mine\n", Some("p:0"), "[filters]\na = 'x' # mine\nurgent = \"p:0\"\n"),
            ("[filters]\nurgent = 'x' # mine\n", Some("p:0"), "[filters]\nurgent = \"p:0\" # mine\n"),
            ("[filters]\nurgent = 'x'\nb = 'y'\n", None, "[filters]\nb = 'y'\n"),
        ] {
            std::fs::write(&file, before).expect("a file");
            set_user_setting(&file, &["filters", "urgent"], value).expect("it is written");
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), expected, "{before:?}");
        }
        std::fs::write(&file, "filters = 1\n").expect("a file");
        set_user_setting(&file, &["filters", "urgent"], Some("p:0")).expect_err("it is no table");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "filters = 1\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_the_settings_stays_a_link() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (link, real) = (folder.path().join("config.toml"), folder.path().join("dotfile.toml"));
        std::fs::write(&real, "").expect("a file");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        set_user_setting(&link, &["theme"], Some("mono")).expect("it is written");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&real).expect("a file"), "theme = \"mono\"\n");
    }
}
