//! Computes the import figures: files that the given files import, and files that import them; one step in each
//! direction.
//!
//! - Pure. A file without an import relation to a given file gets 0.

use std::collections::{HashMap, HashSet};

use super::factors::FileFactors;
use super::files::CandidateFile;

/// Returns for each path the files that it imports.
type ImportLookup<'a> = &'a dyn Fn(&[&str]) -> Vec<Vec<String>>;

/// Sets the figure of the files that a given file imports.
pub fn add_imported_factors(
    files: &[CandidateFile<'_>],
    given: &[&str],
    ask: ImportLookup<'_>,
    factors: &mut [FileFactors],
) {
    let mut strongest: HashMap<String, f32> = HashMap::new();
    for imported in ask(given) {
        let figure = 1.0 / (imported.len().max(1) as f32).sqrt();
        for path in imported {
            let known = strongest.entry(path).or_default();
            *known = known.max(figure);
        }
    }
    for (file, factors) in files.iter().zip(factors) {
        factors.imported = strongest.get(file.path).copied().unwrap_or(0.0);
    }
}

/// Sets the figure of the leading files that import a given file.
pub fn add_importing_factors(
    files: &[CandidateFile<'_>],
    leading: &[usize],
    given: &[&str],
    ask: ImportLookup<'_>,
    factors: &mut [FileFactors],
) {
    let given: HashSet<&str> = given.iter().copied().collect();
    let paths: Vec<&str> = leading.iter().map(|number| files[*number].path).collect();
    let mut imported = ask(&paths);
    let mut importers: HashMap<String, f32> = HashMap::new();
    for imported in &mut imported {
        imported.retain(|path| given.contains(path.as_str()));
        for path in imported.iter() {
            *importers.entry(path.clone()).or_default() += 1.0;
        }
    }
    for (number, imported) in leading.iter().zip(&imported) {
        let figures = imported.iter().filter_map(|path| importers.get(path)).map(|count| 1.0 / count.sqrt());
        factors[*number].importing = figures.fold(0.0, f32::max);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::document::Document;
    use crate::index::vocabulary::Vocabulary;

    #[test]
    fn both_directions_count_by_the_root_of_how_many_there_are() {
        let document = Arc::new(Document::read("", &mut Vocabulary::default()));
        let file = |path| CandidateFile { path, document: &document, is_given: path == "given" };
        let files = ["given", "a", "b", "c", "d", "e"].map(file);
        // The given file imports four files; two leading files import it, and it imports one of these two.
        let ask = |paths: &[&str]| -> Vec<Vec<String>> {
            let of = |path: &&str| match *path {
                "given" => vec!["a", "b", "x", "y"],
                "b" | "c" => vec!["given", "a"],
                _ => vec!["a"],
            };
            paths.iter().map(|path| of(path).into_iter().map(str::to_owned).collect()).collect()
        };
        let mut factors = [FileFactors::default(); 6];
        add_imported_factors(&files, &["given"], &ask, &mut factors);
        add_importing_factors(&files, &[1, 2, 3, 4], &["given"], &ask, &mut factors);
        let half = 1.0 / 2.0f32.sqrt();
        let found = factors.map(|factors| (factors.imported, factors.importing));
        assert_eq!(found, [(0.0, 0.0), (0.5, 0.0), (0.5, half), (0.0, half), (0.0, 0.0), (0.0, 0.0)]);
    }
}
