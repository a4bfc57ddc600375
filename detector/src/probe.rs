//! What one rule says of one request.

use std::time::Duration;

use hotgate_rules::{Action, Count, Facts, MissingPart, Mode, Override, Rule};

use crate::{
    Cause, Time,
    counters::Stripe,
    counting::{Counting, RuleState, Tally},
    decision::Charge,
    table::Row,
    verdict::{Standing, Subject},
    window::Limit,
};

/// The wait that is told where nothing in particular has to pass: `always` and `pending`.
const WAIT_SHORT: Duration = Duration::from_secs(1);

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
        file_mode: Mode,
        now: Time,
    ) -> Option<Self> {
        let mut limit = state.counting.as_ref().map_or(Limit::ONE, |counting| counting.limit);
        let terms = overriding(rule, facts);
        if let Some((at, terms)) = terms {
            if terms.exempt {
                return None;
            }
            if let Some(counting) = &state.counting {
                limit = counting.override_limits[at].unwrap_or(limit);
            }
        }
        let always = Refuses { cause: Cause::Always, until: now.plus(WAIT_SHORT) };
        let mode = rule.mode_under(file_mode, terms.map(|(_, terms)| terms));
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
        file_mode: Mode,
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
            enforced: rule.mode_under(file_mode, None) == Mode::Enforce,
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

    /// Whether a block stands, for requests that are not charged; nothing else refuses them.
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
            let cause = if matches!(self.rule.action, Action::Throttle(_)) {
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
        let attempt = |standing| counting.verdicts.attempt(self.hash, standing, now);
        let until = self.standing.and_then(attempt);
        if let Some(Standing::Blocked(end)) = self.standing {
            let until = until.unwrap_or(end);
            self.refuses = Some(Refuses { cause: Cause::Blocked, until });
            return None;
        }
        match (counting.tally, self.refuses) {
            (Tally::Attempts, Some(_)) => self.block(counting, &mut row, facts, now, secret),
            (Tally::Attempts, None) => self.push(counting, &mut row, now),
            (Tally::Admitted, Some(_))
                if self.standing.is_none() && counting.verdicts.has_room() =>
            {
                let begun = counting.throttle(&row, self.limit, self.subject(facts, secret), now);
                self.standing = begun.then_some(Standing::Hot);
                counting.verdicts.attempt(self.hash, Standing::Hot, now);
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
    fn block(
        &mut self,
        counting: &Counting,
        row: &mut Row<'_>,
        facts: &Facts<'_>,
        now: Time,
        secret: &[u8; 16],
    ) {
        let Action::Block(terms) = &self.rule.action else { return };
        let has_room = counting.verdicts.has_room();
        let begin = || counting.verdicts.block(self.subject(facts, secret), terms, now);
        match has_room.then(begin).flatten() {
            Some(lasts) => {
                row.clear();
                let until = now.plus(lasts);
                self.standing = Some(Standing::Blocked(until));
                self.refuses = Some(Refuses { cause: Cause::Blocked, until });
            }
            None => {
                self.push(counting, row, now);
                if let Some(until) = row.full_until(now) {
                    self.refuses = Some(Refuses { cause: Cause::Blocked, until });
                }
            }
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
    rule.override_for(facts, &rule.key(facts).ok()?)
}
