//! `hotgate status`, for people.

use std::io::{self, Write};

use serde_json::Value;

use super::{
    shown::{date, flag, list, number, plural, span, text, text_if_any},
    table::{self, Column, Columns, Set, sentence},
};

pub(super) fn write(status: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    sentence("app      ", &text(status, "/app"), width, out)?;
    write_rules_line(status, width, out)?;
    write_mode(status, width, out)?;
    let refused: u64 =
        list(status, "/rules").iter().map(|rule| number(rule, "/requests/refused")).sum();
    let denied = number(status, "/denied");
    let totals = format!(
        "{refused} by rules and {denied} by deny lists since {} UTC",
        date(status, "/started")
    );
    sentence("refused  ", &totals, width, out)?;
    if !list(status, "/rules").is_empty() {
        writeln!(out)?;
        write_rules(list(status, "/rules"), width, out)?;
    }
    write_losses(list(status, "/rules"), width, out)?;
    if !list(status, "/lists").is_empty() {
        writeln!(out)?;
        write_lists(list(status, "/lists"), width, out)?;
    }
    for notice in list(status, "/notices") {
        let rule = text_if_any(notice, "/rule").map(|rule| format!("rule {rule}: "));
        let count = plural(number(notice, "/count"), "time");
        let said = format!("{}{} ({count})", rule.unwrap_or_default(), text(notice, "/text"));
        sentence("notice   ", &said, width, out)?;
    }
    Ok(())
}

fn write_rules_line(status: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let file = text_if_any(status, "/file").unwrap_or_else(|| "the service's code".to_owned());
    let (version, since) = (text(status, "/version"), date(status, "/since"));
    let loaded = number(status, "/reload/loaded");
    let line = format!(
        "version {version} of {file}, in force since {since} UTC, {} later than the first",
        plural(loaded, "change")
    );
    let first = format!("version {version} of {file}, in force since {since} UTC");
    sentence("rules    ", if loaded == 0 { &first } else { &line }, width, out)?;
    let Some(failed) = status.pointer("/reload/failed").filter(|failed| !failed.is_null()) else {
        return Ok(());
    };
    let at = date(failed, "/at");
    sentence("FAILED   ", &format!("the file's change of {at} UTC is not in force:"), width, out)?;
    for problem in list(failed, "/problems") {
        sentence(
            "         ",
            &problem.as_str().map(super::shown::clean).unwrap_or_default(),
            width,
            out,
        )?;
    }
    Ok(())
}

fn write_mode(status: &Value, width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let mode = text(status, "/mode/mode");
    let mut why = Vec::new();
    for (place, whose) in [("/mode/file", "the file"), ("/mode/environment", "HOTGATE_MODE")] {
        if text(status, place) != "enforce" {
            why.push(format!("{whose} says {}", text(status, place)));
        }
    }
    if let Some(commanded) = text_if_any(status, "/mode/commanded") {
        why.push(format!("commanded {commanded} at {} UTC", date(status, "/mode/commanded_at")));
    }
    let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(", ")) };
    sentence("mode     ", &format!("{mode}{why}"), width, out)
}

fn write_rules(rules: &[Value], width: Columns, out: &mut dyn Write) -> io::Result<()> {
    let columns = [
        Column("rule", Set::Shrinks),
        Column("action", Set::Left),
        Column("over", Set::Left),
        Column("mode", Set::Left),
        Column("admitted", Set::Right),
        Column("refused", Set::Right),
        Column("would", Set::Right),
        Column("hot", Set::Right),
    ];
    let row = |rule: &Value| {
        let (mode, commanded) = (text(rule, "/mode"), text(rule, "/commanded"));
        let star = if commanded == mode && mode != "enforce" { "*" } else { "" };
        let count = |what: &str| number(rule, &format!("/requests/{what}")).to_string();
        vec![
            text(rule, "/name"),
            text(rule, "/action"),
            text_if_any(rule, "/over").unwrap_or_else(|| "always".to_owned()),
            format!("{mode}{star}"),
            count("admitted"),
            count("refused"),
            count("would_refuse"),
            number(rule, "/verdicts").to_string(),
        ]
    };
    let rows: Vec<_> = rules.iter().map(row).collect();
    table::write(&columns, &rows, width, out)?;
    if rows.iter().any(|row| row[3].ends_with('*')) {
        writeln!(out, "* by command")?;
    }
    Ok(())
}

/// What full tables cost, of the rules that lost anything.
fn write_losses(rules: &[Value], width: Columns, out: &mut dyn Write) -> io::Result<()> {
    const LOSSES: [(&str, &str); 6] = [
        ("evicted_live", "counts in use evicted"),
        ("evicted_limited", "limited keys evicted"),
        ("untracked", "events not counted"),
        ("unstored_verdicts", "verdicts not stored"),
        ("forgotten_blocks", "blocks forgotten"),
        ("dropped_events", "events not logged"),
    ];
    for rule in rules {
        let lost =
            LOSSES.iter().map(|(name, what)| (number(rule, &format!("/losses/{name}")), what));
        let lost: Vec<_> = lost
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !lost.is_empty() {
            let said = format!("{}: tables full: {}", text(rule, "/name"), lost.join(", "));
            sentence("losses   ", &said, width, out)?;
        }
    }
    Ok(())
}

/// Networks that are denied or allowed, each with its note in a line of its own.
pub(super) fn write_lists(lists: &[Value], width: Columns, out: &mut dyn Write) -> io::Result<()> {
    for entry in lists {
        let rules: Vec<_> = list(entry, "/rules").iter().filter_map(Value::as_str).collect();
        let past =
            if rules.is_empty() { String::new() } else { format!(" past {}", rules.join(", ")) };
        let by =
            if entry.pointer("/since").is_some_and(Value::is_string) { "command" } else { "file" };
        let until = match text_if_any(entry, "/until") {
            Some(_) => {
                let left = span(number(entry, "/seconds_left"));
                format!(", until {} UTC ({left})", date(entry, "/until"))
            }
            None => String::new(),
        };
        let said = format!("{}{past}, by {by}{until}", text(entry, "/clients"));
        sentence(&format!("{:<9}", text(entry, "/list")), &said, width, out)?;
        if let Some(note) = text_if_any(entry, "/note") {
            sentence("         ", &note, width, out)?;
        }
    }
    Ok(())
}

/// Whether a verdict refuses anybody.
pub(super) fn acts(verdict: &Value) -> &'static str {
    if flag(verdict, "/observed") { "observed" } else { "acts" }
}
