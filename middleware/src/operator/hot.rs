//! The verdicts that stand.

use std::cmp::Reverse;

use hotgate_detector::StandingVerdict;
use hotgate_rules::{Mode, RuleSet};
use serde::Serialize;

use super::{CommandError, Moment, command::key_text, moment::Clocks};
use crate::Gate;

/// Hot keys, the newest first.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct HotKeys {
    /// How many verdicts stand.
    pub standing: usize,
    /// As many of them as were asked for.
    pub keys: Vec<HotKey>,
}

/// A key and the verdict that stands for it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct HotKey {
    /// The rule.
    pub rule: String,
    /// The rule's action.
    pub action: &'static str,
    /// The key as the rule prints it.
    pub key: String,
    /// When the verdict began.
    pub since: Moment,
    /// Seconds since then.
    pub age_seconds: u64,
    /// When it ends, as far as is known; a throttle's moves out with each attempt.
    pub until: Moment,
    /// Seconds until then.
    pub seconds_left: u64,
    /// Who set it.
    pub by: By,
    /// Whether nobody is refused for it now, since the rule observes or is off.
    pub observed: bool,
    /// Which block in a row it is, from 1, where the rule lets them grow.
    pub repeat: u32,
    /// Attempts in the rule's last window; `None`: a block, which counts none.
    pub attempts: Option<u32>,
}

/// Who set a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The rule, by its count.
    Automatic,
    /// An operator, by command.
    Operator,
}

impl Gate {
    /// The verdicts that stand, the newest first, at most `max` of them; of one rule, or of all.
    ///
    /// It looks at each of them, of which `[memory]` allows 65,536 for each rule.
    ///
    /// # Errors
    ///
    /// When there is no such rule.
    pub fn hot(&self, rule: Option<&str>, max: usize) -> Result<HotKeys, CommandError> {
        let shared = self.shared();
        let (active, clocks) = (shared.active.load(), shared.clocks());
        let rules = active.engine.rules();
        if let Some(name) = rule
            && rules.rules().iter().all(|rule| *rule.name != *name)
        {
            return Err(CommandError::unknown_rule(name, rules));
        }
        let mut verdicts = active.engine.verdicts(clocks.now);
        verdicts.retain(|verdict| rule.is_none_or(|rule| *verdict.rule == *rule));
        verdicts.sort_by(|one, other| {
            let order = |verdict: &StandingVerdict| Reverse(verdict.since);
            order(one).cmp(&order(other)).then_with(|| one.key.cmp(&other.key))
        });
        let keys =
            verdicts.iter().take(max).map(|verdict| HotKey::new(verdict, rules, clocks)).collect();
        Ok(HotKeys { standing: verdicts.len(), keys })
    }

    /// The verdict of a rule that stands for a key, given in its printed form; a bare address stands
    /// for that of the client.
    ///
    /// # Errors
    ///
    /// When there is no such rule, it holds no verdicts, or the key is not one of its.
    pub fn verdict(&self, rule: &str, key: &str) -> Result<Option<HotKey>, CommandError> {
        let shared = self.shared();
        let (active, clocks) = (shared.active.load(), shared.clocks());
        let rules = active.engine.rules();
        let verdict = active.engine.verdict(rule, &key_text(key), clocks.now);
        let verdict = verdict.map_err(|error| CommandError::of_verdict(error, rules))?;
        Ok(verdict.map(|verdict| HotKey::new(&verdict, rules, clocks)))
    }
}

impl HotKey {
    pub(super) fn new(verdict: &StandingVerdict, rules: &RuleSet, clocks: Clocks) -> Self {
        // As the mode is now: it may have changed since the verdict began.
        let rule = rules.rules().iter().find(|rule| rule.name == verdict.rule);
        let mode = rule.map_or(Mode::Off, |rule| {
            let key = rule.key.read(&verdict.key).ok();
            let terms = key.and_then(|key| rule.override_by_key(&key)).map(|(_, terms)| terms);
            rule.mode_under(rules.mode(), terms)
        });
        HotKey {
            rule: verdict.rule.to_string(),
            action: verdict.action,
            key: verdict.key.to_string(),
            since: clocks.moment(verdict.since),
            age_seconds: clocks.now.since(verdict.since).as_secs(),
            until: clocks.moment(verdict.until),
            seconds_left: clocks.seconds_left(verdict.until),
            by: if verdict.manual { By::Operator } else { By::Automatic },
            observed: mode != Mode::Enforce,
            repeat: verdict.repeat,
            attempts: verdict.attempts,
        }
    }
}
