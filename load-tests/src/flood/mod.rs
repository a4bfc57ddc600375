//! Does a gate stay small, and find and hold the few who matter, in a flood of keys that never return?
//!
//! One gate with one rule is asked by way of its layer, once as a throttle and once as a block. Some
//! keys are brought to their limit first. Then comes a flood in which 95 of 100 requests bear a key
//! that was never seen before; the others are of twenty keys that go over the limit and of twenty that
//! do not. Then come new keys alone, while one of the first is probed again and again.

use std::{
    fmt,
    io::{self, Write},
    net::Ipv4Addr,
    time::{Duration, Instant},
};

mod keys;
mod site;

use keys::{Named, Stream};
use site::Site;

/// Keys of each kind: those that go over the limit, those that stay below it, those held at it.
const KEYS_OF_A_KIND: usize = 20;

/// New keys for each request of a named one.
const NEW_KEYS_PER_NAMED: u64 = 19;

/// What the process may grow by: 64 MiB.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// Requests from one probe of a held key to the next.
const PROBE_REQUESTS: u64 = 1_000;

/// Requests from one look at the process's memory to the next.
const MEMORY_REQUESTS: u64 = 50_000;

/// How large a flood is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Different keys.
    pub(crate) keys: u32,
    /// The rule's limit.
    pub(crate) limit: u32,
    /// `[memory]` `keys`; `None`: what a gate has by default.
    pub(crate) memory: Option<u32>,
}

/// Floods a throttle and a block, and writes what came of it. Whether every promise was kept.
///
/// # Errors
///
/// When `out` cannot be written, or the process cannot see its own memory.
pub(crate) fn run(size: Size, out: &mut impl Write) -> io::Result<bool> {
    let before = resident_bytes()?;
    let mut kept = true;
    for action in ["throttle = {}", "block = { for = \"1h\" }"] {
        let outcome = flood(size, action, before)?;
        kept &= outcome.kept();
        writeln!(out, "{action}, over {}/1h, {} different keys\n{outcome}", size.limit, size.keys)?;
    }
    Ok(kept)
}

/// What came of a flood.
struct Outcome {
    /// What the process grew by at most, from before any gate was built.
    growth_bytes: u64,
    /// Keys that went over the limit and are hot.
    found: usize,
    /// Keys that did not and are.
    falsely: usize,
    /// Probes of a held key during the flood, and of all of them after it.
    probes: u64,
    /// Those of them that were admitted.
    slipped: u64,
    /// A request through the gate, the making of it included.
    per_request: Duration,
}

impl Outcome {
    fn kept(&self) -> bool {
        self.growth_bytes <= GROWTH_BYTES_MAX
            && self.found == KEYS_OF_A_KIND
            && self.falsely == 0
            && self.slipped == 0
    }
}

fn flood(size: Size, action: &str, before: u64) -> io::Result<Outcome> {
    let mut site = Site::new(size, action);
    let named = Named::new(size.limit);
    for held in &named.held {
        // No count is more than a fiftieth late.
        for _ in 0..=size.limit + size.limit / 50 {
            site.admits(*held);
        }
    }
    let mut progress = Progress { peak: before, requests: 0, probes: 0, slipped: 0 };
    let began = Instant::now();
    let mut stream = Stream::default();
    for request in named.shuffled() {
        for _ in 0..NEW_KEYS_PER_NAMED {
            progress.step(&mut site, stream.next_key(), &named)?;
        }
        progress.step(&mut site, request, &named)?;
    }
    while stream.given() < size.keys {
        progress.step(&mut site, stream.next_key(), &named)?;
    }
    let per_request = began.elapsed().div_f64(progress.requests as f64);
    for held in &named.held {
        progress.probe(&mut site, *held);
    }
    progress.look()?;
    let hot = site.hot();
    let count = |keys: &[Ipv4Addr]| keys.iter().filter(|key| hot.contains(key)).count();
    let found = count(&named.over);
    Ok(Outcome {
        growth_bytes: progress.peak.saturating_sub(before),
        found,
        falsely: hot.len() - found - count(&named.held),
        probes: progress.probes,
        slipped: progress.slipped,
        per_request,
    })
}

struct Progress {
    peak: u64,
    requests: u64,
    probes: u64,
    slipped: u64,
}

impl Progress {
    /// One request of the flood, and whatever is due after it.
    fn step(&mut self, site: &mut Site, key: Ipv4Addr, named: &Named) -> io::Result<()> {
        site.admits(key);
        self.requests += 1;
        if self.requests.is_multiple_of(PROBE_REQUESTS) {
            self.probe(site, named.held[0]);
        }
        if self.requests.is_multiple_of(MEMORY_REQUESTS) {
            self.look()?;
        }
        Ok(())
    }

    fn probe(&mut self, site: &mut Site, held: Ipv4Addr) {
        self.probes += 1;
        self.slipped += u64::from(site.admits(held));
    }

    fn look(&mut self) -> io::Result<()> {
        self.peak = self.peak.max(resident_bytes()?);
        Ok(())
    }
}

/// Bytes of this process in memory.
fn resident_bytes() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kibibytes = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    let missing = || io::Error::other("/proc/self/status does not say VmRSS");
    Ok(kibibytes.ok_or_else(missing)? << 10)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (growth, growth_max) = (mebibytes(self.growth_bytes), mebibytes(GROWTH_BYTES_MAX));
        writeln!(f, "  memory    {growth:.1} MiB more, of at most {growth_max}")?;
        let (found, falsely) = (self.found, self.falsely);
        writeln!(
            f,
            "  found     {found} of {KEYS_OF_A_KIND} keys over the limit, {falsely} falsely"
        )?;
        let (refused, probes) = (self.probes - self.slipped, self.probes);
        writeln!(f, "  held      {refused} of {probes} requests of keys at the limit refused")?;
        writeln!(f, "  request   {} ns", self.per_request.as_nanos())?;
        writeln!(f, "  promises  {}", if self.kept() { "kept" } else { "BROKEN" })
    }
}
