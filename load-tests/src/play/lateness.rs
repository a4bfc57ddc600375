//! How late lines were, in bounded memory.

use std::time::Duration;

/// Each power of two of microseconds is told apart in that many steps (as a power of two itself), so
/// that a median is at most 1/32 off.
const STEP_BITS: u32 = 5;

/// Up to `u64::MAX` microseconds.
const BUCKETS: usize = ((64 - STEP_BITS + 1) << STEP_BITS) as usize;

/// How late lines were: how many by the slack or more, the median, and the most.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    slack: Duration,
    lines: u64,
    too_late: u64,
    most: Duration,
    buckets: Box<[u64]>,
}

impl Lateness {
    pub(super) fn new(slack: Duration) -> Self {
        let buckets = vec![0; BUCKETS].into();
        Lateness { slack, lines: 0, too_late: 0, most: Duration::ZERO, buckets }
    }

    pub(super) fn take(&mut self, late: Duration) {
        self.lines += 1;
        self.too_late += u64::from(late >= self.slack);
        self.most = self.most.max(late);
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket(micros)] += 1;
    }

    /// How many were late by the slack or more.
    pub(super) fn too_late(&self) -> u64 {
        self.too_late
    }

    pub(super) fn most(&self) -> Duration {
        self.most
    }

    /// Half of the lines were at most that late, to a 32nd upwards; zero if there were none.
    pub(super) fn p50(&self) -> Duration {
        let half = self.lines.div_ceil(2);
        let mut below = 0;
        for (index, lines) in self.buckets.iter().enumerate() {
            below += lines;
            if below >= half && below > 0 {
                return Duration::from_micros(largest(index)).min(self.most);
            }
        }
        Duration::ZERO
    }
}

/// Up to 63 each microsecond has a bucket; above, the highest bits decide.
fn bucket(micros: u64) -> usize {
    let shift = (u64::BITS - micros.leading_zeros()).saturating_sub(STEP_BITS + 1);
    let index = (u64::from(shift) << STEP_BITS) + (micros >> shift);
    usize::try_from(index).expect("it is below BUCKETS")
}

/// The largest number of microseconds in a bucket.
fn largest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> STEP_BITS).saturating_sub(1);
    let first = (bucket - (shift << STEP_BITS)) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_is_at_most_a_32nd_apart() {
        let edges = (0..64).flat_map(|bits| {
            let power = 1_u64 << bits;
            [power - 1, power, power + 1, power + power / 3]
        });
        for micros in edges.chain([u64::MAX]) {
            let index = bucket(micros);
            let most = largest(index);
            assert!(index < BUCKETS, "{micros} is in a bucket that exists");
            assert!(
                most >= micros && most - micros <= micros >> STEP_BITS,
                "{micros} tells as {most}"
            );
            assert_eq!(bucket(most), index, "{most} is the largest of its bucket");
            if let Some(next) = most.checked_add(1) {
                assert_eq!(bucket(next), index + 1, "no bucket is left out after {most}");
            }
        }
    }

    #[test]
    fn the_median_is_that_of_the_lines_and_the_most_is_exact() {
        let table: [(&[u64], u64, u64); 5] = [
            (&[], 0, 0),
            (&[7], 7, 7),
            (&[0, 0, 9], 0, 9),
            (&[3, 1, 2, 50, 40], 3, 50),
            (&[1_000_003, 2, 1_000_003], 1_000_003, 1_000_003),
        ];
        for (micros, p50, most) in table {
            let mut lateness = Lateness::new(Duration::from_micros(40));
            for late in micros {
                lateness.take(Duration::from_micros(*late));
            }
            assert_eq!(lateness.p50(), Duration::from_micros(p50), "{micros:?}");
            assert_eq!(lateness.most(), Duration::from_micros(most), "{micros:?}");
            let too_late = micros.iter().filter(|late| **late >= 40).count() as u64;
            assert_eq!(lateness.too_late(), too_late, "40 of 40 µs is too late: {micros:?}");
        }
    }
}
