//! Formats numbers as short text and number series as sparklines.

/// Vertical bar glyphs from empty to full, in eighths of a cell.
pub const BLOCKS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// ASCII stand-ins for [`BLOCKS`].
pub const ASCII_BLOCKS: [&str; 9] = [" ", ".", ".", ".", ":", ":", ":", "#", "#"];

/// Formats a number in at most four columns (below 10^12), truncated, not rounded: `812`, `41k`, `512k`, `1.2M`.
pub fn format_brief(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..10_000 if n % 1_000 >= 100 => format!("{}.{}k", n / 1_000, n % 1_000 / 100),
        1_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..100_000_000 => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
        100_000_000..1_000_000_000 => format!("{}M", n / 1_000_000),
        _ => format!("{}G", n / 1_000_000_000),
    }
}

pub use crate::domain::text::format_thousands;

/// Formats a count in at most six columns: exact below 100,000 (`12,345`), else as [`format_brief`] does.
pub fn format_short_count(n: u64) -> String {
    if n < 100_000 { format_thousands(n) } else { format_brief(n) }
}

/// Formats US dollars with two decimals, or with four below one cent: `$0.42`, `$0.0042`.
pub fn format_dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

/// Formats a share in `0.0..=1.0` as `67 %`; `None` (unknown) gives `-`.
pub fn format_percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// Formats milliseconds in their largest unit: `12 ms`, `1.2 s`, `14 s`, `3 min`.
pub fn format_millis(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..9_950 => format!("{:.1} s", ms as f64 / 1000.0),
        9_950..120_000 => format!("{} s", ms / 1000),
        _ => format!("{} min", ms / 60_000),
    }
}

/// Reduces `values` to at most `width` columns and keeps their order. `together` combines the neighbouring values
/// that share a column.
pub fn resample<T>(values: &[T], width: usize, together: impl Fn(&[T]) -> Option<f64>) -> Vec<Option<f64>> {
    let columns = values.len().min(width);
    (0..columns)
        .map(|column| {
            let from = column * values.len() / columns;
            together(&values[from..((column + 1) * values.len() / columns).max(from + 1)])
        })
        .collect()
}

/// Renders one glyph of `blocks` per value. A full cell stands for `most`, or for the greatest value if `most` is
/// `None`; every positive value shows at least the lowest bar. Few values are drawn up to four columns wide, if
/// `width` has room.
pub fn render_sparkline(values: &[Option<f64>], most: Option<f64>, width: usize, blocks: &[&'static str; 9]) -> String {
    const MAX_COLUMNS_PER_VALUE: usize = 4;
    let greatest = most.unwrap_or_else(|| values.iter().flatten().copied().fold(0.0, f64::max));
    let sign = |value: &Option<f64>| match value {
        // A share (`most` is set) of zero is a known value and gets the lowest bar; a count of zero stays blank.
        Some(value) if *value <= 0.0 || greatest <= 0.0 => blocks[usize::from(most.is_some())],
        Some(value) => blocks[((value / greatest * 8.0).ceil() as usize).clamp(1, 8)],
        None => blocks[0],
    };
    let each = (width / values.len().max(1)).clamp(1, MAX_COLUMNS_PER_VALUE);
    values.iter().map(|value| sign(value).repeat(each)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (n, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_290, "1.2k"),
            (99_999, "99k"),
            (512_400, "512k"),
            (1_250_000, "1.2M"),
            (512_000_000, "512M"),
            (1_999_000_000, "1G"),
        ] {
            assert_eq!(format_brief(n), expected);
        }
        assert_eq!((format_short_count(99_999), format_short_count(100_000)), ("99,999".to_owned(), "100k".to_owned()));
        for (ms, expected) in [(12, "12 ms"), (1_234, "1.2 s"), (14_900, "14 s"), (240_000, "4 min")] {
            assert_eq!(format_millis(ms), expected);
        }
        assert_eq!((format_percent(Some(2.0 / 3.0)), format_percent(None)), ("67 %".to_owned(), "-".to_owned()));
    }

    #[test]
    fn a_spark_line_shows_what_there_is_and_nothing_where_nothing_is_known() {
        for (values, most, expected) in [
            (&[][..], None, ""),
            (&[Some(0.0), Some(0.0)], None, "  "),
            (&[Some(0.0), Some(1.0), Some(1000.0)], None, " ▁█"),
            (&[Some(1.0), Some(2.0), Some(4.0), Some(8.0)], None, "▁▂▄█"),
            (&[Some(0.0), None, Some(0.5), Some(1.0)], Some(1.0), "▁ ▄█"),
        ] {
            assert_eq!(render_sparkline(values, most, values.len(), &BLOCKS), expected, "{values:?}");
            assert!(render_sparkline(values, most, 80, &ASCII_BLOCKS).is_ascii());
        }
        assert_eq!(render_sparkline(&[Some(1.0), Some(2.0)], None, 7, &BLOCKS), "▄▄▄███");
        assert_eq!(render_sparkline(&[Some(1.0)], None, 70, &BLOCKS), "████");
    }

    #[test]
    fn columns_lose_no_value() {
        let sum = |values: &[u64]| Some(values.iter().sum::<u64>() as f64);
        for (count, width) in [(0_u64, 5_usize), (3, 5), (5, 5), (7, 5), (600, 41), (5, 0)] {
            let values: Vec<u64> = (1..=count).collect();
            let columns = resample(&values, width, sum);
            assert_eq!(columns.len(), values.len().min(width));
            if width > 0 {
                let total: f64 = columns.iter().flatten().sum();
                assert_eq!(total, values.iter().sum::<u64>() as f64, "{count} in {width}");
            }
        }
    }
}
