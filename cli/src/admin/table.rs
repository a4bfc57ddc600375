//! Tables that fit a terminal.

use std::io::{self, Write};

/// What is printed on: a terminal of so many columns, or something that takes lines of any length.
pub(crate) type Columns = Option<usize>;

/// What a value can be shortened to and still be told, mostly: so much is left of the first column before
/// the next one gives anything.
const SHORTENED_CHARS: usize = 16;

/// The least that is left of a value that is shortened.
const SHORTENED_CHARS_MIN: usize = 8;

/// What stands between two columns.
const GAP: usize = 2;

/// A column: its name, and how its values are set.
#[derive(Clone, Copy)]
pub(super) struct Column(pub(super) &'static str, pub(super) Set);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    Left,
    Right,
    /// To the left, and shortened in its middle where the line would be too long.
    Shrinks,
}

/// Writes rows under their names. Columns that may be shortened are, from the left, until each line fits.
pub(super) fn write(
    columns: &[Column],
    rows: &[Vec<String>],
    width: Columns,
    out: &mut dyn Write,
) -> io::Result<()> {
    let longest = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([columns[at].0.len()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns.len()).map(longest).collect();
    if let Some(width) = width {
        fit(columns, &mut widths, width);
    }
    let header: Vec<String> = columns.iter().map(|column| column.0.to_owned()).collect();
    for row in [&header].into_iter().chain(rows) {
        let mut line = String::new();
        for ((cell, Column(_, set)), width) in row.iter().zip(columns).zip(&widths) {
            let cell = shortened(cell, *width);
            let fill = " ".repeat(width - cell.chars().count());
            let (before, after) = if *set == Set::Right { (&*fill, "") } else { ("", &*fill) };
            line.push_str(&format!("{before}{cell}{after}{}", " ".repeat(GAP)));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn fit(columns: &[Column], widths: &mut [usize], width: usize) {
    let line = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
    while line(widths) > width {
        let shrinks = |at: &usize| columns[*at].1 == Set::Shrinks;
        let first = (0..widths.len()).filter(shrinks).find(|at| widths[*at] > SHORTENED_CHARS);
        let widest = || (0..widths.len()).filter(shrinks).max_by_key(|at| widths[*at]);
        match first.or_else(widest) {
            Some(at) if widths[at] > SHORTENED_CHARS_MIN => widths[at] -= 1,
            _ => return,
        }
    }
}

/// A value without its middle, of which the beginning says what it is and the end which.
pub(super) fn shortened(text: &str, width: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let (head, tail) = (&chars[..head], &chars[chars.len() - tail..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

/// Writes a sentence behind a label, in lines that fit, each indented as the first one's text.
pub(super) fn sentence(
    label: &str,
    text: &str,
    width: Columns,
    out: &mut dyn Write,
) -> io::Result<()> {
    let indent = label.chars().count();
    let room =
        width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(SHORTENED_CHARS_MIN));
    let (mut line, mut before) = (String::new(), label.to_owned());
    for word in text.split_whitespace() {
        let word =
            if word.chars().count() > room { shortened(word, room) } else { word.to_owned() };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            writeln!(out, "{before}{line}")?;
            (line, before) = (String::new(), " ".repeat(indent));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    writeln!(out, "{}", format!("{before}{line}").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_keeps_its_beginning_and_its_end() {
        assert_eq!(shortened("client=203.0.113.9", 18), "client=203.0.113.9");
        assert_eq!(shortened("client=203.0.113.9", 11), "clien…113.9");
        assert_eq!(shortened("client=203.0.113.9", 0), "…");
    }

    #[test]
    fn only_what_may_be_is_shortened_and_only_on_a_terminal() {
        let columns =
            [Column("rule", Set::Left), Column("key", Set::Shrinks), Column("n", Set::Right)];
        let rows = [vec!["api".to_owned(), "k".repeat(50), "12".to_owned()]];
        let lines = |width| {
            let mut out = Vec::new();
            write(&columns, &rows, width, &mut out).unwrap();
            String::from_utf8(out).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(Some(24))[1], "api   kkkkkkk…kkkkkk  12");
        assert_eq!(lines(Some(24))[0], "rule  key              n");
        assert!(lines(None)[1].contains(&"k".repeat(50)));
    }

    #[test]
    fn a_sentence_is_broken_between_words() {
        let mut out = Vec::new();
        sentence("note  ", "one two three four", Some(14), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "note  one two\n      three\n      four\n");
    }
}
