//! What the rules refused, to whom, and when.

use std::collections::HashMap;

use hotgate_detector::{Decision, Time};
use hotgate_rules::{Facts, Key, Matched, Mode, Rule, RuleSet, Standing};

/// Keys that are listed for each rule, so that a log of ever new keys fills no memory. Refusals of
/// further keys still count for their rule.
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
    /// Refusals of keys that are not listed.
    pub(super) unlisted: u64,
    positions: HashMap<Key<'static>, usize>,
    keys: Vec<KeyTally>,
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
        for finding in decision.findings.iter().filter(|finding| finding.refuses.is_some()) {
            let rule = &rules.rules()[finding.index];
            let key = rule.key(facts).ok().map(Key::into_owned);
            self.rules[finding.index].refuse(key, now, self.keys_max);
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
            if !self.rules[index].keys.is_empty() {
                self.rules[index].count(&rules.rules()[index], facts);
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
    /// The listed keys, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&Key<'static>, &KeyTally)> {
        self.positions.iter().map(|(key, position)| (key, &self.keys[*position]))
    }

    /// `key` is `None` where the rule refuses because it is missing.
    fn refuse(&mut self, key: Option<Key<'static>>, now: Time, keys_max: usize) {
        self.refused += 1;
        let Some(key) = key else { return };
        if let Some(position) = self.positions.get(&key) {
            let tally = &mut self.keys[*position];
            tally.refused += 1;
            tally.last = now;
        } else if self.keys.len() < keys_max {
            self.positions.insert(key, self.keys.len());
            self.keys.push(KeyTally { matched: 0, refused: 1, first: now, last: now });
        } else {
            self.unlisted += 1;
        }
    }

    fn count(&mut self, rule: &Rule, facts: &Facts<'_>) {
        if let Ok(key) = rule.key(facts)
            && let Some(position) = self.positions.get(&key.into_owned())
        {
            self.keys[*position].matched += 1;
        }
    }
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
        for (second, path) in ["/a", "/b", "/c", "/a", "/d"].into_iter().enumerate() {
            let facts = Facts {
                method: None,
                path: RequestPath::new(path),
                query: None,
                host: None,
                headers: &headers,
                route: None,
                client: None,
            };
            let key = rules.rules()[0].key(&facts).unwrap().into_owned();
            tally.refuse(Some(key), Time::from_nanos(second as u64), 2);
        }
        tally.refuse(None, Time::from_nanos(9), 2);
        assert_eq!((tally.refused, tally.unlisted, tally.keys().count()), (6, 2, 2));
        let a = tally.keys().find(|(_, tally)| tally.refused == 2).unwrap().1;
        assert_eq!(
            (a.first.as_nanos(), a.last.as_nanos()),
            (0, 3),
            "the first and the last refusal"
        );
    }
}
