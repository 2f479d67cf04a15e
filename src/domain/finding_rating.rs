//! Defines ratings of findings: priority and kind that the user gives in place of the reported ones. A rating decides
//! nothing, and later reports do not change it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Actor, Finding, FindingId, Kind, Priority, Time, TriageAction};

/// Priority and kind of a finding in place of the reported ones; `None` keeps what the reviewer reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rating {
    /// Priority by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Kind by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
}

/// Change of a rating as the user asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatingWish {
    /// Sets what is given, and keeps the rest of the rating.
    Set(Rating),
    /// Removes the rating.
    AsReported,
}

/// Line of `ratings.ndjson`. The last line of a finding holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingRating {
    /// Finding that is rated.
    pub finding_id: FindingId,
    /// Rating from now on; an empty one removes it.
    #[serde(default)]
    pub rating: Rating,
    /// Rating before this line; an undo needs no search.
    #[serde(default)]
    pub previous: Rating,
    /// Author of the line.
    pub actor: Actor,
    /// Time of the line.
    pub at: Time,
    /// Origin of the line.
    pub action: TriageAction,
    /// Group id of all findings rated by one keypress; one undo reverts the whole group.
    pub group: String,
}

impl Rating {
    /// Returns true if the rating changes nothing.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Sets priority and kind of a finding.
    pub fn apply(self, finding: &mut Finding) {
        finding.priority = self.priority.unwrap_or(finding.priority);
        finding.kind = self.kind.unwrap_or(finding.kind);
    }
}

impl fmt::Display for Rating {
    /// Writes `p1 SECURITY`, or `as reported` for an empty rating.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.priority, self.kind) {
            (None, None) => f.write_str("as reported"),
            (Some(priority), None) => write!(f, "{priority}"),
            (None, Some(kind)) => write!(f, "{kind}"),
            (Some(priority), Some(kind)) => write!(f, "{priority} {kind}"),
        }
    }
}

impl RatingWish {
    /// Parses `p1`, `SECURITY`, `p1 security` or `reported`. Case does not matter.
    ///
    /// # Errors
    ///
    /// A description of the problem, with the correct syntax.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().eq_ignore_ascii_case("reported") {
            return Ok(Self::AsReported);
        }
        let mut rating = Rating::default();
        for word in text.split_whitespace() {
            let is_priority = word.len() == 2 && word.starts_with(['p', 'P']);
            if let Some(priority) = word.parse().ok().filter(|_| is_priority && rating.priority.is_none()) {
                rating.priority = Some(priority);
            } else if let Some(kind) = word.to_ascii_uppercase().parse().ok().filter(|_| rating.kind.is_none()) {
                rating.kind = Some(kind);
            } else {
                return Err(format!(
                    "{word:?} is neither a priority nor a kind; write p1, SECURITY, p1 SECURITY or reported"
                ));
            }
        }
        if rating.is_empty() {
            return Err("write a priority and a kind: p1, SECURITY, p1 SECURITY or reported".to_owned());
        }
        Ok(Self::Set(rating))
    }

    /// Returns the rating that follows `before`.
    pub fn rating_after(self, before: Rating) -> Rating {
        match self {
            Self::AsReported => Rating::default(),
            Self::Set(wanted) => {
                Rating { priority: wanted.priority.or(before.priority), kind: wanted.kind.or(before.kind) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rating_is_parsed_written_and_kept_in_part() {
        for (text, before, after) in [
            ("p1", "as reported", "p1"),
            (" P0  security ", "as reported", "p0 SECURITY"),
            ("SECURITY p2", "p3 CORRECTNESS", "p2 SECURITY"),
            ("p2", "p3 DOCS", "p2 DOCS"),
            ("docs", "p0", "p0 DOCS"),
            ("Reported", "p3 DOCS", "as reported"),
        ] {
            let before = match RatingWish::parse(before.strip_prefix("as ").unwrap_or(before)) {
                Ok(wish) => wish.rating_after(Rating::default()),
                Err(error) => panic!("{before}: {error}"),
            };
            let rating = RatingWish::parse(text).map(|wish| wish.rating_after(before).to_string());
            assert_eq!(rating.as_deref(), Ok(after), "{text:?}");
        }
        for wrong in ["", "p4", "1", "p1 p2", "SECURITY DOCS", "securty", "p1 reported"] {
            let error = RatingWish::parse(wrong).expect_err(wrong);
            assert!(error.contains("write") && error.contains("p1 SECURITY or reported"), "{error}");
        }
    }
}
