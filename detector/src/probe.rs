//! What one rule says of one request.

use std::time::Duration;

use hotgate_rules::{Action, Block, Count, Facts, MissingPart, Mode, Override, Rule};

use crate::{
    Cause, QuotaLeft, Time,
    counters::Stripe,
    counting::{Counting, RuleState, Tally},
    decision::Charge,
    engine::Deciding,
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
    pub(crate) hash: u64,
    /// The place of the override for the key, and what comes of it.
    pub(crate) terms: Option<usize>,
    limit: Limit,
    action: &'a Action,
    pub(crate) enforced: bool,
    row: Option<Row<'a>>,
    standing: Option<Standing>,
    /// When the verdict that stands ends.
    pub(crate) until: Option<Time>,
    pub(crate) refuses: Option<Refuses>,
    pub(crate) quota_left: Option<QuotaLeft>,
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
        (index, rule, state): (usize, &'a Rule, &'a RuleState),
        facts: &Facts<'_>,
        hash: u64,
        file_mode: Mode,
        now: Time,
    ) -> Option<Self> {
        let terms = overriding(rule, facts);
        let mode = rule.mode_under(file_mode, terms.map(|(_, terms)| terms));
        if mode == Mode::Off || terms.is_some_and(|(_, terms)| terms.exempt) {
            return None;
        }
        let terms = terms.map(|(at, _)| at);
        let limit = state.counting.as_ref().map(|counting| counting.limit_under(terms));
        let action = rule.action_under(terms);
        let always = Refuses { cause: Cause::Always, until: now.plus(WAIT_SHORT) };
        Some(Probe {
            index,
            rule,
            state,
            hash,
            terms,
            limit: limit.unwrap_or(Limit::ONE),
            action,
            enforced: mode == Mode::Enforce,
            row: None,
            standing: None,
            until: None,
            refuses: (state.counting.is_none() && action.refuses()).then_some(always),
            quota_left: None,
        })
    }

    /// A rule that refuses a request for lack of a key.
    pub(crate) fn rejects(
        (index, rule, state): (usize, &'a Rule, &'a RuleState),
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
            terms: None,
            limit: Limit::ONE,
            action: &rule.action,
            enforced: rule.mode_under(file_mode, None) == Mode::Enforce,
            row: None,
            standing: None,
            until: None,
            refuses: Some(Refuses { cause, until: now }),
            quota_left: None,
        }
    }

    pub(crate) fn counters(&self) -> &'a Stripe {
        self.state.counters.stripe(self.hash)
    }

    /// The action under the key's terms.
    pub(crate) fn action(&self) -> &'a Action {
        self.action
    }

    /// Whether the request has the rule's key.
    pub(crate) fn is_keyed(&self) -> bool {
        !matches!(self.refuses, Some(Refuses { cause: Cause::MissingKey { .. }, .. }))
    }

    pub(crate) fn is_hot(&self) -> bool {
        self.standing.is_some()
    }

    /// Whether the rule marks the request or hands it over.
    pub(crate) fn acts(&self) -> bool {
        let hot = self.is_hot() || self.state.counting.is_none();
        hot && self.enforced && self.refuses.is_none() && !self.action.refuses()
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
        let row = counting.table.lock(self.hash, self.limit, now);
        if row.may_be_hot() {
            self.standing = counting.verdicts.standing_at(self.hash, self.action, now);
            row.mark_hot(self.standing.is_some() || counting.verdicts.is_void());
        }
        self.refuses = match self.standing {
            Some(Standing::Blocked(until)) => Some(Refuses { cause: Cause::Blocked, until }),
            Some(Standing::Hot { wait: Some(until) }) => {
                Some(Refuses { cause: Cause::Quota, until })
            }
            standing => self.refuses_by_window(counting, &row, standing.is_some(), now),
        };
        self.row = Some(row);
    }

    fn refuses_by_window(
        &self,
        counting: &Counting,
        row: &Row<'_>,
        hot: bool,
        now: Time,
    ) -> Option<Refuses> {
        let cause = match self.action {
            Action::Throttle(None) => Cause::Quota,
            Action::Block(_) => Cause::Blocked,
            // Its verdict has the pace. Where there is no room for one, the window must do.
            Action::Throttle(Some(_)) if !hot && !counting.verdicts.is_roomy() => Cause::Quota,
            Action::Throttle(Some(_)) | Action::Tag(_) | Action::Handler(_) => return None,
        };
        if let Some(until) = row.full_until(now) {
            return Some(Refuses { cause, until });
        }
        let waits = counting.tally == Tally::Responses && row.pending() >= self.pending_max();
        waits.then(|| Refuses { cause: Cause::Pending, until: now.plus(WAIT_SHORT) })
    }

    fn pending_max(&self) -> u32 {
        match self.rule.count {
            Count::Responses { pending: Some(pending), .. } => pending.get(),
            _ => self.limit.n,
        }
    }

    /// Charges the request, which some enforcing rule `refused` or none did. What must be settled.
    pub(crate) fn charge(&mut self, refused: bool, deciding: &Deciding<'_>) -> Option<Charge> {
        let (Some(counting), Some(mut row)) = (&self.state.counting, self.row.take()) else {
            return None;
        };
        let now = deciding.now;
        self.attempt(counting, refused, now);
        if let Some(Standing::Blocked(end)) = self.standing {
            let until = self.until.unwrap_or(end);
            self.refuses = Some(Refuses { cause: Cause::Blocked, until });
            return None;
        }
        let mut held = None;
        match (counting.tally, self.refuses) {
            (Tally::Attempts, Some(_)) if matches!(self.action, Action::Block(_)) => {
                self.block(counting, &mut row, deciding);
            }
            (Tally::Attempts, _) => {
                if self.standing.is_none() && row.full_until(now).is_some() {
                    self.heat(counting, &row, refused, deciding);
                }
                self.push(counting, &mut row, now);
            }
            (Tally::Admitted, Some(_)) if self.standing.is_none() => {
                self.heat(counting, &row, refused, deciding);
            }
            (Tally::Admitted, None) if !refused => self.push(counting, &mut row, now),
            (Tally::Responses, None) if !refused => held = self.hold(counting, &mut row, deciding),
            _ => {}
        }
        if self.rule.fields && self.enforced {
            self.quota_left = Some(self.left(counting, &row, now));
        }
        held
    }

    /// Counts an attempt under the verdict that stands, if one does.
    fn attempt(&mut self, counting: &Counting, refused: bool, now: Time) {
        if let Some(Standing::Blocked(until)) = self.standing
            && !matches!(self.action, Action::Block(Block { extend: true, .. }))
        {
            self.until = Some(until);
        } else if self.standing.is_some() {
            let passes = !refused && self.refuses.is_none();
            let (hash, limit) = (self.hash, self.limit);
            self.until = counting.verdicts.attempt(hash, limit, self.action, passes, now);
        }
    }

    fn push(&self, counting: &Counting, row: &mut Row<'_>, now: Time) {
        counting.make_room(now, self.counters(), |room| row.push(self.limit, now, room));
    }

    /// A verdict begins that lasts until the key has cooled, if there is room for it.
    fn heat(&mut self, counting: &Counting, row: &Row<'_>, refused: bool, deciding: &Deciding<'_>) {
        let now = deciding.now;
        if counting.verdicts.has_room()
            && counting.heat(row, self.limit, self.action, self.subject(deciding), now)
        {
            self.standing = counting.verdicts.standing(self.hash, now);
            self.attempt(counting, refused, now);
        }
    }

    /// The N+1st attempt: a block begins, or, where it cannot be stored, the window goes on to refuse.
    fn block(&mut self, counting: &Counting, row: &mut Row<'_>, deciding: &Deciding<'_>) {
        let Action::Block(terms) = self.action else { return };
        let now = deciding.now;
        let has_room = counting.verdicts.has_room();
        let begin = || counting.verdicts.block(self.subject(deciding), terms, now);
        match has_room.then(begin).flatten() {
            Some(lasts) => {
                row.clear();
                row.mark_hot(true);
                let until = now.plus(lasts);
                self.standing = Some(Standing::Blocked(until));
                self.until = Some(until);
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
        deciding: &Deciding<'_>,
    ) -> Option<Charge> {
        let now = deciding.now;
        let key = self.rule.key(deciding.facts).ok()?.into_owned();
        let generation = counting.make_room(now, self.counters(), |room| row.hold(now, room))?;
        Some(Charge {
            rule: u16::try_from(self.index).ok()?,
            lineage: self.state.lineage,
            terms: self.terms.and_then(|at| u16::try_from(at).ok()),
            engine: deciding.engine,
            generation,
            hash: self.hash,
            observed: !self.enforced,
            key,
        })
    }

    fn left(&self, counting: &Counting, row: &Row<'_>, now: Time) -> QuotaLeft {
        let (count, leaves) = row.count(self.limit, now);
        QuotaLeft {
            rule: self.rule.name.clone(),
            limit: self.limit.n,
            window: counting.window,
            remaining: self.limit.n.saturating_sub(count),
            reset: row.full_until(now).unwrap_or(leaves).since(now),
        }
    }

    /// Whom a verdict that begins now is about: the only time that a request's key is printed.
    fn subject(&self, deciding: &Deciding<'_>) -> Subject {
        let show = self.rule.show(deciding.secret);
        let text = self.rule.key(deciding.facts).map(|key| key.text(&show));
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
