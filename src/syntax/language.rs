//! Languages that the built-in reviewer supports, and their detection.

use std::path::Path;

/// A supported language, with its own tree-sitter grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Go,
    Java,
    C,
    Cpp,
    CSharp,
    Ruby,
    Php,
    Bash,
}

impl Language {
    pub const ALL: [Self; 13] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::Tsx,
        Self::Go,
        Self::Java,
        Self::C,
        Self::Cpp,
        Self::CSharp,
        Self::Ruby,
        Self::Php,
        Self::Bash,
    ];

    /// Returns the position in [`Language::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the name for file names and the command line. TSX has the name of TypeScript.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript | Self::Tsx => "typescript",
            Self::Go => "go",
            Self::Java => "java",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::CSharp => "csharp",
            Self::Ruby => "ruby",
            Self::Php => "php",
            Self::Bash => "bash",
        }
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
        match program {
            "sh" | "bash" | "dash" | "ksh" | "zsh" => Some(Self::Bash),
            "python" => Some(Self::Python),
            "node" => Some(Self::JavaScript),
            "ruby" => Some(Self::Ruby),
            "php" => Some(Self::Php),
            _ => None,
        }
    }

    fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "rs" => Self::Rust,
            "py" | "pyi" | "pyw" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "c++" | "C" | "hh" | "hpp" | "hxx" | "h++" | "ipp" | "inl" => Self::Cpp,
            "cs" => Self::CSharp,
            "rb" | "rake" | "gemspec" => Self::Ruby,
            "php" | "phtml" => Self::Php,
            "sh" | "bash" | "zsh" | "ksh" => Self::Bash,
            _ => return None,
        })
    }

    /// Returns the tree-sitter grammar.
    pub fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::Cpp => tree_sitter_cpp::LANGUAGE.into(),
            Self::CSharp => tree_sitter_c_sharp::LANGUAGE.into(),
            Self::Ruby => tree_sitter_ruby::LANGUAGE.into(),
            Self::Php => tree_sitter_php::LANGUAGE_PHP.into(),
            Self::Bash => tree_sitter_bash::LANGUAGE.into(),
        }
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
