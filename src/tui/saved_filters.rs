//! Saved filters of the findings list: `@NAME` in a filter stands for the filter that the user saved under this name.
//!
//! A filter with `=@NAME` at its end is saved; `=@NAME` alone removes the saved one. They are kept in `[filters]` of the
//! user's settings.

use std::collections::BTreeMap;

use super::filter_terms::split_terms;
use crate::config::did_you_mean;
use crate::domain::text::format_thousands;

/// Most saved filters that stand in each other.
const MAX_NESTED: usize = 8;
/// Most bytes for which the saved filters in a text may stand. Each may name others several times, so that a few short ones
/// could stand for gigabytes.
const MAX_EXPANDED_BYTES: usize = 8 * 1024;

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

/// Parses `FILTER =@NAME` and `=@NAME`. Returns `None` if no word begins with `=@`.
///
/// # Errors
///
/// Returns the reason if the name is no name, such as one with a blank.
pub fn parse_change(text: &str) -> Option<Result<FilterChange, String>> {
    let text = text.trim();
    let terms = split_terms(text);
    let at = terms.iter().position(|term| term.starts_with("=@"))?;
    // Words behind the name are meant as a part of it.
    let name = terms[at..].join(" ").split_off("=@".len());
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let filter = terms[..at].join(" ");
    Some(match is_name {
        true => Ok(FilterChange { name, text: (!filter.is_empty()).then_some(filter) }),
        false => Err(format!("@{name} is no name of a filter: letters, digits, - and _, no blanks")),
    })
}

/// Replaces each `@NAME` by its filter, also in saved filters. Unknown names stay, and so does a name inside of its own filter.
/// If the filters are too large, all names stay.
pub fn expand(text: &str, saved: &SavedFilters) -> String {
    Expansion::new(saved).expand(text).unwrap_or_else(|_| text.to_owned())
}

/// Saved filter that stands for too much text, by its name.
struct TooLarge<'a>(&'a str);

/// Replacement of the names in a text.
struct Expansion<'a> {
    saved: &'a SavedFilters,
    /// Filters whose text is being replaced; each names the next one.
    inside: Vec<&'a str>,
    /// Bytes for which saved filters may still stand.
    room: usize,
}

impl<'a> Expansion<'a> {
    fn new(saved: &'a SavedFilters) -> Self {
        Self { saved, inside: Vec::new(), room: MAX_EXPANDED_BYTES }
    }

    /// Replaces the names in a text of the user, or in the text of the last filter of `inside`.
    fn expand(&mut self, text: &'a str) -> Result<String, TooLarge<'a>> {
        if self.inside.is_empty() && !text.contains('@') {
            return Ok(text.to_owned());
        }
        let mut words = Vec::new();
        for word in split_terms(text) {
            if let Some(&outermost) = self.inside.first() {
                // The blank behind it counts, so that names of empty filters come to an end, too.
                self.room = self.room.checked_sub(word.len() + 1).ok_or(TooLarge(outermost))?;
            }
            let saved = self.saved;
            let name =
                word.strip_prefix('@').filter(|name| self.inside.len() < MAX_NESTED && !self.inside.contains(name));
            words.push(match name.and_then(|name| Some((name, saved.get(name)?))) {
                Some((name, filter)) => {
                    self.inside.push(name);
                    let filter = self.expand(filter)?;
                    self.inside.pop();
                    filter
                }
                None => word.to_owned(),
            });
        }
        Ok(words.join(" "))
    }
}

/// Describes the first `@NAME` that [`expand`] cannot replace: it is unknown, its filter leads back to it, or it is too large.
/// `None` if there is none.
pub fn describe_unknown(text: &str, saved: &SavedFilters) -> Option<String> {
    let expanded = match Expansion::new(saved).expand(text) {
        Ok(expanded) => expanded,
        Err(TooLarge(name)) => {
            let most = format_thousands(MAX_EXPANDED_BYTES as u64);
            return Some(format!("@{name} stands for more than {most} characters, with the filters that it names"));
        }
    };
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
    fn filters_that_would_stand_for_an_endless_text_are_named_and_not_replaced() {
        let mut saved = saved();
        for (level, text) in [(0, "p:0".to_owned()), (1, String::new())] {
            saved.insert(format!("x{level}0"), text);
            for depth in 1..MAX_NESTED {
                // Each names the next one a hundred times.
                saved.insert(format!("x{level}{depth}"), format!("@x{level}{} ", depth - 1).repeat(100));
            }
            let last = format!("x{level}{}", MAX_NESTED - 1);
            let text = format!("@mine @{last} kind:dead");
            assert_eq!(expand(&text, &saved), text);
            let fault = format!("@{last} stands for more than 8,192 characters, with the filters that it names");
            assert_eq!(describe_unknown(&text, &saved), Some(fault));
            assert_eq!(describe_unknown(&format!("@x{level}1"), &saved), None);
        }
        let typed = "word ".repeat(MAX_EXPANDED_BYTES);
        assert_eq!(describe_unknown(&format!("{typed}@mine"), &saved), None, "what is typed has no limit");
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
        assert_eq!(change("p =1"), None);
        for (text, name) in [
            ("p:0 =@ü", "@ü"),
            ("p:0 =@my urgent", "@my urgent"),
            ("=@a p:1", "@a p:1"),
            (r#"p:0 =@"my urgent""#, r#"@"my urgent""#),
            ("p:0 =@", "@"),
        ] {
            let refused = format!("{name} is no name of a filter: letters, digits, - and _, no blanks");
            assert_eq!(change(text), Some(Err(refused)), "{text}");
        }
    }
}
