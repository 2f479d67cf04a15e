//! The promise, tested: no word of anybody's code gets into a form. What a form may hold is written down here once more, by
//! hand and not from the grammars, so that neither they nor the gate are asked about themselves.
//!
//! Over real edits of other repositories, their paths with a colon between, and so many of the newest commits of each:
//! ```text
//! REVDECK_LEAK_REPOS=~/src/a:~/src/b.git REVDECK_LEAK_COMMITS=5000 \
//!     cargo test --release --lib knowledge::privacy::corpus -- --ignored --nocapture
//! ```

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Instant;

use proptest::prelude::*;

use super::abstraction::{LearnedEdit, edits, form_digest, place, sites};
use super::form::{Form, Placeholder, Token};
use super::{gate, mine, names};
use crate::domain::LineRange;
use crate::git::Repo;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;

/// The keywords of a language, and what else its grammar writes in letters.
fn keywords(language: &str) -> &'static str {
    match language {
        "rust" => {
            "as async await break const continue default dyn else enum extern fn for gen if impl in let loop macro_rules match \
             mod move mut pub raw ref return static struct trait try type union unsafe use where while yield"
        }
        "python" => {
            "and as assert async await break case class continue def del elif else except exec finally for from global if \
             import in is lambda match nonlocal not or pass print raise return try type while with yield"
        }
        "javascript" | "typescript" => {
            "abstract accessor any as assert asserts async await break case catch class const continue debugger declare default \
             delete do else enum export extends finally for from function get global if implements import in infer instanceof \
             interface is keyof let meta module namespace new of out override package private protected public readonly require \
             return satisfies set static super switch target throw try type typeof unique using var void while with yield"
        }
        "go" => {
            "break case chan const continue default defer else fallthrough for func go goto if import interface map package \
             range return select struct switch type var"
        }
        "java" => {
            "abstract assert break case catch class const continue default do else enum extends final finally for goto if \
             implements import instanceof interface module native new non-sealed open opens package permits private protected \
             public record requires return sealed static strictfp switch synchronized throw throws to transient transitive \
             try uses volatile when while with yield"
        }
        "c" | "cpp" => {
            "_Alignas _Alignof _Atomic _Bool _Generic _Nonnull _Noreturn __alignof __alignof__ __asm__ __asm __attribute \
             __attribute__ __extension__ __forceinline __inline __inline__ __restrict__ __thread __volatile__ __try __except \
             __finally __leave alignas alignof and and_eq asm auto bitand bitor break case catch class co_await co_return \
             co_yield compl concept consteval const constexpr constinit continue decltype default defined delete do else enum \
             explicit export extern final for friend goto if inline long mutable namespace new noexcept noreturn not not_eq \
             nullptr offsetof operator or or_eq override private protected public register requires restrict return short \
             signed sizeof static static_assert struct switch template this thread_local throw try typedef typename union \
             unsigned using virtual volatile while xor xor_eq __declspec __cdecl __stdcall __based __unaligned \
             #define #elif #elifdef #elifndef #else #endif #if #ifdef #ifndef #include"
        }
        "csharp" => {
            "abstract add alias allows and annotations as ascending async await base break by case catch checked class const \
             continue default delegate descending disable do else enum equals event explicit extern field file finally fixed \
             for foreach from get global goto group if implicit in init interface internal into is join let lock managed \
             nameof namespace new not notnull on operator or orderby out override params partial private protected public \
             readonly record ref remove required restore return scoped sealed select set sizeof stackalloc static struct \
             switch throw try typeof unchecked unmanaged unsafe using var virtual volatile warnings when where while with \
             yield __makeref __reftype __refvalue Cdecl Stdcall Thiscall Fastcall"
        }
        "ruby" => {
            "BEGIN END alias and begin break case class def defined? do else elsif end ensure for if in module next not or \
             redo rescue retry return then undef unless until when while yield"
        }
        "php" => {
            "abstract and array as break case catch class clone const continue declare default do echo else elseif enddeclare \
             endfor endforeach endif endswitch endwhile enum exit extends final finally fn for foreach from function get global \
             goto if implements include include_once instanceof insteadof interface list match namespace new or print private \
             protected public readonly require require_once return set static switch throw trait try unset use var while \
             xor yield"
        }
        "bash" => {
            "case declare do done elif else esac export fi for function if in local readonly select then typeset unset \
             unsetenv until while"
        }
        _ => "",
    }
}

/// Says of every word of a form whether it may be there.
struct Allowed(BTreeMap<&'static str, HashSet<&'static str>>);

impl Allowed {
    fn new() -> Self {
        let words = |language| names::of(language).map(|(name, _)| name).chain(keywords(language).split_whitespace());
        Self(names::languages().map(|language| (language, words(language).collect())).collect())
    }

    /// The words of a form that may not be there.
    fn leaks<'f>(&self, language: Language, form: &'f Form) -> Vec<&'f str> {
        let words = &self.0[language.name()];
        let is_allowed = |text: &str| {
            let is_sign =
                !text.contains(|c: char| c.is_alphanumeric() || c == '_' || c.is_whitespace() || !c.is_ascii());
            words.contains(text) || text == "_" || is_sign && text.len() <= 4
        };
        let texts = form.tokens().iter().filter_map(|token| match token {
            Token::Kept(text) => Some(&**text),
            Token::Hole { .. } => None,
        });
        texts.filter(|text| !is_allowed(text)).collect()
    }
}

/// The words of a text, by letters, whatever they are: names, numbers, parts of strings and comments.
fn words(text: &[u8]) -> HashSet<String> {
    let text = String::from_utf8_lossy(text);
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// What was looked at, and found.
#[derive(Default)]
struct Tally {
    edits: usize,
    forms: usize,
    distinct: HashSet<(&'static str, String, String)>,
    again: BTreeMap<(&'static str, String, String), usize>,
    by_kind: BTreeMap<&'static str, usize>,
    leaks: Vec<String>,
}

impl Tally {
    fn take(&mut self, allowed: &Allowed, language: Language, sides: [&[u8]; 2], learned: &[LearnedEdit]) {
        let mut hunks: Vec<usize> = learned.iter().map(|edit| edit.hunk).collect();
        hunks.dedup();
        self.edits += hunks.len();
        let source: HashSet<String> = sides.into_iter().flat_map(words).collect();
        for edit in learned {
            self.forms += 1;
            for form in [&edit.broken, &edit.fixed] {
                for word in allowed.leaks(language, form) {
                    self.leaks.push(format!("{language:?}: {word:?} in {form}"));
                }
                // The same the other way round, and with the text as it is stored.
                for word in words(form.to_string().as_bytes()).intersection(&source) {
                    let is_placeholder = word == "_" || matches!(word.parse(), Ok(Token::Hole { .. }));
                    let is_allowed =
                        |text: &&str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word);
                    if !is_placeholder && !allowed.0[language.name()].iter().any(is_allowed) {
                        self.leaks.push(format!("{language:?}: {word:?} of the source in {form}"));
                    }
                }
            }
            let key = (language.name(), edit.broken.to_string(), edit.fixed.to_string());
            *self.again.entry(key.clone()).or_default() += 1;
            *self.by_kind.entry(edit.edit.word()).or_default() += 1;
            self.distinct.insert(key);
        }
    }

    fn assert_nothing_leaked(&self) {
        let leaks = &self.leaks;
        assert!(leaks.is_empty(), "{} leaks, such as {:#?}", leaks.len(), &leaks[..leaks.len().min(20)]);
    }
}

/// All forms that a file has: they pass, so that it is not the gate that keeps the promise.
fn assert_sites_pass(allowed: &Allowed, parsers: &mut Parsers, path: &str, text: &[u8]) -> usize {
    let Some(language) = Language::detect(path, text) else { return 0 };
    let Ok(source) = parsers.parse(path, language, text) else { return 0 };
    let mut count = 0;
    sites(&source, None, &mut |site| {
        let form = site.form();
        count += 1;
        assert_eq!(site.digest, form_digest(&form), "{path}: {form}");
        assert_eq!(gate::admit(language.name(), &form), Ok(()), "{path}: {form}");
        assert_eq!(form.to_string().parse::<Form>().as_ref(), Ok(&form), "{path}");
        assert!(allowed.leaks(language, &form).is_empty(), "{path}: {form}: {:?}", allowed.leaks(language, &form));
    });
    count
}

/// What the first tree tells of the second file must change nothing of it.
fn assert_pair_is_two_files(parsers: &mut Parsers, language: Language, before: &[u8], after: &[u8]) {
    let Ok([_, paired]) = parsers.parse_pair(language, before, after) else { return };
    let alone = parsers.parse("", language, after).expect("what parses as one of a pair");
    assert!(paired.nodes == alone.nodes, "{language:?}: {}", String::from_utf8_lossy(after));
}

#[test]
fn no_word_of_this_repository_gets_into_a_form() {
    let (allowed, mut parsers, mut tally) = (Allowed::new(), Parsers::default(), Tally::default());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src/knowledge"), root.join("src/policy")];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read(&path).expect("a readable file");
                count += assert_sites_pass(&allowed, &mut parsers, "a.rs", &text);
                for changed in mutants(&text) {
                    let learned = edits(&mut parsers, Language::Rust, &text, &changed);
                    tally.take(&allowed, Language::Rust, [&text, &changed], &learned);
                }
            }
        }
    }
    assert!(count > 5_000, "{count} sites");
    assert!(tally.edits > 200, "{} edits", tally.edits);
    // Of a package there is no history.
    if let Ok(repo) = Repo::discover(root) {
        mine::fixed_files(&repo, 50, &mut |file| {
            let learned = edits(&mut parsers, file.language, &file.before, &file.after);
            tally.take(&allowed, file.language, [&file.before, &file.after], &learned);
        })
        .expect("a history");
    }
    tally.assert_nothing_leaked();
}

/// The same file with some mistakes in it, several at a time.
fn mutants(text: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    let swaps =
        [("==", "!="), (" < ", " <= "), ("&&", "||"), (".is_empty()", ".len() > 1"), ("?;", ".ok();"), ("(&", "(")];
    let mut mutants: Vec<Vec<u8>> = swaps.map(|(from, to)| text.replace(from, to).into_bytes()).into();
    for rest in 0..3 {
        let lines = text.split_inclusive('\n').enumerate();
        let kept = lines.filter(|(at, line)| at % 11 != rest || !line.ends_with(";\n")).map(|(_, line)| line);
        mutants.push(kept.collect::<String>().into_bytes());
    }
    mutants
}

/// Code of every language with a place for a name (`N`), another (`M`), a type (`T`), a string's content (`S`), a number (`9`)
/// and a comment (`C`), and what becomes of it.
const TEMPLATES: &[(Language, &str, &str)] = &[
    (
        Language::Rust,
        "/// C\nfn N(M: T<u8>) -> Option<T> { if N.M == \"S\" { return N!(M, \"S\"); } // C\n let N = M.N(9, \"S\")?; g::<T>(N); match N { T::M(x) => x, _ => 9 } }",
        "/// C\nfn N(M: T<u8>) -> Option<T> { if N.M != \"S\" { return N!(M, \"S\"); } // C\n M.N(); let N = M.M(9 + 9, \"S\")?; g::<T>(&N); match N { T::M(x) => Some(x), _ => 9 } }",
    ),
    (
        Language::Python,
        "class T(N):\n    \"\"\"S\"\"\"\n    def N(self, M: T = 9, *N):\n        # C\n        if N == None and M['S']:\n            return f'S{N}S'\n        self.N = lambda M: N(M, S=9)\n        return [N for N in M]\n",
        "class T(N):\n    \"\"\"S\"\"\"\n    def N(self, M: T = 9, *N):\n        # C\n        if N is None and M['SS']:\n            return f'S{M}S'\n        N.M('S')\n        self.M = lambda M: M(N, S=99)\n        return {N for M in N}\n",
    ),
    (
        Language::JavaScript,
        "// C\nfunction N(M, {T}) { if (N == M.N) { return `S${M}S`; } const T = async (N) => await N.M('S', /S/g, 9); N.T[M](); return <T N=\"S\">S{M}</T>; }",
        "// C\nfunction N(M, {T}) { if (N === M.N) { return `S${N}S`; } const T = async (M) => N.M('S', /S/g, 99); if (N) { N.T[M](); } return <T N=\"SS\">S{N}</T>; }",
    ),
    (
        Language::TypeScript,
        "/* C */ class T<N> extends M implements N { private N: T = 9; @N('S') M(N?: T): N { return this.N as unknown as T; } }",
        "/* C */ class T<N> extends M implements N { private N: T = 99; @N('S') M(N?: T): N { return (this.M ?? 'S') as unknown as N; } }",
    ),
    (
        Language::Tsx,
        "const N = (M: T) => { return <T.N M={N.M(9)}>S</T.N>; }",
        "const N = (M: T) => { return <T.N M={N.N(9, 'S')}>SS</T.N>; }",
    ),
    (
        Language::Go,
        "package N\n// C\nfunc (M *T) N(M map[T]N) (T, error) {\n\tN, err := M.N(`S`, 'x', 9)\n\tgo N.M(&T{N: M})\n\treturn N, err\n}\n",
        "package N\n// C\nfunc (M *T) N(M map[T]N) (T, error) {\n\tN, err := M.M(`S`, 'x', 99)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tgo N.M(&T{M: N})\n\treturn M, err\n}\n",
    ),
    (
        Language::Java,
        "/** C */ @N(M = \"S\") class T extends N<M> { T N(final T... M) throws N { if (N.M == null) { throw new T(\"S\" + 9); } /* C */ return (T) M.N(T::M, x -> N[9]); } }",
        "/** C */ @N(M = \"S\") class T extends N<M> { T N(final T... M) throws N { if (N.M != null || N) { throw new N(\"S\" + 9, M); } /* C */ M.N(); return (N) N.M(N::M, x -> M[9]); } }",
    ),
    (
        Language::C,
        "#include \"S\"\n#define N M\n/* C */\nstatic struct T *N(T *M) { if (M->N == 9) goto N; N: M = (T *)N(\"S\", sizeof(struct T), 'x'); return *M; }\n",
        "#include \"S\"\n#define N M\n/* C */\nstatic struct T *N(T *M) { if (M->N != 9) goto N; N: M = (T *)M(\"S\", sizeof(T), 'x', 9); return M; }\n",
    ),
    (
        Language::Cpp,
        "// C\nnamespace N { template <typename T> auto T::N(const M<T> &N) -> T { return std::move(N->M<T>(9, \"S\", [&M](T N) { return M; })); } }",
        "// C\nnamespace N { template <typename T> auto T::N(const M<T> &N) -> T { return N->N<T>(99, \"S\", [=](T N) { return N; }); } }",
    ),
    (
        Language::CSharp,
        "// C\n[N(\"S\")] class T : N<M> { public async Task<T> N(M M, string N = \"S\") { var N = await M.N<T>($\"S{N}S\", 9); return N?.M ?? throw new T(nameof(M)); } }",
        "// C\n[N(\"S\")] class T : N<M> { public async Task<T> N(M M, string N = \"S\") { var N = M.M<T>($\"S{M}S\", 99); N.M(); return N!.N ?? throw new N(nameof(N), M); } }",
    ),
    (
        Language::Ruby,
        "# C\nclass T < N\n  def N(M, N: 9)\n    M.N(:S, \"S#{N}\") if @N && $M\n    N.M { |M| M.N }\n    @N ||= M[9]\n  end\nend\n",
        "# C\nclass T < N\n  def N(M, N: 9)\n    M.M(:S, \"SS#{N}\") unless @N || $M\n    N&.N { |M| M.M }\n    @N ||= N[9] + 'S'\n  end\nend\n",
    ),
    (
        Language::Php,
        "<?php // C\nnamespace N\\M; class T extends N { function N(T $M, $N = 'S') { if ($M == \"S$N\") { return N::M($N['S'], 9); } $this->N->M(fn($M) => new T($M)); } }",
        "<?php // C\nnamespace N\\M; class T extends N { function N(T $M, $N = 'S') { if ($M === \"S$N\") { return M::N($N['S'] ?? 9); } $this->M?->N(fn($M) => new N($N, 'S')); } }",
    ),
    (
        Language::Bash,
        "# C\nN() {\n  local M=\"S$N\"\n  if [ -z $M ]; then N --M S | M 9 > N; fi\n  ${N:-S} $(M S)\n}\n",
        "# C\nN() {\n  local M=\"SS$N\"\n  if [[ -n $N ]]; then N --N SS | N 99 > M; fi\n  M S\n  ${M:-S} \"$(M S)\"\n}\n",
    ),
];

/// What somebody may have written: secrets, names as ours, letters of all the world.
fn own_words() -> impl Strategy<Value = [String; 6]> {
    let name = || {
        prop_oneof![
            4 => "[a-zA-Z][a-zA-Z0-9]{5,12}zq",
            1 => "zq[a-z]{0,3}_[A-Z]{2}",
            1 => Just("VARIABLE".to_owned()),
            1 => Just("BODY_2".to_owned()),
            1 => Just("größeÄzq".to_owned()),
        ]
    };
    let text = "[a-zA-Z0-9 .:/_-]{0,30}zq";
    (name(), name(), name(), text, "[1-9][0-9]{0,6}", text)
        .prop_map(|(n, m, t, s, number, comment)| [n, m, t, s, number, comment])
}

fn fill(template: &str, [n, m, t, s, number, comment]: &[String; 6]) -> String {
    // A letter that stands alone is a place.
    let chars: Vec<char> = template.chars().collect();
    let is_word = |at: Option<&char>| at.is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let mut filled = String::new();
    for (at, &c) in chars.iter().enumerate() {
        let is_alone = !is_word(at.checked_sub(1).and_then(|at| chars.get(at))) && !is_word(chars.get(at + 1));
        match c {
            'N' if is_alone => filled.push_str(n),
            'M' if is_alone => filled.push_str(m),
            'T' if is_alone => filled.push_str(t),
            'S' if is_alone => filled.push_str(s),
            'C' if is_alone => filled.push_str(comment),
            '9' => filled.push_str(number),
            _ => filled.push(c),
        }
    }
    filled
}

#[test]
fn every_template_teaches_something() {
    let words = ["alphazq", "betazq", "Gammazq", "deltazq", "7", "epsilonzq"].map(str::to_owned);
    for (language, before, after) in TEMPLATES {
        let (before, after) = (fill(before, &words), fill(after, &words));
        let learned = edits(&mut Parsers::default(), *language, before.as_bytes(), after.as_bytes());
        assert!(learned.len() >= 2, "{language:?}: {learned:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_word_that_somebody_wrote_gets_into_a_form(words in own_words(), other in own_words()) {
        let (allowed, mut parsers, mut tally) = (Allowed::new(), Parsers::default(), Tally::default());
        for (language, before, after) in TEMPLATES {
            let (before, after) = (fill(before, &words), fill(after, &other));
            let learned = edits(&mut parsers, *language, before.as_bytes(), after.as_bytes());
            for edit in &learned {
                let said = format!("{} {}", edit.broken, edit.fixed);
                prop_assert!(!said.contains("zq"), "{language:?}: {said}");
            }
            tally.take(&allowed, *language, [before.as_bytes(), after.as_bytes()], &learned);
            let source = parsers.parse("", *language, before.as_bytes()).expect("parses");
            for line in 1..=before.lines().count() as u32 {
                if let Some(form) = place(&source, LineRange::new(line, line)) {
                    prop_assert_eq!(gate::admit(language.name(), &form), Ok(()));
                    prop_assert!(!form.to_string().contains("zq"), "{language:?}: {form}");
                }
            }
        }
        prop_assert!(tally.leaks.is_empty(), "{:?}", tally.leaks);
    }

    /// Whatever a file is, nothing of it gets out, and nothing fails.
    #[test]
    fn no_word_of_noise_gets_into_a_form(before in "[a-z(){}\\[\\];:=.,<>\"'`#$@!&|\\n 0-9]{0,200}", cut in 0usize..200) {
        let (allowed, mut parsers, mut tally) = (Allowed::new(), Parsers::default(), Tally::default());
        let after: String = before.chars().enumerate().filter(|(at, _)| *at != cut).map(|(_, c)| c).collect();
        for language in Language::ALL {
            let learned = edits(&mut parsers, language, before.as_bytes(), after.as_bytes());
            tally.take(&allowed, language, [before.as_bytes(), after.as_bytes()], &learned);
        }
        prop_assert!(tally.leaks.is_empty(), "{:?}", tally.leaks);
    }
}

/// See the top of this file.
#[test]
#[ignore = "takes repositories from REVDECK_LEAK_REPOS"]
#[allow(clippy::print_stdout)]
fn corpus() {
    let repos = std::env::var("REVDECK_LEAK_REPOS").expect("REVDECK_LEAK_REPOS names repositories");
    let commits =
        std::env::var("REVDECK_LEAK_COMMITS").map_or(2_000, |text| text.parse().expect("a number of commits"));
    let (allowed, mut parsers, mut tally) = (Allowed::new(), Parsers::default(), Tally::default());
    for path in repos.split(':') {
        let repo = Repo::discover(Path::new(path)).expect("a repository");
        let (mut learning, edits_before, mut files) = (0.0, tally.edits, 0);
        let mined = mine::fixed_files(&repo, commits, &mut |file| {
            let start = Instant::now();
            let learned = edits(&mut parsers, file.language, &file.before, &file.after);
            learning += start.elapsed().as_secs_f64();
            files += 1;
            assert_pair_is_two_files(&mut parsers, file.language, &file.before, &file.after);
            tally.take(&allowed, file.language, [&file.before, &file.after], &learned);
        });
        let mined = mined.expect("a history");
        let head = repo.resolve_commit("HEAD").expect("a commit");
        let mut sites = 0;
        for file in repo.tree_files(&head).expect("files").into_iter().step_by(37).take(100) {
            let text = repo.blob(&file.blob).expect("a blob");
            sites += assert_sites_pass(&allowed, &mut parsers, &file.path, &text);
        }
        let edits = tally.edits - edits_before;
        println!("{path}: {mined:?}, {files} files, {edits} edits in {learning:.1} s; {sites} sites pass");
    }
    let Tally { edits, forms, distinct, again, by_kind, leaks } = &tally;
    println!("{edits} edits, {forms} pairs of forms, {} different ones, {} leaks", distinct.len(), leaks.len());
    println!("{by_kind:?}");
    let mut most: Vec<_> = again.iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for ((language, broken, fixed), count) in most.iter().take(60) {
        println!("{count:>5} {language:<10} {broken}  =>  {fixed}");
    }
    println!("{} are seen more than once", most.iter().filter(|(_, count)| **count > 1).count());
    assert!(*edits >= 10_000, "{edits} edits; the promise is about 10,000");
    tally.assert_nothing_leaked();
}

#[test]
fn the_lists_are_sound() {
    for language in names::languages() {
        let text = names::text(language);
        assert!(text.starts_with("# Names of "), "{language}: no source is given");
        let names: Vec<_> = names::of(language).collect();
        assert!(names.len() > 250, "{language}: {} names", names.len());
        for (at, (name, section)) in names.iter().enumerate() {
            assert!(name.len() <= 40 && name.chars().all(|c| c.is_ascii_graphic()), "{language}: {name:?}");
            assert!(
                !names[..at].iter().any(|other| other == &(*name, *section)),
                "{language}: {name:?} is there twice"
            );
            let is_placeholder = Placeholder::ALL.iter().any(|kind| name.starts_with(kind.word()));
            assert!(!is_placeholder, "{language}: {name:?} would be read as a placeholder");
            assert_eq!(
                gate::admit(language, &Form::new(vec![Token::Kept((*name).into())]).expect("a form")),
                Ok(()),
                "{name}"
            );
        }
    }
}
