//! `hotgate hot`, for people.

use std::io::{self, Write};

use serde_json::Value;

use super::{
    shown::{flag, key, list, number, plural, span, text},
    status::acts,
    table::{self, Column, Columns, Set},
};

pub(super) fn write(hot: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let (keys, standing) = (list(hot, "/keys"), number(hot, "/standing"));
    if standing == 0 {
        return writeln!(out, "no key is hot");
    }
    let (mut columns, mut rows) = (COLUMNS.to_vec(), keys.iter().map(row).collect::<Vec<_>>());
    if keys.iter().any(|verdict| flag(verdict, "/observed")) {
        columns.push(Column("state", Set::Left));
        let states = keys.iter().map(acts);
        rows.iter_mut().zip(states).for_each(|(row, state)| row.push(state.to_owned()));
    }
    table::write(&columns, &rows, width, out)?;
    match standing.saturating_sub(keys.len() as u64) {
        0 => Ok(()),
        more => writeln!(out, "and {} more; --limit shows them", plural(more, "key")),
    }
}

const COLUMNS: [Column; 6] = [
    Column("rule", Set::Shrinks),
    Column("key", Set::Shrinks),
    Column("for", Set::Right),
    Column("left", Set::Right),
    Column("by", Set::Left),
    Column("tries", Set::Right),
];

fn row(verdict: &Value) -> Vec<String> {
    let attempts = verdict["attempts"].as_u64();
    vec![
        text(verdict, "/rule"),
        key(verdict),
        span(number(verdict, "/age_seconds")),
        span(number(verdict, "/seconds_left")),
        if text(verdict, "/by") == "operator" { "hand" } else { "rule" }.to_owned(),
        attempts.map_or_else(|| "-".to_owned(), |attempts| attempts.to_string()),
    ]
}
