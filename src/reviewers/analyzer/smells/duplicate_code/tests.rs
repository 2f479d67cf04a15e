use proptest::prelude::*;

use super::super::test_support::{check_samples, find_smells};
use super::search::{ChangedFile, CloneSearch, FingerprintSource, file_fingerprints};
use super::*;
use crate::git::TreeFile;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// A function of about 90 tokens per language, with names that can be changed.
const FUNCTIONS: [(Language, &str, &str); Language::ALL.len()] = [
    (
        Language::Rust,
        "a.rs",
        "fn total(items: &[Item], limit: u32) -> u32 {\n    let mut sum = 0;\n    for item in items.iter() {\n        if item.price == 0 || item.count == 0 {\n            continue;\n        }\n        let mut price = item.price * item.count;\n        if price > limit {\n            price -= item.discount;\n        }\n        sum += price;\n    }\n    log(sum, limit);\n    sum\n}\n",
    ),
    (
        Language::Python,
        "a.py",
        "def total(items, limit):\n    sum = 0\n    for item in items:\n        if item.price == 0 or item.count == 0:\n            continue\n        price = item.price * item.count\n        if price > limit:\n            price -= item.discount\n        while price > item.max:\n            price = shrink(price, item.max)\n        sum += price\n    log(sum, limit)\n    return sum\n",
    ),
    (
        Language::JavaScript,
        "a.js",
        "function total(items, limit) {\n  let sum = 0;\n  for (const item of items) {\n    if (item.price === 0 || item.count === 0) {\n      continue;\n    }\n    let price = item.price * item.count;\n    if (price > limit) {\n      price -= item.discount;\n    }\n    sum += price;\n  }\n  log(sum, limit);\n  return sum;\n}\n",
    ),
    (
        Language::TypeScript,
        "a.ts",
        "function total(items: Item[], limit: number): number {\n  let sum = 0;\n  for (const item of items) {\n    if (item.price === 0 || item.count === 0) {\n      continue;\n    }\n    let price = item.price * item.count;\n    if (price > limit) {\n      price -= item.discount;\n    }\n    sum += price;\n  }\n  log(sum, limit);\n  return sum;\n}\n",
    ),
    (
        Language::Tsx,
        "a.tsx",
        "function total(items: Item[], limit: number): number {\n  let sum = 0;\n  for (const item of items) {\n    if (item.price === 0 || item.count === 0) {\n      continue;\n    }\n    let price = item.price * item.count;\n    if (price > limit) {\n      price -= item.discount;\n    }\n    sum += price;\n  }\n  log(sum, limit);\n  return sum;\n}\n",
    ),
    (
        Language::Go,
        "a.go",
        "func total(items []Item, limit int) int {\n\tsum := 0\n\tfor _, item := range items {\n\t\tif item.price == 0 || item.count == 0 {\n\t\t\tcontinue\n\t\t}\n\t\tprice := item.price * item.count\n\t\tif price > limit {\n\t\t\tprice -= item.discount\n\t\t}\n\t\tsum += price\n\t}\n\tlog(sum, limit)\n\treturn sum\n}\n",
    ),
    (
        Language::Java,
        "A.java",
        "  int total(List<Item> items, int limit) {\n    int sum = 0;\n    for (Item item : items) {\n      if (item.price == 0 || item.count == 0) {\n        continue;\n      }\n      int price = item.price * item.count;\n      if (price > limit) {\n        price -= item.discount;\n      }\n      sum += price;\n    }\n    log(sum, limit);\n    return sum;\n  }\n",
    ),
    (
        Language::Kotlin,
        "a.kt",
        "fun total(items: List<Item>, limit: Int): Int {\n    var sum = 0\n    for (item in items) {\n        if (item.price == 0 || item.count == 0) {\n            continue\n        }\n        var price = item.price * item.count\n        if (price > limit) {\n            price -= item.discount\n        }\n        sum += price\n    }\n    log(sum, limit)\n    return sum\n}\n",
    ),
    (
        Language::Scala,
        "a.scala",
        "def total(items: List[Item], limit: Int): Int = {\n  var sum = 0\n  for (item <- items) {\n    if (item.price == 0 || item.count == 0) {\n      skip(item)\n    }\n    var price = item.price * item.count\n    if (price > limit) {\n      price -= item.discount\n    }\n    sum += price\n  }\n  log(sum, limit)\n  sum\n}\n",
    ),
    (
        Language::Swift,
        "a.swift",
        "func total(items: [Item], limit: Int) -> Int {\n    var sum = 0\n    for item in items {\n        if item.price == 0 || item.count == 0 {\n            continue\n        }\n        var price = item.price * item.count\n        if price > limit {\n            price -= item.discount\n        }\n        sum += price\n    }\n    log(sum, limit)\n    return sum\n}\n",
    ),
    (
        Language::C,
        "a.c",
        "int total(struct item *items, int limit) {\n  int sum = 0;\n  for (int i = 0; i < limit; i++) {\n    if (items[i].price == 0 || items[i].count == 0) {\n      continue;\n    }\n    int price = items[i].price * items[i].count;\n    if (price > limit) {\n      price -= items[i].discount;\n    }\n    sum += price;\n  }\n  log(sum, limit);\n  return sum;\n}\n",
    ),
    (
        Language::Cpp,
        "a.cpp",
        "int total(const std::vector<Item> &items, int limit) {\n  int sum = 0;\n  for (const auto &item : items) {\n    if (item.price == 0 || item.count == 0) {\n      continue;\n    }\n    int price = item.price * item.count;\n    if (price > limit) {\n      price -= item.discount;\n    }\n    sum += price;\n  }\n  log(sum, limit);\n  return sum;\n}\n",
    ),
    (
        Language::CSharp,
        "a.cs",
        "  int Total(List<Item> items, int limit) {\n    var sum = 0;\n    foreach (var item in items) {\n      if (item.price == 0 || item.count == 0) {\n        continue;\n      }\n      var price = item.price * item.count;\n      if (price > limit) {\n        price -= item.discount;\n      }\n      sum += price;\n    }\n    log(sum, limit);\n    return sum;\n  }\n",
    ),
    (
        Language::Ruby,
        "a.rb",
        "def total(items, limit)\n  sum = 0\n  items.each do |item|\n    next if item.price == 0 || item.count == 0\n    price = item.price * item.count\n    if price > limit\n      price -= item.discount\n    end\n    while price > item.max\n      price = shrink(price, item.max)\n    end\n    sum += price\n  end\n  log(sum, limit)\n  sum\nend\n",
    ),
    (
        Language::Php,
        "a.php",
        "<?php\nfunction total($items, $limit) {\n  $sum = 0;\n  foreach ($items as $item) {\n    if ($item->price === 0 || $item->count === 0) {\n      continue;\n    }\n    $price = $item->price * $item->count;\n    if ($price > $limit) {\n      $price -= $item->discount;\n    }\n    $sum += $price;\n  }\n  log($sum, $limit);\n  return $sum;\n}\n",
    ),
    (
        Language::Bash,
        "a.sh",
        "total() {\n  local sum=0\n  for item in \"$@\"; do\n    if [ \"$item\" = 0 ] || [ -z \"$item\" ]; then\n      continue\n    fi\n    price=$(value_of \"$item\")\n    if [ \"$price\" -gt \"$limit\" ]; then\n      price=$((price - discount))\n    fi\n    sum=$((sum + price))\n  done\n  log \"$sum\" \"$limit\"\n  echo \"$sum\"\n}\n",
    ),
];

fn rename_identifiers(code: &str) -> String {
    code.replace("sum", "amount").replace("item", "entry").replace("price", "cost").replace("otal", "allOfIt")
}

#[test]
fn a_copy_in_one_file_is_found_in_every_language() {
    for (_, path, code) in FUNCTIONS {
        let copy = code.trim_start_matches("<?php\n");
        let (last, lines) = (code.lines().count(), copy.lines().count());
        let first = last + 1 - lines;
        let (head, body) = copy.split_once('\n').expect("several lines");
        let mark = format!("//~ p2 {lines} lines repeat {path}:{first}-{last}, to the letter");
        let found = check_samples(&SMELL, &format!("//- {path}\n{code}\n\n\n{head}\n{mark}\n{body}"));
        assert_eq!(found[0].severity, Severity::High, "{path}");

        let found = find_smells(&SMELL, path, format!("{code}\n\n\n{}", rename_identifiers(copy)));
        let places: Vec<_> = found.iter().map(|smell| (smell.line_start as usize, smell.line_end as usize)).collect();
        assert_eq!(places, [(last + 4, last + 3 + lines)], "renamed {path} {found:#?}");
        assert!(found[0].severity < Severity::High, "{path} {found:?}");
        check_samples(&SMELL, &format!("//- {path}\n{code}"));
    }
}

#[test]
fn repetition_that_is_no_copy() {
    for (path, text) in [
        ("a.py", (0..60).map(|n| format!("import module{n}.part as name{n}\n")).collect::<String>()),
        ("a.js", format!("const t = [{}];\n", "  { name: 'x', value: 1, other: y },\n".repeat(40))),
        ("A.java", (0..20).map(|n| format!("public int getA{n}() {{\n  return a{n};\n}}\n")).collect()),
        ("a.c", "/* This is free software; you may copy it, change it, sell it and give it away. */\n".repeat(30)),
        ("a.go", (0..30).map(|n| format!("\tcase {n}:\n\t\treturn \"x{n}\"\n")).collect()),
    ] {
        assert_eq!(find_smells(&SMELL, path, &text), [], "{path}");
    }
}

/// Fingerprints by path.
#[derive(Default)]
struct KnownFingerprints(BTreeMap<String, Vec<u32>>);

impl FingerprintSource for KnownFingerprints {
    fn fingerprints(&self, path: &str, _: &str) -> Option<&[u32]> {
        self.0.get(path).map(Vec::as_slice)
    }
}

fn known_fingerprints<'a>(files: impl IntoIterator<Item = (&'a str, &'a String)>) -> KnownFingerprints {
    KnownFingerprints(
        files.into_iter().map(|(path, text)| (path.to_owned(), file_fingerprints(path, text.as_bytes()))).collect(),
    )
}

/// Runs a search over files whose blob ids are made from their contents; `added` are lines of the first file.
fn search_clones(
    search: CloneSearch<'_>,
    added: &[LineRange],
    files: &[(&str, String)],
) -> (super::search::CloneReport, usize) {
    let blob = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..40].to_owned();
    let tree: Vec<TreeFile> =
        files.iter().map(|(path, text)| TreeFile { path: (*path).to_owned(), blob: blob(text) }).collect();
    let mut reads = 0;
    let mut read = |id: &str| {
        reads += 1;
        files.iter().find(|(_, text)| blob(text) == id).map(|(_, text)| text.clone().into_bytes())
    };
    let mut parsers = Parsers::default();
    let (path, text) = &files[0];
    let language = Language::detect(path, text.as_bytes()).expect("a language");
    let source = parsers.parse(path, language, text.as_bytes()).expect("parses");
    let facts = FileFacts::from_parsed(&source);
    let changed = [ChangedFile { source: &source, facts: &facts, added }];
    (search.run(&changed, &tree, &mut read, &Limits::default()), reads)
}

#[test]
fn a_copy_in_another_file_is_found_whether_its_fingerprints_are_known_or_not() {
    for (language, name, code) in FUNCTIONS {
        let new = format!("src/new/{name}");
        let old = format!("src/old/{name}");
        let files = [
            (new.as_str(), code.to_owned()),
            (
                old.as_str(),
                format!("{}{}", if language == Language::Php { "<?php\n" } else { "" }, rename_identifiers(code)),
            ),
            ("src/old/main.txt", code.to_owned()),
        ];
        let lines = LineRange::new(1, code.lines().count() as u32);
        let known = known_fingerprints(files.iter().map(|(path, text)| (*path, text)));
        for known in [None, Some(&known as &dyn FingerprintSource)] {
            let (report, _) = search_clones(CloneSearch::new(known), &[lines], &files);
            assert_eq!(report.smells.len(), 1, "{language:?} {report:?}");
            assert!(report.smells[0].1.title.contains(&old), "{report:?}");
            assert_eq!((report.files_seen, report.files_left, report.notes.len()), (1, 0, 0), "{report:?}");
        }
    }
}

#[test]
fn what_is_known_is_not_read() {
    let (_, _, code) = FUNCTIONS[5];
    let mut files = vec![("a.go", code.to_owned())];
    let names: Vec<String> = (0..40).map(|n| format!("p/f{n}.go")).collect();
    for (n, name) in names.iter().enumerate() {
        files.push((name, format!("package p\n\nvar x{n} = y\n")));
    }
    let all = [LineRange::new(1, 20)];
    let search = |known: &KnownFingerprints, budget| {
        search_clones(CloneSearch::new(Some(known)).with_budget(budget), &all, &files)
    };
    let whole = known_fingerprints(files.iter().map(|(path, text)| (*path, text)));
    let (report, reads) = search(&whole, CloneSearch::DEFAULT_BUDGET_BYTES);
    assert_eq!((reads, report.files_seen, report.notes.len()), (0, 40, 0), "{report:?}");
    // A budget that ends early gives a note; stored fingerprints cost none of it.
    let (none, reads) = search(&KnownFingerprints::default(), 10_000);
    assert!(none.files_left > 0 && reads == none.files_seen && none.notes.len() == 1, "{none:?}");
    let half = known_fingerprints(files.iter().take(21).map(|(path, text)| (*path, text)));
    let (half, reads) = search(&half, 10_000);
    assert_eq!((half.files_seen, half.files_left), (20 + reads, 20 - reads), "{half:?}");
    assert_eq!(reads, none.files_seen);
}

/// Returns the files of this crate's sources, by path.
fn read_sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder)).expect("sources")
        {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            match entry.file_type().expect("a type").is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "rs") => {
                    let text = std::fs::read_to_string(entry.path()).expect("a text");
                    found.push((path.to_string_lossy().into_owned(), text));
                }
                false => {}
            }
        }
    }
    found.sort();
    found
}

#[test]
fn with_all_fingerprints_known_a_real_change_finds_what_reading_everything_finds() {
    let sources = read_sources();
    let blob = |at: usize| format!("{at:040x}");
    let tree: Vec<TreeFile> =
        sources.iter().enumerate().map(|(at, (path, _))| TreeFile { path: path.clone(), blob: blob(at) }).collect();
    let text_of =
        |id: &str| sources.get(usize::from_str_radix(id, 16).ok()?).map(|(_, text)| text.clone().into_bytes());
    let known = known_fingerprints(sources.iter().map(|(path, text)| (path.as_str(), text)));
    let (known, full) = (CloneSearch::new(Some(&known)).with_budget(0), CloneSearch::new(None).with_budget(u64::MAX));
    let (mut found, mut most) = (0, 0);
    // Each iteration is another change: the code of a long file again, with other names, next to all other files.
    for (path, text) in sources.iter().filter(|(_, text)| text.len() > 12_000).step_by(9) {
        let changed = rename_identifiers(&text.replace("self", "me"));
        let mut parsers = Parsers::default();
        let source = parsers.parse("src/new.rs", Language::Rust, changed.as_bytes()).expect("Rust");
        let facts = FileFacts::from_parsed(&source);
        let all = [LineRange::new(1, u32::MAX)];
        let change = [ChangedFile { source: &source, facts: &facts, added: &all }];
        let mut reads = 0;
        let mut read = |id: &str| {
            reads += 1;
            text_of(id)
        };
        let by_index = known.run(&change, &tree, &mut read, &Limits::default());
        let by_reading = full.run(&change, &tree, &mut |id| text_of(id), &Limits::default());
        assert_eq!(by_index.smells, by_reading.smells, "{path}");
        assert_eq!((by_index.files_left, &by_index.notes), (0, &Vec::new()));
        (found, most) = (found + by_index.smells.len(), most.max(reads));
    }
    assert!(found > 20, "{found}");
    assert!(most <= 48 && most * 4 < sources.len(), "{most} of {} files were read", sources.len());
}

#[test]
fn only_what_the_change_adds_is_a_copy() {
    let (_, _, code) = FUNCTIONS[2];
    let files = [("a.js", format!("{code}\nother();\n")), ("b.js", code.to_owned())];
    let count = |added: &[LineRange]| search_clones(CloneSearch::new(None), added, &files).0.smells.len();
    assert_eq!(count(&[LineRange::new(1, 15)]), 1, "all of it is new");
    assert_eq!(count(&[LineRange::new(2, 12)]), 1, "most of it is new");
    assert_eq!(count(&[LineRange::new(7, 7)]), 0, "one line of an old copy changed");
    assert_eq!(count(&[LineRange::new(2, 2), LineRange::new(8, 8), LineRange::new(14, 14)]), 0, "three lines");
    assert_eq!(count(&[LineRange::new(17, 17)]), 0, "another place changed");
    assert_eq!(count(&[]), 0);
}

#[test]
fn tests_may_repeat_themselves_more() {
    let (_, _, code) = FUNCTIONS[1];
    let text = format!("{code}\n\n{code}");
    assert_eq!(find_smells(&SMELL, "tests/test_a.py", &text), []);
    assert_eq!(find_smells(&SMELL, "src/a.py", &text).len(), 1);
}

#[test]
fn copies_across_files_are_found_once() {
    let (language, _, code) = FUNCTIONS[6];
    let mut index = index::CloneIndex::default();
    for path in ["b/B.java", "a/A.java", "c/C.java"] {
        index.add_file(path, language, code.as_bytes());
    }
    let smells = index.find_clones(&mut |_| Some(code.as_bytes().to_vec()), &Limits::default());
    let paths: Vec<&str> = smells.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["b/B.java", "c/C.java"]);
}

#[test]
fn two_old_copies_that_are_edited_alike_are_not_new() {
    let (_, _, code) = FUNCTIONS[2];
    let lines = code.lines().count() as u32;
    let files = [("a.js", format!("{code}{code}"))];
    let count = |added: &[LineRange]| search_clones(CloneSearch::new(None), added, &files).0.smells.len();
    assert_eq!(count(&[LineRange::new(3, 10), LineRange::new(lines + 3, lines + 10)]), 0, "both edited");
    assert_eq!(count(&[LineRange::new(lines + 1, 2 * lines)]), 1, "the second is new");
    assert_eq!(count(&[LineRange::new(1, lines)]), 1, "the first is new");
    assert_eq!(count(&[LineRange::new(1, 2 * lines)]), 1, "both are new");
}

#[test]
fn a_signature_is_no_copy() {
    let head = "def f(\n    self,\n    a: str | None = None,\n    b: t.Mapping[str, str] | None = 'x',\n    c: bool = False,\n    \
                d: os.PathLike[str] = None,\n    e: str | None = None,\n    g: bool = True,\n    h: int = 1,\n) -> None:\n    self.a = a\n";
    assert_eq!(find_smells(&SMELL, "a.py", format!("{head}    x()\n\n{head}    y()\n")), []);
}

/// Reference implementation of [`merge_overlapping`], which compares every copy with every kept one.
fn merge_overlapping_naive(found: &[LocatedClone<'_>]) -> Vec<(LineRange, LineRange, u32)> {
    let mut kept: Vec<(&LocatedClone<'_>, u32)> = Vec::new();
    for copy in found {
        match kept.iter_mut().find(|(known, _)| known.accepted.here.overlaps(copy.accepted.here)) {
            Some((known, others)) => {
                let same_place =
                    known.there_path == copy.there_path && known.accepted.there.overlaps(copy.accepted.there);
                *others += u32::from(!same_place);
            }
            None => kept.push((copy, 0)),
        }
    }
    kept.sort_by_key(|(copy, _)| copy.accepted.here.start);
    kept.into_iter().map(|(copy, others)| (copy.accepted.here, copy.accepted.there, others)).collect()
}

proptest! {
    #[test]
    fn of_overlapping_copies_the_best_stands_for_the_others(
        places in prop::collection::vec(((1u32..80, 1u32..30), (1u32..80, 1u32..30), 0u8..3, 50u32..55), 0..60),
    ) {
        let mut found: Vec<LocatedClone<'_>> = places
            .into_iter()
            .map(|((here, lines), (there, there_lines), path, length)| LocatedClone {
                there_path: format!("{path}.rs"),
                there_facts: None,
                accepted: AcceptedClone {
                    copy: CloneMatch { runs: vec![matching::TokenRun { a: 0, b: 0, length }] },
                    here: LineRange::new(here, here + lines),
                    there: LineRange::new(there, there + there_lines),
                    similarity: CloneSimilarity { percent: 90, verbatim: false },
                    is_test: false,
                },
            })
            .collect();
        sort_best_first(&mut found);
        let expected = merge_overlapping_naive(&found);
        let kept: Vec<_> =
            merge_overlapping(found).into_iter().map(|(it, others)| (it.accepted.here, it.accepted.there, others)).collect();
        prop_assert_eq!(kept, expected);
    }
}

#[test]
fn a_block_that_is_copied_very_often_is_reported_once_per_place() {
    let (_, path, code) = FUNCTIONS[5];
    let many = code.repeat(2_000);
    let lines = LineRange::new(1, code.lines().count() as u32);
    let files = [(path, code.to_owned()), ("p/many.go", many.clone())];
    let (report, _) = search_clones(CloneSearch::new(None), &[lines], &files);
    assert_eq!(report.smells.len(), 1);
    assert!(report.smells[0].1.explanation.contains("(and 1999 more places)"), "{}", report.smells[0].1.explanation);
    // Within a file, code that repeats so often is an idiom.
    assert_eq!(find_smells(&SMELL, path, &many), []);
}
