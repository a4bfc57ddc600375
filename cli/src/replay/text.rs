//! What a replay found, for people.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};
use hotgate_rules::{Action, Mode, Rule, RuleSet};

use super::{
    report::{KeyReport, Report, RuleReport},
    scan::BadLine,
};
use crate::sentence;

/// Writes the report, with at most `top` keys of each rule.
pub(super) fn write(
    report: &Report,
    rules: &RuleSet,
    top: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_lines(report, out)?;
    if let Some(note) = sentence::file_mode(rules.mode()) {
        writeln!(out, "{note}")?;
    }
    if report.denied > 0 {
        let are = if rules.mode() == Mode::Enforce { "are" } else { "would be" };
        writeln!(out, "{} {are} refused by [[deny]]", requests(report.denied))?;
    }
    for (rule, found) in rules.rules().iter().zip(&report.rules) {
        writeln!(out)?;
        write_rule(rule, found, rules.mode(), top, out)?;
    }
    Ok(())
}

/// Says that there was nothing to replay, and why the first lines were no use.
pub(super) fn write_nothing_parsed(report: &Report, err: &mut dyn Write) -> io::Result<()> {
    match report.lines {
        0 => writeln!(err, "nothing to replay: no lines"),
        lines => {
            writeln!(err, "nothing to replay: none of {} could be parsed", plural(lines, "line"))?;
            write_bad_lines(&report.bad_lines, err)
        }
    }
}

fn write_lines(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let (from, to) = (report.from.as_deref().unwrap_or("-"), report.to.as_deref().unwrap_or("-"));
    writeln!(
        out,
        "{}, {} parsed, from {from} to {to}",
        plural(report.lines, "line"),
        report.parsed
    )?;
    if report.reordered > 0 {
        let count = report.reordered;
        writeln!(
            out,
            "reordered: the time steps back {}; replayed by time",
            plural(count, "time")
        )?;
    }
    if report.no_client > 0 {
        let count = plural(report.no_client, "line");
        writeln!(out, "no client: the first field of {count} holds no address of one")?;
    }
    if report.of_proxies > 0 {
        let count = plural(report.of_proxies, "line");
        writeln!(out, "of proxies: {count} by trusted_proxies; who was behind them is not held")?;
    }
    if report.unparsed > 0 {
        // Both counts are far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let share = report.unparsed as f64 * 100.0 / report.lines as f64;
        writeln!(out, "unparsed: {} ({share:.1} %), such as", plural(report.unparsed, "line"))?;
        write_bad_lines(&report.bad_lines, out)?;
    }
    Ok(())
}

fn write_bad_lines(lines: &[BadLine], out: &mut dyn Write) -> io::Result<()> {
    for BadLine { log, line, reason, text } in lines {
        let separator = if text.is_empty() { "" } else { ": " };
        writeln!(out, "  {log}:{line}: {reason}{separator}{text}")?;
    }
    Ok(())
}

fn write_rule(
    rule: &Rule,
    found: &RuleReport,
    file_mode: Mode,
    top: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let parts = found.not_in_log.join(", ");
    let (Some(matched), Some(refused)) = (found.matched, found.refused) else {
        return writeln!(
            out,
            "this log does not hold {parts}; rule {} was not replayed",
            rule.name
        );
    };
    writeln!(out, "{}", sentence::named(rule))?;
    if !parts.is_empty() {
        writeln!(out, "  this log does not hold {parts}; replayed by what stands in for it")?;
    }
    if !found.overrides_not_in_log.is_empty() {
        let parts = found.overrides_not_in_log.join(", ");
        writeln!(out, "  this log does not hold {parts}; overrides by it were left out")?;
    }
    let would = match rule.mode.min(file_mode) {
        Mode::Enforce => "",
        Mode::Observe => "would have ",
        Mode::Off => return writeln!(out, "  off: not evaluated"),
    };
    write!(out, "  matched {matched}")?;
    match (&rule.action, found.acted) {
        (Action::Tag(_), Some(acted)) => write!(out, ", {would}marked {acted}")?,
        (_, Some(acted)) => write!(out, ", {would}answered {acted}")?,
        (_, None) => write!(out, ", {would}refused {refused}")?,
    }
    match found.keys.len() {
        0 => writeln!(out)?,
        keys => writeln!(out, ", of {}", plural(keys as u64, "key"))?,
    }
    if found.unkeyed > 0 {
        writeln!(out, "  {} matched but lacked the key", requests(found.unkeyed))?;
    }
    if found.evicted_live > 0 {
        let keys = plural(found.evicted_live, "count");
        writeln!(out, "  {keys} in use fell out of the full table; [memory] keys sets its size")?;
    }
    write_keys(&found.keys, top, out)?;
    if found.refused_unlisted > 0 {
        writeln!(out, "  {} of keys beyond those listed", requests(found.refused_unlisted))?;
    }
    Ok(())
}

fn write_keys(keys: &[KeyReport], top: usize, out: &mut dyn Write) -> io::Result<()> {
    let shown = &keys[..keys.len().min(top)];
    if shown.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["key", "matched", "refused", "first", "last"]);
    for KeyReport { key, matched, refused, first, last } in shown {
        // `key = []` is one key without a part.
        let key = if key.is_empty() { "(all)" } else { key };
        table.add_row([key, &matched.to_string(), &refused.to_string(), first, last]);
    }
    for column in [1, 2] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.lines() {
        writeln!(out, "  {}", line.trim_end())?;
    }
    match keys.len() - shown.len() {
        0 => Ok(()),
        more => writeln!(out, "   and {} more", plural(more as u64, "key")),
    }
}

fn requests(count: u64) -> String {
    plural(count, "request")
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
