//! Resolves imports: finds the files of a tree that a file imports directly.
//!
//! Invariants:
//! - Only paths are compared; no file is opened.
//! - An import from outside of the tree resolves to nothing.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::retrieve::paths::{extension, folder, folder_proximity};

/// File endings that an import in JavaScript or TypeScript may omit.
const SCRIPT_ENDINGS: [&str; 10] =
    ["", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".d.ts", "/index.ts", "/index.js"];
/// Folders below a package in which its code may be.
const SOURCE_FOLDERS: [&str; 3] = ["", "src/", "lib/"];

/// Paths of a tree, indexed for import resolution. The maps are built at first use, because trees can be large and most
/// imports need one exact path only.
pub struct ImportResolver<'a> {
    /// Sorted.
    paths: Vec<&'a str>,
    /// Files by their name with ending.
    by_name: OnceLock<PathsByName<'a>>,
    by_folder: OnceLock<PathsByName<'a>>,
    /// Folders by their last component.
    folders: OnceLock<PathsByName<'a>>,
    /// Name of the Go module at the root.
    module: Option<&'a str>,
}

type PathsByName<'a> = HashMap<&'a str, Vec<&'a str>>;

impl<'a> ImportResolver<'a> {
    /// Builds a resolver. `module` is the module name in the root's `go.mod`.
    pub fn new(paths: impl Iterator<Item = &'a str>, module: Option<&'a str>) -> Self {
        let mut paths: Vec<&str> = paths.collect();
        paths.sort_unstable();
        Self { paths, by_name: OnceLock::new(), by_folder: OnceLock::new(), folders: OnceLock::new(), module }
    }

    fn files_named(&self, name_of_file: &str) -> &[&'a str] {
        let by_name =
            self.by_name.get_or_init(|| group_by_name(self.paths.iter().map(|path| (file_name(path), *path))));
        by_name.get(name_of_file).map_or(&[], Vec::as_slice)
    }

    fn files_in(&self, place: &str) -> &[&'a str] {
        let by_folder =
            self.by_folder.get_or_init(|| group_by_name(self.paths.iter().map(|path| (folder(path), *path))));
        by_folder.get(place).map_or(&[], Vec::as_slice)
    }

    fn folders_named(&self, name_of_folder: &str) -> &[&'a str] {
        let all = || {
            let mut seen: HashSet<&str> = HashSet::new();
            let mut found = Vec::new();
            for path in &self.paths {
                let mut around = folder(path);
                while !around.is_empty() && seen.insert(around) {
                    found.push((file_name(around), around));
                    around = folder(around);
                }
            }
            group_by_name(found.into_iter())
        };
        self.folders.get_or_init(all).get(name_of_folder).map_or(&[], Vec::as_slice)
    }

    /// Returns the files that the `imports` of the file at `path` resolve to, sorted by path, without the file itself.
    pub fn resolve_imports(&self, path: &str, imports: &[String]) -> Vec<String> {
        let mut found: Vec<&str> = imports.iter().flat_map(|import| self.resolve(path, import)).collect();
        found.retain(|other| *other != path);
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(str::to_owned).collect()
    }

    /// Parses the module name from the text of a `go.mod`.
    pub fn parse_go_module(text: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(text);
        let name = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
        Some(name.trim().trim_matches('"').to_owned())
    }

    /// Resolves one import by the rules of the file's language.
    fn resolve(&self, path: &str, import: &str) -> Vec<&'a str> {
        let one = |found: Option<&'a str>| found.into_iter().collect();
        match extension(path) {
            "rs" => one(self.resolve_rust(path, import)),
            "py" => one(self.resolve_python(path, import)),
            "go" => self.resolve_go(import),
            "java" | "kt" | "kts" | "scala" | "sc" => self.resolve_java(path, import),
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" => one(self.resolve_script(path, import)),
            "rb" => one(self
                .find_beside(path, &format!("{import}.rb"))
                .or_else(|| self.find_by_suffix(path, &format!("{import}.rb")))),
            "php" => one(self.find_by_suffix(path, &format!("{}.php", import.replace('\\', "/")))),
            _ => one(self.find_beside(path, import).or_else(|| self.find_by_suffix(path, import))),
        }
    }

    fn find_file(&self, path: &str) -> Option<&'a str> {
        self.paths.binary_search(&path).ok().map(|at| self.paths[at])
    }

    /// Finds a file by a path relative to the folder of another file.
    fn find_beside(&self, path: &str, named: &str) -> Option<&'a str> {
        self.find_file(&super::symlinks::resolve_target(path, named)?)
    }

    /// Finds the file whose path ends with `end`. Among several, the nearest to `path` is returned.
    fn find_by_suffix(&self, path: &str, end: &str) -> Option<&'a str> {
        let fits = |other: &&&str| other.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let near = |other: &&str| folder_proximity(folder(path), folder(other));
        let found = self.files_named(file_name(end)).iter().filter(fits);
        found.copied().max_by(|a, b| near(a).total_cmp(&near(b)).then(b.cmp(a)))
    }

    /// Resolves `crate::a::b::C` to `src/a/b/C.rs`, `src/a/b.rs`, `src/a.rs` or the root of the crate.
    fn resolve_rust(&self, path: &str, import: &str) -> Option<&'a str> {
        let own = match file_name(path) {
            "mod.rs" | "lib.rs" | "main.rs" => folder(path).to_owned(),
            name => join_path(folder(path), name.trim_end_matches(".rs")),
        };
        let mut parts: Vec<&str> = import.split("::").collect();
        let first = *parts.first()?;
        // A first name that is no local module and no crate of the tree belongs to an external crate.
        let (mut base, least) = match first {
            "crate" => (self.find_crate_root(path)?.to_owned(), 0),
            "self" => (own, 1),
            "super" => (folder(&own).to_owned(), 0),
            _ => match self.find_package(path, &[first, &first.replace('_', "-")], "src/lib.rs") {
                Some(package) => (join_path(package, "src"), 0),
                None => (join_path(&own, first), 0),
            },
        };
        parts.remove(0);
        while parts.first() == Some(&"super") {
            base = folder(&base).to_owned();
            parts.remove(0);
        }
        (least..=parts.len()).rev().find_map(|length| {
            let place = parts[..length].iter().fold(base.clone(), |place, part| join_path(&place, part));
            let ends: &[&str] =
                if length == 0 { &["/lib.rs", "/main.rs", "/mod.rs", ".rs"] } else { &[".rs", "/mod.rs"] };
            ends.iter().find_map(|end| self.find_file(format!("{place}{end}").trim_start_matches('/')))
        })
    }

    /// Returns the folder that holds the root module of the file's crate.
    fn find_crate_root<'p>(&self, path: &'p str) -> Option<&'p str> {
        let mut around = folder(path);
        loop {
            let is_root = |file: &str| self.find_file(&join_path(around, file)).is_some();
            if is_root("lib.rs") || is_root("main.rs") {
                return Some(around);
            }
            if around.is_empty() {
                return None;
            }
            around = folder(around);
        }
    }

    /// Returns the nearest folder with one of these names that contains `file`.
    fn find_package(&self, path: &str, names: &[&str], file: &str) -> Option<&'a str> {
        let found = names.iter().flat_map(|name| self.folders_named(name));
        let near = |other: &&str| folder_proximity(folder(path), other);
        let found = found.copied().filter(|place| self.find_file(&join_path(place, file)).is_some());
        found.max_by(|a, b| near(a).total_cmp(&near(b)).then(b.cmp(a)))
    }

    /// Resolves `a.b.c` to a module of this name or to a member of `a.b`, from a source root or a folder that is no
    /// package.
    fn resolve_python(&self, path: &str, import: &str) -> Option<&'a str> {
        let name = import.trim_start_matches('.');
        let dots = import.len() - name.len();
        let mut roots: Vec<String> = Vec::new();
        let mut around = folder(path);
        match dots {
            0 => loop {
                if self.find_file(&join_path(around, "__init__.py")).is_none() {
                    roots.extend(SOURCE_FOLDERS.map(|source| join_path(around, source.trim_end_matches('/'))));
                }
                if around.is_empty() {
                    break;
                }
                around = folder(around);
            },
            _ => {
                (1..dots).for_each(|_| around = folder(around));
                roots.push(around.to_owned());
            }
        }
        let parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
        let least = usize::from(dots == 0);
        for length in (least..=parts.len()).rev().take(2) {
            for root in &roots {
                let place = parts[..length].iter().fold(root.clone(), |place, part| join_path(&place, part));
                let found = [format!("{place}.py"), join_path(&place, "__init__.py")]
                    .iter()
                    .find_map(|path| self.find_file(path));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Returns all files of the package except its tests.
    fn resolve_go(&self, import: &str) -> Vec<&'a str> {
        let place = self.module.and_then(|module| import.strip_prefix(module));
        let Some(place) = place.filter(|place| place.is_empty() || place.starts_with('/')) else { return Vec::new() };
        let files = self.files_in(place.trim_start_matches('/')).iter().copied();
        files.filter(|path| extension(path) == "go" && !path.ends_with("_test.go")).collect()
    }

    /// Resolves `a.b.C` to a class, to the class of a member, or to all files of a package.
    fn resolve_java(&self, path: &str, import: &str) -> Vec<&'a str> {
        let place = import.replace('.', "/");
        let class = |place: &str| self.find_by_suffix(path, &format!("{place}.{}", extension(path)));
        if let Some(found) = class(&place).or_else(|| class(folder(&place)).filter(|_| place.contains('/'))) {
            return vec![found];
        }
        let packages = self.folders_named(file_name(&place)).iter();
        let packages =
            packages.filter(|other| other.strip_suffix(place.as_str()).is_some_and(|rest| rest.ends_with('/')));
        packages.flat_map(|package| self.files_in(package)).copied().collect()
    }

    /// Resolves a relative path, or a package of the tree by its name.
    fn resolve_script(&self, path: &str, import: &str) -> Option<&'a str> {
        let ended = |place: &str| {
            let typed = place.strip_suffix(".js").map(|place| format!("{place}.ts"));
            SCRIPT_ENDINGS
                .iter()
                .find_map(|end| self.find_file(&format!("{place}{end}")))
                .or_else(|| self.find_file(&typed?))
        };
        if import.starts_with('.') {
            return ended(&super::symlinks::resolve_target(path, import)?);
        }
        let mut parts = import.splitn(if import.starts_with('@') { 3 } else { 2 }, '/');
        let package = match import.starts_with('@') {
            true => parts.nth(1)?,
            false => parts.next()?,
        };
        let rest = parts.next().unwrap_or("index");
        let place = self.find_package(path, &[package], "package.json").or_else(|| {
            let found = self.folders_named(package).iter();
            found.copied().find(|place| folder(place) == "packages" || folder(place).ends_with("/packages"))
        })?;
        SOURCE_FOLDERS.iter().find_map(|source| ended(&join_path(place, &format!("{source}{rest}"))))
    }
}

fn group_by_name<'a>(named: impl Iterator<Item = (&'a str, &'a str)>) -> PathsByName<'a> {
    let mut places = PathsByName::new();
    for (name, place) in named {
        places.entry(name).or_default().push(place);
    }
    places
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn join_path(folder: &str, part: &str) -> String {
    match (folder, part) {
        ("", part) => part.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, part) => format!("{folder}/{part}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::rust_item("src/a/b.rs", "crate::c::Thing", &["src/c.rs"])]
    #[case::rust_module("src/a/b.rs", "crate::a", &["src/a/mod.rs"])]
    #[case::rust_root("src/a/b.rs", "crate::Error", &["src/lib.rs"])]
    #[case::rust_parent("src/a/b.rs", "super::d::x", &["src/a/d.rs"])]
    #[case::rust_own("src/a/mod.rs", "self::b", &["src/a/b.rs"])]
    #[case::rust_crate("src/a/b.rs", "my_crate::x::Y", &["crates/my-crate/src/x.rs"])]
    #[case::rust_foreign("src/a/b.rs", "serde::Serialize", &[])]
    #[case::python_absolute("src/flask/app.py", "flask.helpers.get", &["src/flask/helpers.py"])]
    #[case::python_beside("src/flask/app.py", ".helpers.get", &["src/flask/helpers.py"])]
    #[case::python_package("src/flask/app.py", ".json", &["src/flask/json/__init__.py"])]
    #[case::python_foreign("src/flask/app.py", "json", &[])]
    #[case::python_above("src/flask/json/tag.py", "..app.Flask", &["src/flask/app.py"])]
    #[case::go_package("cmd/x.go", "example.com/me/mod/util", &["util/a.go", "util/b.go"])]
    #[case::go_foreign("cmd/x.go", "example.com/other/util", &[])]
    #[case::java_class("j/src/com/x/A.java", "com.x.y.B", &["j/src/com/x/y/B.java"])]
    #[case::java_static("j/src/com/x/A.java", "com.x.y.B.max", &["j/src/com/x/y/B.java"])]
    #[case::java_package("j/src/com/x/A.java", "com.x.y", &["j/src/com/x/y/B.java", "j/src/com/x/y/C.java"])]
    #[case::java_foreign("j/src/com/x/A.java", "java.util.List", &[])]
    #[case::script_beside("web/a.ts", "./b", &["web/b.tsx"])]
    #[case::script_folder("web/a.ts", "../packages/common/src", &["packages/common/src/index.ts"])]
    #[case::script_package("web/a.ts", "@me/common", &["packages/common/src/index.ts"])]
    #[case::script_foreign("web/a.ts", "react", &[])]
    #[case::c_beside("c/src/a.c", "b.h", &["c/src/b.h"])]
    #[case::c_elsewhere("c/src/a.c", "x/y.h", &["c/include/x/y.h"])]
    #[case::c_out("c/src/a.c", "../../../etc/passwd", &[])]
    fn imports_lead_to_files_of_the_tree(#[case] path: &str, #[case] import: &str, #[case] expected: &[&str]) {
        let paths = [
            "src/lib.rs",
            "src/c.rs",
            "src/a/mod.rs",
            "src/a/b.rs",
            "src/a/d.rs",
            "crates/my-crate/src/lib.rs",
            "crates/my-crate/src/x.rs",
            "src/flask/__init__.py",
            "src/flask/app.py",
            "src/flask/helpers.py",
            "src/flask/json/__init__.py",
            "src/flask/json/tag.py",
            "cmd/x.go",
            "util/a.go",
            "util/a_test.go",
            "util/b.go",
            "j/src/com/x/A.java",
            "j/src/com/x/y/B.java",
            "j/src/com/x/y/C.java",
            "web/a.ts",
            "web/b.tsx",
            "packages/common/src/index.ts",
            "c/src/a.c",
            "c/src/b.h",
            "c/include/x/y.h",
        ];
        let tree = ImportResolver::new(paths.into_iter(), Some("example.com/me/mod"));
        assert_eq!(tree.resolve_imports(path, &[import.to_owned()]), expected);
    }
}
