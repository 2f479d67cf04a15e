use super::*;
use ratatui::style::Style;

/// Draws frames into a screen, plays the bytes to a terminal emulator and compares the result with the frame.
fn played(frames: &[&[(u16, u16, &str, Style)]]) -> (Vec<usize>, vt100::Parser) {
    let (columns, rows) = (20, 4);
    let size = |n| std::num::NonZero::new(n).expect("not nothing");
    let mut screen = Screen::new(columns, rows);
    let mut terminal = vt100::Parser::new(size(rows), size(columns), 0);
    let mut sizes = Vec::new();
    for frame in frames {
        let bytes = screen.draw_frame(|buffer| {
            for (x, y, text, style) in *frame {
                buffer.set_string(*x, *y, text, *style);
            }
            None
        });
        sizes.push(bytes.len());
        terminal.process(bytes);
        for y in 0..rows {
            for x in 0..columns {
                let (want, have) = (&screen.next[(x, y)], terminal.screen().cell(y, x).expect("a cell"));
                if have.is_wide_continuation() {
                    continue;
                }
                let have_text = if have.contents().is_empty() { " " } else { have.contents() };
                assert_eq!(want.symbol(), have_text, "at {x},{y}");
                assert_eq!(want.modifier.contains(Modifier::BOLD), have.bold(), "bold at {x},{y}");
                assert_eq!(want.modifier.contains(Modifier::REVERSED), have.inverse(), "reverse at {x},{y}");
                let bg = match want.bg {
                    Color::Indexed(n) => vt100::Color::Idx(n),
                    _ => vt100::Color::Default,
                };
                assert_eq!(bg, have.bgcolor(), "background at {x},{y}");
            }
        }
    }
    (sizes, terminal)
}

#[test]
fn a_part_that_is_drawn_first_changes_nothing_beside_it_and_the_frame_adds_the_rest() {
    let bar = Style::new().bg(Color::Indexed(236));
    // Text in a pane at columns 2 to 9 of rows 1 and 2, and text beside it.
    type Look<'a> = ([&'a str; 2], &'a str);
    let draw_pane = |buffer: &mut Buffer, rows: [&str; 2]| {
        for (text, y) in rows.into_iter().zip(1..) {
            buffer.set_stringn(2, y, text, 8, bar);
        }
    };
    let draw_all = |buffer: &mut Buffer, (rows, beside): Look<'_>| {
        draw_pane(buffer, rows);
        for y in 0..4 {
            buffer.set_string(11, y, beside, Style::new());
        }
    };
    let rows_of = |terminal: &vt100::Parser| terminal.screen().rows(0, 20).collect::<Vec<_>>();
    let pane = Rect::new(2, 1, 8, 2);
    let looks: [Look<'_>; 6] = [
        (["one", "two"], "beside"),
        (["漢字漢字", "two"], "beside"),
        (["a漢b", ""], "next"),
        (["12345678", "12345678"], "next"),
        (["", "👍🏽x"], "漢字"),
        (["", "👍🏽x"], "漢字"),
    ];
    let mut screen = Screen::new(20, 4);
    let mut terminal = vt100::Parser::new(4.try_into().expect("rows"), 20.try_into().expect("columns"), 0);
    assert!(screen.draw_part(pane, |_| {}).is_empty(), "nothing is known of the terminal");
    let mut before = None;
    for (rows, beside) in looks {
        let mut expected = Screen::new(20, 4);
        let mut fresh = vt100::Parser::new(4.try_into().expect("rows"), 20.try_into().expect("columns"), 0);
        fresh.process(expected.draw_frame(|buffer| {
            draw_all(buffer, (rows, beside));
            None
        }));
        if let Some(before) = before {
            terminal.process(screen.draw_part(pane, |buffer| draw_pane(buffer, rows)));
            let mut mixed = Screen::new(20, 4);
            let mut half = vt100::Parser::new(4.try_into().expect("rows"), 20.try_into().expect("columns"), 0);
            half.process(mixed.draw_frame(|buffer| {
                draw_all(buffer, (rows, before));
                None
            }));
            assert_eq!(rows_of(&terminal), rows_of(&half), "only the pane: {rows:?}");
        }
        let rest = screen.draw_frame(|buffer| {
            draw_all(buffer, (rows, beside));
            None
        });
        assert!(before != Some(beside) || rest.is_empty(), "{rows:?}: nothing is left to write");
        terminal.process(rest);
        assert_eq!(rows_of(&terminal), rows_of(&fresh), "{rows:?} {beside}");
        before = Some(beside);
    }
}

#[test]
fn a_frame_of_unknown_contents_may_follow_the_first_one() {
    let mut screen = Screen::new(10, 1);
    let mut bytes = |text: &'static str, is_unknown: bool| {
        if is_unknown {
            screen.invalidate();
        }
        let bytes = screen.draw_frame(|buffer| {
            buffer.set_string(0, 0, text, Style::new());
            None
        });
        String::from_utf8_lossy(bytes).into_owned()
    };
    for (text, is_unknown) in [("a", false), ("b", true), ("c", true), ("d", false), ("e", false)] {
        let written = bytes(text, is_unknown);
        assert!(written.contains(text), "{text}: {written:?}");
    }
}

#[test]
fn a_blank_that_was_crossed_out_is_erased() {
    let crossed = Style::new().add_modifier(Modifier::CROSSED_OUT);
    let mut screen = Screen::new(20, 1);
    let mut draw = |text: &str, style: Style| {
        let bytes = screen.draw_frame(|buffer| {
            buffer.set_string(0, 0, text, style);
            None
        });
        String::from_utf8_lossy(bytes).into_owned()
    };
    draw("ab cd", crossed);
    let written = draw("ab", Style::new().fg(Color::Red));
    assert!(written.contains("ab\x1b[m\x1b[K"), "{written:?}");
}

#[test]
fn a_terminal_that_is_told_the_differences_shows_the_frame() {
    let plain = Style::new();
    let bar = Style::new().bg(Color::Indexed(236)).add_modifier(Modifier::BOLD);
    let (sizes, _) = played(&[
        &[(0, 0, "hello 漢字 world", plain), (2, 1, "x", bar), (0, 3, "12345678901234567890", bar)],
        &[(0, 0, "hello 漢字 world", plain), (2, 1, "x", bar), (0, 3, "12345678901234567890", bar)],
        &[(0, 0, "hallo wörld", bar), (3, 1, "y漢", Style::new().add_modifier(Modifier::REVERSED))],
        &[(19, 0, "|", plain), (19, 1, "|", plain), (0, 2, "a", bar), (1, 2, "b", plain)],
    ]);
    assert_eq!(sizes[1], 0, "nothing changed, nothing is written");
}

#[test]
fn a_narrow_character_in_place_of_a_wide_one_is_written_with_the_blank_behind_it() {
    let bar = Style::new().bg(Color::Indexed(236));
    let mut screen = Screen::new(20, 1);
    let mut draw = |text: &str| {
        let bytes = screen.draw_frame(|buffer| {
            buffer.set_string(0, 0, text, bar);
            buffer.set_style(Rect::new(0, 0, 20, 1), bar);
            None
        });
        String::from_utf8_lossy(bytes).into_owned()
    };
    draw("x漢y");
    // Terminals erase the second half of the wide character, with their own background.
    let written = draw("xa y");
    assert!(written.contains("a \x1b[m"), "{written:?}");
}

#[test]
fn equal_cells_are_skipped_up_to_the_first_half_of_a_wide_one_that_differs() {
    let row = |text: &str| {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        buffer.set_string(0, 0, text, Style::new());
        buffer.content
    };
    for (text, changed, from, expected) in [
        ("ab漢cd", None, 0, 6),
        ("ab漢cd", Some(0), 0, 0),
        ("ab漢cd", Some(2), 0, 2),
        ("ab漢cd", Some(3), 0, 2),
        ("ab漢cd", Some(3), 2, 2),
        ("ab漢cd", Some(4), 0, 4),
        ("ab漢cd", Some(4), 2, 4),
        ("abcd漢", Some(5), 0, 4),
        ("abcd漢", None, 4, 6),
    ] {
        let (old, mut new) = (row(text), row(text));
        if let Some(column) = changed {
            new[column].bg = Color::Indexed(236);
        }
        let mut texts = LongTexts::default();
        let mut pack = |row: &[Cell]| row.iter().map(|cell| ShownCell::pack(cell, &mut texts)).collect::<Vec<_>>();
        let skipped = skip_same_cells(&pack(&old), &pack(&new), &new, from);
        assert_eq!(skipped, expected, "{text}, {changed:?} from {from}");
    }
}

#[test]
fn what_stands_behind_an_emoji_of_several_characters_is_written_again() {
    let mut screen = Screen::new(20, 1);
    let mut draw = |text: &str| {
        let bytes = screen.draw_frame(|buffer| {
            buffer.set_string(0, 0, text, Style::new());
            None
        });
        String::from_utf8(bytes.to_vec()).expect("text")
    };
    draw("a👍|b");
    // Two characters of two columns each: a terminal may draw four columns.
    let written = draw("a👍🏽|b");
    assert!(written.contains("👍🏽") && written.contains("|b"), "{written:?}");
    assert!(written.contains("  \x1b[1;2H👍🏽"), "the cells are blank first: {written:?}");
}

#[test]
fn a_row_that_differs_is_written_as_a_whole_for_a_screen_reader() {
    let plain = Style::new();
    let bar = plain.add_modifier(Modifier::REVERSED);
    let mut screen = Screen::new(24, 4);
    screen.write_whole_rows();
    // A new size must not forget it.
    screen.resize(24, 4);
    let mut terminal = vt100::Parser::new(4.try_into().expect("rows"), 24.try_into().expect("columns"), 0);
    // Rows of a frame, what is spoken of them in this order, and what is not.
    type Rows<'a> = &'a [(u16, u16, &'a str, Style)];
    let frames: [(Rows<'_>, &[&str], &[&str]); 4] = [
        (
            &[(0, 0, "Findings, 1 of 2.", plain), (0, 1, "> P0 open, a.rs", bar), (0, 2, "  P1 open, b.rs", plain)],
            &["Findings, 1 of 2.", "> P0 open, a.rs", "P1 open, b.rs"],
            &[],
        ),
        (
            &[(0, 0, "Findings, 2 of 2.", plain), (0, 1, "  P0 open, a.rs", plain), (0, 2, "> P1 open, b.rs", bar)],
            &["Findings, 2 of 2.", "  P0 open, a.rs", "> P1 open, b.rs"],
            &[],
        ),
        // A row that stays is not spoken again; the end of a shorter one goes.
        (
            &[(0, 0, "Findings, 2 of 2.", plain), (0, 1, "  P0 open", plain), (0, 2, "> P1 open, b.rs", bar)],
            &["P0 open"],
            &["Findings", "b.rs"],
        ),
        (&[(0, 0, "Findings, 2 of 2.", plain), (0, 2, "> P1 open, b.rs", bar)], &[], &["P0", "b.rs"]),
    ];
    for (frame, spoken, silent) in frames {
        let bytes = screen.draw_frame(|buffer| {
            frame.iter().for_each(|(x, y, text, style)| buffer.set_string(*x, *y, text, *style));
            None
        });
        let written = String::from_utf8_lossy(bytes).into_owned();
        let mut from = 0;
        for text in spoken {
            let found = written[from..].find(text);
            from += found.unwrap_or_else(|| panic!("no {text:?} in order in {written:?}")) + text.len();
        }
        assert!(!silent.iter().any(|text| written.contains(text)), "{written:?}");
        terminal.process(written.as_bytes());
        let expected: Vec<&str> = (0..3).map(|y| frame.iter().find(|row| row.1 == y).map_or("", |row| row.2)).collect();
        let rows = terminal.screen().rows(0, 24).take(3);
        let shown: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        assert_eq!(shown, expected);
    }
    assert!(
        screen
            .draw_frame(|buffer| {
                buffer.set_string(0, 0, "Findings, 2 of 2.", plain);
                buffer.set_string(0, 2, "> P1 open, b.rs", bar);
                None
            })
            .is_empty(),
        "nothing changed, nothing is spoken"
    );
}

#[test]
fn attributes_are_left_out_where_the_terminal_lacks_them() {
    let style = Style::new().add_modifier(Modifier::ITALIC | Modifier::BOLD | Modifier::CROSSED_OUT);
    for (pairs, expected) in [
        (&[("TERM", "xterm-256color")][..], "\x1b[1;3;9m"),
        (&[("TERM", "tmux-256color"), ("TMUX", "/tmp/tmux")], "\x1b[1;3;9m"),
        (&[("TERM", "screen-256color"), ("TMUX", "/tmp/tmux")], "\x1b[1;9m"),
        (&[("TERM", "screen-256color"), ("TMUX", "")], "\x1b[1m"),
        (&[("TERM", "screen.xterm-256color"), ("STY", "1.pts-0.host")], "\x1b[1m"),
        (&[("TERM", "xterm-256color"), ("STY", "1.pts-0.host")], "\x1b[1;3m"),
    ] {
        let variable = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let mut screen = Screen::new(20, 1);
        screen.avoid_attributes(find_missing_attributes(variable));
        screen.resize(10, 1);
        let bytes = screen.draw_frame(|buffer| {
            buffer.set_string(0, 0, "a", style);
            None
        });
        let written = String::from_utf8_lossy(bytes).into_owned();
        assert!(written.contains(expected), "{pairs:?}: {written:?}");
    }
}
