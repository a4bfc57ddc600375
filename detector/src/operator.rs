//! What operators ask and command.

use std::{sync::Arc, time::Duration};

use hotgate_rules::{KeyTextError, Mode, Rule};

use crate::{
    Cause, DecisionId, Engine, StandingVerdict, Time,
    counting::{Counting, RuleState},
    verdict::Subject,
};

/// What one rule knows of one key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyState {
    /// The rule.
    pub rule: Arc<str>,
    /// Its position in the rule set.
    pub index: usize,
    /// The key as the rule prints it.
    pub key: Arc<str>,
    /// What the rule compares with its limit stands this often in the window; up to 2 % of the limit
    /// may be too many.
    pub count: u32,
    /// The key's limit, N.
    pub limit: u32,
    /// W.
    pub window: Duration,
    /// When a full window lets the key pass again.
    pub full_until: Option<Time>,
    /// The verdict that stands.
    pub verdict: Option<StandingVerdict>,
    /// Whether the rule is in force for the key, observes it, or is off.
    pub mode: Mode,
    /// An override exempts the key.
    pub exempt: bool,
}

/// A refusal, found by its id.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundRefusal {
    /// When, to the millisecond.
    pub at: Time,
    /// Why.
    pub cause: Cause,
    /// Where the rule that answered stands in the rules of this engine; `None`: a deny list, or a rule
    /// that has gone since.
    pub index: Option<usize>,
    /// The rule that answered, and what it knows of the key; `None`: a deny list, a missing key, or a rule
    /// that has gone since. The key's text is empty where no verdict tells it any more.
    pub rule: Option<KeyState>,
}

impl Engine {
    /// Blocks a key by hand, whatever it did; `key` is its printed form.
    ///
    /// # Errors
    ///
    /// When there is no such rule, it holds no verdicts, the key is not one of its, or its verdict
    /// table is full.
    pub fn block(
        &self,
        rule: &str,
        key: &str,
        lasts: Duration,
        now: Time,
    ) -> Result<(), VerdictError> {
        let (rule, counting) = self.counting(rule)?;
        let named = self.read_key(rule, counting, key)?;
        let limit = counting.limit_under(named.terms);
        let mut row = counting.table.lock(named.subject.hash, limit, now);
        if !counting.verdicts.block_by_hand(named.subject, lasts, now) {
            return Err(VerdictError::Full(self.rules.memory().verdicts.get()));
        }
        row.clear();
        row.mark_hot(true);
        Ok(())
    }

    /// Ends a key's verdict and clears its counts, so that N requests pass afterwards. False where no
    /// verdict stood; the counts are cleared all the same.
    ///
    /// # Errors
    ///
    /// When there is no such rule, it holds no verdicts, or the key is not one of its.
    pub fn lift(&self, rule: &str, key: &str, now: Time) -> Result<bool, VerdictError> {
        let (rule, counting) = self.counting(rule)?;
        let named = self.read_key(rule, counting, key)?;
        let hash = named.subject.hash;
        let mut row = counting.table.lock(hash, counting.limit_under(named.terms), now);
        row.clear();
        Ok(counting.verdicts.lift(hash, now))
    }

    /// Ends all verdicts of a rule and clears all its counts; how many verdicts stood.
    ///
    /// # Errors
    ///
    /// When there is no such rule, or it holds no verdicts.
    pub fn lift_all(&self, rule: &str, now: Time) -> Result<usize, VerdictError> {
        let (_, counting) = self.counting(rule)?;
        counting.table.clear();
        Ok(counting.verdicts.lift_all(now))
    }

    /// The verdicts that stand, rule by rule.
    #[must_use]
    pub fn verdicts(&self, now: Time) -> Vec<StandingVerdict> {
        let countings = self.states.iter().filter_map(|state| state.counting.as_ref());
        countings.flat_map(|counting| counting.verdicts.all(now)).collect()
    }

    /// What each rule whose key this printed form can be knows of it.
    #[must_use]
    pub fn key_states(&self, key: &str, now: Time) -> Vec<KeyState> {
        let each = self.rules.rules().iter().zip(&self.states).enumerate();
        let state = |(index, (rule, state)): (usize, (&Rule, &RuleState))| {
            let counting = state.counting.as_ref()?;
            let named = self.read_key(rule, counting, key).ok()?;
            Some(self.key_state(index, rule, counting, named, now))
        };
        each.filter_map(state).collect()
    }

    /// The refusal that a decision id of this process stands for, if it is one.
    #[must_use]
    pub fn refusal_of(&self, id: DecisionId, now: Time) -> Option<FoundRefusal> {
        let refused = self.open(id, now)?;
        let index = refused.rule.and_then(|mark| self.marked(mark));
        let keyed = !matches!(refused.cause, Cause::MissingKey { .. });
        let rule = index.filter(|_| keyed).and_then(|index| {
            let counting = self.states[index].counting.as_ref()?;
            let verdict = counting.verdicts.one(refused.hash, now);
            let key = verdict.map_or_else(|| "".into(), |verdict| verdict.key);
            let rule = &self.rules.rules()[index];
            let terms = rule.key.read(&key).ok();
            let terms = terms.and_then(|key| rule.override_by_key(&key)).map(|(at, _)| at);
            let subject = Subject { hash: refused.hash, key, observed: false };
            Some(self.key_state(index, rule, counting, Named { subject, terms }, now))
        });
        Some(FoundRefusal { at: refused.at, cause: refused.cause, index, rule })
    }

    /// The verdict of a rule that stands for a key.
    ///
    /// # Errors
    ///
    /// When there is no such rule, it holds no verdicts, or the key is not one of its.
    pub fn verdict(
        &self,
        rule: &str,
        key: &str,
        now: Time,
    ) -> Result<Option<StandingVerdict>, VerdictError> {
        let (rule, counting) = self.counting(rule)?;
        let named = self.read_key(rule, counting, key)?;
        Ok(counting.verdicts.one(named.subject.hash, now))
    }

    /// A key as the rule prints it, whatever of it an operator wrote in clear.
    ///
    /// # Errors
    ///
    /// As of [`verdict`](Self::verdict).
    pub fn shown(&self, rule: &str, key: &str) -> Result<Arc<str>, VerdictError> {
        let (rule, counting) = self.counting(rule)?;
        Ok(self.read_key(rule, counting, key)?.subject.key)
    }

    /// A time in nanoseconds since the unix epoch, as far as the clock has run evenly since the origin.
    #[must_use]
    pub fn unix_nanos(&self, at: Time) -> i128 {
        self.config.origin_unix_nanos + i128::from(at.as_nanos())
    }

    fn key_state(
        &self,
        index: usize,
        rule: &Rule,
        counting: &Counting,
        named: Named,
        now: Time,
    ) -> KeyState {
        let terms = named.terms.and_then(|at| rule.overrides.get(at));
        let limit = counting.limit_under(named.terms);
        let row = counting.table.lock(named.subject.hash, limit, now);
        KeyState {
            rule: Arc::clone(&rule.name),
            index,
            key: named.subject.key,
            count: row.count(limit, now).0,
            limit: limit.n,
            window: counting.window,
            full_until: row.full_until(now),
            verdict: counting.verdicts.one(named.subject.hash, now),
            mode: rule.mode_under(self.rules.mode(), terms),
            exempt: terms.is_some_and(|terms| terms.exempt),
        }
    }

    fn counting(&self, name: &str) -> Result<(&Rule, &Counting), VerdictError> {
        let index =
            self.position(name).ok_or_else(|| VerdictError::UnknownRule(name.to_owned()))?;
        let counting = self.states[index].counting.as_ref();
        let counting = counting.ok_or_else(|| VerdictError::Always(name.to_owned()))?;
        Ok((&self.rules.rules()[index], counting))
    }

    fn read_key(
        &self,
        rule: &Rule,
        counting: &Counting,
        text: &str,
    ) -> Result<Named, VerdictError> {
        let (hash, key, terms) = match rule.key.read(text) {
            Ok(key) => {
                let shown = key.text(&rule.show(&self.config.privacy_secret));
                (self.hasher.hash_one(&key), shown.into(), rule.override_by_key(&key))
            }
            // What is printed as a hash can be named while its verdict stands.
            Err(error) => (counting.verdicts.find(text).ok_or(error)?, text.into(), None),
        };
        let mode = rule.mode_under(self.rules.mode(), terms.map(|(_, terms)| terms));
        let subject = Subject { hash, key, observed: mode != Mode::Enforce };
        Ok(Named { subject, terms: terms.map(|(at, _)| at) })
    }
}

/// A key that an operator names.
struct Named {
    subject: Subject,
    /// The place of the override for it.
    terms: Option<usize>,
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
