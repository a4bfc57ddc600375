//! Verdicts by hand.

use std::time::Duration;

use hotgate_rules::network;
use serde::Serialize;

use super::{CommandError, Moment, SERVICE, Who};
use crate::{Gate, gate::Shared, log};

/// A block that was set by command.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Blocked {
    /// The rule.
    pub rule: String,
    /// The key as the rule prints it.
    pub key: String,
    /// When it ends.
    pub until: Moment,
    /// Seconds until then.
    pub seconds_left: u64,
    /// Whether nobody is refused for it, since the rule observes or is off.
    pub observed: bool,
}

/// Verdicts that were ended by command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lifted {
    /// The rules that were looked at.
    pub rules: Vec<String>,
    /// The key as the rules print it; `None`: all keys of the rule.
    pub key: Option<String>,
    /// How many verdicts stood. Counts are cleared whether one stood or not.
    pub lifted: usize,
}

impl Gate {
    /// Blocks a key of a rule for that long, whatever it did: in force before this returns. `key` is
    /// its printed form, such as `client=203.0.113.9`; a bare address stands for that of the client.
    /// It takes the place of a verdict that stands, and acts on the requests that the rule matches.
    ///
    /// # Errors
    ///
    /// When there is no such rule, it holds no verdicts, the key is not one of its, its verdict table is
    /// full, or `lasts` is nothing or beyond ten years.
    pub fn block(&self, rule: &str, key: &str, lasts: Duration) -> Result<Blocked, CommandError> {
        self.shared().block(rule, key, lasts, SERVICE)
    }

    /// Ends the verdict of a rule for a key and clears its counts, so that N requests pass afterwards.
    ///
    /// # Errors
    ///
    /// When there is no such rule, it holds no verdicts, or the key is not one of its.
    pub fn lift(&self, rule: &str, key: &str) -> Result<Lifted, CommandError> {
        self.shared().lift(rule, key, SERVICE)
    }

    /// Ends the verdicts of every rule that has such keys for this one, and clears its counts.
    ///
    /// # Errors
    ///
    /// When no rule has such keys.
    pub fn lift_all_rules(&self, key: &str) -> Result<Lifted, CommandError> {
        self.shared().lift_all_rules(key, SERVICE)
    }

    /// Ends all verdicts of a rule and clears all its counts.
    ///
    /// # Errors
    ///
    /// When there is no such rule, or it holds no verdicts.
    pub fn lift_rule(&self, rule: &str) -> Result<Lifted, CommandError> {
        self.shared().lift_rule(rule, SERVICE)
    }
}

/// A bare address or network is a client's.
pub(super) fn key_text(key: &str) -> String {
    if !key.contains('=') && network(key).is_ok() {
        format!("client={key}")
    } else {
        key.to_owned()
    }
}

impl Shared {
    // All of them hold `control`: a verdict that is set on rules which another thread replaces at the
    // same time could be lost.

    pub(crate) fn block(
        &self,
        rule: &str,
        key: &str,
        lasts: Duration,
        who: Who<'_>,
    ) -> Result<Blocked, CommandError> {
        CommandError::check_time(lasts)?;
        let key = key_text(key);
        let control = self.control();
        let (active, clocks) = (self.active.load(), self.clocks());
        let engine = &active.engine;
        let named = |error| CommandError::of_verdict(error, engine.rules());
        let shown = engine.shown(rule, &key).map_err(named)?;
        engine.block(rule, &key, lasts, clocks.now).map_err(named)?;
        let standing = engine.verdict(rule, &key, clocks.now).map_err(named)?;
        drop(control);
        let until = clocks.now.plus(lasts);
        let blocked = Blocked {
            rule: rule.to_owned(),
            key: shown.to_string(),
            until: clocks.moment(until),
            seconds_left: clocks.seconds_left(until),
            observed: standing.is_some_and(|verdict| verdict.observed),
        };
        log::blocked(&blocked, who);
        Ok(blocked)
    }

    pub(crate) fn lift(&self, rule: &str, key: &str, who: Who<'_>) -> Result<Lifted, CommandError> {
        let key = key_text(key);
        let control = self.control();
        let (active, now) = (self.active.load(), self.clock.now());
        let engine = &active.engine;
        let named = |error| CommandError::of_verdict(error, engine.rules());
        let shown = engine.shown(rule, &key).map_err(named)?;
        let lifted = usize::from(engine.lift(rule, &key, now).map_err(named)?);
        drop(control);
        let lifted = Lifted { rules: vec![rule.to_owned()], key: Some(shown.to_string()), lifted };
        log::lifted(&lifted, who);
        Ok(lifted)
    }

    pub(crate) fn lift_all_rules(&self, key: &str, who: Who<'_>) -> Result<Lifted, CommandError> {
        let key = key_text(key);
        let control = self.control();
        let (active, now) = (self.active.load(), self.clock.now());
        let engine = &active.engine;
        let states = engine.key_states(&key, now);
        let Some(first) = states.first() else {
            return Err(CommandError::no_such_key(engine.rules()));
        };
        let shown = Some(first.key.to_string());
        let (mut rules, mut lifted) = (Vec::new(), 0);
        for state in &states {
            let named = |error| CommandError::of_verdict(error, engine.rules());
            lifted += usize::from(engine.lift(&state.rule, &key, now).map_err(named)?);
            rules.push(state.rule.to_string());
        }
        drop(control);
        let lifted = Lifted { rules, key: shown, lifted };
        log::lifted(&lifted, who);
        Ok(lifted)
    }

    pub(crate) fn lift_rule(&self, rule: &str, who: Who<'_>) -> Result<Lifted, CommandError> {
        let control = self.control();
        let (active, now) = (self.active.load(), self.clock.now());
        let named = |error| CommandError::of_verdict(error, active.engine.rules());
        let lifted = active.engine.lift_all(rule, now).map_err(named)?;
        drop(control);
        let lifted = Lifted { rules: vec![rule.to_owned()], key: None, lifted };
        log::lifted(&lifted, who);
        Ok(lifted)
    }
}
