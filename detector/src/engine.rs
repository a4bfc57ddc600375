//! The engine.

use hotgate_rules::{Facts, KeyTextError, RuleSet};
use std::time::Duration;

use crate::{Charges, Decision, Event, Outcome, Time};

/// What an [`Engine`] needs beside its rules.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Keys the hash of the tables: random, so that nobody can aim at a line.
    pub table_seed: [u64; 4],
    /// Keys the hashes that stand for secrets and personal data in printed keys.
    pub privacy_secret: [u8; 16],
    /// Where [`Time`]'s origin lies: nanoseconds since the unix epoch. Dates in the rules need it.
    pub origin_unix_nanos: i128,
}

/// Decides requests.
#[derive(Debug)]
pub struct Engine {}

/// What one rule did since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounts {
    /// Requests that matched and had a key.
    pub matched: u64,
    /// Requests the rule refused (its own refusals, in force).
    pub refused: u64,
    /// Requests the rule would have refused, were it in force.
    pub would_refuse: u64,
    /// Requests that matched but lacked the key.
    pub unkeyed: u64,
    /// Keys that lost a count in use because the table was full.
    pub evicted_live: u64,
    /// Requests not counted because all places for their key were protected.
    pub untracked: u64,
    /// Verdicts not stored because the verdict table was full.
    pub unstored_verdicts: u64,
    /// Verdicts that stand.
    pub standing_verdicts: u64,
}

impl Engine {
    /// An engine with nothing counted yet.
    #[must_use]
    pub fn new(rules: RuleSet, config: Config) -> Self {
        let _ = (rules, config);
        todo!()
    }

    /// Its rules.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        todo!()
    }

    /// Decides a request: all matching rules are checked, then all are charged, atomically.
    pub fn decide(&self, facts: &Facts<'_>, now: Time) -> Decision {
        let _ = (facts, now);
        todo!()
    }

    /// Takes the outcome of an admitted request.
    pub fn settle(&self, charges: Charges, outcome: Outcome, now: Time) {
        let _ = (charges, outcome, now);
        todo!()
    }

    /// The verdicts that changed since the last call. Call it every 100 ms or so; nothing but these events depends on it.
    pub fn tick(&self, now: Time) -> Vec<Event> {
        let _ = now;
        todo!()
    }

    /// Blocks a key by hand, whatever it did. `key` is its printed form.
    pub fn block(&self, rule: &str, key: &str, lasts: Duration, now: Time) -> Result<(), VerdictError> {
        let _ = (rule, key, lasts, now);
        todo!()
    }

    /// Ends a key's verdict and clears its counts: N requests pass afterwards. False: there was none (the counts are cleared all the same).
    pub fn lift(&self, rule: &str, key: &str, now: Time) -> Result<bool, VerdictError> {
        let _ = (rule, key, now);
        todo!()
    }

    /// What each rule did, in the order of the rule set.
    #[must_use]
    pub fn counts(&self) -> Vec<RuleCounts> {
        todo!()
    }
}

/// A verdict that could not be set or lifted by hand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerdictError {
    /// No such rule.
    #[error("no rule is named {0:?}")]
    UnknownRule(String),
    /// The key does not fit the rule.
    #[error("not a key of this rule")]
    Key(#[from] KeyTextError),
    /// The rule acts on every request and holds no verdicts.
    #[error("rule {0:?} has always = true and holds no verdicts")]
    Always(String),
    /// The verdict table is full.
    #[error("the rule holds as many verdicts as [memory] verdicts allows ({0})")]
    Full(u32),
}
