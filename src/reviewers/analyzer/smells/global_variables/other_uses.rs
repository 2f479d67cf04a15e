//! Counts the functions and files that touch a module variable, beyond the file that declares it.
//!
//! An occurrence in another file counts if it can only be the variable: with its owner in front (`config.state`,
//! `Shop.count`), after an import of it, or by its name alone where files share one scope. Test code is left out.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::super::CheckedFile;
use super::module_variables::{ModuleVariable, ModuleVariableCollector, ModuleVariableKind};
use crate::reviewers::analyzer::other_files::NeighbourFiles;
use crate::syntax::conventions::{ModuleVariableForm, conventions};
use crate::syntax::facts::FileFacts;
use crate::syntax::node_roles::{SmellNodeRole, SmellNodeRoles};
use crate::syntax::occurrences;
use crate::syntax::source::{NodeIndex, ParsedFile};

/// Maximum number of other files that are read for the variables of one smell. A file counts for each variable that it
/// mentions.
const MAX_SEARCHES: usize = 16;

/// Maximum number of declarators around a name: `*name[2] = …`.
const MAX_DECLARATOR_DEPTH: usize = 8;

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
pub(super) fn add_other_uses(file: &CheckedFile<'_, '_>, found: &mut [ModuleVariable]) {
    let (source, facts) = (file.source, file.facts);
    let Some(files) = file.other_files else { return };
    let shared: Vec<(usize, SharedName<'_>)> = (0..)
        .zip(&*found)
        .filter(|(_, state)| !state.writers.is_empty())
        .filter_map(|(index, state)| Some((index, SharedName::of_variable(source, facts, state)?)))
        .filter(|(_, name)| !name.word().is_empty())
        .collect();
    if shared.is_empty() {
        return;
    }
    let is_of_globals =
        |(index, _): &&(usize, SharedName<'_>)| found.get(*index).is_some_and(|state| !state.is_shared(file.limits));
    let (of_globals, of_shared): (Vec<_>, Vec<_>) = shared.iter().partition(is_of_globals);
    // The work on other files must not make this one too complex.
    source.work().exclude_time(|| {
        let mut nearest = NearestFiles { files, paths: files.paths_of(source.language), texts: Vec::new() };
        let mut chosen: BTreeMap<usize, Vec<&(usize, SharedName<'_>)>> = BTreeMap::new();
        for names in [of_globals, of_shared] {
            nearest.choose(&names, &mut chosen);
        }
        for (file, wanted) in chosen {
            let Some((path, text)) = nearest.file(file) else { continue };
            let count = |other: &ParsedFile<'_>| count_uses(other, &wanted, found);
            let Some(counts) = files.read_parsed(path, source.language, &text, count) else { continue };
            for ((index, _), functions) in wanted.iter().zip(counts) {
                if let Some(state) = found.get_mut(*index) {
                    state.other_functions += functions;
                    state.other_files += u32::from(functions > 0);
                }
            }
        }
    });
}

/// The other files of a language, the nearest first, with the texts that were read so far.
struct NearestFiles<'f> {
    files: &'f NeighbourFiles<'f>,
    paths: Vec<&'f str>,
    texts: Vec<Option<Arc<[u8]>>>,
}

impl<'f> NearestFiles<'f> {
    /// Returns a file with its text; `None` if there is no such file, or if it is not read.
    fn file(&mut self, index: usize) -> Option<(&'f str, Arc<[u8]>)> {
        while self.texts.len() <= index {
            let path = self.paths.get(self.texts.len())?;
            self.texts.push(self.files.text(path));
        }
        Some((*self.paths.get(index)?, self.texts.get(index)?.clone()?))
    }

    /// Chooses the nearest files that mention names, up to [`MAX_SEARCHES`], and adds them by their indices.
    fn choose<'n, 's>(
        &mut self,
        names: &[&'n (usize, SharedName<'s>)],
        chosen: &mut BTreeMap<usize, Vec<&'n (usize, SharedName<'s>)>>,
    ) {
        let mut searches = 0;
        for &name in names {
            for index in 0..self.paths.len() {
                let is_mentioned = |(_, text): (&str, Arc<[u8]>)| occurrences::has_word(&text, name.1.word());
                if !self.file(index).is_some_and(is_mentioned) {
                    continue;
                }
                if searches == MAX_SEARCHES {
                    return;
                }
                searches += 1;
                chosen.entry(index).or_default().push(name);
            }
        }
    }
}

impl<'a> SharedName<'a> {
    /// Returns the name without the sign of a variable, as a word of a text.
    fn word(&self) -> &'a str {
        self.name.trim_start_matches('$')
    }

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

/// Returns the text before a name with the modifiers of its declaration: the beginning of its line, or of a declaration
/// that begins on an earlier line with the type: `static struct { … } name`.
fn declaration_text<'a>(source: &ParsedFile<'a>, name: NodeIndex) -> &'a str {
    let end = source.nodes[name].start as usize;
    let line = memchr::memrchr(b'\n', &source.text[..end]).map_or(0, |line| line + 1);
    let kinds = &SmellNodeRoles::for_language(source.language).kinds;
    let around = std::iter::successors(Some(name), |at| Some(source.parent(*at)).filter(|parent| parent != at));
    let declaration = around.take(MAX_DECLARATOR_DEPTH).find(|at| kinds.declaration.is(source.nodes[*at].kind));
    let start = declaration.map_or(line, |at| line.min(source.nodes[at].start as usize));
    source.slice_text(start, end)
}

/// Counts the functions of another file that touch each of the variables.
fn count_uses(other: &ParsedFile<'_>, wanted: &[&(usize, SharedName<'_>)], found: &[ModuleVariable]) -> Vec<u32> {
    let facts = FileFacts::from_parsed(other);
    let mut collector = ModuleVariableCollector::new(other, &facts);
    wanted.iter().for_each(|(_, shared)| collector.names.request(shared.name.as_bytes()));
    collector.names.scan(other);
    let count = |(index, shared): &&(usize, SharedName<'_>)| {
        found.get(*index).map_or(0, |state| count_uses_of(&collector, shared, state))
    };
    wanted.iter().map(count).collect()
}

fn count_uses_of(collector: &ModuleVariableCollector<'_, '_>, shared: &SharedName<'_>, state: &ModuleVariable) -> u32 {
    let other = collector.source;
    let is_near =
        shared.is_in_folder_scope && other.path.strip_prefix(shared.folder).is_some_and(|rest| !rest.contains('/'));
    let is_known_alone = shared.is_everywhere || is_near || imports_name(collector, shared);
    let (mut touching, mut shadowed) = (HashSet::new(), HashSet::new());
    let needs_statement = conventions(other.language).module_variables == ModuleVariableForm::GlobalStatements;
    for place in collector.names.occurrences(shared.name.as_bytes()) {
        let node = place.node();
        let Some(function) = collector.outermost_function(node) else { continue };
        match occurrences::qualifier(other, node) {
            Some(owner) if owner.name == shared.owner.as_bytes() => drop(touching.insert(function)),
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

    #[test]
    fn a_static_variable_of_c_is_known_in_its_file_only() {
        let code = "static struct config {\n    int a;\n} config;\nvoid f(void) { config.a = 1; config = g(); }\n";
        let other = "extern struct config config;\nint g(void) { return config.a; }\n";
        let files = [("a.c", code), ("b.c", other)].map(|(path, code)| (path.to_owned(), code.to_owned()));
        let builtin = Builtin::default().with_other_files(Box::new(Samples(files.into())));
        let report = builtin.analyze_file(&mut Parsers::default(), "a.c", code.as_bytes()).expect("C");
        let globals = report.smells.iter().filter(|smell| smell.kind == Kind::GlobalVariables);
        let titles: Vec<&str> = globals.map(|smell| smell.title.as_str()).collect();
        assert_eq!(titles, ["Mutable global `config`, touched by 1 function"]);
    }
}
