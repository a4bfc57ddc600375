//! What does one decision cost, beside governor's keyed check?
//!
//! Every variant decides the same keys, in short slices in rotating order, so that a machine that
//! slows down slows all of them. A decision is complete: the clock is read, the request matched, its
//! key taken and hashed, its window checked and charged. governor gets the address and nothing else.

use std::{
    io::{self, Write},
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU32,
    sync::Barrier,
    time::{Duration, Instant},
};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use hotgate_detector::{Config, Engine, Time};
use hotgate_rules::{Facts, RequestPath};
use http::{HeaderMap, Method};

/// Fixed, so that two runs decide the same requests.
const SEED: u64 = 0x5851_f42d_4c95_7f2d;

/// Slices whose keys differ; enough that caches see the whole population.
const SEQUENCES: usize = 16;

/// Runs every combination of keys, limit and threads, and writes a table of each.
///
/// # Errors
///
/// When `out` cannot be written.
pub(crate) fn run(rounds: usize, slice: usize, out: &mut impl Write) -> io::Result<()> {
    for limit in [Limit::Passing, Limit::Refusing] {
        for keys in [1_000, 100_000, 1_000_000] {
            for skew in [Skew::Zipf, Skew::Uniform] {
                for threads in [1, 2] {
                    let workload = Workload { limit, keys, skew, threads };
                    compare(workload, rounds, slice, out)?;
                }
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Workload {
    limit: Limit,
    keys: u32,
    skew: Skew,
    threads: usize,
}

#[derive(Clone, Copy)]
enum Limit {
    /// 1000/1s.
    Passing,
    /// 10/1m.
    Refusing,
}

#[derive(Clone, Copy)]
enum Skew {
    Zipf,
    Uniform,
}

/// Something that decides a request of a client; whether it passes.
trait Limiter: Sync {
    fn passes(&self, client: IpAddr) -> bool;
}

struct Governor(DefaultKeyedRateLimiter<IpAddr>);

impl Limiter for Governor {
    fn passes(&self, client: IpAddr) -> bool {
        self.0.check_key(&client).is_ok()
    }
}

struct Hotgate {
    engine: Engine,
    clock: quanta::Clock,
    origin: quanta::Instant,
    headers: HeaderMap,
    path: &'static str,
}

impl Limiter for Hotgate {
    fn passes(&self, client: IpAddr) -> bool {
        let facts = Facts {
            method: Some(&Method::GET),
            path: RequestPath::new(self.path),
            query: None,
            host: None,
            headers: &self.headers,
            route: None,
            client: Some(client),
            extracted: &(),
        };
        let since = self.clock.now().duration_since(self.origin);
        let now = Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        self.engine.decide(&facts, now).refusal.is_none()
    }
}

impl Limit {
    fn over(self) -> &'static str {
        match self {
            Limit::Passing => "1000/1s",
            Limit::Refusing => "10/1m",
        }
    }

    fn quota(self) -> Quota {
        let (limit, window) = match self {
            Limit::Passing => (1_000, Duration::from_secs(1)),
            Limit::Refusing => (10, Duration::from_secs(60)),
        };
        let quota = Quota::with_period(window / limit).expect("not zero");
        quota.allow_burst(NonZeroU32::new(limit).expect("not zero"))
    }
}

fn hotgate(workload: Workload, path: &'static str, matches: &str) -> Hotgate {
    let rules = format!(
        "app = \"bench\"\n[memory]\nkeys = {keys}\n{matches}over = \"{over}\"\nthrottle = {{}}",
        keys = workload.keys,
        over = workload.limit.over(),
    );
    let rules = rules.parse().unwrap_or_else(|problems| panic!("{problems}"));
    let config =
        Config { table_seed: [SEED, 1, 2, 3], privacy_secret: [0; 16], origin_unix_nanos: 0 };
    let clock = quanta::Clock::new();
    let origin = clock.now();
    Hotgate { engine: Engine::new(rules, config), clock, origin, headers: HeaderMap::new(), path }
}

/// Nineteen rules that the request does not match, before the one it does.
fn twenty_routes() -> String {
    let others: String = (0..19)
        .map(|n| {
            format!(
                "[[rule]]\nname = \"r{n}\"\nmatch = \"/section{n}/{{id}}/detail\"\nkey = [\"client\"]\n\
                 over = \"9/1m\"\nthrottle = {{}}\n"
            )
        })
        .collect();
    format!("{others}[[rule]]\nname = \"one\"\nmatch = \"/products/{{id}}\"\nkey = [\"client\"]\n")
}

fn compare(
    workload: Workload,
    rounds: usize,
    slice: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let all = "[[rule]]\nname = \"one\"\nkey = [\"client\"]\n";
    let limiters: [(&str, Box<dyn Limiter>); 3] = [
        ("governor, keyed check", Box::new(Governor(RateLimiter::keyed(workload.limit.quota())))),
        ("hotgate, one rule", Box::new(hotgate(workload, "/products/7", all))),
        ("hotgate, one of 20 routes", Box::new(hotgate(workload, "/products/7", &twenty_routes()))),
    ];
    let sequences: Vec<Vec<IpAddr>> =
        (0..SEQUENCES).map(|seed| sequence(workload, seed as u64, slice)).collect();
    let mut times = vec![Vec::new(); limiters.len()];
    let mut passed = vec![0; limiters.len()];
    for round in 0..rounds {
        for turn in 0..limiters.len() {
            let which = (round + turn) % limiters.len();
            let (nanos, passes) = time(&*limiters[which].1, workload.threads, &sequences, round);
            times[which].push(nanos);
            passed[which] += passes;
        }
    }
    write!(out, "\n{workload}\n{:28}{:>10}{:>10}{:>9}\n", "", "ns", "ratio", "passed")?;
    let base = lower_quartile(&mut times[0]);
    for (((name, _), times), passed) in limiters.iter().zip(&mut times).zip(passed) {
        let nanos = lower_quartile(times);
        let share = passed as f64 / (rounds * slice * workload.threads) as f64;
        writeln!(out, "{name:28}{nanos:10.1}{:10.2}{:8.1} %", nanos / base, share * 100.0)?;
    }
    Ok(())
}

/// Nanoseconds to a decision in each thread, and how many passed.
fn time(
    limiter: &dyn Limiter,
    threads: usize,
    sequences: &[Vec<IpAddr>],
    round: usize,
) -> (f64, usize) {
    let start = Barrier::new(threads);
    let run = |thread: usize| {
        let clients = &sequences[(round * threads + thread) % sequences.len()];
        start.wait();
        let began = Instant::now();
        let passed = clients.iter().filter(|client| limiter.passes(**client)).count();
        (began.elapsed().as_nanos() as f64 / clients.len() as f64, passed)
    };
    let results: Vec<(f64, usize)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("a thread that only counts"))
            .collect()
    });
    let nanos = results.iter().map(|(nanos, _)| nanos).sum::<f64>() / threads as f64;
    (nanos, results.iter().map(|(_, passed)| passed).sum())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank, below 2²⁴")]
fn sequence(workload: Workload, seed: u64, slice: usize) -> Vec<IpAddr> {
    let mut state = SEED ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let cumulative: Vec<f64> = match workload.skew {
        Skew::Uniform => Vec::new(),
        Skew::Zipf => (1..=workload.keys)
            .scan(0.0, |sum, rank| {
                *sum += 1.0 / f64::from(rank);
                Some(*sum)
            })
            .collect(),
    };
    let client = |_| {
        let random = uniform(&mut state);
        let rank = match cumulative.last() {
            None => random * f64::from(workload.keys),
            Some(total) => cumulative.partition_point(|sum| *sum < random * total) as f64,
        };
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + rank as u32))
    };
    (0..slice).map(client).collect()
}

/// From 0 to 1 (SplitMix64).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
}

fn lower_quartile(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 4]
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let skew = match self.skew {
            Skew::Zipf => "Zipf",
            Skew::Uniform => "uniform",
        };
        let (over, keys, threads) = (self.limit.over(), self.keys, self.threads);
        write!(f, "over {over}, {keys} keys, {skew}, {threads} thread(s)")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_variant_runs_at_size_one() {
        let mut table = Vec::new();
        super::run(1, 1, &mut table).expect("a vector takes everything");
        let table = String::from_utf8(table).expect("text");
        assert_eq!(table.matches("governor").count(), 24, "a peer in every table");
    }
}
