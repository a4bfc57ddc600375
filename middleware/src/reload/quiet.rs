//! When a change is taken: once it has stood still.

use std::time::Duration;

use hotgate_detector::Time;

/// For how long nothing more may change until a change is taken, so that a file that is being written is
/// not taken for the whole. Beside it stand up to two ticks and the reading, and all of it in a second.
pub(super) const QUIET: Duration = Duration::from_millis(400);

/// How often it is seen meanwhile, at least: on a machine so busy that the gate's thread hardly comes to
/// look, whoever writes hardly comes to write.
const SIGHTINGS_MIN: u32 = 4;

/// A file that never stands still is taken as it is after this long: rules that never come are worse
/// than rules that somebody is still writing, and what is half a line then is an error that is told.
pub(super) const CHANGING_MAX: Duration = Duration::from_secs(10);

/// Watches something by what is seen of it.
#[derive(Debug)]
pub(super) struct Quiet<T> {
    /// What was taken last.
    taken: T,
    changing: Option<Changing<T>>,
}

#[derive(Debug)]
struct Changing<T> {
    seen: T,
    /// When that was first seen.
    since: Time,
    /// How often, since.
    sightings: u32,
    /// When the change began.
    began: Time,
}

impl<T: PartialEq> Quiet<T> {
    pub(super) fn new(taken: T) -> Self {
        Quiet { taken, changing: None }
    }

    pub(super) fn is_changing(&self) -> bool {
        self.changing.is_some()
    }

    /// What is seen now. True: it is to be taken.
    pub(super) fn see(&mut self, seen: T, now: Time) -> bool {
        let changing = match self.changing.take() {
            None if seen == self.taken => return false,
            None => Changing { seen, since: now, sightings: 1, began: now },
            Some(same) if same.seen == seen => Changing { sightings: same.sightings + 1, ..same },
            Some(other) => Changing { seen, since: now, sightings: 1, began: other.began },
        };
        let is_quiet = now.since(changing.since) >= QUIET && changing.sightings >= SIGHTINGS_MIN;
        if !is_quiet && now.since(changing.began) < CHANGING_MAX {
            self.changing = Some(changing);
            return false;
        }
        let is_new = changing.seen != self.taken;
        self.taken = changing.seen;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When (in ms) which of `seen` were taken, looking every 100 ms from 0.
    fn taken(seen: &str) -> Vec<(u64, char)> {
        let mut quiet = Quiet::new('a');
        let ticks = seen.chars().zip((0..).step_by(100));
        ticks
            .filter(|(seen, millis)| quiet.see(*seen, Time::from_nanos(millis * 1_000_000)))
            .map(|(seen, millis)| (millis, seen))
            .collect()
    }

    #[test]
    fn a_change_is_taken_once_it_has_stood_still() {
        let cases: [(&str, &[(u64, char)]); 8] = [
            ("aaaaaaaaaaaa", &[]),
            ("abbbbbbbbbbb", &[(500, 'b')]),
            ("abbbb", &[]),
            ("abcccccccccc", &[(600, 'c')]),
            ("abbbcbbbbbbb", &[(900, 'b')]),
            ("abbbaaaaaaaa", &[]),
            ("abbaabbbbbbb", &[(900, 'b')]),
            ("abbbbbcccccc", &[(500, 'b'), (1_000, 'c')]),
        ];
        for (seen, expected) in cases {
            assert_eq!(taken(seen), expected, "{seen}");
        }
    }

    #[test]
    fn what_never_stands_still_is_taken_after_ten_seconds() {
        let taken = taken(&"bcd".repeat(100));
        let times: Vec<u64> = taken.iter().map(|(millis, _)| *millis).collect();
        assert_eq!(times, [10_000, 20_100], "each ten seconds after a change began");
    }

    #[test]
    fn a_thread_that_hardly_comes_to_look_waits_longer() {
        let mut quiet = Quiet::new('a');
        let mut see = |millis: u64| quiet.see('b', Time::from_nanos(millis * 1_000_000));
        assert!(
            !see(100) && !see(900) && !see(1_700),
            "it may be half written, and nobody had time"
        );
        assert!(see(2_500));
    }
}
