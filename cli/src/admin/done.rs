//! What a command came to, for people.

use std::io::{self, Write};

use serde_json::Value;

use super::{
    shown::{date, flag, key, list as items, number, plural, span, text, text_if_any},
    table::{Columns, sentence},
};

pub(super) fn block(done: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let observed = if flag(done, "/observed") {
        "; but the rule observes or is off: nobody is refused"
    } else {
        ""
    };
    let said = format!(
        "{} under {} until {} UTC ({}){observed}",
        key(done),
        text(done, "/rule"),
        date(done, "/until"),
        span(number(done, "/seconds_left"))
    );
    sentence("blocked ", &said, width, out)
}

pub(super) fn lift(done: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<_> = items(done, "/rules").iter().filter_map(Value::as_str).collect();
    let keys = match done.pointer("/key") {
        Some(Value::String(_)) => key(done),
        _ => "every key".to_owned(),
    };
    let stood = plural(number(done, "/lifted"), "verdict");
    let said = format!("{stood} of {keys} under {}; its counts are cleared", rules.join(", "));
    sentence("lifted  ", &said, width, out)
}

pub(super) fn list(done: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let word = if text(done, "/list") == "deny" { "denied  " } else { "allowed " };
    let said = format!(
        "{} until {} UTC ({})",
        text(done, "/clients"),
        date(done, "/until"),
        span(number(done, "/seconds_left"))
    );
    sentence(word, &said, width, out)?;
    match text_if_any(done, "/outweighed_by") {
        Some(by) => sentence("but     ", &format!("outweighed by {by}"), width, out),
        None => Ok(()),
    }
}

pub(super) fn mode(done: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let of =
        text_if_any(done, "/rule").map_or("all rules".to_owned(), |rule| format!("rule {rule}"));
    let held = text_if_any(done, "/held_by");
    let held = held.map(|by| format!(", held by {by}; commanded was {}", text(done, "/commanded")));
    let said = format!("{} for {of}{}", text(done, "/mode"), held.unwrap_or_default());
    sentence("mode    ", &said, width, out)
}
