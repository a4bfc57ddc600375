//! One rule at work: its counting table, its verdicts, and what it says of one request.

use std::{sync::Arc, sync::atomic::Ordering::Relaxed, time::Duration};

use hotgate_rules::{
    Action, Count, Facts, Memory, MissingPart, Mode, Override, Rule, StatusClass, Trigger,
};

use crate::{
    Cause, Outcome, Time,
    counters::{Counters, Stripe},
    decision::Charge,
    table::{Room, Row, Table},
    verdict::{Demand, Standing, Subject, Verdicts},
    window::{Limit, Ticks},
};

/// The wait that is told where nothing in particular has to pass: `always` and `pending`.
const WAIT_SHORT: Duration = Duration::from_secs(1);

/// One rule's state, which outlives the text it was made from.
#[derive(Debug)]
pub(crate) struct RuleState {
    /// `None` for a rule with `always`, which counts nothing.
    pub(crate) counting: Option<Counting>,
    pub(crate) counters: Counters,
}

#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) table: Table,
    pub(crate) verdicts: Verdicts,
    pub(crate) window: Duration,
    limit: Limit,
    /// The limits of the rule's overrides, in their order.
    override_limits: Vec<Option<Limit>>,
    tally: Tally,
}

/// Which of a key's three counts is compared with N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tally {
    Attempts,
    Admitted,
    Responses,
}

impl RuleState {
    pub(crate) fn new(rule: &Rule, memory: Memory) -> Self {
        let counting = match rule.trigger {
            Trigger::Always => None,
            Trigger::Over(rate) => {
                let ticks = Ticks::new(rate.window);
                let limit = Limit::new(rate.limit);
                let override_limits: Vec<_> =
                    rule.overrides.iter().map(|terms| terms.limit.map(Limit::new)).collect();
                let limits: Vec<_> = std::iter::once(limit)
                    .chain(override_limits.iter().copied().flatten())
                    .collect();
                let tally = match (&rule.count, rule.action) {
                    (Count::Responses { .. }, _) => Tally::Responses,
                    (Count::Requests, Action::Throttle) => Tally::Admitted,
                    (Count::Requests, Action::Block(_)) => Tally::Attempts,
                };
                let keys =
                    if rule.key.is_empty() { std::num::NonZeroU32::MIN } else { memory.keys };
                Some(Counting {
                    table: Table::new(keys, ticks, &limits, tally == Tally::Responses),
                    verdicts: Verdicts::new(rule, ticks, rate.window, memory.verdicts.get()),
                    window: rate.window,
                    limit,
                    override_limits,
                    tally,
                })
            }
        };
        RuleState { counting, counters: Counters::default() }
    }
}

/// One rule that a request matches: the key it has, what the rule says, and the lock on its count.
#[derive(Debug)]
pub(crate) struct Probe<'a> {
    pub(crate) index: usize,
    pub(crate) rule: &'a Rule,
    state: &'a RuleState,
    hash: u64,
    limit: Limit,
    pub(crate) enforced: bool,
    row: Option<Row<'a>>,
    standing: Option<Standing>,
    pub(crate) refuses: Option<Refuses>,
}

/// That a rule refuses, why, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refuses {
    pub(crate) cause: Cause,
    pub(crate) until: Time,
}

impl<'a> Probe<'a> {
    /// The rule's word before anything is locked; `None` where its terms for this key set it aside.
    pub(crate) fn new(
        index: usize,
        rule: &'a Rule,
        state: &'a RuleState,
        facts: &Facts<'_>,
        hash: u64,
        mode: Mode,
        now: Time,
    ) -> Option<Self> {
        let mut own_mode = rule.mode;
        let mut limit = state.counting.as_ref().map_or(Limit::ONE, |counting| counting.limit);
        if let Some((at, terms)) = overriding(rule, facts) {
            if terms.exempt {
                return None;
            }
            own_mode = terms.mode.unwrap_or(own_mode);
            if let Some(counting) = &state.counting {
                limit = counting.override_limits[at].unwrap_or(limit);
            }
        }
        let always = Refuses { cause: Cause::Always, until: now.plus(WAIT_SHORT) };
        let mode = mode.min(own_mode);
        (mode != Mode::Off).then(|| Probe {
            index,
            rule,
            state,
            hash,
            limit,
            enforced: mode == Mode::Enforce,
            row: None,
            standing: None,
            refuses: state.counting.is_none().then_some(always),
        })
    }

    /// A rule that refuses a request for lack of a key.
    pub(crate) fn rejects(
        index: usize,
        rule: &'a Rule,
        state: &'a RuleState,
        mode: Mode,
        missing: MissingPart,
        now: Time,
    ) -> Self {
        let cause = Cause::MissingKey { by_client: missing.by_client };
        Probe {
            index,
            rule,
            state,
            hash: 0,
            limit: Limit::ONE,
            enforced: mode.min(rule.mode) == Mode::Enforce,
            row: None,
            standing: None,
            refuses: Some(Refuses { cause, until: now }),
        }
    }

    pub(crate) fn counters(&self) -> &'a Stripe {
        self.state.counters.stripe(self.hash)
    }

    /// Whether the request has the rule's key.
    pub(crate) fn is_keyed(&self) -> bool {
        !matches!(self.refuses, Some(Refuses { cause: Cause::MissingKey { .. }, .. }))
    }

    pub(crate) fn is_hot(&self) -> bool {
        self.standing.is_some()
    }

    pub(crate) fn quota(&self) -> Option<(u32, Duration)> {
        self.state.counting.as_ref().map(|counting| (self.limit.n, counting.window))
    }

    /// Gives back the lock, nothing charged.
    pub(crate) fn unlock(&mut self) {
        self.row = None;
    }

    /// Whether a block stands, for requests that are not charged.
    pub(crate) fn check_block(&mut self, now: Time) {
        self.refuses = None;
        let Some(counting) = &self.state.counting else { return };
        if let Some(Standing::Blocked(until)) = counting.verdicts.standing(self.hash, now) {
            self.standing = Some(Standing::Blocked(until));
            self.refuses = Some(Refuses { cause: Cause::Blocked, until });
        }
    }

    /// Locks the key's count and checks it.
    pub(crate) fn check(&mut self, now: Time) {
        let (Some(counting), None) = (&self.state.counting, self.refuses) else { return };
        let row = counting.table.lock(self.hash, now);
        self.standing = counting.verdicts.standing(self.hash, now);
        self.refuses = if let Some(Standing::Blocked(until)) = self.standing {
            Some(Refuses { cause: Cause::Blocked, until })
        } else if let Some(until) = row.full_until(now) {
            let cause = if matches!(self.rule.action, Action::Throttle) {
                Cause::Quota
            } else {
                Cause::Blocked
            };
            Some(Refuses { cause, until })
        } else if counting.tally == Tally::Responses && row.pending() >= self.pending_max() {
            Some(Refuses { cause: Cause::Pending, until: now.plus(WAIT_SHORT) })
        } else {
            None
        };
        self.row = Some(row);
    }

    fn pending_max(&self) -> u32 {
        match self.rule.count {
            Count::Responses { pending: Some(pending), .. } => pending.get(),
            _ => self.limit.n,
        }
    }

    /// Charges the request, which some enforcing rule `refused` or none did. What must be settled.
    pub(crate) fn charge(
        &mut self,
        facts: &Facts<'_>,
        refused: bool,
        now: Time,
        secret: &[u8; 16],
    ) -> Option<Charge> {
        let (Some(counting), Some(mut row)) = (&self.state.counting, self.row.take()) else {
            return None;
        };
        if self.standing.is_some() {
            counting.verdicts.attempt(self.hash, now);
        }
        if let Some(Standing::Blocked(_)) = self.standing {
            return None;
        }
        match (counting.tally, self.refuses) {
            (Tally::Attempts, Some(_)) => {
                self.block(counting, &mut row, self.subject(facts, secret), now)
            }
            (Tally::Attempts, None) => self.push(counting, &mut row, now),
            (Tally::Admitted, Some(_)) if self.standing.is_none() => {
                let begun = counting.throttle(&row, self.limit, self.subject(facts, secret), now);
                self.standing = begun.then_some(Standing::Hot);
                counting.verdicts.attempt(self.hash, now);
            }
            (Tally::Admitted, None) if !refused => self.push(counting, &mut row, now),
            (Tally::Responses, None) if !refused => {
                return self.hold(counting, &mut row, facts, now);
            }
            _ => {}
        }
        None
    }

    fn push(&self, counting: &Counting, row: &mut Row<'_>, now: Time) {
        counting.make_room(now, self.counters(), |room| row.push(self.limit, now, room));
    }

    /// The N+1st attempt: a block begins, or, where it cannot be stored, the window goes on to refuse.
    fn block(&mut self, counting: &Counting, row: &mut Row<'_>, subject: Subject, now: Time) {
        let Action::Block(terms) = &self.rule.action else { return };
        match counting.verdicts.block(subject, terms, now) {
            Some(lasts) => {
                row.clear();
                let until = now.plus(lasts);
                self.standing = Some(Standing::Blocked(until));
                self.refuses = Some(Refuses { cause: Cause::Blocked, until });
            }
            None => self.push(counting, row, now),
        }
    }

    fn hold(
        &self,
        counting: &Counting,
        row: &mut Row<'_>,
        facts: &Facts<'_>,
        now: Time,
    ) -> Option<Charge> {
        let key = self.rule.key(facts).ok()?.into_owned();
        let generation = counting.make_room(now, self.counters(), |room| row.hold(now, room))?;
        Some(Charge {
            rule: u16::try_from(self.index).ok()?,
            generation,
            hash: self.hash,
            limit: self.limit,
            observed: !self.enforced,
            key,
        })
    }

    /// Whom a verdict that begins now is about: the only time that a request's key is printed.
    fn subject(&self, facts: &Facts<'_>, secret: &[u8; 16]) -> Subject {
        let text = self.rule.key(facts).map(|key| key.text(&self.rule.show(secret)));
        let key = text.unwrap_or_default().into();
        Subject { hash: self.hash, key, observed: !self.enforced }
    }
}

/// The rule's terms for the request's key, where it has any of its own.
fn overriding<'r>(rule: &'r Rule, facts: &Facts<'_>) -> Option<(usize, &'r Override)> {
    if rule.overrides.is_empty() {
        return None;
    }
    let key = rule.key(facts).ok()?;
    rule.overrides.iter().enumerate().find(|(_, terms)| terms.covers(&key))
}

impl Counting {
    /// Takes the outcome of a request that was held pending.
    pub(crate) fn settle(
        &self,
        rule: &Rule,
        charge: &Charge,
        outcome: Outcome,
        now: Time,
        secret: &[u8; 16],
        counters: &Stripe,
    ) {
        let mut row = self.table.lock(charge.hash, now);
        let current = row.release(charge.generation);
        let standing = self.verdicts.standing(charge.hash, now);
        if !current
            || !counts(&rule.count, outcome)
            || matches!(standing, Some(Standing::Blocked(_)))
        {
            return;
        }
        self.make_room(now, counters, |room| row.push(charge.limit, now, room));
        if standing.is_some() || row.full_until(now).is_none() {
            return;
        }
        let key: Arc<str> = charge.key.text(&rule.show(secret)).into();
        let subject = Subject { hash: charge.hash, key, observed: charge.observed };
        match &rule.action {
            Action::Throttle => {
                self.throttle(&row, charge.limit, subject, now);
            }
            Action::Block(terms) => {
                if self.verdicts.block(subject, terms, now).is_some() {
                    row.clear();
                }
            }
        }
    }

    /// Begins a throttle, which goes on from what the window holds.
    fn throttle(&self, row: &Row<'_>, limit: Limit, subject: Subject, now: Time) -> bool {
        let cooling = limit.cooling();
        let (state, ring) = row.copy(limit, cooling);
        row.mark_hot();
        self.verdicts.throttle(subject, Demand { limit: cooling, state, ring }, now)
    }

    fn make_room<T>(
        &self,
        now: Time,
        counters: &Stripe,
        act: impl FnOnce(&mut Room<'_>) -> T,
    ) -> T {
        let is_standing = |hash| self.verdicts.standing(hash, now).is_some();
        let mut room =
            Room { is_standing: &is_standing, evicted_live: 0, evicted_limited: 0, untracked: 0 };
        let acted = act(&mut room);
        if room.evicted_live + room.evicted_limited + room.untracked > 0 {
            counters.evicted_live.fetch_add(room.evicted_live, Relaxed);
            counters.evicted_limited.fetch_add(room.evicted_limited, Relaxed);
            counters.untracked.fetch_add(room.untracked, Relaxed);
        }
        acted
    }
}

fn counts(count: &Count, outcome: Outcome) -> bool {
    let Count::Responses { statuses, .. } = count else { return false };
    statuses.iter().any(|class| match (class, outcome) {
        (StatusClass::Code(code), Outcome::Status(status)) => *code == status,
        (StatusClass::Hundred(digit), Outcome::Status(status)) => status.as_u16() / 100 == *digit,
        (StatusClass::Cancelled, Outcome::Cancelled) | (StatusClass::Error, Outcome::Error) => true,
        _ => false,
    })
}
