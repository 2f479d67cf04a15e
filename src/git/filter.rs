//! Decides which changed files a review leaves out, by name, git attributes and content.
//!
//! Attributes are read from a tree, for a change that of its base, not from the worktree, `info/attributes` or the user's
//! settings, so that a later check leaves out the same files. Linguist attributes take precedence over rules by name.

use ignore::gitignore::Gitignore;

use super::attributes::{AttributeLookup, AttributeName, AttributeState};
use super::gitignore::parse_globs;
use super::{FilterSettings, GitError, Repo, path_bytes};
use crate::domain::OmissionReason;

/// Length in bytes of the prefix in which a NUL marks a file as binary; the value of git.
const BINARY_CHECK_BYTES: usize = 8000;
/// Maximum average line length, in bytes, of a hand-written code file. Linguist uses 110 for JavaScript and CSS, but
/// wide tables and data in readable code are longer.
const MAX_AVERAGE_LINE_BYTES: usize = 500;
/// Maximum length in bytes of a line in a hand-written code file: ten screens of 500 bytes.
const MAX_LINE_BYTES: usize = 5000;
/// Number of lines searched for a marker of generated code. Go's convention puts the marker before the first code, and
/// a license of about 20 lines can stand above it.
const MAX_MARKER_LINES: usize = 40;
/// Number of bytes searched for a marker of generated code.
const MAX_MARKER_BYTES: usize = 4096;

/// File names of package managers' lock files.
const LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "Gemfile.lock",
    "Gopkg.lock",
    "Package.resolved",
    "Pipfile.lock",
    "Podfile.lock",
    "bun.lock",
    "bun.lockb",
    "cabal.project.freeze",
    "composer.lock",
    "conan.lock",
    "deno.lock",
    "flake.lock",
    "glide.lock",
    "go.sum",
    "go.work.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pdm.lock",
    "pixi.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "pylock.toml",
    "stack.yaml.lock",
    "uv.lock",
    "yarn.lock",
    ".terraform.lock.hcl",
    "MODULE.bazel.lock",
    "Cartfile.resolved",
    "rebar.lock",
];

/// Folder names of third-party code, at any depth. From linguist's `vendor.yml`, without names that projects often use
/// for their own code (`dist`, `deps`, `cache`).
const VENDOR_FOLDERS: &[&str] = &[
    "vendor",
    "vendors",
    "_vendor",
    "third_party",
    "third-party",
    "thirdparty",
    "Third_Party",
    "ThirdParty",
    "3rdparty",
    "3rd_party",
    "3rd-party",
    "node_modules",
    "bower_components",
    "jspm_packages",
    "Pods",
    "Carthage",
    "Godeps",
    "site-packages",
    ".yarn",
    ".bundle",
];

/// Suffixes of generated files; from linguist's `generated.rb`.
const GENERATED_SUFFIXES: &[&str] = &[
    ".pb.go",
    ".pb.gw.go",
    "_pb2.py",
    "_pb2.pyi",
    "_pb2_grpc.py",
    ".pb.cc",
    ".pb.h",
    ".pb.c",
    "_pb.js",
    "_pb.d.ts",
    "_pb.rb",
    ".g.dart",
    ".freezed.dart",
    ".designer.cs",
    ".g.cs",
    ".g.i.cs",
    ".min.js.map",
    ".min.css.map",
    ".js.map",
    ".css.map",
];

const MINIFIED_SUFFIXES: &[&str] = &[".min.js", ".min.mjs", ".min.cjs", ".min.css", "-min.js", "-min.css"];

/// Extensions of code files, where long lines indicate minified code; prose and data may have long lines.
const CODE_EXTENSIONS: &[&str] = &[
    "bash", "c", "cc", "cjs", "cpp", "cs", "css", "cxx", "dart", "ex", "exs", "go", "h", "hh", "hpp", "hxx", "java",
    "js", "jsx", "kt", "less", "lua", "m", "mjs", "mm", "mts", "php", "pl", "py", "pyi", "rb", "rs", "scala", "scss",
    "sh", "swift", "ts", "tsx", "vue", "zig",
];

/// Origin of an omission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OmissionCause {
    /// The settings or the attributes name the file.
    Rule,
    /// The file's name, or that of a folder.
    Name,
    /// The file's content or size.
    Content,
}

/// Function that returns the `.gitattributes` content of a folder.
type AttributeSource<'a> = Box<dyn FnMut(&[u8]) -> Option<Vec<u8>> + 'a>;

/// Decides which files of a snapshot a review leaves out. Each `.gitattributes` file is read once.
pub struct ReviewFilter<'a> {
    attributes: AttributeLookup<AttributeSource<'a>>,
    ignored: Gitignore,
    max_file_bytes: u64,
}

impl Repo {
    /// Returns the filter for the files of a commit's tree.
    ///
    /// # Errors
    /// Returns an error when the commit cannot be read.
    pub fn review_filter(&self, commit: &str, filter: &FilterSettings) -> Result<ReviewFilter<'_>, GitError> {
        let tree = self.find_commit(commit)?.tree().map_err(self.git_error("read a commit"))?;
        Ok(self.review_filter_for_tree(Some(tree), filter))
    }

    /// Returns the filter with the attributes of a tree; without a tree, no attributes apply.
    pub(super) fn review_filter_for_tree<'a>(
        &'a self,
        tree: Option<git2::Tree<'a>>,
        filter: &FilterSettings,
    ) -> ReviewFilter<'a> {
        let source: AttributeSource<'a> = Box::new(move |folder: &[u8]| {
            let path = match folder.is_empty() {
                true => b".gitattributes".to_vec(),
                false => [folder, b"/.gitattributes"].concat(),
            };
            let entry = super::trees::leaf_at(&self.inner, tree.as_ref()?, &path)?;
            Some(self.inner.find_blob(entry.id).ok()?.content().to_vec())
        });
        ReviewFilter {
            attributes: AttributeLookup::new(source, None, None),
            ignored: parse_globs(&filter.ignored_paths),
            max_file_bytes: filter.max_file_bytes,
        }
    }
}

impl ReviewFilter<'_> {
    /// Returns a filter that uses only a file's name, size and content, so that equal files always get the same result.
    pub fn without_attributes(max_file_bytes: u64) -> Self {
        let none: AttributeSource<'_> = Box::new(|_| None);
        Self { attributes: AttributeLookup::new(none, None, None), ignored: Gitignore::empty(), max_file_bytes }
    }

    /// Returns the reason why a review leaves out the file; `None` when the file is reviewed.
    pub fn left_out_reason(&mut self, path: &str, content: &[u8]) -> Option<OmissionReason> {
        let path = super::path_bytes::from_text(path).pop().unwrap_or_default();
        let size = || self.is_oversized(content.len() as u64).then_some(OmissionReason::Oversized);
        let oversized = size();
        self.check_name(&path).map(|(reason, _)| reason).or(oversized).or_else(|| self.check_content(&path, content))
    }

    /// Does the same as [`ReviewFilter::left_out_reason`], from the name and the attributes only.
    pub fn left_out_reason_by_name(&mut self, path: &str) -> Option<OmissionReason> {
        self.check_name(&super::path_bytes::from_text(path).pop().unwrap_or_default()).map(|(reason, _)| reason)
    }

    /// Does the same as [`ReviewFilter::left_out_reason`], from the traits of the content and the attributes only.
    pub fn left_out_reason_by_traits(&mut self, path: &str, looks: ContentTraits) -> Option<OmissionReason> {
        self.check_traits(&super::path_bytes::from_text(path).pop().unwrap_or_default(), looks)
    }

    pub(super) fn is_oversized(&self, size: u64) -> bool {
        size > self.max_file_bytes
    }

    /// Checks the settings, the attributes and the name, without reading the file.
    pub(super) fn check_name(&mut self, path: &[u8]) -> Option<(OmissionReason, OmissionCause)> {
        if self.ignored.matched_path_or_any_parents(path_bytes::to_path(path), false).is_ignore() {
            return Some((OmissionReason::Ignored, OmissionCause::Rule));
        }
        let [generated, vendored, diff] =
            self.attributes.get(path, [AttributeName::Generated, AttributeName::Vendored, AttributeName::Diff]);
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let name = String::from_utf8_lossy(name);
        let lower = name.to_ascii_lowercase();
        let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| lower.ends_with(suffix));
        if generated == AttributeState::Set {
            return Some((OmissionReason::Generated, OmissionCause::Rule));
        }
        if vendored == AttributeState::Set {
            return Some((OmissionReason::Vendored, OmissionCause::Rule));
        }
        if diff == AttributeState::Unset {
            return Some((OmissionReason::Binary, OmissionCause::Rule));
        }
        if generated != AttributeState::Unset && LOCK_FILES.contains(&name.as_ref()) {
            return Some((OmissionReason::LockFile, OmissionCause::Name));
        }
        if vendored != AttributeState::Unset && find_vendor_folder(path).is_some() {
            return Some((OmissionReason::Vendored, OmissionCause::Name));
        }
        if generated == AttributeState::Unset {
            return None;
        }
        if ends(MINIFIED_SUFFIXES) {
            return Some((OmissionReason::Minified, OmissionCause::Name));
        }
        ends(GENERATED_SUFFIXES).then_some((OmissionReason::Generated, OmissionCause::Name))
    }

    /// Checks the content of a file that passed the check of its name.
    pub(super) fn check_content(&mut self, path: &[u8], content: &[u8]) -> Option<OmissionReason> {
        self.check_traits(path, ContentTraits::from_content(content))
    }

    fn check_traits(&mut self, path: &[u8], looks: ContentTraits) -> Option<OmissionReason> {
        let [generated, diff] = self.attributes.get(path, [AttributeName::Generated, AttributeName::Diff]);
        match () {
            () if diff != AttributeState::Set && looks.has_nul => Some(OmissionReason::Binary),
            () if generated == AttributeState::Unset => None,
            () if looks.has_generated_marker => Some(OmissionReason::Generated),
            () if looks.has_long_lines && is_code(path) => Some(OmissionReason::Minified),
            () => None,
        }
    }
}

/// Traits of a file's content that indicate binary, generated or minified files, without its name and attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentTraits {
    has_nul: bool,
    has_generated_marker: bool,
    has_long_lines: bool,
}

impl ContentTraits {
    pub fn from_content(content: &[u8]) -> Self {
        Self {
            has_nul: is_binary(content),
            has_generated_marker: has_generated_marker(content),
            has_long_lines: has_long_lines(content),
        }
    }

    /// Encodes the traits as a number for [`ContentTraits::from_bits`].
    pub fn to_bits(self) -> u8 {
        u8::from(self.has_nul) | u8::from(self.has_generated_marker) << 1 | u8::from(self.has_long_lines) << 2
    }

    /// Decodes the number of [`ContentTraits::to_bits`]; `None` for an invalid number.
    pub fn from_bits(bits: u8) -> Option<Self> {
        let has = |bit: u8| bits & 1 << bit != 0;
        (bits < 8).then(|| Self { has_nul: has(0), has_generated_marker: has(1), has_long_lines: has(2) })
    }
}

/// Returns true if the first 8,000 bytes contain a NUL, as git decides.
pub fn is_binary(content: &[u8]) -> bool {
    memchr::memchr(0, content.get(..BINARY_CHECK_BYTES).unwrap_or(content)).is_some()
}

/// Returns the outermost folder of third-party code that the path is in, without a slash at its end.
pub(super) fn find_vendor_folder(path: &[u8]) -> Option<&[u8]> {
    let mut start = 0;
    // The last part is the file name.
    for end in memchr::memchr_iter(b'/', path) {
        let part = path.get(start..end).unwrap_or_default();
        if VENDOR_FOLDERS.iter().any(|folder| folder.as_bytes() == part) {
            return path.get(..end);
        }
        start = end + 1;
    }
    None
}

/// Returns true for a code file, where long lines indicate minified code.
pub(super) fn is_code(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let ending = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default().to_ascii_lowercase();
    name.len() != ending.len() && CODE_EXTENSIONS.iter().any(|known| known.as_bytes() == ending)
}

fn has_long_lines(content: &[u8]) -> bool {
    let lines = count_lines(content).max(1) as usize;
    // A small file with a single long line is not minified.
    if content.len() > 4 * MAX_AVERAGE_LINE_BYTES && content.len() / lines > MAX_AVERAGE_LINE_BYTES {
        return true;
    }
    let mut start = 0;
    memchr::memchr_iter(b'\n', content).chain([content.len()]).any(|end| {
        let length = end - start;
        start = end + 1;
        length > MAX_LINE_BYTES
    })
}

/// Returns true when a comment in the first lines marks the file as generated.
fn has_generated_marker(content: &[u8]) -> bool {
    let head = content.get(..MAX_MARKER_BYTES).unwrap_or(content);
    head.split(|byte| *byte == b'\n').take(MAX_MARKER_LINES).any(|line| {
        let line = String::from_utf8_lossy(line).trim().to_ascii_lowercase();
        let comment = ["//", "#", "/*", "*", "--", ";", "<!--", "%", "\"\"\"", "'''", "rem ", "(*", "{-", "!"];
        let is_comment = comment.iter().any(|start| line.starts_with(start));
        is_comment && GENERATED_MARKERS.iter().any(|marker| has_marker(&line, marker))
    })
}

/// Markers of generated code: lower-case phrases that must occur in a line in this order.
const GENERATED_MARKERS: &[&[&str]] = &[
    &["@generated"],
    &["<auto-generated"],
    &["code generated by", "do not edit"],
    &["generated", "do not edit"],
    &["generated", "do not modify"],
    &["generated", "don't edit"],
    &["do not edit", "generated"],
    &["this file is autogenerated"],
    &["this file was autogenerated"],
    &["this file is auto-generated"],
    &["this file was auto-generated"],
    &["this file is automatically generated"],
    &["this file was automatically generated"],
    &["this is an autogenerated file"],
    &["this is an auto-generated file"],
    &["autogenerated file"],
    &["automatically generated by"],
    &["generated by the protocol buffer compiler"],
    &["autogenerated by thrift"],
];

fn has_marker(line: &str, marker: &[&str]) -> bool {
    let mut rest = line;
    for words in marker {
        let Some(at) = rest.find(words) else { return false };
        let before = rest.get(..at).and_then(|before| before.chars().next_back());
        let after = rest.get(at + words.len()..).unwrap_or_default();
        // Text about markers quotes them, and `@generated` must not be part of a longer word.
        let quote =
            |c: Option<char>| c.is_some_and(|c| matches!(c, '"' | '\'' | '`' | '“' | '”') || c.is_alphanumeric());
        if quote(before) || quote(after.chars().next()) {
            return false;
        }
        rest = after;
    }
    true
}

/// Counts lines; a last line without a line end counts.
pub(super) fn count_lines(content: &[u8]) -> u32 {
    let ends = memchr::memchr_iter(b'\n', content).count();
    let open = usize::from(content.last().is_some_and(|last| *last != b'\n'));
    u32::try_from(ends + open).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_filter(attributes: &'static str, ignored: &[&str]) -> ReviewFilter<'static> {
        let source: AttributeSource = Box::new(move |folder| folder.is_empty().then(|| attributes.as_bytes().to_vec()));
        ReviewFilter {
            attributes: AttributeLookup::new(source, None, None),
            ignored: parse_globs(&ignored.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>()),
            max_file_bytes: 100_000,
        }
    }

    #[test]
    fn names_attributes_and_contents_decide() {
        use OmissionReason as R;
        let attributes = "*.gen.rs linguist-generated\nmine/** -linguist-vendored\nother/** linguist-vendored=true\n\
            *.dat -diff\n*.blob binary\n*.txt diff\nvendored.lock -linguist-generated\nkept.min.js -linguist-generated\n";
        let long = "x".repeat(MAX_LINE_BYTES + 1);
        let dense = format!("{}\n", "y".repeat(600)).repeat(10);
        let late = format!("{}// @generated\n", "// line\n".repeat(MAX_MARKER_LINES));
        for (path, content, reason) in [
            ("src/main.rs", "fn main() {}\n", None),
            ("docs/api/x.md", "text\n", Some(R::Ignored)),
            ("src/a.gen.rs", "x", Some(R::Generated)),
            ("vendor/a.c", "x", Some(R::Vendored)),
            ("a/node_modules/b/c.js", "x", Some(R::Vendored)),
            ("mine/vendor/a.c", "x", None),
            ("other/a.c", "x", Some(R::Vendored)),
            ("vendor", "a file of that name", None),
            ("a.dat", "x", Some(R::Binary)),
            ("a.blob", "x", Some(R::Binary)),
            ("a.txt", "x\0", None),
            ("a.rs", "x\0", Some(R::Binary)),
            ("crates/x/Cargo.lock", "x", Some(R::LockFile)),
            ("a.min.js", "x", Some(R::Minified)),
            ("kept.min.js", "x", None),
            ("a.js", &long, Some(R::Minified)),
            ("a.json", &long, None),
            ("a.css", &dense, Some(R::Minified)),
            ("js", &long, None),
            ("api_pb2.py", "x", Some(R::Generated)),
            ("a.go", "// Code generated by stringer; DO NOT EDIT.\n", Some(R::Generated)),
            ("a.py", "# This file is autogenerated by x\n", Some(R::Generated)),
            ("b.py", "#!/usr/bin/python\n# License\n# @generated by tool\n", Some(R::Generated)),
            ("c.py", "marker = '@generated'\n", None),
            ("d.rs", "// we look for `@generated` here\n", None),
            ("e.rs", "// regenerated, do not edit lightly\n", None),
            ("f.rs", &late, None),
            ("g.cs", "//------\n// <auto-generated>\n", Some(R::Generated)),
        ] {
            assert_eq!(
                sample_filter(attributes, &["docs/api/"]).left_out_reason(path, content.as_bytes()),
                reason,
                "{path}"
            );
        }
        assert_eq!(sample_filter("", &[]).left_out_reason("a.rs", &[b'\n'; 100_001]), Some(R::Oversized));
    }

    #[test]
    fn lines_are_counted_as_git_counts_them() {
        for (text, lines) in [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2)] {
            assert_eq!(count_lines(text.as_bytes()), lines, "{text:?}");
        }
    }
}
