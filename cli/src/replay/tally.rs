//! What the rules refused, to whom, and when.

use std::collections::HashMap;

use hotgate_detector::{Decision, Time};
use hotgate_rules::{Facts, Matched, Mode, Rule, RuleSet, Standing};

use super::CONFIG;

/// Keys that are listed for each rule, so that a log of ever new keys fills no memory; each is kept
/// as it is printed, which is short however long its values are. Refusals of further keys still count
/// for their rule.
pub(super) const KEYS_LISTED_MAX: usize = 100_000;

/// One tally for each rule, and the denied requests.
#[derive(Debug)]
pub(super) struct Tally {
    /// Requests of clients that `[[deny]]` names.
    pub(super) denied: u64,
    pub(super) rules: Vec<RuleTally>,
    keys_max: usize,
}

/// What one rule refused.
#[derive(Debug, Default)]
pub(super) struct RuleTally {
    pub(super) refused: u64,
    /// Requests that its tag marked or its handler answered.
    pub(super) acted: u64,
    /// Refusals of keys that are not listed.
    pub(super) unlisted: u64,
    /// By the printed key.
    pub(super) keys: HashMap<String, KeyTally>,
}

/// What one key was refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyTally {
    pub(super) matched: u64,
    pub(super) refused: u64,
    pub(super) first: Time,
    pub(super) last: Time,
}

impl Tally {
    pub(super) fn new(rules: &RuleSet, keys_max: usize) -> Self {
        let rules = rules.rules().iter().map(|_| RuleTally::default()).collect();
        Tally { denied: 0, rules, keys_max }
    }

    /// Takes what the engine said of a request. A rule that observes counts as if it had refused:
    /// these are the numbers that enforcing it would give.
    pub(super) fn decided(
        &mut self,
        rules: &RuleSet,
        facts: &Facts<'_>,
        decision: &Decision,
        now: Time,
    ) {
        for finding in &decision.findings {
            let (rule, tally) = (&rules.rules()[finding.index], &mut self.rules[finding.index]);
            if finding.refuses.is_some() {
                tally.refuse(printed(rule, facts), now, self.keys_max);
            } else if !rule.action.refuses() && decision.refusal.is_none() {
                tally.acted += 1;
            }
        }
    }

    /// Counts a request as denied, or for the listed keys it matches; called for every line once all
    /// refusals are known, so that only the refused keys need memory.
    pub(super) fn count_matched(&mut self, rules: &RuleSet, facts: &Facts<'_>, now: Time) {
        if rules.mode() == Mode::Off {
            return;
        }
        let matched = rules.matching(facts);
        if matched.is_exempt() {
            return;
        }
        let standing = match facts.client {
            Some(client) => rules.lists().standing(client, i128::from(now.as_nanos())),
            None => Standing::Unlisted,
        };
        self.denied += u64::from(standing == Standing::Denied);
        // In a file that observes, what would be denied goes on to the rules.
        let standing = match standing {
            Standing::Denied if rules.mode() == Mode::Observe => Standing::Unlisted,
            standing => standing,
        };
        for index in applying(&matched, standing) {
            let rule = &rules.rules()[index];
            let is_on = || rule.period.covers(now.as_nanos().into()) && rule.holds(facts);
            if !self.rules[index].keys.is_empty() && is_on() {
                self.rules[index].count(rule, facts);
            }
        }
    }
}

/// The positions of the matched rules that the client's standing leaves in force.
fn applying(matched: &Matched, standing: Standing) -> impl Iterator<Item = usize> {
    matched.rules().filter(move |index| match standing {
        Standing::Unlisted => true,
        Standing::Denied | Standing::Allowed => false,
        Standing::AllowedPast(bits) => bits[index / 64] >> (index % 64) & 1 == 0,
    })
}

impl RuleTally {
    /// `key` is `None` where the rule refuses because it is missing.
    fn refuse(&mut self, key: Option<String>, now: Time, keys_max: usize) {
        self.refused += 1;
        let Some(key) = key else { return };
        if let Some(tally) = self.keys.get_mut(&key) {
            tally.refused += 1;
            tally.last = now;
        } else if self.keys.len() < keys_max {
            self.keys.insert(key, KeyTally { matched: 0, refused: 1, first: now, last: now });
        } else {
            self.unlisted += 1;
        }
    }

    fn count(&mut self, rule: &Rule, facts: &Facts<'_>) {
        if let Some(tally) = printed(rule, facts).and_then(|key| self.keys.get_mut(&key)) {
            tally.matched += 1;
        }
    }
}

fn printed(rule: &Rule, facts: &Facts<'_>) -> Option<String> {
    let key = rule.key(facts).ok()?;
    Some(key.text(&rule.show(&CONFIG.privacy_secret)))
}

#[cfg(test)]
mod tests {
    use hotgate_rules::RequestPath;
    use http::HeaderMap;

    use super::*;

    const RULES: &str =
        "app = \"t\"\n[[rule]]\nname = \"r\"\nkey = [\"path\"]\nalways = true\nthrottle = {}\n";

    #[test]
    fn ever_new_keys_fill_no_memory_and_their_refusals_still_count() {
        let rules: RuleSet = RULES.parse().unwrap();
        let headers = HeaderMap::new();
        let mut tally = RuleTally::default();
        let long = format!("/{}", "a".repeat(100_000));
        for (second, path) in [&*long, "/b", "/c", &*long, "/d"].into_iter().enumerate() {
            let facts = Facts {
                method: None,
                path: RequestPath::new(path),
                query: None,
                host: None,
                headers: &headers,
                route: None,
                client: None,
                extracted: &(),
            };
            let key = printed(&rules.rules()[0], &facts);
            tally.refuse(key, Time::from_nanos(second as u64), 2);
        }
        tally.refuse(None, Time::from_nanos(9), 2);
        assert_eq!((tally.refused, tally.unlisted, tally.keys.len()), (6, 2, 2));
        let (key, twice) = tally.keys.iter().find(|(_, tally)| tally.refused == 2).unwrap();
        assert_eq!(
            (twice.first.as_nanos(), twice.last.as_nanos()),
            (0, 3),
            "the first and the last refusal"
        );
        assert!(key.len() < 100, "a long value is kept as its hash");
    }
}
