//! Classifies paths: tests, file extension and subject.

/// Returns the file extension, which stands for the language.
pub fn extension(path: &str) -> &str {
    file_name(path).rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns 1 for the same folder and less for each step between the folders.
pub fn folder_proximity(a: &str, b: &str) -> f32 {
    let steps = |path: &str| path.split('/').count();
    let common = a.split('/').zip(b.split('/')).take_while(|(a, b)| a == b).count();
    1.0 / (1.0 + (steps(a) + steps(b) - 2 * common) as f32)
}

/// Returns true if a path looks like a test, as a ranking figure. It also matches `latest.rs`, and the weights were
/// fitted with that. The function `is_test_path` of the built-in analyzer classifies files for the user.
pub fn is_test(path: &str) -> bool {
    let path = path.to_lowercase();
    let is_folder = |part: &str| {
        matches!(
            part,
            "test" | "tests" | "spec" | "specs" | "__tests__" | "testing" | "testdata" | "integration" | "unit"
        )
    };
    let name = file_name(&path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    folder(&path).split('/').any(is_folder)
        || ["test", "tests", ".spec", "_spec"].iter().any(|ending| stem.ends_with(ending))
        || stem.starts_with("test_")
        || stem.starts_with("test-")
}

/// Returns the subject of a file by its name: the same for `parser.rs`, `parser_test.rs` and `ParserTests.rs`.
pub fn subject(path: &str) -> String {
    let name = file_name(path);
    let mut subject = name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase();
    for ending in [".spec", ".test", "_test", "-test", "tests", "test", "_spec", "spec", ".d", ".stories"] {
        subject.truncate(subject.strip_suffix(ending).unwrap_or(&subject).len());
    }
    let mut rest = subject.as_str();
    for beginning in ["test_", "test-", "test"] {
        rest = rest.strip_prefix(beginning).unwrap_or(rest);
    }
    rest.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns true for names that say nothing about the content of a file.
pub fn is_generic_name(subject: &str) -> bool {
    matches!(subject, "" | "index" | "mod" | "init" | "main" | "lib" | "utils" | "util" | "types")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_and_what_it_tests_have_one_subject() {
        for path in
            ["src/parser.rs", "tests/parser_test.rs", "test/ParserTests.cs", "test_parser.py", "a/parser.spec.ts"]
        {
            assert_eq!(subject(path), "parser", "{path}");
        }
        assert!(is_test("src/test/java/FooTest.java") && is_test("a/b_test.go") && !is_test("src/contest/a.rs"));
    }
}
