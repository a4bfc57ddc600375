//! The engine: all matching rules are checked, then all are charged.

use std::{
    hash::{BuildHasher, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hotgate_rules::{
    Action, Disclose, Facts, KeyTextError, MissingKey, Mode, Rule, RuleSet,
    Standing as ClientStanding,
};
use http::StatusCode;
use smallvec::SmallVec;

use crate::{
    Cause, Charges, Config, Decision, DecisionId, Event, Finding, Outcome, Refusal, RuleCounts,
    Time,
    counters::count,
    counting::{Counting, RuleState},
    probe::{Probe, Refuses},
    verdict::Subject,
};

/// Decides requests by one rule set.
#[derive(Debug)]
pub struct Engine {
    rules: RuleSet,
    states: Vec<RuleState>,
    hasher: ahash::RandomState,
    /// Names decisions. Its values are published, and a fast hash may give its seed away, so it is
    /// not the tables'.
    ids: ahash::RandomState,
    config: Config,
    denied: AtomicU64,
    refusals: AtomicU64,
}

/// Rules that a request seldom matches more of; beyond it a decision allocates.
const PROBES_INLINE: usize = 3;

type Probes<'a> = SmallVec<[Probe<'a>; PROBES_INLINE]>;

impl Engine {
    /// An engine that has counted nothing yet.
    #[must_use]
    pub fn new(rules: RuleSet, config: Config) -> Self {
        let states =
            rules.rules().iter().map(|rule| RuleState::new(rule, rules.memory())).collect();
        let seeded = |[a, b, c, d]: [u64; 4]| ahash::RandomState::with_seeds(a, b, c, d);
        Engine {
            rules,
            states,
            hasher: seeded(config.table_seed),
            ids: seeded(config.id_seed()),
            config,
            denied: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
        }
    }

    /// Its rules.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Decides a request: all matching rules are checked, then all are charged, atomically over
    /// whatever is decided at the same time.
    ///
    /// Settle what [`Decision::charges`] holds once the outcome is known. `now` may be a little older
    /// than that of another thread's call, as clocks that are read at the same time are: it then
    /// counts as the newer. It must not step back by more than a window.
    #[must_use = "it says whether the request passes, and holds what must be settled"]
    pub fn decide(&self, facts: &Facts<'_>, now: Time) -> Decision {
        let mut decision = Decision::default();
        let mode = self.rules.mode();
        let matched = self.rules.matching(facts);
        if mode != Mode::Off && !matched.is_exempt() {
            match self.client_standing(facts, now) {
                ClientStanding::Unlisted => self.judge(matched.rules(), facts, now, &mut decision),
                ClientStanding::Allowed => {}
                ClientStanding::AllowedPast(rules) => {
                    let past = |index: &usize| rules[index / 64] >> (index % 64) & 1 == 0;
                    self.judge(matched.rules().filter(past), facts, now, &mut decision);
                }
                ClientStanding::Denied => {
                    count(&self.denied);
                    match mode {
                        Mode::Enforce => decision.refusal = Some(self.denial()),
                        _ => self.judge(matched.rules(), facts, now, &mut decision),
                    }
                }
            }
        }
        decision
    }

    /// Lets the matching rules speak: all are checked, then all are charged.
    fn judge(
        &self,
        matched: impl Iterator<Item = usize>,
        facts: &Facts<'_>,
        now: Time,
        decision: &mut Decision,
    ) {
        let mut probes = Probes::new();
        for index in matched {
            if let Some(probe) = self.probe(index, facts, now) {
                probes.push(probe);
            }
        }
        if facts.is_preflight() {
            probes.iter_mut().for_each(|probe| probe.check_block(now));
        } else {
            self.check_and_charge(&mut probes, facts, now, &mut decision.charges);
        }
        self.conclude(&probes, now, decision);
    }

    fn client_standing(&self, facts: &Facts<'_>, now: Time) -> ClientStanding {
        match facts.client {
            Some(client) if !self.rules.lists().is_empty() => {
                let unix_nanos = self.config.origin_unix_nanos + i128::from(now.as_nanos());
                self.rules.lists().standing(client, unix_nanos)
            }
            _ => ClientStanding::Unlisted,
        }
    }

    fn probe<'a>(&'a self, index: usize, facts: &Facts<'_>, now: Time) -> Option<Probe<'a>> {
        let mode = self.rules.mode();
        let (rule, state) = (&self.rules.rules()[index], &self.states[index]);
        if rule.mode == Mode::Off && rule.overrides.is_empty() {
            return None;
        }
        let mut hasher = self.hasher.build_hasher();
        match rule.hash_key(facts, &mut hasher) {
            Ok(()) => Probe::new(index, rule, state, facts, hasher.finish(), mode, now),
            Err(_) if rule.mode == Mode::Off => None,
            Err(missing) if rule.missing_key == MissingKey::Reject && !facts.is_preflight() => {
                Some(Probe::rejects(index, rule, state, mode, missing, now))
            }
            Err(_) => {
                count(&state.counters.stripe(0).unkeyed);
                None
            }
        }
    }

    /// Locks the counts of all matched keys, in the order of the rules; checks all; charges all.
    fn check_and_charge(
        &self,
        probes: &mut Probes<'_>,
        facts: &Facts<'_>,
        now: Time,
        charges: &mut Charges,
    ) {
        let (mut refused, mut pending) = (false, false);
        for probe in probes.iter_mut() {
            probe.check(now);
            if let (Some(refuses), true) = (probe.refuses, probe.enforced) {
                refused |= refuses.cause != Cause::Pending;
                pending |= refuses.cause == Cause::Pending;
            }
        }
        for probe in probes {
            // A request refused only for what is still pending is charged to nothing. To a rule that
            // observes its own word is as real as if it were in force.
            let own = probe.refuses.map(|refuses| refuses.cause == Cause::Pending);
            if (pending || own == Some(true)) && !(refused || own == Some(false)) {
                probe.unlock();
            } else if let Some(charge) =
                probe.charge(facts, refused, now, &self.config.privacy_secret)
            {
                charges.0.push(charge);
            }
        }
    }

    fn conclude(&self, probes: &Probes<'_>, now: Time, decision: &mut Decision) {
        let mut answers: Option<(&Probe<'_>, Refuses)> = None;
        for probe in probes {
            let counters = probe.counters();
            if let Some(refuses) = probe.refuses {
                count(if probe.enforced { &counters.refused } else { &counters.would_refuse });
                // The longest wait answers; of equal ones the rule that is first by name.
                let outlasts = answers.is_none_or(|(other, longest)| {
                    (refuses.until, &other.rule.name) > (longest.until, &probe.rule.name)
                });
                if probe.enforced && outlasts {
                    answers = Some((probe, refuses));
                }
            }
            // After what it refused, and read before it: nobody sees more admitted than there were.
            count(if probe.is_keyed() { &counters.matched } else { &counters.unkeyed });
            if probe.is_hot() || probe.refuses.is_some() {
                decision.findings.push(Finding {
                    rule: Arc::clone(&probe.rule.name),
                    index: probe.index,
                    hot: probe.is_hot(),
                    refuses: probe.refuses.map(|refuses| refuses.cause),
                    enforced: probe.enforced,
                });
            }
        }
        if let Some((probe, refuses)) = answers {
            decision.refusal = Some(self.refusal(probe, refuses, now));
        }
    }

    fn refusal(&self, probe: &Probe<'_>, refuses: Refuses, now: Time) -> Refusal {
        let rule = probe.rule;
        let blocks = matches!(refuses.cause, Cause::Blocked | Cause::Always);
        let (status, disclose) = match (refuses.cause, &rule.action) {
            (Cause::MissingKey { by_client: true }, _) => (StatusCode::BAD_REQUEST, Disclose::None),
            (Cause::MissingKey { by_client: false }, _) => {
                (StatusCode::INTERNAL_SERVER_ERROR, Disclose::None)
            }
            (_, Action::Block(terms)) if blocks => (terms.status, rule.disclose),
            // A throttle's key that an operator blocked is answered as a block is.
            (Cause::Blocked, _) => (StatusCode::FORBIDDEN, Disclose::None),
            _ => (StatusCode::TOO_MANY_REQUESTS, rule.disclose),
        };
        Refusal {
            id: self.next_id(),
            rule: Some(Arc::clone(&rule.name)),
            cause: refuses.cause,
            action: rule.action.name(),
            status,
            wait: refuses.until.since(now),
            quota: probe.quota(),
            disclose,
        }
    }

    fn denial(&self) -> Refusal {
        Refusal {
            id: self.next_id(),
            rule: None,
            cause: Cause::Denied,
            action: "deny",
            status: StatusCode::FORBIDDEN,
            wait: Duration::ZERO,
            quota: None,
            disclose: Disclose::None,
        }
    }

    fn next_id(&self) -> DecisionId {
        let number = self.refusals.fetch_add(1, Relaxed);
        let half = |half: u8| u128::from(self.ids.hash_one((number, half)));
        DecisionId(half(0) << 64 | half(1))
    }

    /// Takes the outcome of an admitted request.
    pub fn settle(&self, charges: Charges, outcome: Outcome, now: Time) {
        for charge in charges.0 {
            let index = usize::from(charge.rule);
            let state = self.states.get(index);
            if let Some((state, counting)) =
                state.and_then(|state| Some((state, state.counting.as_ref()?)))
            {
                let rule = &self.rules.rules()[index];
                let stripe = state.counters.stripe(charge.hash);
                counting.settle(rule, &charge, outcome, now, &self.config.privacy_secret, stripe);
            }
        }
    }

    /// The verdicts that began, went on or ended since the last call, rule by rule.
    ///
    /// Call it every 100 ms or so: what is decided does not depend on it, only what is said.
    pub fn tick(&self, now: Time) -> Vec<Event> {
        let countings = self.states.iter().filter_map(|state| state.counting.as_ref());
        countings.flat_map(|counting| counting.verdicts.tick(now)).collect()
    }

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
        let subject = self.read_key(rule, counting, key)?;
        let mut row = counting.table.lock(subject.hash, now);
        if !counting.verdicts.block_by_hand(subject, lasts, now) {
            return Err(VerdictError::Full(self.rules.memory().verdicts.get()));
        }
        row.clear();
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
        let hash = self.read_key(rule, counting, key)?.hash;
        let mut row = counting.table.lock(hash, now);
        row.clear();
        Ok(counting.verdicts.lift(hash, now))
    }

    fn counting(&self, name: &str) -> Result<(&Rule, &Counting), VerdictError> {
        let index = self.rules.rules().iter().position(|rule| *rule.name == *name);
        let index = index.ok_or_else(|| VerdictError::UnknownRule(name.to_owned()))?;
        let counting = self.states[index].counting.as_ref();
        Ok((
            &self.rules.rules()[index],
            counting.ok_or_else(|| VerdictError::Always(name.to_owned()))?,
        ))
    }

    fn read_key(
        &self,
        rule: &Rule,
        counting: &Counting,
        text: &str,
    ) -> Result<Subject, VerdictError> {
        let (hash, key, terms) = match rule.key.read(text) {
            Ok(key) => {
                let shown = key.text(&rule.show(&self.config.privacy_secret));
                (self.hasher.hash_one(&key), shown.into(), rule.override_by_key(&key))
            }
            // What is printed as a hash can be named while its verdict stands.
            Err(error) => (counting.verdicts.find(text).ok_or(error)?, text.into(), None),
        };
        let mode = rule.mode_under(self.rules.mode(), terms.map(|(_, terms)| terms));
        Ok(Subject { hash, key, observed: mode != Mode::Enforce })
    }

    /// What each rule did, in the order of the rule set.
    #[must_use]
    pub fn counts(&self) -> Vec<RuleCounts> {
        let counts = |state: &RuleState| {
            let total = state.counters.total();
            state.counting.as_ref().map_or(total, |counting| counting.verdicts.add_to(total))
        };
        self.states.iter().map(counts).collect()
    }

    /// Requests that `[[deny]]` refused, or would have in `mode = "observe"`.
    #[must_use]
    pub fn denied(&self) -> u64 {
        self.denied.load(Relaxed)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn engine() -> Engine {
        let config =
            Config { table_seed: [91, 92, 93, 94], privacy_secret: [95; 16], origin_unix_nanos: 5 };
        Engine::new("app = \"test\"".parse().expect("rules"), config)
    }

    #[test]
    fn what_is_published_of_a_decision_says_nothing_of_the_tables_hash() {
        let engine = engine();
        let (first, second) = (engine.next_id(), engine.next_id());
        assert_ne!(first, second);
        let table = [0u64, 1].map(|number| engine.hasher.hash_one((number, 0u8)));
        assert!(!table.contains(&u64::try_from(first.0 >> 64).expect("half of it")));
    }

    #[test]
    fn an_engine_shows_neither_its_seed_nor_its_secret() {
        let shown = format!("{:?}", engine());
        let shows = |number: u8| shown.contains(&number.to_string());
        assert!(![91, 92, 93, 94, 95].into_iter().any(shows), "{shown}");
    }
}
