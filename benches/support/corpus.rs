//! The files for speed measurements: generated ones in all languages, or those of a real folder.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use revdeck::syntax::language::Language;
use tree_sitter::Parser;

pub const THREADS: usize = 2;

pub struct File {
    pub path: String,
    pub language: Language,
    pub text: Vec<u8>,
}

/// Parses all files with tree-sitter alone.
pub fn parse_all() {
    on_threads(|| {
        let mut parsers: [Option<Parser>; Language::ALL.len()] = Default::default();
        move |file: &File| {
            let parser = parsers[file.language.index()].get_or_insert_with(|| {
                let mut parser = Parser::new();
                parser.set_language(&file.language.grammar()).expect("the grammar fits the library");
                parser
            });
            std::hint::black_box(parser.parse(&file.text, None));
        }
    });
}

/// Runs a worker on each thread until no file is left.
pub fn on_threads<W: FnMut(&'static File)>(worker: impl Fn() -> W + Sync) {
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

/// Returns the files, largest first, so that no thread gets a large file at the end.
pub fn corpus() -> &'static [File] {
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

/// The parts of a language's file: name, head, function start, statements, function end, tail.
struct Template {
    name: &'static str,
    head: &'static str,
    open: &'static str,
    statements: &'static [&'static str],
    close: &'static str,
    tail: &'static str,
}

/// Generates about 170,000 lines: functions with statements in the order of a fixed sequence of random numbers, so
/// that they differ as much as real ones.
fn generate() -> Vec<File> {
    const FILES: usize = 10;
    const FUNCTIONS: usize = 80;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let mut files = Vec::new();
    for template in TEMPLATES {
        for number in 0..FILES {
            let mut text = template.head.to_owned();
            for index in 0..FUNCTIONS {
                let name = format!("step_{number}_{index}");
                text += &template.open.replace("NAME", &name);
                for _ in 0..5 + next(12) {
                    let statement = template.statements[next(template.statements.len())];
                    let word = WORDS[next(WORDS.len())];
                    text += &statement.replace("WORD", word).replace("42", &next(1_000).to_string());
                    text.push('\n');
                }
                text += template.close;
            }
            text += template.tail;
            let path = template.name.replace('N', &number.to_string());
            let language = Language::detect(&path, text.as_bytes()).expect("a language of ours");
            files.push(File { path, language, text: text.into_bytes() });
        }
    }
    files
}

const WORDS: [&str; 12] =
    ["total", "index", "reader", "limit", "state", "buffer", "entry", "count", "parent", "offset", "source", "result"];

const JAVASCRIPT: &[&str] = &[
    "  const WORD_a = path.join(options.base, `${input.name}-42`);",
    "  // WORD is kept as it was\n  if (input.WORD && input.size > 42) {\n    return input.WORD;\n  }",
    "  for (const item of input.items) {\n    item.WORD = item.WORD ?? options.WORD;\n  }",
    "  try {\n    cache.WORD = JSON.parse(input.text);\n  } catch (error) {\n    log.warn('WORD', error);\n  }",
    "  const WORD_b = input.items.filter((item) => item.WORD !== null).map((item) => ({ ...item, n: 42 }));",
    "  switch (input.kind) {\n    case 'WORD':\n      input.weight = 2;\n      break;\n    default:\n      input.weight = 1;\n  }",
    "  let WORD_c = input.WORD ? input.WORD.length : 0;",
    "  while (WORD.length > options.limit) {\n    WORD.shift();\n  }",
    "  options.WORD(input, { deep: true, depth: 42 });",
    "  input.WORD += options.step * (input.scale - 1);",
];

const BRACES: &[&str] = &[
    "    int WORD_a = input.WORD() + 42;",
    "    // WORD stays as it was\n    if (input.WORD > limit && limit != 0) {\n        return input.WORD;\n    }",
    "    for (int i = 0; i < limit; i++) {\n        total += WORD[i] * 2;\n    }",
    "    while (WORD > limit) {\n        WORD = next(WORD);\n    }",
    "    switch (WORD) {\n        case 1:\n            total += 42;\n            break;\n        default:\n            total--;\n    }",
    "    WORD = limit > 42 ? first(WORD) : second(limit, total);",
    "    log(\"WORD changed\", total, limit);",
    "    if (!check(WORD)) {\n        total = 0;\n    } else if (limit == 42) {\n        total = WORD;\n    }",
    "    total += WORD % 42 - (limit << 2);",
    "    do {\n        WORD--;\n    } while (WORD > 0 || total < limit);",
];

const TEMPLATES: &[Template] = &[
    Template {
        name: "fN.rs",
        head: "use std::collections::HashMap;\nstatic LIMIT: usize = 10;\n",
        open: "/// Reads one entry.\nfn NAME(input: &Input, seen: &mut HashMap<String, usize>) -> Result<usize, String> {\n    let mut total = 0;\n",
        statements: &[
            "    let WORD_a = input.WORD.iter().filter(|item| item.len() > 42).count();",
            "    if input.WORD > 42 && !seen.is_empty() {\n        return Err(format!(\"too many: {total}\"));\n    }",
            "    for (index, byte) in input.WORD.bytes().enumerate() {\n        total += index * usize::from(byte);\n    }",
            "    match seen.get(\"WORD\") {\n        Some(count) => total += count,\n        None => total = 42,\n    }",
            "    seen.insert(\"WORD\".to_owned(), total);",
            "    let Some(WORD) = input.WORD.first() else { return Ok(total) };",
            "    while total > LIMIT {\n        total -= seen.len() + 1;\n    }",
            "    // WORD may be empty\n    total = total.saturating_sub(input.WORD(42)?);",
            "    let WORD_b: Vec<&str> = input.text.split(',').map(str::trim).collect();",
            "    input.WORD.push(Item { name: \"WORD\", size: total, ..Item::default() });",
        ],
        close: "    Ok(total)\n}\n\n",
        tail: "",
    },
    Template {
        name: "fN.py",
        head: "import os\nimport sys\n\nLIMIT = 10\n\n",
        open: "def NAME(rows, limit=None, *, strict=False):\n    \"\"\"Counts the rows that matter.\"\"\"\n    total = 0\n",
        statements: &[
            "    WORD = [row.WORD for row in rows if row.size > 42]",
            "    if not rows or rows[0].startswith('#'):\n        return limit",
            "    for index, row in enumerate(rows):\n        total += row.WORD * index",
            "    try:\n        total += int(rows.WORD) % 42\n    except ValueError as error:\n        raise RuntimeError(f'bad WORD: {error}') from error",
            "    with open(os.path.join(rows.base, 'WORD')) as WORD:\n        total += len(WORD.read())",
            "    # WORD is checked elsewhere\n    limit = min(total, limit) if limit else total",
            "    while total > LIMIT:\n        total -= len(rows)",
            "    options = {'WORD': total, 'strict': strict, 'limit': limit}",
            "    rows.WORD(total, key=lambda row: row.size)",
            "    print('WORD', total, file=sys.stderr)",
        ],
        close: "    return total\n\n\n",
        tail: "",
    },
    Template {
        name: "fN.js",
        head: "'use strict';\nconst path = require('path');\nconst cache = {};\n",
        open: "function NAME(input, options = {}) {\n",
        statements: JAVASCRIPT,
        close: "  return input;\n}\n\n",
        tail: "module.exports = {};\n",
    },
    Template {
        name: "fN.ts",
        head: "import * as path from 'node:path';\nexport interface Input { name: string; size?: number }\n",
        open: "export async function NAME(input: Input, options: Record<string, number> = {}): Promise<Input> {\n",
        statements: JAVASCRIPT,
        close: "  return input as Input;\n}\n\n",
        tail: "",
    },
    Template {
        name: "fN.tsx",
        head: "import React from 'react';\n",
        open: "export const NAME = ({ input, options }: Props) => {\n",
        statements: JAVASCRIPT,
        close: "  return (\n    <ul className=\"list\" onClick={() => options.open()}>\n      {input.items.map((item) => <li key={item}>{item.name}</li>)}\n    </ul>\n  );\n};\n\n",
        tail: "",
    },
    Template {
        name: "fN.go",
        head: "package work\n\nimport (\n\t\"errors\"\n\t\"fmt\"\n)\n\nvar ErrEmpty = errors.New(\"empty\")\n\n",
        open: "// NAME sums what is left.\nfunc NAME(input *Input, limit int) (int, error) {\n\ttotal := 0\n",
        statements: &[
            "\tif len(input.WORD) == 0 {\n\t\treturn 0, ErrEmpty\n\t}",
            "\tfor i, value := range input.WORD {\n\t\ttotal += value * i\n\t}",
            "\tWORD, err := input.Read(limit, 42)\n\tif err != nil {\n\t\treturn total, fmt.Errorf(\"WORD: %w\", err)\n\t}\n\ttotal += WORD",
            "\tswitch {\n\tcase total > 42:\n\t\ttotal--\n\tcase limit < 0:\n\t\treturn total, nil\n\t}",
            "\tdefer input.WORD.Close()",
            "\tgo func() { input.done <- total }()",
            "\tinput.WORD[fmt.Sprint(total)] = Item{Name: \"WORD\", Size: 42}",
            "\t// WORD is not counted\n\tlimit = max(limit, total)",
            "\tfor total > limit && limit > 0 {\n\t\ttotal -= len(input.WORD)\n\t}",
        ],
        close: "\treturn total, nil\n}\n\n",
        tail: "",
    },
    Template {
        name: "FN.java",
        head: "package org.example;\n\nimport java.util.Map;\n\npublic class F {\n    private final Map<String, Integer> seen;\n",
        open: "    /** Counts. */\n    public int NAME(Input input, int limit) throws IllegalStateException {\n    int total = 0;\n",
        statements: BRACES,
        close: "    return total;\n    }\n\n",
        tail: "}\n",
    },
    Template {
        name: "fN.c",
        head: "#include <stdio.h>\n#include <string.h>\n\nstatic int counter;\n\n",
        open: "/* Copies what fits. */\nstatic int NAME(struct input input, int limit)\n{\n    int total = 0;\n",
        statements: BRACES,
        close: "    return total;\n}\n\n",
        tail: "",
    },
    Template {
        name: "fN.cpp",
        head: "#include <string>\n#include <vector>\nnamespace work {\n",
        open: "template <typename T>\nint NAME(const Input<T>& input, int limit) {\n    int total = 0;\n",
        statements: BRACES,
        close: "    auto less = [&](int a, int b) { return a < b; };\n    return less(total, limit);\n}\n\n",
        tail: "}\n",
    },
    Template {
        name: "FN.cs",
        head: "using System;\nusing System.Linq;\n\nnamespace Work {\npublic class F {\n    private readonly Store seen = new();\n",
        open: "    public int NAME(Input input, int limit = 42) {\n    var total = 0;\n",
        statements: BRACES,
        close: "    return Math.Min(total, limit);\n    }\n\n",
        tail: "}\n}\n",
    },
    Template {
        name: "fN.rb",
        head: "require 'json'\n\nclass F\n",
        open: "  # Counts the rows.\n  def NAME(rows, limit: 42)\n    total = 0\n",
        statements: &[
            "    return total if rows.WORD.nil? || rows.empty?",
            "    rows.WORD.each do |row|\n      total += row.length > limit ? limit : row.length\n    end",
            "    @WORD ||= {}\n    @WORD[total] = JSON.generate(rows)",
            "    if total > 42 && limit\n      total -= 1\n    elsif rows.WORD?\n      total = 0\n    end",
            "    WORD = rows.select { |row| row.size > 42 }.map(&:name)",
            "    # WORD is given by the caller\n    total += rows.WORD(limit, deep: true)",
            "    begin\n      total = Integer(rows.WORD)\n    rescue ArgumentError => e\n      raise \"bad WORD: #{e}\"\n    end",
            "    total -= 1 while total > limit",
        ],
        close: "    total\n  end\n\n",
        tail: "end\n",
    },
    Template {
        name: "fN.php",
        head: "<?php\n\nnamespace Work;\n\nclass F\n{\n    private $seen = [];\n",
        open: "    public function NAME(array $rows, int $limit = 42): int\n    {\n        $total = 0;\n",
        statements: &[
            "        if ($rows === [] || $limit < 42) {\n            return $total;\n        }",
            "        foreach ($rows as $WORD) {\n            $total += strlen($WORD);\n        }",
            "        $WORD = array_map(fn ($row) => $row['WORD'] ?? null, $rows);",
            "        $this->seen['WORD'][] = $total;",
            "        // WORD was checked before\n        $total = min($total, $limit);",
            "        try {\n            $total += $this->read($rows, 42);\n        } catch (\\Exception $e) {\n            throw new \\RuntimeException('WORD', 0, $e);\n        }",
            "        while ($total > $limit) {\n            $total -= count($rows);\n        }",
            "        $limit = $total > 42 ? $total : $limit;",
        ],
        close: "        return $total;\n    }\n\n",
        tail: "}\n",
    },
    Template {
        name: "fN.sh",
        head: "#!/bin/bash\nset -eu\n",
        open: "# Lists what is new.\nNAME() {\n  local folder=$1 count=0\n",
        statements: &[
            "  if [ -f \"$folder/WORD\" ] && [ \"$count\" -gt 42 ]; then\n    echo \"$folder\"\n  fi",
            "  for file in \"$folder\"/*.WORD; do\n    count=$((count + 1))\n  done",
            "  WORD=$(grep -c WORD \"$folder/list\" || true)",
            "  case $count in\n    42) echo many ;;\n    *) echo few ;;\n  esac",
            "  while read -r line; do\n    printf '%s\\n' \"$line\"\n  done < \"$folder/WORD\"",
            "  # WORD comes last\n  mkdir -p \"$folder/WORD\"",
            "  find \"$folder\" -name WORD -print0 | xargs -0 rm -f",
        ],
        close: "  return 0\n}\n\n",
        tail: "",
    },
];
