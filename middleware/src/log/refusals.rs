//! Refusals, and what would have been one: some a second, and how many more there were.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hotgate_detector::{Decision, Refusal, Time};

use super::TARGET;
use crate::{active::Active, operator::cause_name};

/// Events of either kind that one gate logs in one second. A flood of refusals must not become a flood of
/// log lines; those beyond are counted and told as a number.
const EVENTS_PER_SECOND_MAX: u64 = 10;

/// Logs refusals, and requests that a rule which observes would have refused.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    refused: Limited,
    would_refuse: Limited,
}

impl RefusalLog {
    /// A refusal, with the id that its answer carries. Never the key: a verdict's event names it.
    pub(crate) fn refused(&self, refusal: &Refusal, now: Time) {
        if is_heard() && self.refused.has_room(now) {
            tracing::info!(
                target: TARGET,
                id = %refusal.id(),
                rule = refusal.rule.as_deref(),
                action = refusal.action,
                cause = cause_name(refusal.cause),
                status = refusal.status.as_u16(),
                "refused"
            );
        }
    }

    /// What rules of this decision would have refused, were they in force.
    #[inline]
    pub(crate) fn observed(&self, active: &Active, decision: &Decision, now: Time) {
        if decision.findings.iter().any(|finding| !finding.enforced && finding.refuses.is_some()) {
            self.would_have_refused(active, decision, now);
        }
    }

    #[cold]
    fn would_have_refused(&self, active: &Active, decision: &Decision, now: Time) {
        if !is_heard() {
            return;
        }
        for finding in decision.findings.iter().filter(|finding| !finding.enforced) {
            let Some(cause) = finding.refuses.filter(|_| self.would_refuse.has_room(now)) else {
                continue;
            };
            let rule = active.engine.rules().rules().get(finding.index);
            tracing::info!(
                target: TARGET,
                rule = &*finding.rule,
                action = rule.map(|rule| rule.action_under(finding.terms).name()),
                cause = cause_name(cause),
                "would have refused"
            );
        }
    }

    /// Tells how many were not logged, once their second is over.
    pub(crate) fn say_rest(&self, now: Time) {
        if let Some(unlogged) = self.refused.rest(now) {
            tracing::info!(target: TARGET, unlogged, "refused more, beyond {EVENTS_PER_SECOND_MAX} a second");
        }
        if let Some(unlogged) = self.would_refuse.rest(now) {
            tracing::info!(
                target: TARGET, unlogged, "would have refused more, beyond {EVENTS_PER_SECOND_MAX} a second"
            );
        }
    }
}

fn is_heard() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// Room for some events a second.
#[derive(Debug, Default)]
struct Limited {
    /// The second, and in the low byte how many were logged in it.
    logged: AtomicU64,
    unlogged: AtomicU64,
}

impl Limited {
    /// Whether there is room for one more; if not, it is counted.
    fn has_room(&self, now: Time) -> bool {
        let second = second(now);
        let next = |logged: u64| {
            if logged >> 8 < second {
                return Some(second << 8 | 1);
            }
            (logged & 0xff < EVENTS_PER_SECOND_MAX).then_some(logged + 1)
        };
        let has_room = self.logged.fetch_update(Relaxed, Relaxed, next).is_ok();
        if !has_room {
            self.unlogged.fetch_add(1, Relaxed);
        }
        has_room
    }

    /// How many had no room, once the second that was full is over.
    fn rest(&self, now: Time) -> Option<u64> {
        if self.logged.load(Relaxed) >> 8 >= second(now) {
            return None;
        }
        Some(self.unlogged.swap(0, Relaxed)).filter(|unlogged| *unlogged > 0)
    }
}

fn second(now: Time) -> u64 {
    now.as_nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_events_a_second_are_logged_and_the_rest_is_counted() {
        let log = Limited::default();
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let room = |millis: u64| (0..100).filter(|_| log.has_room(at(millis))).count();
        assert_eq!(room(0), 10);
        assert_eq!(room(999), 0);
        assert_eq!(log.rest(at(999)), None, "the second is not over");
        assert_eq!(log.rest(at(1_000)), Some(190));
        assert_eq!(log.rest(at(1_000)), None, "told once");
        assert_eq!(room(1_000), 10);
        assert_eq!(room(999), 0, "a clock read late on another thread opens no second anew");
        assert_eq!(room(3_600_000), 10);
    }
}
