//! What a replay found, as `--json` prints it.

use hotgate_detector::{Engine, Time};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    held::Lacking,
    scan::{BadLine, Scan},
    tally::{KeyTally, RuleTally, Tally},
};

/// What a replay found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) lines: u64,
    pub(super) parsed: u64,
    pub(super) unparsed: u64,
    pub(super) reordered: u64,
    /// RFC 3339, UTC; `null` where nothing was parsed.
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) no_client: u64,
    pub(super) of_proxies: u64,
    pub(super) denied: u64,
    pub(super) bad_lines: Vec<BadLine>,
    pub(super) rules: Vec<RuleReport>,
}

/// What one rule did.
#[derive(Debug, Serialize)]
pub(super) struct RuleReport {
    pub(super) name: String,
    pub(super) action: &'static str,
    /// The mode it was replayed in.
    pub(super) mode: &'static str,
    /// `null`, as is `refused`, where the log does not hold what the rule counts by.
    pub(super) matched: Option<u64>,
    pub(super) refused: Option<u64>,
    /// Requests that a tag marked or a handler answered; left out for rules that refuse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) acted: Option<u64>,
    /// Requests that matched but lacked the key.
    pub(super) unkeyed: u64,
    /// Keys that lost a count in use because the rule's table was full.
    pub(super) evicted_live: u64,
    /// Only keys with a refusal, most refused first.
    pub(super) keys: Vec<KeyReport>,
    /// Refusals of keys beyond those listed.
    pub(super) refused_unlisted: u64,
    /// Parts of the key and of `when` that the log does not hold. The rule was replayed by its fallbacks, or not at all
    /// (then `matched` is `null`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) not_in_log: Vec<String>,
    /// What overrides ask for and the log does not hold: they were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) overrides_not_in_log: Vec<String>,
}

/// What one key was refused.
#[derive(Debug, Serialize)]
pub(super) struct KeyReport {
    pub(super) key: String,
    pub(super) matched: u64,
    pub(super) refused: u64,
    /// The times of the first and the last refusal.
    pub(super) first: String,
    pub(super) last: String,
}

impl Report {
    pub(super) fn new(engine: &Engine, scan: &Scan, tally: &Tally, lacking: Vec<Lacking>) -> Self {
        let rules = engine.rules();
        let counts = engine.counts();
        let each = rules.rules().iter().zip(counts).zip(&tally.rules).zip(lacking);
        let reports = each.map(|(((rule, counts), tally), lacking)| {
            let shown = |count: u64| (!lacking.unusable).then_some(count);
            RuleReport {
                name: rule.name.to_string(),
                action: rule.action.name(),
                mode: rule.mode.min(rules.mode()).name(),
                matched: shown(counts.matched),
                refused: shown(tally.refused),
                acted: shown(tally.acted).filter(|_| !rule.action.refuses()),
                unkeyed: counts.unkeyed,
                evicted_live: counts.evicted_live,
                keys: keys(tally),
                refused_unlisted: tally.unlisted,
                not_in_log: lacking.parts,
                overrides_not_in_log: lacking.of_overrides,
            }
        });
        Report {
            lines: scan.lines,
            parsed: scan.parsed,
            unparsed: scan.unparsed(),
            reordered: scan.reordered,
            from: scan.span.map(|(from, _)| rfc3339(from)),
            to: scan.span.map(|(_, to)| rfc3339(to)),
            no_client: scan.no_client,
            of_proxies: scan.of_proxies,
            denied: tally.denied,
            bad_lines: scan.bad_lines.clone(),
            rules: reports.collect(),
        }
    }
}

fn keys(tally: &RuleTally) -> Vec<KeyReport> {
    let report = |(key, tally): (&String, &KeyTally)| KeyReport {
        key: key.clone(),
        matched: tally.matched,
        refused: tally.refused,
        first: rfc3339(tally.first),
        last: rfc3339(tally.last),
    };
    let mut keys: Vec<_> = tally.keys.iter().map(report).collect();
    keys.sort_by(|a, b| b.refused.cmp(&a.refused).then_with(|| a.key.cmp(&b.key)));
    keys
}

/// Such as `2015-05-18T08:05:10Z`.
fn rfc3339(time: Time) -> String {
    let timestamp = Timestamp::from_nanosecond(i128::from(time.as_nanos()));
    timestamp.expect("a log's times end in 2554, a timestamp's in 9999").to_string()
}
