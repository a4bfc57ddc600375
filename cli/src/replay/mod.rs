//! `hotgate replay`: what would these rules have refused, when, and to whom?
//!
//! The logs are read three times, so that memory stays bounded whatever their size: for the times of
//! their lines, which are sorted outside memory; in the order of those times, through the engine; and
//! once more to count the requests of the keys that were refused.

mod held;
mod logged;
mod report;
mod scan;
mod tally;
mod text;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use hotgate_detector::{Config, Decision, Engine, Outcome, Time};
use hotgate_rules::{Action, RuleSet};
use http::StatusCode;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    Status,
    log::{Line, RUN_LINES, Sorted, Sorter, Source},
    rule_file, write_json,
};
use held::Lacking;
use logged::Logged;
use report::Report;
use scan::Scan;
use tally::{KEYS_LISTED_MAX, Tally};

/// Run access logs through rules: what would have been refused, when, to whom.
///
/// Reads the Common and the Combined format. Lines are replayed in the order of their times,
/// whatever their order in the logs. Two runs over the same logs print the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The rule file.
    #[arg(long, value_name = "RULES")]
    rules: PathBuf,
    /// Access logs; - is standard input.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Print one JSON object, with every refused key.
    #[arg(long)]
    json: bool,
    /// How many keys of each rule to show.
    #[arg(long, default_value_t = 20, value_name = "N", conflicts_with = "json")]
    top: usize,
}

/// The engine's seeds and secret: the same in each run, so that two runs print the same. The keys
/// that are printed as hashes are hidden from a glance, not from someone who guesses their values.
const CONFIG: Config = Config {
    table_seed: [0x686f, 0x7467, 0x6174, 0x6521],
    privacy_secret: *b"hotgate replay 1",
    origin_unix_nanos: 0,
};

/// How often the logs are read; the progress bar counts each time.
const PASSES: u64 = 3;

pub(crate) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Status> {
    let Some(rules) = rule_file::load_or_explain(&args.rules, err)? else {
        return Ok(Status::Usage);
    };
    let Some(mut logs) = open(args, err)? else {
        return Ok(Status::Usage);
    };
    let progress = progress(&logs);

    let mut scan = Scan::default();
    let mut sorter = Sorter::new(RUN_LINES);
    for (index, log) in logs.iter_mut().enumerate() {
        let read = scan.read(index, log, rules.client(), |entry| sorter.push(entry));
        read.map_err(|error| naming(log, error))?;
        progress.inc(log.bytes);
    }
    let entries = sorter.sorted()?;
    let lacking: Vec<_> = rules.rules().iter().map(|rule| Lacking::of(rule, &scan)).collect();
    let unusable = (0..lacking.len()).filter(|index| lacking[*index].unusable);
    let rules = rules.with_rules_off(&unusable.collect::<Vec<_>>());

    let engine = Engine::new(rules, CONFIG);
    let mut tally = Tally::new(engine.rules(), KEYS_LISTED_MAX);
    decide(&engine, entries, &mut logs, &mut tally, &progress)?;
    count_matched(engine.rules(), &mut logs, &mut tally, &progress)?;
    progress.finish_and_clear();

    let report = Report::new(&engine, &scan, &tally, lacking);
    if args.json {
        write_json(out, &report)?;
    } else if scan.parsed > 0 {
        text::write(&report, engine.rules(), args.top, out)?;
    }
    if scan.parsed == 0 {
        text::write_nothing_parsed(&report, err)?;
        return Ok(Status::Failed);
    }
    Ok(Status::Done)
}

/// Opens every log; `None` after saying which of them cannot be opened.
fn open(args: &Args, err: &mut dyn Write) -> io::Result<Option<Vec<Source>>> {
    let mut logs = Vec::with_capacity(args.logs.len());
    for path in &args.logs {
        match Source::open(path) {
            Ok(log) => logs.push(log),
            Err(error) => writeln!(err, "{}: {error}", path.display())?,
        }
    }
    Ok((logs.len() == args.logs.len()).then_some(logs))
}

/// A bar on a terminal, nothing elsewhere.
fn progress(logs: &[Source]) -> ProgressBar {
    let bytes: u64 = logs.iter().map(|log| log.bytes).sum();
    let style = ProgressStyle::with_template("{bar:40} {percent}% {eta}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(bytes * PASSES).with_style(style)
}

/// Runs every line through the engine at its time, settling it at once with the logged status.
fn decide(
    engine: &Engine,
    entries: Sorted,
    logs: &mut [Source],
    tally: &mut Tally,
    progress: &ProgressBar,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut logged = Logged::default();
    let mut second = None;
    for entry in entries {
        let entry = entry?;
        let now = entry.time();
        if second.replace(whole_second(now)) != Some(whole_second(now)) {
            drop(engine.tick(now));
        }
        let log = &mut logs[entry.log()];
        let bytes = log.read_at(entry.place(), &mut buffer);
        let bytes = bytes.map_err(|error| naming(log, error))?;
        let line = Line::read(bytes).map_err(|_| changed(log))?;
        let facts = logged.facts(&line, engine.rules().client());
        let decision = engine.decide(&facts, now);
        tally.decided(engine.rules(), &facts, &decision, now);
        if decision.refusal.is_none() {
            let outcome = match is_answered(engine.rules(), &decision) {
                true => Outcome::Answered,
                false => outcome(line.status),
            };
            engine.settle(decision.charges, outcome, now);
        }
        progress.inc(entry.place().length as u64);
    }
    Ok(())
}

fn count_matched(
    rules: &RuleSet,
    logs: &mut [Source],
    tally: &mut Tally,
    progress: &ProgressBar,
) -> io::Result<()> {
    let mut logged = Logged::default();
    for log in logs {
        let counted = log.for_each_line(|_, bytes| {
            if let Some(Ok(line)) = bytes.map(Line::read) {
                tally.count_matched(rules, &logged.facts(&line, rules.client()), line.time);
            }
            Ok(())
        });
        counted.map_err(|error| naming(log, error))?;
        progress.inc(log.bytes);
    }
    Ok(())
}

/// Whether a handler of the service would have answered instead of what the log tells.
fn is_answered(rules: &RuleSet, decision: &Decision) -> bool {
    decision
        .findings
        .iter()
        .filter(|finding| finding.acts)
        .any(|finding| matches!(rules.rules()[finding.index].action, Action::Handler(_)))
}

/// What the gate would have seen: a client that left before its answer has no status in Apache's log
/// and 499 in nginx's.
fn outcome(status: Option<StatusCode>) -> Outcome {
    status.filter(|status| status.as_u16() != 499).map_or(Outcome::Cancelled, Outcome::Status)
}

fn whole_second(time: Time) -> u64 {
    time.as_nanos() / 1_000_000_000
}

fn naming(log: &Source, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", log.name))
}

fn changed(log: &Source) -> io::Error {
    let message = format!("{}: its lines changed while it was read", log.name);
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_left_before_its_answer_was_cancelled_whichever_server_logged_it() {
        let status = |code| Some(StatusCode::from_u16(code).unwrap());
        assert_eq!(outcome(None), Outcome::Cancelled);
        assert_eq!(outcome(status(499)), Outcome::Cancelled);
        assert_eq!(outcome(status(404)), Outcome::Status(StatusCode::NOT_FOUND));
    }
}
