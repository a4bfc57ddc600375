//! How a gate stands.

use std::sync::atomic::Ordering::Relaxed;

use hotgate_detector::RuleCounts;
use hotgate_rules::{Mode, Rule, RuleSet, Spoken, Trigger};
use serde::Serialize;

use super::{ListEntry, ModeStatus, Moment, list, mode, serialize_mode, serialize_mode_if_any};
use crate::{
    Gate,
    counters::{UNKEYED_TOLD_FROM, outcomes},
    gate::Shared,
};

/// How a gate stands: what it goes by, and what it did since it was built.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// `app`.
    pub app: String,
    /// Which rule file is in force: the first twelve digits of its SHA-256.
    pub version: String,
    /// Since when.
    pub since: Moment,
    /// When the gate was built; all numbers begin there.
    pub started: Moment,
    /// The rule file; `None`: the rules came from the service's code.
    pub file: Option<String>,
    /// What became of changes of the file since.
    pub reload: ReloadStatus,
    /// The mode of the whole file.
    pub mode: ModeStatus,
    /// Requests that deny lists refused, or would have in `mode = "observe"`.
    pub denied: u64,
    /// The rules, in the order of the file.
    pub rules: Vec<RuleStatus>,
    /// The networks that are denied or allowed by command.
    pub lists: Vec<ListEntry>,
    /// What is likely not meant.
    pub notices: Vec<Notice>,
}

/// What became of changes of the rule file.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReloadStatus {
    /// How often other rules of it came into force.
    pub loaded: u64,
    /// The last change of it, if it was not taken: what is in force is older.
    pub failed: Option<FailedReload>,
}

/// A change of the rule file that was not taken.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FailedReload {
    /// When it was tried.
    pub at: Moment,
    /// Why it failed, each as `file:line:column: message`, or `file: message` where it has no place; at
    /// most 100, and then how many more there are.
    pub problems: Vec<String>,
}

/// How one rule stands.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RuleStatus {
    /// Its name.
    pub name: String,
    /// Its action.
    pub action: &'static str,
    /// The parts of its key.
    pub key: String,
    /// Its limit, such as `10/1m`; `None`: it acts always.
    pub over: Option<String>,
    /// What holds now.
    #[serde(serialize_with = "serialize_mode")]
    pub mode: Mode,
    /// The last command about it, if there was one.
    #[serde(serialize_with = "serialize_mode_if_any")]
    pub commanded: Option<Mode>,
    /// What became of its requests.
    pub requests: Requests,
    /// Verdicts that stand.
    pub verdicts: u64,
    /// What full tables cost.
    pub losses: Losses,
    /// Why the rule exists.
    pub note: Option<String>,
}

/// What became of a rule's requests, as the rule alone has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Requests {
    /// Those it let pass.
    pub admitted: u64,
    /// Those it refused.
    pub refused: u64,
    /// Those it would have refused, were it in force.
    pub would_refuse: u64,
    /// Those that matched but lacked the key.
    pub unkeyed: u64,
}

/// What full tables cost a rule; all zero on a quiet day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Losses {
    /// Keys that lost a count in use.
    pub evicted_live: u64,
    /// Keys at their limit or under a verdict that lost their count.
    pub evicted_limited: u64,
    /// Events that were not counted.
    pub untracked: u64,
    /// Verdicts that were not stored.
    pub unstored_verdicts: u64,
    /// Blocks that will not make the next one longer.
    pub forgotten_blocks: u64,
    /// Verdict events that were not logged.
    pub dropped_events: u64,
}

/// Something that is likely not meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Notice {
    /// What it is: `no_peer`, `unusable_hops` or `keyed_nothing`.
    pub name: &'static str,
    /// The rule it is about.
    pub rule: Option<String>,
    /// How often it was met.
    pub count: u64,
    /// What it means.
    pub text: &'static str,
}

impl Gate {
    /// Which rule file is in force: the first twelve digits of its SHA-256.
    #[must_use]
    pub fn version(&self) -> String {
        self.shared().active.load().engine.rules().version().to_owned()
    }

    /// How the gate stands: what it goes by, and what it did since it was built.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let shared = self.shared();
        let control = shared.control();
        let (active, clocks) = (shared.active.load(), shared.clocks());
        let rules = active.engine.rules();
        let each = rules.rules().iter().zip(active.engine.counts());
        let commanded = |rule: &Rule| control.commands.rule_modes.get(&*rule.name).copied();
        let status = |(rule, counts)| rule_status(rule, rules, commanded(rule), counts);
        let statuses: Vec<RuleStatus> = each.map(status).collect();
        Snapshot {
            app: rules.app().to_owned(),
            version: rules.version().to_owned(),
            since: clocks.moment(control.since),
            started: clocks.moment(hotgate_detector::Time::default()),
            file: control.file.as_ref().map(|file| file.display().to_string()),
            reload: ReloadStatus {
                loaded: shared.reloads.loaded.load(Relaxed),
                failed: control.failed.as_ref().map(|failed| FailedReload {
                    at: clocks.moment(failed.at),
                    problems: failed.problems.clone(),
                }),
            },
            mode: mode::status(&control, clocks),
            denied: active.engine.denied(),
            notices: notices(shared, &statuses),
            rules: statuses,
            lists: list::commanded(&control.record, None, clocks),
        }
    }
}

fn rule_status(
    rule: &Rule,
    rules: &RuleSet,
    commanded: Option<Mode>,
    counts: RuleCounts,
) -> RuleStatus {
    let [admitted, refused, would_refuse, unkeyed] = outcomes(rule.missing_key, counts);
    RuleStatus {
        name: rule.name.to_string(),
        action: rule.action.name(),
        key: rule.key.to_string(),
        over: over(rule),
        mode: rule.mode_under(rules.mode(), None),
        commanded,
        requests: Requests { admitted, refused, would_refuse, unkeyed },
        verdicts: counts.standing_verdicts,
        losses: Losses {
            evicted_live: counts.evicted_live,
            evicted_limited: counts.evicted_limited,
            untracked: counts.untracked,
            unstored_verdicts: counts.unstored_verdicts,
            forgotten_blocks: counts.forgotten_blocks,
            dropped_events: counts.dropped_events,
        },
        note: rule.note.as_deref().map(str::to_owned),
    }
}

/// A rule's limit as the file writes it.
fn over(rule: &Rule) -> Option<String> {
    match rule.trigger {
        Trigger::Over(rate) => Some(format!("{}/{}", rate.limit, Spoken(rate.window))),
        Trigger::Always => None,
    }
}

fn notices(shared: &Shared, rules: &[RuleStatus]) -> Vec<Notice> {
    const NO_PEER: &str =
        "requests came without their peer's address, so rules by client do not see them";
    const UNUSABLE_HOPS: &str = "a trusted proxy's forwarding field held a hop that is no address";
    const KEYED_NOTHING: &str = "requests matched the rule and its key was found in none";
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
    let of_gate = [
        ("no_peer", count(&shared.notices.no_peer), NO_PEER),
        ("unusable_hops", count(&shared.notices.unusable_hops), UNUSABLE_HOPS),
    ];
    let of_gate = of_gate.into_iter().filter(|(_, count, _)| *count > 0);
    let of_gate = of_gate.map(|(name, count, text)| Notice { name, rule: None, count, text });
    let keyless = |rule: &&RuleStatus| {
        let Requests { admitted, refused, would_refuse, unkeyed } = rule.requests;
        unkeyed >= UNKEYED_TOLD_FROM && admitted + refused + would_refuse == 0
    };
    let of_rules = rules.iter().filter(keyless).map(|rule| Notice {
        name: "keyed_nothing",
        rule: Some(rule.name.clone()),
        count: rule.requests.unkeyed,
        text: KEYED_NOTHING,
    });
    of_gate.chain(of_rules).collect()
}
