//! The engine: all matching rules are checked, then all are charged.

mod succession;

use std::{
    hash::{BuildHasher, Hasher},
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hotgate_rules::{
    Action, Disclose, Facts, MissingKey, Mode, RuleSet, Standing as ClientStanding,
};
use http::StatusCode;
use smallvec::SmallVec;

use crate::{
    Cause, Charges, Config, Decision, Door, Event, Finding, Outcome, Refusal, RuleCounts, Time,
    counters::{count, count_up_to},
    counting::{Counting, RuleState},
    decision::Charge,
    door::{Doors, Number, RuleBits, number_of, positions},
    id::{IdSecret, Numbers, Refused, Trace},
    probe::{Probe, Refuses},
    table::Calm,
};

/// Decides requests by one rule set.
///
/// Rules change by another engine that goes on from this one: see [`Engine::succeed`].
#[derive(Debug)]
pub struct Engine {
    pub(crate) rules: RuleSet,
    pub(crate) states: Vec<RuleState>,
    pub(crate) hasher: ahash::RandomState,
    pub(crate) config: Config,
    /// Which engine of its line this is.
    number: u64,
    /// The next unused [`RuleState::lineage`].
    lineages: u64,
    /// How many [`RuleState::mark`]s were given so far.
    marks: u64,
    doors: Doors,
    id_secret: IdSecret,
    totals: Arc<Totals>,
    /// What engines before this one had still to say.
    inherited: Mutex<Vec<Event>>,
}

/// Counted through all rule sets.
#[derive(Debug, Default)]
struct Totals {
    denied: AtomicU64,
    refusals: Numbers,
}

/// What a request is decided by, beside the rules.
pub(crate) struct Deciding<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) now: Time,
    pub(crate) engine: u64,
    pub(crate) secret: &'a [u8; 16],
}

/// Rules that a request seldom matches more of; beyond it a decision allocates.
const PROBES_INLINE: usize = 3;

/// Rules that are decided the short way at once.
const CALM_MAX: usize = 4;

type Probes<'a> = SmallVec<[Probe<'a>; PROBES_INLINE]>;

impl Engine {
    /// An engine that has counted nothing yet.
    #[must_use]
    pub fn new(rules: RuleSet, config: Config) -> Self {
        let count = rules.rules().len();
        let origin = config.origin_unix_nanos;
        let state = |at: usize| {
            let mark = u16::try_from(at).unwrap_or(0);
            RuleState::new(&rules, at, None, (at as u64, mark, Arc::default()), origin)
        };
        let states: Vec<_> = (0..count).map(state).collect();
        let [a, b, c, d] = config.table_seed;
        Engine {
            number: 0,
            lineages: count as u64,
            marks: count as u64,
            doors: Doors::of(&rules),
            rules,
            states,
            hasher: ahash::RandomState::with_seeds(a, b, c, d),
            id_secret: config.id_secret(),
            config,
            totals: Arc::default(),
            inherited: Mutex::default(),
        }
    }

    /// Its rules.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.rules.rules().iter().position(|rule| *rule.name == *name)
    }

    /// Decides a request by all rules, as [`decide_at`](Self::decide_at) does at the only door.
    #[must_use = "it says whether the request passes, and holds what must be settled"]
    pub fn decide(&self, facts: &Facts<'_>, now: Time) -> Decision {
        self.decide_at(Door::Only, facts, now)
    }

    /// Decides a request by the rules of a door: all that match are checked, then all are charged,
    /// atomically over whatever is decided at the same time.
    ///
    /// Settle what [`Decision::charges`] holds once the outcome is known. `now` may be a little older
    /// than that of another thread's call, as clocks that are read at the same time are: it then
    /// counts as the newer. It must not step back by more than a window.
    #[must_use = "it says whether the request passes, and holds what must be settled"]
    pub fn decide_at(&self, door: Door, facts: &Facts<'_>, now: Time) -> Decision {
        let mode = self.rules.mode();
        if mode == Mode::Off {
            return Decision::default();
        }
        let matched = self.rules.matching(facts);
        if matched.is_exempt() {
            return Decision::default();
        }
        let mut bits = self.doors.at(door, matched.bits());
        match self.client_standing(facts, now) {
            ClientStanding::Unlisted => {}
            ClientStanding::Allowed => return Decision::default(),
            ClientStanding::AllowedPast(rules) => {
                bits.iter_mut().zip(rules).for_each(|(word, rules)| *word &= !rules);
            }
            // At the inner door it has been said already.
            ClientStanding::Denied if door != Door::Inner => {
                count(&self.totals.denied);
                if mode == Mode::Enforce {
                    return Decision { refusal: Some(self.denial(now)), ..Decision::default() };
                }
            }
            ClientStanding::Denied => {}
        }
        if self.pass_calmly(bits, facts, now) {
            if door == Door::Outer {
                self.send_on(matched.bits());
            }
            return Decision::default();
        }
        let decision = self.judge(bits, facts, now);
        if door == Door::Outer && decision.refusal.is_none() {
            self.send_on(matched.bits());
        }
        decision
    }

    /// Counts for the rules of the inner door a request that goes on from the outer one.
    fn send_on(&self, matched: RuleBits) {
        for index in positions(self.doors.at(Door::Inner, matched)) {
            let counter = &self.states[index].counters.stripe(0).sent_on;
            count_up_to(RuleCounts::SENT_ON_MAX, counter);
        }
    }

    /// The short way: where every matching rule is plain, and every key has its place, is under no
    /// verdict and below its limit, all are charged and there is nothing to say. Otherwise nothing is
    /// done: false.
    #[inline]
    fn pass_calmly(&self, bits: RuleBits, facts: &Facts<'_>, now: Time) -> bool {
        if facts.method == Some(&http::Method::OPTIONS) {
            return false;
        }
        match number_of(bits) {
            Number::None => true,
            Number::One(index) => self.pass_one_calmly(index, facts, now),
            Number::More => self.pass_all_calmly(bits, facts, now),
        }
    }

    #[inline]
    fn pass_one_calmly(&self, index: usize, facts: &Facts<'_>, now: Time) -> bool {
        let Some(hash) = self.plain_hash(index, facts) else { return false };
        let state = &self.states[index];
        let Some(counting) = &state.counting else { return false };
        let counted = counting.table.count_calm(hash, counting.limit, now);
        if counted {
            count(&state.counters.stripe(hash).matched);
        }
        counted
    }

    fn pass_all_calmly(&self, bits: RuleBits, facts: &Facts<'_>, now: Time) -> bool {
        // Keys first: they may ask functions of the service, which must not run under a lock.
        let mut hashed: SmallVec<[(usize, u64); CALM_MAX]> = SmallVec::new();
        for index in positions(bits) {
            match self.plain_hash(index, facts) {
                Some(hash) if hashed.len() < CALM_MAX => hashed.push((index, hash)),
                _ => return false,
            }
        }
        let mut calm: SmallVec<[Calm<'_>; CALM_MAX]> = SmallVec::new();
        for (index, hash) in &hashed {
            let counting = self.states[*index].counting.as_ref();
            match counting.and_then(|counting| counting.table.calm(*hash, counting.limit, now)) {
                Some(key) => calm.push(key),
                None => return false,
            }
        }
        for (key, (index, _)) in calm.iter().zip(&hashed) {
            if let Some(counting) = &self.states[*index].counting {
                key.push(counting.limit, now);
            }
        }
        drop(calm);
        for (index, hash) in hashed {
            count(&self.states[index].counters.stripe(hash).matched);
        }
        true
    }

    /// The hash of a request's key under a plain rule.
    #[inline]
    fn plain_hash(&self, index: usize, facts: &Facts<'_>) -> Option<u64> {
        let state = &self.states[index];
        if !state.is_plain {
            return None;
        }
        let mut hasher = self.hasher.build_hasher();
        match (state.client_prefix, facts.client) {
            // The commonest key, without the way through the rule.
            (Some(prefix), Some(IpAddr::V4(client))) => prefix.hash(client, &mut hasher),
            _ => self.rules.rules()[index].hash_key(facts, &mut hasher).ok()?,
        }
        Some(hasher.finish())
    }

    /// Lets the matching rules speak: all are checked, then all are charged.
    #[inline(never)]
    fn judge(&self, bits: RuleBits, facts: &Facts<'_>, now: Time) -> Decision {
        let mut decision = Decision::default();
        let mut probes = Probes::new();
        for index in positions(bits) {
            if let Some(probe) = self.probe(index, facts, now) {
                probes.push(probe);
            }
        }
        if facts.is_preflight() {
            probes.iter_mut().for_each(|probe| probe.check_block(now));
        } else {
            self.check_and_charge(&mut probes, facts, now, &mut decision.charges);
        }
        self.conclude(probes, now, &mut decision);
        decision
    }

    #[inline]
    fn client_standing(&self, facts: &Facts<'_>, now: Time) -> ClientStanding {
        match facts.client {
            Some(client) if !self.rules.lists().is_empty() => {
                let unix_nanos = self.config.origin_unix_nanos + i128::from(now.as_nanos());
                self.rules.lists().standing(client, unix_nanos)
            }
            _ => ClientStanding::Unlisted,
        }
    }

    /// One rule's word, whether or not its `match` covers the request.
    fn probe<'a>(&'a self, index: usize, facts: &Facts<'_>, now: Time) -> Option<Probe<'a>> {
        let mode = self.rules.mode();
        let (rule, state) = (&self.rules.rules()[index], &self.states[index]);
        if !state.is_on(now) || !rule.holds(facts) {
            return None;
        }
        let mut hasher = self.hasher.build_hasher();
        let ruled = (index, rule, state);
        match rule.hash_key(facts, &mut hasher) {
            Ok(()) => Probe::new(ruled, facts, hasher.finish(), mode, now),
            Err(_) if rule.mode_under(mode, None) == Mode::Off => None,
            Err(missing) if rule.missing_key == MissingKey::Reject && !facts.is_preflight() => {
                Some(Probe::rejects(ruled, mode, missing, now))
            }
            Err(_) => {
                count(&state.counters.stripe(0).unkeyed);
                None
            }
        }
    }

    /// Decides by one rule alone, for a key that only a handler of the service knows: `facts` hold what
    /// it gives, and what the rule matches is not asked.
    ///
    /// # Errors
    ///
    /// When there is no such rule, it counts responses, of which there are none, or its key lacks a
    /// part.
    pub fn check(&self, rule: &str, facts: &Facts<'_>, now: Time) -> Result<Decision, CheckError> {
        let index = self.position(rule).ok_or(CheckError::UnknownRule)?;
        let rule = &self.rules.rules()[index];
        if matches!(rule.count, hotgate_rules::Count::Responses { .. }) {
            return Err(CheckError::CountsResponses);
        }
        let has_key = rule.missing_key == MissingKey::Share || rule.key(facts).is_ok();
        if !has_key {
            return Err(CheckError::Key(rule.key.to_string()));
        }
        let bits = self.doors.at(Door::Only, positions_of(index));
        if self.rules.mode() == Mode::Off || self.pass_calmly(bits, facts, now) {
            return Ok(Decision::default());
        }
        Ok(self.judge(bits, facts, now))
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
        let secret = &self.config.privacy_secret;
        let deciding = Deciding { facts, now, engine: self.number, secret };
        for probe in probes {
            // A request refused only for what is still pending is charged to nothing. To a rule that
            // observes its own word is as real as if it were in force.
            let own = probe.refuses.map(|refuses| refuses.cause == Cause::Pending);
            if (pending || own == Some(true)) && !(refused || own == Some(false)) {
                probe.unlock();
            } else if let Some(charge) = probe.charge(refused, &deciding) {
                charges.0.push(charge);
            }
        }
    }

    fn conclude(&self, mut probes: Probes<'_>, now: Time, decision: &mut Decision) {
        let mut answers: Option<(&Probe<'_>, Refuses)> = None;
        for probe in &mut probes {
            decision.quotas.extend(probe.quota_left.take());
        }
        for probe in &probes {
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
            if probe.is_hot() || probe.acts() || probe.refuses.is_some() {
                decision.findings.push(Finding {
                    rule: Arc::clone(&probe.rule.name),
                    index: probe.index,
                    terms: probe.terms,
                    hot: probe.is_hot(),
                    until: probe.until,
                    acts: probe.acts(),
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
        let (status, disclose) = match (refuses.cause, probe.action()) {
            (Cause::MissingKey { by_client: true }, _) => (StatusCode::BAD_REQUEST, Disclose::None),
            (Cause::MissingKey { by_client: false }, _) => {
                (StatusCode::INTERNAL_SERVER_ERROR, Disclose::None)
            }
            (_, Action::Block(terms)) if blocks => (terms.status, rule.disclose),
            // A throttle's key that an operator blocked is answered as a block is.
            (Cause::Blocked, _) => (StatusCode::FORBIDDEN, Disclose::None),
            _ => (StatusCode::TOO_MANY_REQUESTS, rule.disclose),
        };
        let (cause, at, hash) = (refuses.cause, now, probe.hash);
        Refusal {
            rule: Some(Arc::clone(&rule.name)),
            index: Some(probe.index),
            cause,
            action: rule.action.name(),
            status,
            wait: refuses.until.since(now),
            quota: probe.quota(),
            disclose,
            trace: self.trace(Refused {
                rule: Some(self.states[probe.index].mark),
                cause,
                at,
                hash,
            }),
        }
    }

    fn denial(&self, now: Time) -> Refusal {
        let refused = Refused { rule: None, cause: Cause::Denied, at: now, hash: 0 };
        Refusal {
            rule: None,
            index: None,
            cause: Cause::Denied,
            action: "deny",
            status: StatusCode::FORBIDDEN,
            wait: Duration::ZERO,
            quota: None,
            disclose: Disclose::None,
            trace: self.trace(refused),
        }
    }

    fn trace(&self, refused: Refused) -> Trace {
        let number = self.totals.refusals.next(refused.at);
        Trace { refused, number, secret: self.id_secret }
    }

    /// Where the rule stands that decision ids call so, if it still does.
    pub(crate) fn marked(&self, mark: u16) -> Option<usize> {
        self.states.iter().position(|state| state.mark == mark)
    }

    /// What a decision id of this process stands for.
    pub(crate) fn open(&self, id: crate::DecisionId, now: Time) -> Option<Refused> {
        let refused = id.open(self.id_secret, now)?;
        let is_ours = refused.rule.is_none_or(|mark| u64::from(mark) < self.marks);
        is_ours.then_some(refused)
    }

    /// Takes the outcome of an admitted request, whichever engine of this one's line admitted it.
    pub fn settle(&self, charges: Charges, outcome: Outcome, now: Time) {
        for charge in charges.0 {
            let hinted = usize::from(charge.rule);
            let is_its = |state: &RuleState| state.lineage == charge.lineage;
            let index = match self.states.get(hinted) {
                Some(state) if is_its(state) => Some(hinted),
                _ => self.states.iter().position(is_its),
            };
            let Some(index) = index else { continue };
            let (rule, state) = (&self.rules.rules()[index], &self.states[index]);
            let Some(counting) = &state.counting else { continue };
            // Its place among the overrides, and the mode then, mean nothing to another engine.
            let is_ours = charge.engine == self.number;
            let terms = match charge.terms {
                terms if is_ours => terms.map(usize::from),
                _ => rule.override_by_key(&charge.key).map(|(at, _)| at),
            };
            let overriding = terms.and_then(|at| rule.overrides.get(at));
            let mode = rule.mode_under(self.rules.mode(), overriding);
            let is_free = mode == Mode::Off || overriding.is_some_and(|terms| terms.exempt);
            let outcome = if is_free { Outcome::Answered } else { outcome };
            let observed = if is_ours { charge.observed } else { mode != Mode::Enforce };
            let charge = Charge { observed, ..charge };
            let stripe = state.counters.stripe(charge.hash);
            let secret = &self.config.privacy_secret;
            counting.settle(rule, terms, &charge, outcome, now, secret, stripe);
        }
    }

    /// The verdicts that began, went on or ended since the last call, rule by rule.
    ///
    /// Call it every 100 ms or so: what is decided does not depend on it, only what is said.
    pub fn tick(&self, now: Time) -> Vec<Event> {
        let mut events = self.take_inherited();
        let countings = self.states.iter().filter_map(|state| state.counting.as_ref());
        events.extend(countings.flat_map(|counting| counting.verdicts.tick(now)));
        events
    }

    fn take_inherited(&self) -> Vec<Event> {
        std::mem::take(&mut self.inherited.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What each rule did, in the order of the rule set. Totals go on from engine to engine, by the
    /// rule's name.
    #[must_use]
    pub fn counts(&self) -> Vec<RuleCounts> {
        let standing = |counting: &Counting| u64::from(counting.verdicts.len());
        let counts = |state: &RuleState| RuleCounts {
            standing_verdicts: state.counting.as_ref().map_or(0, standing),
            ..state.counters.total()
        };
        self.states.iter().map(counts).collect()
    }

    /// Requests that `[[deny]]` refused, or would have in `mode = "observe"`.
    #[must_use]
    pub fn denied(&self) -> u64 {
        self.totals.denied.load(Relaxed)
    }
}

fn positions_of(index: usize) -> RuleBits {
    let mut bits = RuleBits::default();
    bits[index / 64] |= 1 << (index % 64);
    bits
}

/// A key that a handler gives and that cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// No such rule.
    #[error("no rule has this name")]
    UnknownRule,
    /// The rule counts responses.
    #[error("the rule counts responses, and here is none")]
    CountsResponses,
    /// A part is missing.
    #[error("expected the parts {0}")]
    Key(String),
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
    fn an_engine_shows_neither_its_seed_nor_its_secret() {
        let shown = format!("{:?}", engine());
        let shows = |number: u8| shown.contains(&number.to_string());
        assert!(![91, 92, 93, 94, 95].into_iter().any(shows), "{shown}");
    }
}
