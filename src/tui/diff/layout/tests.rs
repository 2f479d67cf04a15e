use super::super::columns::wrapped_part;
use super::*;
use crate::domain::{FindingStatus, Kind, Priority};

fn block(old: u32, old_lines: u32, new: u32, new_lines: u32) -> ChangeBlock {
    ChangeBlock { old, old_lines, new, new_lines }
}

fn finding(start: u32, end: u32) -> DiffFinding {
    DiffFinding {
        id: format!("f_{start:016}"),
        priority: Priority::P1,
        kind: Kind::DeadCode,
        status: FindingStatus::Open,
        lines: LineRange::new(start, end),
        title: String::new(),
        explanation: String::new(),
        suggestion: None,
    }
}

fn texts(lines: u32) -> DiffTexts {
    let text: String = (1..=lines).map(|n| format!("line {n}\n")).collect();
    DiffTexts { old: LineTable::new(text.clone()), new: LineTable::new(text), ..DiffTexts::default() }
}

/// Writes a layout in one line: `C` context, `-` removed, `+` added, `=` paired, `G` gap, with the new or old lines.
fn written(layout: &FileLayout) -> String {
    let parts = layout.segments.iter().map(|segment| match segment {
        FileSegment::Header => "H".to_owned(),
        FileSegment::Note(lines) => format!("N{}", lines.len()),
        FileSegment::Blank => "B".to_owned(),
        FileSegment::Gap(hidden) => format!("G{}+{}", hidden.new, hidden.lines),
        FileSegment::Finding { index, lines } => format!("F{index}x{}", lines.len()),
        FileSegment::Lines(run) => match run.kind {
            RunKind::Context => format!("C{}/{}+{}", run.old, run.new, run.new_lines),
            RunKind::Removed => format!("-{}+{}", run.old, run.old_lines),
            RunKind::Added => format!("+{}+{}", run.new, run.new_lines),
            RunKind::Paired => format!("={}+{}/{}+{}", run.old, run.old_lines, run.new, run.new_lines),
        },
    });
    parts.collect::<Vec<_>>().join(" ")
}

struct LayoutCase {
    blocks: Vec<ChangeBlock>,
    partners: Vec<(u32, u32)>,
    findings: Vec<DiffFinding>,
    lines: Option<u32>,
    open: Vec<usize>,
    expanded: Vec<LineRange>,
    is_side_by_side: bool,
}

fn check(case: &LayoutCase, expected: &str) {
    let file = DiffFile { blocks: case.blocks.clone(), findings: case.findings.clone(), ..DiffFile::default() };
    let texts = case.lines.map(texts);
    let open: Vec<(usize, Vec<DocLine>)> =
        case.open.iter().map(|index| (*index, vec![DocLine::default(), DocLine::default()])).collect();
    let layout = lay_out_file(LayoutInput {
        file: &file,
        blocks: &file.blocks,
        partners: &case.partners,
        texts: texts.as_ref(),
        is_folded: false,
        open_findings: &open,
        expanded: &case.expanded,
        columns: DiffColumns { width: 80, is_side_by_side: case.is_side_by_side, is_wrapped: false },
        note: None,
        caption: None,
    });
    assert_eq!(written(&layout), expected);
    // Each row is found again by its line.
    for row in 0..layout.rows() {
        if let Some(DiffPageRow::Code(code)) = layout.row(row) {
            let side = if code.new.is_some() { DiffPageSide::New } else { DiffPageSide::Old };
            assert_eq!(layout.row_of_line(side, code.line(side).expect("a line")), Some(row), "{code:?}");
        }
    }
    assert_eq!(layout.row(layout.rows()), None);
}

#[test]
fn rows_follow_from_blocks_findings_and_folds() {
    let plain = || LayoutCase {
        blocks: vec![block(20, 2, 20, 3)],
        partners: Vec::new(),
        findings: Vec::new(),
        lines: Some(60),
        open: Vec::new(),
        expanded: Vec::new(),
        is_side_by_side: false,
    };
    check(&plain(), "H G1+16 C17/17+3 -20+2 +20+3 C22/23+3 G26+35 B");
    check(&LayoutCase { is_side_by_side: true, ..plain() }, "H G1+16 C17/17+3 =20+2/20+3 C22/23+3 G26+35 B");
    // Without the text, the end is not known.
    check(&LayoutCase { lines: None, ..plain() }, "H G1+16 C17/17+3 -20+2 +20+3 B");
    // A finding in unchanged code, one in changed code, and their texts.
    let findings = vec![finding(5, 6), finding(21, 21)];
    check(
        &LayoutCase { findings: findings.clone(), ..plain() },
        "H G1+2 C3/3+6 G9+8 C17/17+3 -20+2 +20+3 C22/23+3 G26+35 B",
    );
    check(
        &LayoutCase { findings: findings.clone(), open: vec![0, 1], ..plain() },
        "H G1+2 C3/3+4 F0x2 C7/7+2 G9+8 C17/17+3 -20+2 +20+2 F1x2 +22+1 C22/23+3 G26+35 B",
    );
    check(
        &LayoutCase { findings, open: vec![1], is_side_by_side: true, ..plain() },
        "H G1+2 C3/3+6 G9+8 C17/17+3 =20+2/20+2 F1x2 =22+0/22+1 C22/23+3 G26+35 B",
    );
    // Lines that belong together face each other, and the text of a finding stands below its line.
    let paired = |partners: &[(u32, u32)]| LayoutCase {
        blocks: vec![block(10, 0, 10, 1), block(20, 3, 21, 5)],
        partners: partners.to_vec(),
        is_side_by_side: true,
        lines: Some(30),
        ..plain()
    };
    let (above, below) = ("H G1+6 C7/7+3 =10+0/10+1 C10/11+3 G14+4 C17/18+3", "C23/26+3 G29+2 B");
    for (partners, runs) in [
        (&[][..], "=20+3/21+5"),
        (&[(20, 21), (22, 23)], "=20+3/21+5"),
        (&[(20, 22)], "=20+0/21+1 =20+3/22+4"),
        (&[(20, 22), (22, 24)], "=20+0/21+1 =20+3/22+4"),
        (&[(20, 22), (22, 25)], "=20+0/21+1 =20+2/22+3 =22+1/25+1"),
        (&[(21, 21)], "=20+1/21+0 =21+2/21+5"),
        (&[(22, 21)], "=20+2/21+0 =22+1/21+5"),
        (&[(20, 25)], "=20+0/21+4 =20+3/25+1"),
    ] {
        check(&paired(partners), &format!("{above} {runs} {below}"));
    }
    check(
        &LayoutCase { findings: vec![finding(22, 22)], open: vec![0], ..paired(&[(21, 24)]) },
        &format!("{above} =20+1/21+2 F0x2 =21+0/23+1 =21+2/24+2 {below}"),
    );
    check(
        &LayoutCase { is_side_by_side: false, ..paired(&[(20, 22)]) },
        "H G1+6 C7/7+3 +10+1 C10/11+3 G14+4 C17/18+3 -20+3 +21+5 C23/26+3 G29+2 B",
    );
    // Long findings show their beginning, with their text below the first line.
    check(
        &LayoutCase { findings: vec![finding(40, 59)], open: vec![0], ..plain() },
        "H G1+16 C17/17+3 -20+2 +20+3 C22/23+3 G26+12 C37/38+3 F0x2 C40/41+11 G52+9 B",
    );
    // A gap of one line is no gap.
    check(
        &LayoutCase { blocks: vec![block(5, 1, 5, 1), block(13, 0, 13, 1)], lines: Some(14), ..plain() },
        "H C1/1+4 -5+1 +5+1 C6/6+7 +13+1 C13/14+1 B",
    );
    check(
        &LayoutCase { expanded: vec![LineRange::new(10, 16)], ..plain() },
        "H G1+9 C10/10+10 -20+2 +20+3 C22/23+3 G26+35 B",
    );
    // A new file, an emptied file, an unchanged one.
    check(&LayoutCase { blocks: vec![block(1, 0, 1, 4)], lines: Some(4), ..plain() }, "H +1+4 B");
    check(&LayoutCase { blocks: vec![block(1, 3, 1, 0)], lines: Some(0), ..plain() }, "H -1+3 B");
    check(&LayoutCase { blocks: Vec::new(), ..plain() }, "H G1+60 B");
    check(&LayoutCase { blocks: Vec::new(), findings: vec![finding(1, 1)], ..plain() }, "H C1/1+3 G4+57 B");
}

/// Returns the input of a file without findings, notes and expanded parts.
fn unfolded<'a>(file: &'a DiffFile, texts: &'a DiffTexts, columns: DiffColumns) -> LayoutInput<'a> {
    LayoutInput {
        file,
        blocks: &file.blocks,
        partners: &[],
        texts: Some(texts),
        is_folded: false,
        open_findings: &[],
        expanded: &[],
        columns,
        note: None,
        caption: None,
    }
}

#[test]
fn a_text_about_a_file_is_wrapped_and_stands_above_its_lines_or_instead_of_them() {
    let file = DiffFile { blocks: vec![block(1, 0, 1, 3)], ..DiffFile::default() };
    let texts = texts(3);
    let columns = DiffColumns { width: 23, ..DiffColumns::default() };
    let input = unfolded(&file, &texts, columns);
    let lay_out = |note, caption| lay_out_file(LayoutInput { note, caption, ..input });
    let text = "The reviewer did not read this file: oversized.";
    let layout = lay_out(None, Some(text));
    assert_eq!(written(&layout), "H N3 +1+3 B");
    let lines: Vec<&str> = (0..3).map(|line| layout.note_line(line)).collect();
    assert_eq!(lines, ["The reviewer did not", "read this file:", "oversized."]);
    assert_eq!(layout.row(2), Some(DiffPageRow::Note { line: 1 }));
    assert_eq!(layout.row_of_line(DiffPageSide::New, 1), Some(4));
    assert_eq!(written(&lay_out(Some("an image"), Some(text))), "H N1 B");
}

#[test]
fn a_wrapped_line_takes_the_rows_it_needs() {
    let long = "x".repeat(100);
    let file = DiffFile { blocks: vec![block(1, 0, 1, 3)], ..DiffFile::default() };
    let texts = DiffTexts { new: LineTable::new(format!("a\n{long}\nc\n")), ..DiffTexts::default() };
    let columns = DiffColumns { width: 50, is_side_by_side: false, is_wrapped: true };
    assert_eq!(columns.text_width(2), 40);
    let input = unfolded(&file, &texts, columns);
    let layout = lay_out_file(input);
    assert_eq!(layout.rows(), 1 + 5 + 1);
    let rows: Vec<(Option<u32>, u32)> = (1..6)
        .filter_map(|row| match layout.row(row) {
            Some(DiffPageRow::Code(code)) => Some((code.new, code.part)),
            _ => None,
        })
        .collect();
    assert_eq!(rows, [(Some(1), 0), (Some(2), 0), (Some(2), 1), (Some(2), 2), (Some(3), 0)]);
    assert_eq!(layout.row_of_line(DiffPageSide::New, 3), Some(5));
    assert_eq!(wrapped_part(&long, 2, 40), (80, 100));
    assert_eq!((count_rows("漢字漢字", 5), wrapped_part("漢字漢字", 1, 5)), (2, (6, 12)));
    assert_eq!(lay_out_file(LayoutInput { is_folded: true, ..input }).rows(), 1);
}
