//! What a play found, for people: 80 columns.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::report::{ClientReport, LatenessReport, Report};

/// Wider rows wrap.
const COLUMNS: u16 = 80;

/// Writes the report, with at most `top` refused clients.
pub(super) fn write(report: &Report, top: usize, out: &mut dyn Write) -> io::Result<()> {
    write_lines(report, out)?;
    write_lateness(report, out)?;
    writeln!(
        out,
        "answers: {}; refused {} of {}",
        statuses(&report.statuses),
        report.refused,
        report.played
    )?;
    if let Some(failure) = &report.failure {
        writeln!(out, "without an answer: {}, the first for: {failure}", report.failed)?;
    }
    write_clients(report, top, out)
}

fn write_lines(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Report { lines, played, speed, .. } = report;
    writeln!(out, "played {played} of {lines} lines at speed {speed} to {}", report.url)?;
    if let (Some(from), Some(to)) = (&report.from, &report.to) {
        writeln!(out, "logged from {from} to {to}")?;
    }
    let not_played = [
        (report.outside, "outside the time asked for"),
        (report.unparsed, "not understood"),
        (report.no_client, "begin with no address"),
        (report.no_request, "ask for nothing that can be sent"),
        (report.stopped, "due after the play was stopped"),
    ];
    for (count, why) in not_played.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "  {count} not played: {why}")?;
    }
    Ok(())
}

fn write_lateness(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let lateness = &report.lateness;
    let LatenessReport { slack_ms, sent, answered, .. } = lateness;
    let each = [
        ("sent", lateness.sent_p50_ms, lateness.sent_most_ms),
        ("answered", lateness.answered_p50_ms, lateness.answered_most_ms),
    ];
    for (what, p50, most) in each {
        writeln!(out, "{what} after its time: half within {p50} ms, all within {most} ms")?;
    }
    match (report.valid, report.played) {
        (true, _) => writeln!(out, "valid: every line was decided within {slack_ms} ms"),
        (false, 0) => writeln!(out, "NOT VALID: nothing was played"),
        (false, _) => writeln!(
            out,
            "NOT VALID: half a log second is {slack_ms} ms; {sent} lines were sent later, {answered}\n\
             answered later, {} not answered. Play it at a lower --speed.",
            report.failed
        ),
    }
}

fn write_clients(report: &Report, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let refused: Vec<_> = report.clients.iter().filter(|client| client.refused > 0).collect();
    let shown = &refused[..refused.len().min(top)];
    if shown.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    table.set_header(["client", "played", "refused", "first", "last"]);
    for client in shown {
        let time = |time: &Option<String>| time.as_deref().unwrap_or("-").to_owned();
        table.add_row([
            client.client.clone(),
            client.played.to_string(),
            statuses(&refusals(client, &report.refusing)),
            time(&client.first),
            time(&client.last),
        ]);
    }
    for column in [1, 2] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out)?;
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    match refused.len() - shown.len() {
        0 => Ok(()),
        more => writeln!(out, " and {more} more"),
    }
}

/// How often a client was refused, by status.
fn refusals(client: &ClientReport, refusing: &[u16]) -> BTreeMap<u16, u64> {
    let all = client.statuses.iter().filter(|(status, _)| refusing.contains(status));
    all.map(|(status, count)| (*status, *count)).collect()
}

fn statuses(statuses: &BTreeMap<u16, u64>) -> String {
    if statuses.is_empty() {
        return "none".to_owned();
    }
    let each: Vec<_> =
        statuses.iter().map(|(status, count)| format!("{count} × {status}")).collect();
    each.join(", ")
}
