//! One rule's state: its counting table, its verdicts, and what comes of the responses it counts.

use std::{sync::Arc, sync::atomic::Ordering::Relaxed, time::Duration};

use hotgate_rules::{Action, Count, Memory, Rule, StatusClass, Trigger};

use crate::{
    Outcome, Time,
    counters::{Counters, Stripe},
    decision::Charge,
    table::{Room, Row, Table},
    verdict::{Demand, Standing, Subject, Verdicts},
    window::{Limit, Ticks},
};

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
    pub(crate) limit: Limit,
    /// The limits of the rule's overrides, in their order.
    pub(crate) override_limits: Vec<Option<Limit>>,
    pub(crate) tally: Tally,
}

/// Which of a key's three counts is compared with N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tally {
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
                let tally = match (&rule.count, &rule.action) {
                    (Count::Responses { .. }, _) => Tally::Responses,
                    (Count::Requests, Action::Throttle(None)) => Tally::Admitted,
                    (Count::Requests, _) => Tally::Attempts,
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
        if standing.is_some() || row.full_until(now).is_none() || !self.verdicts.has_room() {
            return;
        }
        let key: Arc<str> = charge.key.text(&rule.show(secret)).into();
        let subject = Subject { hash: charge.hash, key, observed: charge.observed };
        match &rule.action {
            Action::Throttle(_) => {
                self.throttle(&row, charge.limit, subject, now);
            }
            Action::Block(terms) => {
                if self.verdicts.block(subject, terms, now).is_some() {
                    row.clear();
                }
            }
            _ => {}
        }
    }

    /// Begins a throttle, which goes on from what the window holds.
    pub(crate) fn throttle(
        &self,
        row: &Row<'_>,
        limit: Limit,
        subject: Subject,
        now: Time,
    ) -> bool {
        let cooling = limit.cooling();
        let (state, ring) = row.copy(limit, cooling);
        row.mark_hot();
        self.verdicts.throttle(subject, Demand { limit: cooling, state, ring }, now)
    }

    pub(crate) fn make_room<T>(
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
