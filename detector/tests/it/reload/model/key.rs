//! One key of one rule, with all that the rule file's words make of it.

use hotgate_detector::Cause;

use super::file::{Action, FORGET, MAX, Mode, Pace, Terms, Who};

#[derive(Clone, Debug, Default)]
pub(super) struct Key {
    /// The events that the rule compares with N.
    pub(super) counted: Vec<u64>,
    pub(super) pending: usize,
    /// Counts blocks and lifts, after which older responses mean nothing.
    pub(super) generation: u32,
    pub(super) verdict: Option<Verdict>,
    /// Length and forgetting of the block before.
    pub(super) past: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) until: u64,
    pub(super) kind: Kind,
    pub(super) manual: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Hot { attempts: Vec<u64>, pacer: Option<Pacer> },
    Block { lasts: u64, grows: bool },
}

/// GCRA in whole milliseconds: when the next request would be on time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    pace: Pace,
    arrival: u64,
}

impl Pacer {
    fn passes(&self, now: u64) -> bool {
        now + (self.pace.burst - 1) * self.pace.every >= self.arrival
    }

    fn charge(&mut self, now: u64) {
        self.arrival = self.arrival.max(now) + self.pace.every;
    }

    /// What it owes goes on, for no longer than a burst takes.
    fn fit(own: &mut Option<Pacer>, action: Action, now: u64) {
        let Action::Throttle(Some(pace)) = action else { return *own = None };
        let arrival = own.map_or(0, |own| own.arrival.min(now + pace.burst * pace.every));
        if own.is_none_or(|own| own.pace != pace) {
            *own = Some(Pacer { pace, arrival });
        }
    }
}

/// How many stand in a window that ends now.
fn within(events: &[u64], now: u64, window: u64) -> usize {
    events.iter().filter(|event| **event + window > now).count()
}

/// A window of exact size holds so many of the newest.
fn keep(events: &mut Vec<u64>, number: usize) {
    events.drain(..events.len().saturating_sub(number));
}

impl Key {
    /// Ends what is over.
    pub(super) fn advance(&mut self, now: u64) {
        if let Some(verdict) = self.verdict.take_if(|verdict| verdict.until <= now)
            && let Kind::Block { lasts, grows: true } = verdict.kind
        {
            self.past = Some((lasts, verdict.until + FORGET));
        }
    }

    fn blocked(&self) -> bool {
        matches!(self.verdict, Some(Verdict { kind: Kind::Block { .. }, .. }))
    }

    fn is_full(&self, terms: &Terms, n: usize, now: u64) -> bool {
        within(&self.counted, now, terms.window) >= n
    }

    pub(super) fn refuses(&mut self, terms: &Terms, who: Who, now: u64) -> Option<Cause> {
        self.advance(now);
        let (n, action) = (terms.n(who), terms.action(who));
        keep(&mut self.counted, n);
        if self.blocked() {
            return Some(Cause::Blocked);
        }
        if let Some(Verdict { kind: Kind::Hot { pacer, .. }, .. }) = &mut self.verdict {
            Pacer::fit(pacer, action, now);
            if pacer.is_some_and(|pacer| !pacer.passes(now)) {
                return Some(Cause::Quota);
            }
        }
        match action {
            Action::Throttle(Some(_)) | Action::Tag | Action::Handler => None,
            Action::Block { .. } if self.is_full(terms, n, now) => Some(Cause::Blocked),
            Action::Throttle(None) if self.is_full(terms, n, now) => Some(Cause::Quota),
            _ if terms.status && self.pending >= n => Some(Cause::Pending),
            _ => None,
        }
    }

    fn begin(&mut self, terms: &Terms, who: Who, now: u64) {
        let action = terms.action(who);
        if let Action::Block { lasts, grow, .. } = action {
            let past = self.past.filter(|(_, forgotten)| *forgotten > now);
            let lasts = past.map_or(lasts, |(lasts, _)| (lasts * grow).min(MAX));
            let kind = Kind::Block { lasts, grows: grow > 1 };
            self.verdict = Some(Verdict { until: now + lasts, kind, manual: false });
            self.clear();
        } else {
            let mut pacer = None;
            Pacer::fit(&mut pacer, action, now);
            let kind = Kind::Hot { attempts: self.counted.clone(), pacer };
            let until = now + terms.window;
            self.verdict = Some(Verdict { until, kind, manual: false });
            self.cool(terms, who, now);
        }
    }

    /// Moves the end of a verdict out to a window after attempts fall below 0.8 N.
    fn cool(&mut self, terms: &Terms, who: Who, now: u64) {
        let Some(Verdict { until, kind: Kind::Hot { attempts, .. }, .. }) = &mut self.verdict
        else {
            return;
        };
        let warm = terms.n(who) - terms.n(who) / 5;
        keep(attempts, warm);
        if within(attempts, now, terms.window) >= warm {
            *until = (*until).max(attempts[0] + 2 * terms.window);
        }
    }

    fn attempt(&mut self, terms: &Terms, who: Who, passes: bool, now: u64) {
        if let Some(Verdict { kind: Kind::Hot { attempts, pacer }, .. }) = &mut self.verdict {
            keep(attempts, terms.n(who) - terms.n(who) / 5);
            attempts.push(now);
            if let (Some(pacer), true) = (pacer, passes) {
                pacer.charge(now);
            }
        }
        self.cool(terms, who, now);
    }

    pub(super) fn clear(&mut self) {
        self.counted.clear();
        self.generation += 1;
    }

    /// Charges an attempt; whether the rule now holds it pending.
    pub(super) fn charge(
        &mut self,
        terms: &Terms,
        who: Who,
        own: Option<Cause>,
        refused: bool,
        now: u64,
    ) -> bool {
        let (n, action) = (terms.n(who), terms.action(who));
        if let Some(Verdict { until, kind: Kind::Block { lasts, .. }, manual }) = &mut self.verdict
        {
            if matches!(action, Action::Block { extend: true, .. }) && !*manual {
                *until = (*until).max(now + *lasts);
            }
            return false;
        }
        let passes = !refused && own.is_none();
        self.attempt(terms, who, passes, now);
        if terms.status {
            self.pending += usize::from(passes);
            return passes;
        }
        if terms.counts_attempts() {
            if let (Action::Block { .. }, Some(_)) = (action, own) {
                self.begin(terms, who, now);
                return false;
            }
            let is_block = matches!(action, Action::Block { .. });
            if self.verdict.is_none() && !is_block && self.is_full(terms, n, now) {
                self.begin(terms, who, now);
                self.attempt(terms, who, passes, now);
            }
            self.counted.push(now);
        } else if passes {
            self.counted.push(now);
        } else if own.is_some() && self.verdict.is_none() {
            self.begin(terms, who, now);
            self.attempt(terms, who, false, now);
        }
        false
    }

    /// Takes a response of a request that was held in this generation.
    pub(super) fn settle(
        &mut self,
        terms: &Terms,
        who: Who,
        file: Mode,
        (held, bad): (u32, bool),
        now: u64,
    ) {
        self.advance(now);
        self.pending -= 1;
        let n = terms.n(who);
        keep(&mut self.counted, n);
        if !bad || held != self.generation || self.blocked() || terms.is_free(file, who) {
            return;
        }
        self.counted.push(now);
        keep(&mut self.counted, n);
        if self.is_full(terms, n, now) && self.verdict.is_none() {
            self.begin(terms, who, now);
        }
    }
}
