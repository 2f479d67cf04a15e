//! Saved filters of the findings list: `@NAME` in a filter stands for the filter that the user saved under this name.
//!
//! A filter with `=@NAME` at its end is saved; `=@NAME` alone removes the saved one. They are kept in `[filters]` of the
//! user's settings.

use std::collections::BTreeMap;

use super::filter_terms::split_terms;
use crate::config::did_you_mean;

/// Most saved filters that stand in each other. Each may name others several times, so that the text could become endless.
const MAX_NESTED: usize = 8;

/// Saved filters by name, without the `@`.
pub type SavedFilters = BTreeMap<String, String>;

/// Change of the saved filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterChange {
    /// Name, without the `@`.
    pub name: String,
    /// Text of the filter; `None` removes it.
    pub text: Option<String>,
}

/// Parses `FILTER =@NAME` and `=@NAME`. Returns `None` if the last word does not begin with `=@`.
///
/// # Errors
///
/// Returns the reason if the name is no name.
pub fn parse_change(text: &str) -> Option<Result<FilterChange, String>> {
    let text = text.trim();
    let last = split_terms(text).pop()?;
    let filter = &text[..text.len() - last.len()];
    let name = last.strip_prefix("=@")?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let filter = filter.trim();
    Some(match is_name {
        true => Ok(FilterChange { name: name.to_owned(), text: (!filter.is_empty()).then(|| filter.to_owned()) }),
        false => Err(format!("@{name} is no name of a filter: letters, digits, - and _")),
    })
}

/// Replaces each `@NAME` by its filter, also in saved filters. Unknown names stay, and so does a name inside of its own filter.
pub fn expand(text: &str, saved: &SavedFilters) -> String {
    expand_inside(text, saved, &mut Vec::new())
}

/// Replaces the names in the text of the last of these filters, each of which names the next one.
fn expand_inside<'a>(text: &'a str, saved: &'a SavedFilters, inside: &mut Vec<&'a str>) -> String {
    if !text.contains('@') {
        return text.to_owned();
    }
    let mut words = Vec::new();
    for word in split_terms(text) {
        let name = word.strip_prefix('@').filter(|name| inside.len() < MAX_NESTED && !inside.contains(name));
        words.push(match name.and_then(|name| Some((name, saved.get(name)?))) {
            Some((name, filter)) => {
                inside.push(name);
                let filter = expand_inside(filter, saved, inside);
                inside.pop();
                filter
            }
            None => word.to_owned(),
        });
    }
    words.join(" ")
}

/// Describes the first `@NAME` that [`expand`] cannot replace: it is unknown, or its filter leads back to it. `None` if there
/// is none.
pub fn describe_unknown(text: &str, saved: &SavedFilters) -> Option<String> {
    let expanded = expand(text, saved);
    let name = split_terms(&expanded).into_iter().find_map(|word| word.strip_prefix('@'))?;
    if saved.contains_key(name) {
        return Some(format!("@{name} stands for itself in `[filters]` of your settings"));
    }
    let known: Vec<String> = saved.keys().map(|name| format!("@{name}")).collect();
    let how = "FILTER =@NAME saves one";
    Some(match known.is_empty() {
        true => format!("@{name} is no saved filter; {how}"),
        false => {
            let meant = did_you_mean(name, saved.keys().map(String::as_str));
            format!("@{name} is no saved filter; there are {}; {how}{meant}", known.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> SavedFilters {
        [("urgent", "status:undecided p:0,1"), ("mine", "path:src/")].map(|(a, b)| (a.to_owned(), b.to_owned())).into()
    }

    #[test]
    fn names_stand_for_their_filters() {
        for (text, expanded) in [
            ("@urgent", "status:undecided p:0,1"),
            ("@urgent kind:dead @mine", "status:undecided p:0,1 kind:dead path:src/"),
            ("@other p:0", "@other p:0"),
            ("me@mine", "me@mine"),
            ("status:open  p:0", "status:open  p:0"),
            (r#"path:"a  @mine b" @mine"#, r#"path:"a  @mine b" path:src/"#),
        ] {
            assert_eq!(expand(text, &saved()), expanded);
        }
        assert_eq!(describe_unknown("@urgent @mine p:0", &saved()), None);
        assert_eq!(
            describe_unknown("@urgnt", &saved()).as_deref(),
            Some(
                "@urgnt is no saved filter; there are @mine, @urgent; FILTER =@NAME saves one; did you mean \"urgent\"?"
            )
        );
        assert_eq!(
            describe_unknown("@x", &SavedFilters::new()).as_deref(),
            Some("@x is no saved filter; FILTER =@NAME saves one")
        );
    }

    #[test]
    fn names_in_saved_filters_stand_for_their_filters_and_none_for_itself() {
        let mut saved = saved();
        for (name, text) in [
            ("both", "@urgent @mine"),
            ("more", "@both kind:dead"),
            ("self", "p:1 @self"),
            ("a", "@b"),
            ("b", "@a"),
            ("old", "@gone"),
        ] {
            saved.insert(name.to_owned(), text.to_owned());
        }
        let itself = |name: &str| Some(format!("@{name} stands for itself in `[filters]` of your settings"));
        for (text, expanded, fault) in [
            ("@more", "status:undecided p:0,1 path:src/ kind:dead", None),
            ("@both @both", "status:undecided p:0,1 path:src/ status:undecided p:0,1 path:src/", None),
            ("@self", "p:1 @self", itself("self")),
            ("@a", "@a", itself("a")),
        ] {
            assert_eq!((expand(text, &saved).as_str(), describe_unknown(text, &saved)), (expanded, fault), "{text}");
        }
        assert!(describe_unknown("@old", &saved).is_some_and(|fault| fault.starts_with("@gone is no saved filter")));
    }

    #[test]
    fn a_name_behind_an_equals_sign_saves_or_removes() {
        let change = |text: &str| parse_change(text).map(|change| change.map(|change| (change.name, change.text)));
        let saves = |name: &str, text: &str| Some(Ok((name.to_owned(), Some(text.to_owned()))));
        assert_eq!(change("p:0 kind:dead =@a"), saves("a", "p:0 kind:dead"));
        assert_eq!(change(" status:all  =@old-1 "), saves("old-1", "status:all"));
        assert_eq!(change("=@a"), Some(Ok(("a".to_owned(), None))));
        assert_eq!(change("@a"), None);
        assert_eq!(change(r#"path:"docs dir/a b.py" =@docs"#), saves("docs", r#"path:"docs dir/a b.py""#));
        assert_eq!(change(r#"path:"docs =@a"#), None, "inside of quotes");
        assert_eq!(change("=@a p:1"), None);
        assert_eq!(change("p =1"), None);
        assert_eq!(change("p:0 =@ü"), Some(Err("@ü is no name of a filter: letters, digits, - and _".to_owned())));
    }
}
