//! What rules did since the gate was built, through every change of the rules.
//!
//! A rule is known by its name. Its numbers go on however it changes, and stand as they are once it is
//! gone: no total ever falls. What it did before it came to mean or do something else stays where it was
//! counted.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use hotgate_detector::RuleCounts;
use hotgate_rules::{MissingKey, Rule, RuleIdentity};

use crate::active::Active;

/// From how many requests without a key on a rule that found none is told.
pub(crate) const UNKEYED_TOLD_FROM: u64 = 1_000;

/// Numbers that are kept beyond the rules in force: of rules that are gone, and of actions that rules had
/// before. Beyond it those whose names come first in the alphabet go.
const GONE_MAX: usize = 1_024;

/// Which rule, and by which action.
pub(crate) type Name = (Arc<str>, &'static str);

/// What rules did.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    rows: BTreeMap<Name, Row>,
    counted: HashMap<Arc<str>, Counted>,
}

/// What a rule did with one action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Requests, as [`OUTCOMES`] names what became of them.
    pub(crate) outcomes: [u64; 4],
    /// What full tables cost, as [`LOSSES`] names it.
    pub(crate) losses: [u64; 6],
    /// Verdicts that stand.
    pub(crate) verdicts: u64,
    is_in_force: bool,
}

/// What became of requests, as the rule alone would have it.
pub(crate) const OUTCOMES: [&str; 4] = ["admitted", "refused", "would_refuse", "unkeyed"];

/// What full tables cost.
pub(crate) const LOSSES: [&str; 6] = [
    "hotgate_evicted_live_total",
    "hotgate_evicted_limited_total",
    "hotgate_untracked_total",
    "hotgate_unstored_verdicts_total",
    "hotgate_forgotten_blocks_total",
    "hotgate_dropped_events_total",
];

/// What of a rule's counts stands in the totals.
#[derive(Debug)]
struct Counted {
    meaning: Meaning,
    /// As they were when the rule came to mean this.
    base: RuleCounts,
    /// As they were last.
    counts: RuleCounts,
    /// What was added of them since `base`.
    outcomes: [u64; 4],
    losses: [u64; 6],
    told_unkeyed: bool,
    told_unreached: bool,
}

/// A rule that sees no request as it is meant to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Idle {
    /// It found its key in none of many requests.
    KeyedNothing { unkeyed: u64 },
    /// None of many requests came to the inner door, where it is asked.
    ReachedByNone { sent_on: u64 },
}

/// What tells how a rule's counts are to be read.
pub(crate) type Meaning = (RuleIdentity, &'static str, MissingKey);

impl Totals {
    /// Adds what has come since the last call. It is called before other rules come into force, too.
    pub(crate) fn gather(&mut self, active: &Active) {
        let rules = active.engine.rules();
        for row in self.rows.values_mut() {
            (row.verdicts, row.is_in_force) = (0, false);
        }
        let counts = active.engine.counts();
        for ((rule, now), meaning) in rules.rules().iter().zip(counts).zip(active.meanings()) {
            let counted = self.counted.entry(Arc::clone(&rule.name));
            let counted = counted.or_insert_with(|| Counted::new(meaning));
            let row = self.rows.entry((Arc::clone(&rule.name), rule.action.name())).or_default();
            (row.verdicts, row.is_in_force) = (now.standing_verdicts, true);
            counted.add(meaning, now, row);
        }
        if self.counted.len() > rules.rules().len() {
            // Should one of them come back, its counts begin anew.
            self.counted.retain(|name, _| rules.rules().iter().any(|rule| rule.name == *name));
        }
        let mut excess = self.rows.len().saturating_sub(rules.rules().len() + GONE_MAX);
        if excess > 0 {
            self.rows.retain(|_, row| {
                let goes = excess > 0 && !row.is_in_force;
                excess -= usize::from(goes);
                !goes
            });
        }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Name, &Row)> {
        self.rows.iter()
    }

    pub(crate) fn has(&self, name: &Name) -> bool {
        self.rows.contains_key(name)
    }

    /// The rules that see no request as they are meant to, each once.
    pub(crate) fn idle(&mut self, active: &Active) -> Vec<(usize, Idle)> {
        let rules = active.engine.rules().rules().iter().enumerate();
        let idle = |(index, rule): (usize, &Rule)| {
            Some((index, self.counted.get_mut(&rule.name)?.idle()?))
        };
        rules.filter_map(idle).collect()
    }
}

impl Counted {
    fn new(meaning: Meaning) -> Self {
        Counted {
            meaning,
            base: RuleCounts::default(),
            counts: RuleCounts::default(),
            outcomes: [0; 4],
            losses: [0; 6],
            told_unkeyed: false,
            told_unreached: false,
        }
    }

    fn add(&mut self, meaning: Meaning, now: RuleCounts, row: &mut Row) {
        if self.meaning != meaning {
            // What comes on top of what was counted last is of the new meaning.
            let (base, losses) = (self.counts, self.losses);
            *self = Counted { base, losses, ..Counted::new(meaning) };
        }
        self.counts = now;
        let so_far = outcomes(meaning.2, since(now, self.base));
        for ((total, counted), now) in row.outcomes.iter_mut().zip(&mut self.outcomes).zip(so_far) {
            raise(total, counted, now);
        }
        for ((total, counted), now) in row.losses.iter_mut().zip(&mut self.losses).zip(losses(now))
        {
            raise(total, counted, now);
        }
    }

    fn idle(&mut self) -> Option<Idle> {
        let RuleCounts { matched, unkeyed, sent_on, .. } = since(self.counts, self.base);
        let is_new = |told: &mut bool| !std::mem::replace(told, true);
        if unkeyed >= UNKEYED_TOLD_FROM && matched == 0 && is_new(&mut self.told_unkeyed) {
            return Some(Idle::KeyedNothing { unkeyed });
        }
        let unreached = sent_on >= RuleCounts::SENT_ON_MAX && matched + unkeyed == 0;
        (unreached && is_new(&mut self.told_unreached)).then_some(Idle::ReachedByNone { sent_on })
    }
}

/// What was counted of requests after `base`.
fn since(mut counts: RuleCounts, base: RuleCounts) -> RuleCounts {
    for (now, before) in [
        (&mut counts.matched, base.matched),
        (&mut counts.refused, base.refused),
        (&mut counts.would_refuse, base.would_refuse),
        (&mut counts.unkeyed, base.unkeyed),
    ] {
        *now = now.saturating_sub(before);
    }
    counts
}

/// What became of a rule's requests, in the order of [`OUTCOMES`].
pub(crate) fn outcomes(missing_key: MissingKey, counts: RuleCounts) -> [u64; 4] {
    let RuleCounts { matched, refused, would_refuse, unkeyed, .. } = counts;
    // Where a request without the key is rejected, it stands among the refused already.
    let (seen, unkeyed) = match missing_key {
        MissingKey::Reject => (matched + unkeyed, 0),
        _ => (matched, unkeyed),
    };
    [seen.saturating_sub(refused + would_refuse), refused, would_refuse, unkeyed]
}

fn losses(counts: RuleCounts) -> [u64; 6] {
    [
        counts.evicted_live,
        counts.evicted_limited,
        counts.untracked,
        counts.unstored_verdicts,
        counts.forgotten_blocks,
        counts.dropped_events,
    ]
}

/// Adds what a count has risen by. One that is a difference of counts read while they rise may seem to
/// fall for a while: what was added stands until the count has passed it.
fn raise(total: &mut u64, counted: &mut u64, now: u64) {
    *total += now.saturating_sub(*counted);
    *counted = now.max(*counted);
}

#[cfg(test)]
mod tests {
    use hotgate_rules::RuleSet;

    use super::*;

    #[test]
    fn a_total_read_while_its_parts_rise_is_counted_once() {
        let rules: RuleSet = "app = \"test\"\n[[rule]]\nname = \"api\"\nkey = []\nover = \"2/1m\"\nblock = { for = \"1m\" }\n"
            .parse()
            .unwrap();
        let meaning = (rules.identity(0), "block", MissingKey::Skip);
        let (mut counted, mut row) = (Counted::new(meaning), Row::default());
        // Each time but the last, some refusals were read whose requests were not yet.
        for (matched, refused) in [(2, 0), (100, 99), (200, 200), (300, 299), (400, 398)] {
            let mut counts = RuleCounts::default();
            (counts.matched, counts.refused) = (matched, refused);
            counted.add(meaning, counts, &mut row);
        }
        assert_eq!(row.outcomes[0], 2, "no look makes requests up");
    }
}
