//! Which requests are decided: how many clients, how uneven, by which limit.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU32,
    time::Duration,
};

use governor::Quota;

/// Fixed, so that two runs decide the same requests.
const SEED: u64 = 0x5851_f42d_4c95_7f2d;

#[derive(Clone, Copy)]
pub(super) struct Workload {
    pub(super) limit: Limit,
    pub(super) keys: u32,
    pub(super) skew: Skew,
    pub(super) threads: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// 10000000/1s: everybody passes.
    Passing,
    /// 1000/1s: the busiest clients are refused.
    Mixed,
    /// 10/1m: almost everybody is refused.
    Refusing,
}

#[derive(Clone, Copy)]
pub(super) enum Skew {
    Zipf,
    Uniform,
}

impl Workload {
    /// Every combination.
    pub(super) fn all() -> impl Iterator<Item = Workload> {
        let limits = [Limit::Passing, Limit::Mixed, Limit::Refusing];
        let with_keys = |limit| [1_000, 100_000, 1_000_000].map(|keys| (limit, keys));
        let with_skew = |(limit, keys)| [Skew::Zipf, Skew::Uniform].map(|skew| (limit, keys, skew));
        let with_threads =
            |(limit, keys, skew)| [1, 2].map(|threads| Workload { limit, keys, skew, threads });
        limits.into_iter().flat_map(with_keys).flat_map(with_skew).flat_map(with_threads)
    }

    /// The clients of `length` requests.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank, below 2²⁴"
    )]
    pub(super) fn clients(self, seed: u64, length: usize) -> Vec<IpAddr> {
        let mut state = SEED ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let cumulative: Vec<f64> = match self.skew {
            Skew::Uniform => Vec::new(),
            Skew::Zipf => (1..=self.keys)
                .scan(0.0, |sum, rank| {
                    *sum += 1.0 / f64::from(rank);
                    Some(*sum)
                })
                .collect(),
        };
        let client = |_| {
            let random = uniform(&mut state);
            let rank = match cumulative.last() {
                None => random * f64::from(self.keys),
                Some(total) => cumulative.partition_point(|sum| *sum < random * total) as f64,
            };
            IpAddr::V4(Ipv4Addr::from_bits(FIRST.to_bits() + rank as u32))
        };
        (0..length).map(client).collect()
    }
}

/// The busiest client.
const FIRST: Ipv4Addr = Ipv4Addr::new(50, 0, 0, 0);

impl Limit {
    pub(super) fn over(self) -> &'static str {
        match self {
            Limit::Passing => "10000000/1s",
            Limit::Mixed => "1000/1s",
            Limit::Refusing => "10/1m",
        }
    }

    pub(super) fn quota(self) -> Quota {
        let (limit, window) = match self {
            Limit::Passing => (10_000_000, Duration::from_secs(1)),
            Limit::Mixed => (1_000, Duration::from_secs(1)),
            Limit::Refusing => (10, Duration::from_secs(60)),
        };
        let quota = Quota::with_period(window / limit).expect("not zero");
        quota.allow_burst(NonZeroU32::new(limit).expect("not zero"))
    }
}

/// From 0 to 1 (SplitMix64).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skew = match self.skew {
            Skew::Zipf => "Zipf",
            Skew::Uniform => "uniform",
        };
        let (over, keys, threads) = (self.limit.over(), self.keys, self.threads);
        write!(f, "over {over}, {keys} keys, {skew}, {threads} thread(s)")
    }
}
