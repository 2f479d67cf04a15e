//! Loads the files of a user's themes, and describes the mistakes in them.

use super::{Background, ColorDepth, DARK, Theme, ThemeChoice, ThemeName};
use crate::config::{self, Paths, Settings};

/// Describes why the settings cannot name this theme; `None` for `auto`, a built-in theme and a user's theme file,
/// valid or not.
pub fn find_theme_fault(paths: &Paths, name: &str) -> Option<String> {
    let is_known = name.parse::<ThemeName>().is_ok() || !matches!(config::load_user_theme(paths, name, ""), Ok(None));
    if is_known {
        return None;
    }
    let own = config::list_user_themes(paths);
    let builtin = ThemeName::TABLE.iter().map(|(_, word)| *word);
    let known: Vec<&str> = builtin.chain(own.iter().map(String::as_str)).collect();
    let meant = config::did_you_mean(name, known.iter().copied());
    let known = known.join(", ");
    Some(match meant.as_str() {
        "" => format!("there is no theme {name:?}; there are: {known}"),
        meant => format!("there is no theme {name:?}{meant} There are: {known}"),
    })
}

/// Describes the mistakes in the files of a user's themes.
pub fn find_theme_file_faults(paths: &Paths) -> Vec<String> {
    let check = |name: &String| match config::load_user_theme(paths, name, DARK) {
        Ok(Some(text)) => {
            let mut faults = Theme::parse(&text, ColorDepth::TrueColor).1;
            faults.extend(find_base_fault(&text));
            faults
        }
        Ok(None) => Vec::new(),
        Err(error) => vec![error.to_string()],
    };
    let names = config::list_user_themes(paths);
    names.iter().flat_map(|name| check(name).into_iter().map(move |fault| format!("{name}: {fault}"))).collect()
}

/// Describes the `base` of a theme that is no built-in theme.
fn find_base_fault(text: &str) -> Option<String> {
    let table = text.parse::<toml::Table>().ok()?;
    let base = table.get("base")?.as_str().unwrap_or_default();
    let known = || ThemeName::TABLE.iter().map(|(_, word)| *word);
    let meant = config::did_you_mean(base, known());
    let is_known = base.parse::<ThemeName>().is_ok();
    (!is_known).then(|| {
        format!("base = {base:?} is no theme of revdeck; there are: {}{meant}", known().collect::<Vec<_>>().join(", "))
    })
}

/// Loads the theme of the settings, with the problems of its file. `auto` and `high-contrast` use the environment; the
/// terminal's reply may change them later.
pub fn load_theme(
    settings: &Settings,
    paths: &Paths,
    depth: ColorDepth,
    variable: impl Fn(&str) -> Option<String>,
) -> (ThemeChoice, Vec<String>) {
    let background = variable("COLORFGBG").map_or(Background::Unknown, |value| Background::from_colorfgbg(&value));
    let name = settings.theme.as_str();
    let builtin = name.parse::<ThemeName>().ok();
    let fallback = ThemeChoice::new(builtin.unwrap_or(ThemeName::Dark), background, depth);
    if builtin == Some(ThemeName::Auto) {
        return (fallback, Vec::new());
    }
    match load_own_theme(paths, name, builtin.unwrap_or(ThemeName::Dark)) {
        Ok(Some(text)) => {
            let (theme, mut faults) = Theme::parse(&text, depth);
            faults.extend(find_base_fault(&text));
            (ThemeChoice::own(name, theme, depth), faults)
        }
        Ok(None) => (fallback, Vec::new()),
        Err(error) => (fallback, vec![error.to_string()]),
    }
}

/// Reads a theme of the user, laid over the built-in theme that its `base` names, else over `base`.
fn load_own_theme(paths: &Paths, name: &str, base: ThemeName) -> Result<Option<String>, config::ConfigError> {
    let Some(text) = config::load_user_theme(paths, name, base.toml())? else { return Ok(None) };
    let named =
        text.parse::<toml::Table>().ok().and_then(|table| table.get("base")?.as_str()?.parse::<ThemeName>().ok());
    match named {
        Some(named) if named != base => config::load_user_theme(paths, name, named.toml()),
        _ => Ok(Some(text)),
    }
}
