//! The built-in reviewer's speed: all eleven smells against bare tree-sitter parsing of the same files, both on two
//! threads. The ratio is to stay at or below 1.6.
//!
//! ```text
//! cargo bench --bench smells                                      # a generated corpus of all languages
//! REVDECK_BENCH_CORPUS=~/src/project cargo bench --bench smells   # the files of a real folder
//! ```

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use divan::Bencher;
use revdeck::provider::builtin::Builtin;
use revdeck::provider::builtin::language::Language;
use revdeck::provider::builtin::limits::Limits;
use revdeck::provider::builtin::source::Parsers;
use tree_sitter::Parser;

const THREADS: usize = 2;
const ROUNDS: usize = 5;

struct File {
    path: String,
    language: Language,
    text: Vec<u8>,
}

fn main() {
    let lines: usize = corpus().iter().map(|file| file.text.split(|byte| *byte == b'\n').count()).sum();
    println!("{} files, {lines} lines", corpus().len());
    let best = |run: fn()| -> Duration {
        (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                run();
                start.elapsed()
            })
            .min()
            .unwrap_or_default()
    };
    let (parse, smells) = (best(parse_all), best(smells_all));
    let ratio = smells.as_secs_f64() / parse.as_secs_f64();
    println!("best of {ROUNDS}: parsing {parse:.1?}, all smells {smells:.1?}, ratio {ratio:.2} (limit 1.6)");
    divan::main();
}

#[divan::bench(sample_count = 5)]
fn parsing(bencher: Bencher<'_, '_>) {
    bencher.bench(parse_all);
}

#[divan::bench(sample_count = 5)]
fn all_smells(bencher: Bencher<'_, '_>) {
    bencher.bench(smells_all);
}

fn parse_all() {
    on_threads(|| {
        let mut parsers: [Option<Parser>; Language::ALL.len()] = Default::default();
        move |file: &File| {
            let parser = parsers[file.language.index()].get_or_insert_with(|| {
                let mut parser = Parser::new();
                parser.set_language(&file.language.grammar()).expect("the grammar fits the library");
                parser
            });
            black_box(parser.parse(&file.text, None));
        }
    });
}

fn smells_all() {
    let builtin = Builtin::new(Limits::default());
    on_threads(|| {
        let mut parsers = Parsers::default();
        let builtin = &builtin;
        move |file: &File| {
            black_box(builtin.analyze_file(&mut parsers, &file.path, &file.text));
        }
    });
}

fn on_threads<W: FnMut(&'static File)>(worker: impl Fn() -> W + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut work = worker();
                while let Some(file) = corpus().get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(file);
                }
            });
        }
    });
}

/// Largest files first, so that no thread is left with one at last.
fn corpus() -> &'static [File] {
    static CORPUS: OnceLock<Vec<File>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let mut files = match std::env::var_os("REVDECK_BENCH_CORPUS") {
            Some(folder) => read(Path::new(&folder)),
            None => generate(),
        };
        files.sort_by_key(|file| std::cmp::Reverse(file.text.len()));
        files
    })
}

fn read(folder: &Path) -> Vec<File> {
    ignore::Walk::new(folder)
        .flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            let path = entry.path().to_string_lossy().into_owned();
            let text = std::fs::read(entry.path()).ok()?;
            Some(File { language: Language::detect(&path, &text)?, path, text })
        })
        .collect()
}

/// About 200,000 lines: per language some files of many functions that differ in names and numbers.
fn generate() -> Vec<File> {
    const FILES: usize = 10;
    const FUNCTIONS: usize = 110;
    let mut files = Vec::new();
    for (name, head, function, tail) in TEMPLATES {
        for number in 0..FILES {
            let mut text = (*head).to_owned();
            for index in 0..FUNCTIONS {
                let id = number * FUNCTIONS + index;
                text += &function.replace("NAME", &format!("step_{id}")).replace("42", &format!("{}", id * 7 % 1_000));
            }
            text += tail;
            let path = name.replace('N', &number.to_string());
            let language = Language::detect(&path, text.as_bytes()).expect("a language of ours");
            files.push(File { path, language, text: text.into_bytes() });
        }
    }
    files
}

/// File name, head, one function, tail.
const TEMPLATES: &[(&str, &str, &str, &str)] = &[
    (
        "fN.rs",
        "use std::collections::HashMap;\nstatic LIMIT: usize = 10;\n",
        "/// Reads one entry.\nfn NAME(input: &[u8], seen: &mut HashMap<String, usize>) -> Result<usize, String> {\n    let mut total = 0;\n    for (index, byte) in input.iter().enumerate() {\n        if *byte == b'\\n' && index > 3 {\n            total += index;\n        } else if seen.len() > 42 {\n            return Err(format!(\"too many at {index}\"));\n        }\n    }\n    match seen.get(\"NAME\") {\n        Some(count) => total += count,\n        None => { seen.insert(\"NAME\".to_owned(), total); }\n    }\n    Ok(total)\n}\n\n",
        "",
    ),
    (
        "fN.py",
        "import os\nimport sys\n\nLIMIT = 10\n\n",
        "def NAME(rows, limit=None, *, strict=False):\n    \"\"\"Counts the rows that matter.\"\"\"\n    total = 0\n    for index, row in enumerate(rows):\n        if not row or row.startswith('#'):\n            continue\n        try:\n            total += int(row) * 42\n        except ValueError as error:\n            if strict:\n                raise RuntimeError(f'bad row {index}: {error}') from error\n    return min(total, limit) if limit else total\n\n\n",
        "",
    ),
    (
        "fN.js",
        "'use strict';\nconst path = require('path');\nlet cache = {};\n",
        "function NAME(request, options = {}) {\n  const key = path.join(request.base, 'NAME');\n  if (cache[key] && !options.fresh) {\n    return cache[key];\n  }\n  const found = request.items.filter((item) => item.size > 42).map((item) => ({ ...item, key }));\n  for (const item of found) {\n    if (item.kind === 'text') { item.weight = 2; } else { item.weight = 1; }\n  }\n  cache[key] = found;\n  return found;\n}\n\n",
        "module.exports = {};\n",
    ),
    (
        "fN.ts",
        "import { join } from 'node:path';\nexport interface Item { name: string; size?: number }\n",
        "export async function NAME(items: Item[], limit: number = 42): Promise<string[]> {\n  const names: string[] = [];\n  for (const item of items) {\n    if ((item.size ?? 0) > limit) {\n      names.push(join(item.name, `${item.size}`));\n    }\n  }\n  return names.length > 0 ? names : ['none'];\n}\n\n",
        "",
    ),
    (
        "fN.tsx",
        "import React from 'react';\n",
        "export const NAME = ({ items, onPick }: { items: string[]; onPick: (x: string) => void }) => {\n  const [open, setOpen] = React.useState(false);\n  return (\n    <ul className=\"list\" onClick={() => setOpen(!open)}>\n      {items.map((item) => <li key={item} onClick={() => onPick(item)}>{item.slice(0, 42)}</li>)}\n    </ul>\n  );\n};\n\n",
        "",
    ),
    (
        "fN.go",
        "package work\n\nimport (\n\t\"errors\"\n\t\"fmt\"\n)\n\nvar ErrEmpty = errors.New(\"empty\")\n\n",
        "// NAME sums what is left.\nfunc NAME(values []int, names map[string]int) (int, error) {\n\tif len(values) == 0 {\n\t\treturn 0, ErrEmpty\n\t}\n\ttotal := 0\n\tfor i, value := range values {\n\t\tswitch {\n\t\tcase value > 42:\n\t\t\ttotal += value\n\t\tcase value < 0:\n\t\t\treturn 0, fmt.Errorf(\"value %d at %d\", value, i)\n\t\t}\n\t}\n\treturn total, nil\n}\n\n",
        "",
    ),
    (
        "FN.java",
        "package org.example;\n\nimport java.util.List;\nimport java.util.Map;\n\npublic class F {\n    private final Map<String, Integer> seen;\n",
        "    /** Counts. */\n    public int NAME(List<String> rows, boolean strict) throws IllegalStateException {\n        int total = 0;\n        for (String row : rows) {\n            try {\n                total += Integer.parseInt(row.trim()) % 42;\n            } catch (NumberFormatException error) {\n                if (strict && !row.isEmpty()) {\n                    throw new IllegalStateException(row, error);\n                }\n            }\n        }\n        return total;\n    }\n\n",
        "}\n",
    ),
    (
        "fN.c",
        "#include <stdio.h>\n#include <string.h>\n\nstatic int counter;\n\n",
        "/* Copies what fits. */\nstatic int NAME(char *to, const char *from, size_t size)\n{\n    size_t n = 0;\n    while (from[n] != '\\0' && n + 1 < size) {\n        to[n] = from[n];\n        n++;\n    }\n    if (size > 0)\n        to[n] = '\\0';\n    counter++;\n    return n > 42 ? -1 : (int)n;\n}\n\n",
        "",
    ),
    (
        "fN.cpp",
        "#include <string>\n#include <vector>\nnamespace work {\n",
        "template <typename T>\nbool NAME(const std::vector<T>& values, std::string& out) {\n  for (const auto& value : values) {\n    if (value > T{42} || out.size() > 80) {\n      out += std::to_string(value);\n    } else {\n      return false;\n    }\n  }\n  auto less = [&](int a, int b) { return a < b; };\n  return less(static_cast<int>(values.size()), 10);\n}\n\n",
        "}\n",
    ),
    (
        "FN.cs",
        "using System;\nusing System.Collections.Generic;\n\nnamespace Work {\npublic class F {\n    private readonly Dictionary<string, int> seen = new();\n",
        "    public int NAME(IEnumerable<string> rows, int limit = 42) {\n        var total = 0;\n        foreach (var row in rows) {\n            if (string.IsNullOrEmpty(row)) continue;\n            total += seen.TryGetValue(row, out var count) ? count : row.Length;\n        }\n        return Math.Min(total, limit);\n    }\n\n",
        "}\n}\n",
    ),
    (
        "fN.rb",
        "require 'json'\n\nclass F\n",
        "  # Counts the rows.\n  def NAME(rows, limit: 42)\n    total = 0\n    rows.each do |row|\n      next if row.nil? || row.empty?\n      total += row.length > limit ? limit : row.length\n    end\n    @seen ||= {}\n    @seen[total] = JSON.generate(rows)\n    total\n  end\n\n",
        "end\n",
    ),
    (
        "fN.php",
        "<?php\n\nnamespace Work;\n\nclass F\n{\n    private $seen = [];\n",
        "    public function NAME(array $rows, int $limit = 42): int\n    {\n        $total = 0;\n        foreach ($rows as $row) {\n            if ($row === '' || $row === null) {\n                continue;\n            }\n            $total += strlen($row);\n        }\n        $this->seen[] = $total;\n        return min($total, $limit);\n    }\n\n",
        "}\n",
    ),
    (
        "fN.sh",
        "#!/bin/bash\nset -eu\n",
        "# Lists what is new.\nNAME() {\n  local folder=$1 count=0\n  for file in \"$folder\"/*; do\n    if [ -f \"$file\" ] && [ \"$(wc -c < \"$file\")\" -gt 42 ]; then\n      echo \"$file\"\n      count=$((count + 1))\n    fi\n  done\n  return 0\n}\n\n",
        "",
    ),
];
