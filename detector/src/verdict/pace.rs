//! The pace of a hot key: governor's GCRA, driven by the time of the decision.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{NotKeyed, StateStore},
};
use hotgate_rules::Pace;

use crate::Time;

/// Says how long a key must wait for its pace. Whoever asks holds the key's line.
pub(super) struct Pacer {
    pub(super) pace: Pace,
    limiter: RateLimiter<NotKeyed, Store, DecisionClock, NoOpMiddleware<Nanos>>,
    arrival: Arc<Arrival>,
}

impl Pacer {
    /// `None` for a pace that no nanosecond is short enough for; the parser lets none such pass.
    pub(super) fn new(pace: Pace) -> Option<Self> {
        let quota = Quota::with_period(pace.rate.window / pace.rate.limit.get())?;
        let arrival = Arc::<Arrival>::default();
        let store = Store(Arc::clone(&arrival));
        let clock = DecisionClock(AtomicU64::new(0));
        let limiter = RateLimiter::new(quota.allow_burst(pace.burst), store, clock);
        Some(Pacer { pace, limiter, arrival })
    }

    /// The same key's at another pace. What it owes goes on, in time, but for no longer than a whole
    /// burst of the new pace takes: so neither a change of pace nor its return gives a burst for nothing.
    pub(super) fn at(&self, pace: Pace, now: Time) -> Option<Self> {
        let other = Pacer::new(pace)?;
        let longest = (pace.rate.window / pace.rate.limit.get()).saturating_mul(pace.burst.get());
        let agreed = self.arrival.agreed.load(Relaxed).min(now.plus(longest).as_nanos());
        other.arrival.agreed.store(agreed, Relaxed);
        Some(other)
    }

    /// When the key may go on, if not now. Nothing is charged yet.
    pub(super) fn wait(&self, now: Time) -> Option<Time> {
        self.limiter.clock().0.store(now.as_nanos(), Relaxed);
        let not_until = self.limiter.check().err()?;
        Some(Time::from_nanos(not_until.earliest_possible().as_u64()).max(now))
    }

    /// Charges the request that [`wait`](Self::wait) was asked for last and did not refuse.
    pub(super) fn charge(&self) {
        self.arrival.agreed.store(self.arrival.proposed.load(Relaxed), Relaxed);
    }
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer").finish_non_exhaustive()
    }
}

/// The theoretical arrival time of the next request. It moves on only once all rules have agreed: a
/// request that another rule refuses is not charged.
#[derive(Debug, Default)]
struct Arrival {
    agreed: AtomicU64,
    proposed: AtomicU64,
}

#[derive(Debug)]
struct Store(Arc<Arrival>);

impl StateStore for Store {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let agreed = self.0.agreed.load(Relaxed);
        let (outcome, arrival) = decide((agreed > 0).then(|| Nanos::new(agreed)))?;
        self.0.proposed.store(arrival.as_u64(), Relaxed);
        Ok(outcome)
    }
}

/// Stands at the time of the decision.
#[derive(Debug)]
struct DecisionClock(AtomicU64);

impl Clone for DecisionClock {
    fn clone(&self) -> Self {
        DecisionClock(AtomicU64::new(self.0.load(Relaxed)))
    }
}

impl Clock for DecisionClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.0.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, time::Duration};

    use hotgate_rules::Rate;

    use super::*;

    fn pacer(limit: u32, window: Duration, burst: u32) -> Pacer {
        let number = |n| NonZeroU32::new(n).unwrap();
        let rate = Rate { limit: number(limit), window };
        Pacer::new(Pace { rate, burst: number(burst) }).unwrap()
    }

    fn passed(pacer: &Pacer, times: impl Iterator<Item = u64>) -> usize {
        let passes = |nanos: &u64| {
            let passes = pacer.wait(Time::from_nanos(*nanos)).is_none();
            if passes {
                pacer.charge();
            }
            passes
        };
        times.filter(passes).count()
    }

    #[test]
    fn a_pace_lets_its_burst_pass_and_then_its_rate() {
        let pacer = pacer(2, Duration::from_secs(1), 10);
        assert_eq!(passed(&pacer, std::iter::repeat_n(0, 100)), 10);
        let ms = 1_000_000;
        assert_eq!(pacer.wait(Time::from_nanos(100 * ms)), Some(Time::from_nanos(500 * ms)));
        assert_eq!(passed(&pacer, (1..=1_000).map(|step| step * 10 * ms)), 20, "two a second");
    }

    #[test]
    fn a_change_of_pace_gives_no_burst_for_nothing() {
        let slow = pacer(1, Duration::from_secs(1), 5);
        assert_eq!(passed(&slow, std::iter::repeat_n(0, 9)), 5);
        let fast =
            slow.at(pacer(100, Duration::from_secs(1), 5).pace, Time::from_nanos(0)).unwrap();
        assert_eq!(passed(&fast, std::iter::repeat_n(0, 9)), 0, "its burst is spent");
        let ms = 1_000_000;
        assert_eq!(
            fast.wait(Time::from_nanos(0)),
            Some(Time::from_nanos(10 * ms)),
            "its pace holds"
        );
        let slow = fast.at(slow.pace, Time::from_nanos(0)).unwrap();
        assert_eq!(passed(&slow, std::iter::repeat_n(0, 9)), 4, "what it owed at most is 50 ms");
    }

    #[test]
    fn what_others_refuse_is_not_charged() {
        let pacer = pacer(1, Duration::from_secs(1), 1);
        for _ in 0..100 {
            assert_eq!(pacer.wait(Time::from_nanos(0)), None);
        }
        assert_eq!(passed(&pacer, std::iter::repeat_n(0, 3)), 1);
    }

    #[test]
    fn the_rate_holds_over_time_whatever_divides() {
        // C29, C31
        let day = Duration::from_secs(86_400);
        for (limit, window, burst) in [
            (7, Duration::from_secs(1), 1),
            (1, Duration::from_secs(7), 1),
            (1_000_000, Duration::from_secs(1), 1),
            (10, Duration::from_millis(1), 10_000_000),
        ] {
            let pacer = pacer(limit, window, burst);
            let start = u64::try_from(day.as_nanos()).unwrap() * 30;
            let drained = passed(&pacer, std::iter::repeat_n(start, burst.min(1_000) as usize));
            assert_eq!(drained, burst.min(1_000) as usize, "full after thirty idle days");
            let _ = passed(&pacer, std::iter::repeat_n(start, burst as usize));
            let span = u64::try_from(window.as_nanos()).unwrap() * 1_000 / u64::from(limit);
            let steps = 100_000_u64;
            let passed = passed(&pacer, (1..=steps).map(|step| start + span * step / steps));
            assert!((990..=1_010).contains(&passed), "{limit} in {window:?}: {passed} of 1,000");
        }
    }
}
