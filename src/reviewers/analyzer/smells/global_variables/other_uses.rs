//! Counts the functions and files that touch a module variable, beyond the file that declares it.
//!
//! An occurrence in another file counts if it can only be the variable: with its owner in front (`config.state`,
//! `Shop.count`), after an import of it, or by its name alone where files share one scope. Test code is left out.

use std::collections::HashSet;

use super::module_variables::{ModuleVariable, ModuleVariableCollector, ModuleVariableKind};
use crate::reviewers::analyzer::other_files::OtherFiles;
use crate::syntax::conventions::{ModuleVariableForm, conventions};
use crate::syntax::facts::{FileFacts, is_test_path};
use crate::syntax::node_roles::SmellNodeRole;
use crate::syntax::occurrences;
use crate::syntax::source::{NodeIndex, ParsedFile, Parsers};

/// Maximum number of other files that are parsed for the variables of one file.
const MAX_PARSED_FILES: usize = 16;

/// A variable as other files know it.
struct SharedName<'a> {
    name: &'a str,
    /// Class, module or package that holds it.
    owner: &'a str,
    /// Folder of its file, with the slash at its end.
    folder: &'a str,
    /// True if files of the same folder see it by its name.
    is_in_folder_scope: bool,
    /// True if all files see it by its name.
    is_everywhere: bool,
}

/// Adds the uses of variables in other files to their counts.
pub(super) fn add_other_uses(
    source: &ParsedFile<'_>,
    facts: &FileFacts,
    files: &OtherFiles,
    found: &mut [ModuleVariable],
) {
    let mut parsers = Parsers::default();
    let mut parsed = 0;
    let paths = files.paths_near(source.path, source.language);
    for state in found.iter_mut().filter(|state| !state.writers.is_empty()) {
        let Some(shared) = SharedName::of_variable(source, facts, state) else { continue };
        for path in paths.iter().filter(|path| !is_test_path(path)) {
            let word = shared.name.trim_start_matches('$');
            let is_named = |text: &[u8]| {
                memchr::memmem::find(text, shared.name.as_bytes()).is_some() && occurrences::has_word(text, word)
            };
            let Some(text) = files.text(path).filter(|text| is_named(text)) else { continue };
            parsed += 1;
            if parsed > MAX_PARSED_FILES || !source.work().spend_bytes(text.len()) {
                return;
            }
            let functions =
                parsers.parse(path, source.language, &text).map_or(0, |other| count_uses(&other, &shared, state));
            state.other_functions += functions;
            state.other_files += u32::from(functions > 0);
        }
    }
}

impl<'a> SharedName<'a> {
    /// Returns how other files name a variable; `None` if they cannot.
    fn of_variable(source: &ParsedFile<'a>, facts: &'a FileFacts, state: &ModuleVariable) -> Option<Self> {
        let name = source.text(&source.nodes[state.name]);
        let path = source.path;
        let (folder, file) =
            path.rsplit_once('/').map_or(("", path), |(folder, file)| (&path[..folder.len() + 1], file));
        let folder_name = folder.trim_end_matches('/').rsplit('/').next().unwrap_or("");
        let module = match file.split('.').next().unwrap_or(file) {
            "__init__" | "mod" | "index" => folder_name,
            stem => stem,
        };
        let form = conventions(source.language).module_variables;
        let declaration = declaration_text(source, state.name);
        let starts = |word: &str| declaration.split_whitespace().take(3).any(|part| part == word);
        let mut shared = Self { name, owner: module, folder, is_in_folder_scope: false, is_everywhere: false };
        match (form, state.kind) {
            (ModuleVariableForm::Sigils | ModuleVariableForm::GlobalStatements, ModuleVariableKind::Global) => {
                shared.is_everywhere = true;
            }
            (ModuleVariableForm::Declarators, _) if !starts("static") => shared.is_everywhere = true,
            (ModuleVariableForm::ListedNames, _) => {
                (shared.owner, shared.is_in_folder_scope) = (folder_name, true);
            }
            (ModuleVariableForm::StaticFields | ModuleVariableForm::Properties, ModuleVariableKind::Static)
                if !starts("private") =>
            {
                let class = facts.classes.iter().rev().find(|class| {
                    let node = &source.nodes[class.node];
                    class.node < state.name && state.name < node.end_index as usize
                })?;
                shared.owner = &class.name;
            }
            (ModuleVariableForm::Properties, ModuleVariableKind::Module) if !starts("private") => {
                shared.is_in_folder_scope = true;
            }
            (ModuleVariableForm::Assignments | ModuleVariableForm::ScriptDeclarations, _) => {}
            (ModuleVariableForm::StaticMut, _) if starts("pub") => {}
            _ => return None,
        }
        Some(shared)
    }
}

/// Returns the beginning of the line of a name, with the modifiers of its declaration.
fn declaration_text<'a>(source: &ParsedFile<'a>, name: NodeIndex) -> &'a str {
    let end = source.nodes[name].start as usize;
    let start = memchr::memrchr(b'\n', &source.text[..end]).map_or(0, |line| line + 1);
    source.slice_text(start, end)
}

/// Counts the functions of another file that touch a variable.
fn count_uses(other: &ParsedFile<'_>, shared: &SharedName<'_>, state: &ModuleVariable) -> u32 {
    let facts = FileFacts::from_parsed(other);
    let mut collector = ModuleVariableCollector::new(other, &facts);
    collector.names.request(shared.name.as_bytes());
    collector.names.scan(other);
    let is_near =
        shared.is_in_folder_scope && other.path.strip_prefix(shared.folder).is_some_and(|rest| !rest.contains('/'));
    let is_known_alone = shared.is_everywhere || is_near || imports_name(&collector, shared);
    let (mut touching, mut shadowed) = (HashSet::new(), HashSet::new());
    let needs_statement = conventions(other.language).module_variables == ModuleVariableForm::GlobalStatements;
    for place in collector.names.occurrences(shared.name.as_bytes()) {
        let node = place.node();
        let Some(function) = collector.outermost_function(node) else { continue };
        match qualifier(other, node) {
            Some(owner) if owner == shared.owner.as_bytes() => drop(touching.insert(function)),
            Some(_) => {}
            None if needs_statement && !collector.is_global_statement(node) => {}
            None if collector.declares_local(state, node) => drop(shadowed.insert(function)),
            None if is_known_alone && !occurrences::is_member(other, node) => drop(touching.insert(function)),
            None => {}
        }
    }
    touching.difference(&shadowed).count() as u32
}

/// Returns whether a file imports a variable by its name.
fn imports_name(collector: &ModuleVariableCollector<'_, '_>, shared: &SharedName<'_>) -> bool {
    let other = collector.source;
    let is_import = |node: NodeIndex| collector.roles.role(other.nodes[node].kind) == SmellNodeRole::Import;
    let places = collector.names.occurrences(shared.name.as_bytes()).iter().map(|place| place.node());
    places.into_iter().any(|node| {
        let around = std::iter::successors(Some(node), |at| Some(other.parent(*at)).filter(|parent| parent != at));
        let import = around.take(6).find(|at| is_import(*at));
        import.is_some_and(|import| occurrences::has_word(other.bytes(&other.nodes[import]), shared.owner))
    })
}

/// Returns the name before the dot or the colons in front of a node; empty if it is no plain name.
fn qualifier<'a>(source: &ParsedFile<'a>, node: NodeIndex) -> Option<&'a [u8]> {
    let before = &source.text[..source.nodes[node].start as usize];
    let before = before.strip_suffix(b"$").unwrap_or(before);
    let before =
        before.strip_suffix(b"::").or_else(|| before.strip_suffix(b".")).or_else(|| before.strip_suffix(b"->"))?;
    let start = before.iter().rposition(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').map_or(0, |at| at + 1);
    Some(&before[start..])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;

    use crate::domain::Kind;
    use crate::reviewers::analyzer::Builtin;
    use crate::reviewers::analyzer::other_files::FileSource;
    use crate::syntax::source::Parsers;

    struct Samples(BTreeMap<String, String>);

    impl FileSource for Samples {
        fn paths(&self) -> Vec<String> {
            self.0.keys().cloned().collect()
        }

        fn read(&self, path: &str) -> Option<Vec<u8>> {
            Some(self.0.get(path)?.clone().into_bytes())
        }
    }

    #[rstest]
    #[case::python(
        "app/config.py",
        "state = 0 #~\ndef f():\n    global state\n    state = 1\n",
        &[
            ("app/a.py", "from app.config import state\ndef g(): return state\ndef h(state): return state\n"),
            ("app/b.py", "from app import config\ndef g(): config.state = 2\ndef h(): other.state = 2\n"),
            ("app/c.py", "state = 3\ndef g(): return state\n"),
            ("tests/test_a.py", "from app import config\ndef test_g(): config.state = 2\n"),
        ]
    )]
    #[case::go(
        "app/config.go",
        "package app\nvar State = 0 //~\nfunc f() { State = 1 }\n",
        &[
            ("app/a.go", "package app\nfunc g() int { return State }\nfunc h() int { State := 1; return State }\n"),
            ("cmd/b.go", "package cmd\nfunc g() { app.State = 2 }\nfunc h() { State() }\n"),
        ]
    )]
    #[case::c(
        "config.c",
        "int state = 0; /*~*/\nvoid f(void) { state = 1; }\n",
        &[
            ("a.c", "extern int state;\nint g(void) { return state; }\nint h(int state) { return state; }\n"),
            ("b.c", "extern int state;\nvoid g(struct s *x) { x->state = 1; }\nvoid h(void) { state = 2; }\n"),
        ]
    )]
    #[case::ruby(
        "config.rb",
        "$state = 0 #~\ndef f\n  $state = 1\nend\n",
        &[("a.rb", "def g\n  $state\nend\n"), ("b.rb", "def g\n  $state = 2\nend\n")]
    )]
    #[case::java(
        "A.java",
        "class A {\nstatic int state = 0; //~\nvoid f() { state = 1; } }\n",
        &[
            ("B.java", "class B { int g() { return A.state; } int h() { return C.state; } }\n"),
            ("C.java", "class C { void g() { A.state = 2; } void h() { int state = 2; } }\n"),
        ]
    )]
    #[case::javascript(
        "config.js",
        "export let state = 0; //~\nexport function f() { state = 1; }\n",
        &[
            ("a.js", "import { state } from './config';\nexport function g() { return state; }\n"),
            ("b.js", "import * as config from './config';\nexport function g() { return config.state; }\n"),
        ]
    )]
    fn functions_and_files_that_touch_a_global(
        #[case] path: &str,
        #[case] code: &str,
        #[case] others: &[(&str, &str)],
    ) {
        let mut files: BTreeMap<String, String> =
            others.iter().map(|(path, code)| ((*path).to_owned(), (*code).to_owned())).collect();
        files.insert(path.to_owned(), code.to_owned());
        let builtin = Builtin::default().with_other_files(Box::new(Samples(files)));
        let report = builtin.analyze_file(&mut Parsers::default(), path, code.as_bytes()).expect("a language of ours");
        let line = code.lines().position(|line| line.contains('~')).expect("a mark") as u32 + 1;
        let globals = report.smells.iter().filter(|smell| smell.kind == Kind::GlobalVariables);
        let titles: Vec<(u32, bool)> = globals
            .map(|smell| (smell.line_start, smell.title.ends_with("touched by 3 functions in 3 files")))
            .collect();
        assert_eq!(titles, [(line, true)], "{:?}", report.smells);
    }
}
