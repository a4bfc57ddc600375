//! Times as people read them.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use hotgate_detector::Time;
use serde::{Serialize, Serializer};

/// A point in time, printed and serialized as RFC 3339 in UTC, to the millisecond:
/// `2026-12-01T09:30:00.250Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(SystemTime);

impl From<Moment> for SystemTime {
    fn from(moment: Moment) -> Self {
        moment.0
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::try_from(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            // Beyond the year 9999.
            Err(_) => f.write_str("never"),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The gate's clock beside the wall's, read at one time. What is shown goes by the wall clock as it
/// is now, so that it agrees with other logs however the wall clock was set since the gate was built.
#[derive(Clone, Copy)]
pub(super) struct Clocks {
    pub(super) now: Time,
    wall: SystemTime,
}

impl Clocks {
    #[expect(clippy::disallowed_methods, reason = "for people to read; nothing is decided by it")]
    pub(super) fn read(now: Time) -> Self {
        Clocks { now, wall: SystemTime::now() }
    }

    pub(super) fn moment(&self, at: Time) -> Moment {
        let moved = if at >= self.now {
            self.wall.checked_add(at.since(self.now))
        } else {
            self.wall.checked_sub(self.now.since(at))
        };
        Moment(moved.unwrap_or(self.wall))
    }

    /// From nanoseconds of the gate's own reckoning of the wall clock; `now` is what it reckons now.
    pub(super) fn moment_of_unix(&self, unix_nanos: i128, now: i128) -> Moment {
        let ahead = u64::try_from(unix_nanos.saturating_sub(now).max(0)).unwrap_or(u64::MAX);
        self.moment(self.now.plus(Duration::from_nanos(ahead)))
    }

    /// Whole seconds until then, rounded up: it is over once they have passed.
    pub(super) fn seconds_left(&self, at: Time) -> u64 {
        let left = at.since(self.now);
        left.as_secs() + u64::from(left.subsec_nanos() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_utc_to_the_millisecond() {
        let at =
            |millis| Moment(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)).to_string();
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_796_117_400_250), "2026-12-01T09:30:00.250Z");
    }

    #[test]
    fn a_moment_is_as_far_from_now_as_its_time() {
        let clocks = Clocks { now: Time::from_nanos(5_000_000_000), wall: SystemTime::UNIX_EPOCH };
        let at = |nanos| clocks.moment(Time::from_nanos(nanos)).to_string();
        assert_eq!(at(6_000_000_000), "1970-01-01T00:00:01.000Z");
        assert_eq!(at(4_000_000_000), "1969-12-31T23:59:59.000Z");
        assert_eq!(clocks.seconds_left(Time::from_nanos(6_000_000_001)), 2);
        assert_eq!(clocks.seconds_left(Time::from_nanos(1)), 0);
        assert_eq!(clocks.moment(Time::MAX).to_string().len(), 24, "centuries on, still a date");
    }
}
