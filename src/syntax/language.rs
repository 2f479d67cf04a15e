//! Supported languages and their detection. To add one: a file in `assets/languages/`, its names and patterns in
//! `assets/knowledge/` (with examples in `tests/knowledge/`), a sample in `tests/languages/`, and a row of `languages!`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use super::definition;

/// Declares [`Language`] from rows of a variant, its file in `assets/languages/`, its files in `assets/knowledge/` and
/// its tree-sitter grammar.
macro_rules! languages {
    ($($variant:ident: $file:literal, $knowledge:literal, $grammar:expr;)+) => {
        /// A supported language, with its own tree-sitter grammar.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Language {
            $(
                #[doc = concat!("The language of `assets/languages/", $file, ".toml`.")]
                $variant
            ),+
        }

        impl Language {
            /// Every language, in the order of the variants.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            /// Returns the tree-sitter grammar.
            pub fn grammar(self) -> tree_sitter::Language {
                match self {
                    $(Self::$variant => $grammar.into()),+
                }
            }

            /// Returns the name of the language's file in `assets/languages/`, without `.toml`.
            pub(super) fn file_stem(self) -> &'static str {
                match self {
                    $(Self::$variant => $file),+
                }
            }

            /// Returns the head of the language's file in `assets/languages/`, as JSON.
            pub(super) fn file_head(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!(env!("OUT_DIR"), "/languages/", $file, ".head.json"))),+
                }
            }

            /// Returns the sections of the language's file in `assets/languages/`, as JSON.
            pub(super) fn file_sections(self) -> &'static str {
                match self {
                    $(Self::$variant => {
                        include_str!(concat!(env!("OUT_DIR"), "/languages/", $file, ".sections.json"))
                    }),+
                }
            }

            /// Returns the published list of standard library names, `assets/knowledge/names/NAME.txt`.
            pub fn stdlib_names(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../assets/knowledge/names/", $knowledge, ".txt"))),+
                }
            }

            /// Returns the curated patterns as JSON, `assets/knowledge/NAME.json`.
            pub fn curated_patterns(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../assets/knowledge/", $knowledge, ".json"))),+
                }
            }
        }
    };
}

languages! {
    Rust: "rust", "rust", tree_sitter_rust::LANGUAGE;
    Python: "python", "python", tree_sitter_python::LANGUAGE;
    JavaScript: "javascript", "javascript", tree_sitter_javascript::LANGUAGE;
    TypeScript: "typescript", "typescript", tree_sitter_typescript::LANGUAGE_TYPESCRIPT;
    Tsx: "tsx", "typescript", tree_sitter_typescript::LANGUAGE_TSX;
    Go: "go", "go", tree_sitter_go::LANGUAGE;
    Java: "java", "java", tree_sitter_java::LANGUAGE;
    Kotlin: "kotlin", "kotlin", tree_sitter_kotlin_ng::LANGUAGE;
    Scala: "scala", "scala", tree_sitter_scala::LANGUAGE;
    Swift: "swift", "swift", tree_sitter_swift::LANGUAGE;
    C: "c", "c", tree_sitter_c::LANGUAGE;
    Cpp: "cpp", "cpp", tree_sitter_cpp::LANGUAGE;
    CSharp: "csharp", "csharp", tree_sitter_c_sharp::LANGUAGE;
    Ruby: "ruby", "ruby", tree_sitter_ruby::LANGUAGE;
    Php: "php", "php", tree_sitter_php::LANGUAGE_PHP;
    Bash: "bash", "bash", tree_sitter_bash::LANGUAGE;
}

impl Language {
    /// Returns the position in [`Language::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the name for file names and the command line. TSX has the name of TypeScript.
    pub fn name(self) -> &'static str {
        &definition::head(self).name
    }

    /// Returns the operators whose repetition makes the grammar ambiguous, one byte each.
    pub(super) fn chain_operators(self) -> &'static [u8] {
        definition::head(self).chain_operators.as_bytes()
    }

    /// Returns the operators that may stand before a `*` at the end of a line only a few times, one byte each.
    pub(super) fn lone_star_operators(self) -> &'static [u8] {
        definition::head(self).lone_star_operators.as_bytes()
    }

    /// Returns the operators that, behind a comma, cost the parser the square of their number.
    pub(super) fn leading_operators(self) -> &'static [u8] {
        definition::head(self).leading_operators.as_bytes()
    }

    /// Detects the language by the extension of the file name or, without an extension, by the `#!` line of `content`.
    /// A `.h` file is C++ if it has lines that only C++ has.
    pub fn detect(path: &str, content: &[u8]) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if let Some(extension) = Path::new(name).extension().and_then(|extension| extension.to_str()) {
            return match Self::from_extension(extension) {
                Some(Self::C) if extension == "h" && is_cpp_header(content) => Some(Self::Cpp),
                language => language,
            };
        }
        let first_line = content.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
        let program = first_line
            .rsplit(|&byte| byte == b'/' || byte == b' ')
            .find(|word| !word.is_empty() && !word.starts_with(b"-"))?;
        let program =
            std::str::from_utf8(program).ok()?.trim().trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        Self::ALL
            .into_iter()
            .find(|language| definition::head(*language).interpreters.iter().any(|name| name == program))
    }

    /// Returns the language of files with this extension, as it is written or else in lower case.
    pub(super) fn from_extension(extension: &str) -> Option<Self> {
        static BY_EXTENSION: LazyLock<HashMap<&str, Language>> = LazyLock::new(|| {
            let extensions =
                |language| definition::head(language).extensions.iter().map(move |text| (text.as_str(), language));
            Language::ALL.into_iter().flat_map(extensions).collect()
        });
        BY_EXTENSION.get(extension).or_else(|| BY_EXTENSION.get(extension.to_ascii_lowercase().as_str())).copied()
    }
}

/// Returns whether the first 256 KiB of a header contain text that only C++ has.
fn is_cpp_header(content: &[u8]) -> bool {
    const MAX_HEADER_BYTES: usize = 256 * 1024;
    const LINE_STARTS: [&[u8]; 9] = [
        b"namespace ",
        b"template ",
        b"template<",
        b"public:",
        b"private:",
        b"protected:",
        b"using namespace ",
        b"constexpr ",
        b"virtual ",
    ];
    let content = &content[..content.len().min(MAX_HEADER_BYTES)];
    memchr::memmem::find(content, b"std::").is_some()
        || content.split(|&byte| byte == b'\n').map(|line| line.trim_ascii_start()).any(|line| {
            LINE_STARTS.iter().any(|start| line.starts_with(start))
                || line.strip_prefix(b"class ").is_some_and(|rest| {
                    let name = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                    matches!(rest[name..].trim_ascii_start(), [] | [b':' | b'{' | b';', ..])
                })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_extension_and_interpreter_belongs_to_one_language() {
        let mut seen = HashMap::new();
        for language in Language::ALL {
            let head = definition::head(language);
            let extensions = head.extensions.iter().map(|text| format!("a.{text}"));
            for name in extensions.chain(head.interpreters.iter().map(|text| format!("#!/bin/{text}"))) {
                assert_eq!(seen.insert(name.clone(), language), None, "{name} is listed twice");
                let (path, content) = if name.starts_with('#') { ("run", name.as_str()) } else { (name.as_str(), "") };
                assert_eq!(Language::detect(path, content.as_bytes()), Some(language), "{name}");
            }
        }
    }

    #[test]
    fn languages_are_known_by_name_first_line_and_header_lines() {
        for (path, content, expected) in [
            ("a/b.rs", "", Some(Language::Rust)),
            ("a.tsx", "", Some(Language::Tsx)),
            ("x.h", "#pragma once\nint f(void);\n", Some(Language::C)),
            ("x.h", "#pragma once\n  namespace a {\n", Some(Language::Cpp)),
            ("x.h", "std::string f();\n", Some(Language::Cpp)),
            ("x.h", "/* a class of\nclass of things */ int f(void);\n", Some(Language::C)),
            ("run", "#!/usr/bin/env python3\n", Some(Language::Python)),
            ("run", "#!/bin/sh -e\n", Some(Language::Bash)),
            ("run", "echo\n", None),
            ("a.md", "", None),
        ] {
            assert_eq!(Language::detect(path, content.as_bytes()), expected, "{path} {content:?}");
        }
    }
}
