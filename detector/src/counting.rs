//! One rule's state: its counting table, its verdicts, and what comes of the responses it counts.

use std::{
    num::NonZeroU32,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use hotgate_rules::{
    Action, ClientPrefix, Count, Memory, Override, Period, Rule, RuleIdentity, RuleSet,
    StatusClass, Trigger,
};

use crate::{
    Event, Outcome, Time,
    counters::{Counters, Stripe},
    decision::Charge,
    table::{Room, Row, Table},
    verdict::{Demand, Standing, StandingVerdict, Subject, Verdicts},
    window::{Limit, Ticks},
};

/// One rule's state, which outlives the text it was made from.
#[derive(Debug)]
pub(crate) struct RuleState {
    /// Tells whose pending requests are whose: it stays the same while the counts do.
    pub(crate) lineage: u64,
    /// What decision ids call the rule; it belongs to the name.
    pub(crate) mark: u16,
    /// Totals; they belong to the name, too.
    pub(crate) counters: Arc<Counters>,
    identity: RuleIdentity,
    /// `None` for a rule with `always`, which counts nothing.
    pub(crate) counting: Option<Counting>,
    /// When the rule is on.
    pub(crate) from: Time,
    pub(crate) until: Time,
    /// Whether all that is to be known of a request is its key: see [`Table::calm`].
    pub(crate) is_plain: bool,
    /// By which prefix IPv4 clients are counted, where the key begins and ends with the client.
    pub(crate) client_prefix: Option<ClientPrefix>,
}

#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) table: Table,
    pub(crate) verdicts: Arc<Verdicts>,
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
    /// The state of a rule that has counted nothing yet, but for the totals of its name, and what stands in
    /// the table of the state before, if that counted the same. `before` comes with the rule as it was.
    /// `origin`: see [`crate::Config`].
    pub(crate) fn new(
        rules: &RuleSet,
        index: usize,
        before: Option<(&Rule, &RuleState)>,
        (lineage, mark, counters): (u64, u16, Arc<Counters>),
        origin: i128,
    ) -> Self {
        let rule = &rules.rules()[index];
        let at = |seconds: Option<i64>, default| {
            let nanos = |seconds: i64| i128::from(seconds) * 1_000_000_000 - origin;
            let clamped = |nanos: i128| nanos.clamp(0, u64::MAX.into());
            seconds.map_or(default, |seconds| {
                Time::from_nanos(u64::try_from(clamped(nanos(seconds))).unwrap_or(u64::MAX))
            })
        };
        let identity = rules.identity(index);
        let before = before.filter(|(_, before)| before.identity == identity);
        let counted = before.and_then(|(old, before)| Some((old, before.counting.as_ref()?)));
        let counting = Counting::new(rule, rules.memory(), &counters, counted);
        let counts_requests =
            counting.as_ref().is_some_and(|counting| counting.tally != Tally::Responses);
        RuleState {
            lineage,
            mark,
            counters,
            identity,
            counting,
            from: at(rule.period.from, Time::default()),
            until: at(rule.period.until, Time::MAX),
            is_plain: counts_requests
                && rule.when.is_empty()
                && rule.overrides.is_empty()
                && rule.period == Period::default()
                && !rule.fields,
            client_prefix: rule.key.client_prefix(),
        }
    }

    /// The state in which the rule of this name goes on from a state before, and what there is still to
    /// say of that. `old` is the rule as it was; `subject`: whom an operator's verdict is about now.
    pub(crate) fn after(
        mut self,
        rule: &Rule,
        old: &Rule,
        before: &RuleState,
        subject: impl Fn(&(u64, StandingVerdict)) -> Option<Subject>,
        now: Time,
    ) -> (Self, Vec<Event>) {
        let Some(counted) = &before.counting else { return (self, Vec::new()) };
        let Some(counting) = &mut self.counting else { return (self, counted.void(now)) };
        let goes_on = self.identity == before.identity;
        if goes_on {
            self.lineage = before.lineage;
        }
        if goes_on && rule.action.name() == old.action.name() {
            counting.verdicts = Arc::clone(&counted.verdicts);
            return (self, Vec::new());
        }
        let (by_hand, mut events) = counted.verdicts.void(now);
        for stood in by_hand {
            let goes_on =
                subject(&stood).is_some_and(|subject| counting.verdicts.go_on(subject, &stood.1));
            if !goes_on {
                events.push(stood.1.voided(now));
            }
        }
        (self, events)
    }

    /// Whether the rule is on at a time.
    pub(crate) fn is_on(&self, now: Time) -> bool {
        self.from <= now && now < self.until
    }
}

impl Counting {
    /// `counted`: the rule as it was, and what it counted, where that goes on.
    fn new(
        rule: &Rule,
        memory: Memory,
        counters: &Counters,
        counted: Option<(&Rule, &Counting)>,
    ) -> Option<Self> {
        let Trigger::Over(rate) = rule.trigger else { return None };
        let ticks = Ticks::new(rate.window);
        let limit = Limit::new(rate.limit);
        let override_limits: Vec<_> =
            rule.overrides.iter().map(|terms| terms.limit.map(Limit::new)).collect();
        let tally = match (&rule.count, &rule.action) {
            (Count::Responses { .. }, _) => Tally::Responses,
            (Count::Requests, Action::Throttle(None)) => Tally::Admitted,
            (Count::Requests, _) => Tally::Attempts,
        };
        let keys = if rule.key.is_empty() { NonZeroU32::MIN } else { memory.keys };
        let responses = tally == Tally::Responses;
        let varies = rule.overrides.iter().any(varies);
        let limits = limits(limit, &override_limits);
        // A table is some megabytes: one that nobody will use is not made.
        let table = match counted {
            Some((old, counted)) if has_limits_of(rule, old) => counted.table.clone(),
            Some((_, counted)) => counted.table.with_limits(&limits),
            None => Table::new(keys, ticks, &limits, responses, varies),
        };
        let (name, action) = (Arc::clone(&rule.name), rule.action.name());
        let (capacity, losses) = (memory.verdicts.get(), Arc::clone(&counters.losses));
        let verdicts = Verdicts::new(name, action, ticks, rate.window, capacity, losses);
        Some(Counting {
            table,
            verdicts: verdicts.into(),
            window: rate.window,
            limit,
            override_limits,
            tally,
        })
    }

    /// Ends all its verdicts, an operator's among them: the rule has none any more.
    pub(crate) fn void(&self, now: Time) -> Vec<Event> {
        let (by_hand, mut events) = self.verdicts.void(now);
        events.extend(by_hand.iter().map(|(_, verdict)| verdict.voided(now)));
        events
    }

    /// Takes the outcome of a request that was held pending; `terms` is the override for its key.
    #[expect(clippy::too_many_arguments, reason = "two of the caller's, and what it looked up")]
    pub(crate) fn settle(
        &self,
        rule: &Rule,
        terms: Option<usize>,
        charge: &Charge,
        outcome: Outcome,
        now: Time,
        secret: &[u8; 16],
        counters: &Stripe,
    ) {
        let limit = self.limit_under(terms);
        let action = rule.action_under(terms);
        let mut row = self.table.lock(charge.hash, limit, now);
        let current = row.release(charge.generation);
        let standing = self.verdicts.standing(charge.hash, now);
        if !current
            || !counts(&rule.count, outcome)
            || matches!(standing, Some(Standing::Blocked(_)))
        {
            return;
        }
        self.make_room(now, counters, |room| row.push(limit, now, room));
        if standing.is_some() || row.full_until(now).is_none() || !self.verdicts.has_room() {
            return;
        }
        let key: Arc<str> = charge.key.text(&rule.show(secret)).into();
        let subject = Subject { hash: charge.hash, key, observed: charge.observed };
        if let Action::Block(terms) = action {
            if self.verdicts.block(subject, terms, now).is_some() {
                row.clear();
                row.mark_hot(true);
            }
        } else {
            self.heat(&row, limit, action, subject, now);
        }
    }

    /// The limit under an override, or the rule's own.
    pub(crate) fn limit_under(&self, terms: Option<usize>) -> Limit {
        let own = terms.and_then(|at| self.override_limits.get(at).copied().flatten());
        own.unwrap_or(self.limit)
    }

    /// Begins a verdict that lasts until the key has cooled, and goes on from what the window holds.
    pub(crate) fn heat(
        &self,
        row: &Row<'_>,
        limit: Limit,
        action: &Action,
        subject: Subject,
        now: Time,
    ) -> bool {
        let pace = match action {
            Action::Throttle(pace) => *pace,
            _ => None,
        };
        let demand = row.demand(limit).unwrap_or_else(|| Demand::none(limit));
        let begun = self.verdicts.heat(subject, demand, pace, now);
        if begun {
            row.mark_hot(true);
        }
        begun
    }

    pub(crate) fn make_room<T>(
        &self,
        now: Time,
        counters: &Stripe,
        act: impl FnOnce(&mut Room<'_>) -> T,
    ) -> T {
        let standing = |hash| self.verdicts.standing(hash, now);
        let mut room = Room {
            standing: &standing,
            unsure: self.verdicts.is_void(),
            evicted_live: 0,
            evicted_limited: 0,
            untracked: 0,
        };
        let acted = act(&mut room);
        if room.evicted_live + room.evicted_limited + room.untracked > 0 {
            counters.evicted_live.fetch_add(room.evicted_live, Relaxed);
            counters.evicted_limited.fetch_add(room.evicted_limited, Relaxed);
            counters.untracked.fetch_add(room.untracked, Relaxed);
        }
        acted
    }
}

/// Whether every key has the limit it had, whenever it comes.
fn has_limits_of(rule: &Rule, old: &Rule) -> bool {
    let terms = |rule: &Rule| {
        let overrides = rule.overrides.iter();
        let each = overrides.map(|terms| (terms.key.clone(), terms.when.clone(), terms.limit));
        (rule.trigger, each.collect::<Vec<_>>())
    };
    terms(rule) == terms(old)
}

/// Whether one key can be under these terms now and under others then.
fn varies(terms: &Override) -> bool {
    terms.limit.is_some() && !terms.when.is_empty()
}

/// All limits that keys of a rule can have, its own first.
fn limits(own: Limit, overrides: &[Option<Limit>]) -> Vec<Limit> {
    std::iter::once(own).chain(overrides.iter().copied().flatten()).collect()
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
