//! What does a gate cost an Axum service, beside a layer that does nothing and beside `tower_governor`?
//! And what does a refusal cost, beside a handler that refuses by itself?

use std::{
    io::{self, Write},
    time::Instant,
};

mod callgrind;
mod variant;
mod wrk;

pub(crate) use callgrind::requests;
pub(crate) use variant::Variant;

use callgrind::Cost;
use variant::{CLIENTS, Clients, request, send};

/// What requests a second with a gate are of those without one, at least.
const RATIO_MIN: f64 = 0.97;

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Clients that callgrind sees once before it counts.
    pub(crate) clients: u32,
    /// Requests that callgrind counts, and again as many.
    pub(crate) requests: u32,
    /// How often each server is asked, one beside the other.
    pub(crate) rounds: usize,
    /// For how long.
    pub(crate) seconds: u32,
}

/// Runs all comparisons and writes them. Whether every promise was kept, as far as there were the tools
/// to tell.
///
/// # Errors
///
/// When `out` cannot be written, or a tool is there and fails.
pub(crate) fn run(size: Size, out: &mut impl Write) -> io::Result<bool> {
    let in_process = in_process(size, out)?;
    let over_sockets = over_sockets(size, out)?;
    Ok(in_process && over_sockets)
}

/// The service called without a socket, in the order of the table.
const IN_PROCESS: [Variant; 7] = [
    Variant::Noop,
    Variant::OneRule,
    Variant::ThreeRules,
    Variant::TowerGovernor,
    Variant::Own429,
    Variant::Throttled,
    Variant::Blocked,
];

fn in_process(size: Size, out: &mut impl Write) -> io::Result<bool> {
    let nanos = nanos(size);
    let mut costs = Vec::new();
    for variant in IN_PROCESS {
        match callgrind::cost(variant, size.clients, size.requests)? {
            Some(cost) => costs.push(cost),
            None => break,
        }
    }
    writeln!(
        out,
        "a request in process\n{:26}{:>8}{:>14}{:>13}",
        "", "ns", "instructions", "allocations"
    )?;
    for (place, (variant, nanos)) in IN_PROCESS.iter().zip(&nanos).enumerate() {
        write!(out, "{variant:26}{nanos:8.0}")?;
        match costs.get(place) {
            Some(cost) => writeln!(out, "{:14.0}{:13.2}", cost.instructions, cost.allocations)?,
            None => writeln!(out, "{:>14}{:>13}", "-", "-")?,
        }
    }
    if costs.is_empty() {
        writeln!(out, "skipped: instructions and allocations, since there is no valgrind\n")?;
        return Ok(true);
    }
    let of = |variant| cost_of(&costs, variant).instructions;
    let (ours, peer) = (of(Variant::OneRule), of(Variant::TowerGovernor));
    let kept = ours < peer;
    writeln!(
        out,
        "{}: one rule {:+.0} instructions, tower_governor {:+.0}\n",
        told(kept),
        ours - of(Variant::Noop),
        peer - of(Variant::Noop),
    )?;
    Ok(kept)
}

fn cost_of(costs: &[Cost], variant: Variant) -> Cost {
    let place = IN_PROCESS.iter().position(|one| *one == variant);
    place.and_then(|place| costs.get(place)).copied().unwrap_or_default()
}

/// Nanoseconds of a request to each variant: the lower quartile of slices in rotating order.
fn nanos(size: Size) -> Vec<f64> {
    let mut services: Vec<_> =
        IN_PROCESS.iter().map(|variant| variant.service(Clients::Peers)).collect();
    let slice = size.requests.clamp(1, 4_096);
    let mut times = vec![Vec::new(); services.len()];
    for round in 0..4 * size.rounds.max(1) {
        for turn in 0..services.len() {
            let which = (round + turn) % services.len();
            let first = u32::try_from(round).expect("a few rounds").wrapping_mul(slice);
            let requests: Vec<_> =
                (0..slice).map(|number| request(first.wrapping_add(number) % CLIENTS)).collect();
            let began = Instant::now();
            for request in requests {
                send(&mut services[which], request);
            }
            times[which].push(began.elapsed().as_nanos() as f64 / f64::from(slice));
        }
    }
    times
        .into_iter()
        .map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 4]
        })
        .collect()
}

/// What is compared over sockets, and whether a share of it is promised.
const OVER_SOCKETS: [(Variant, Variant, bool); 5] = [
    (Variant::Noop, Variant::OneRule, true),
    (Variant::Noop, Variant::ThreeRules, true),
    (Variant::Noop, Variant::TowerGovernor, false),
    (Variant::Own429, Variant::Throttled, false),
    (Variant::Own429, Variant::Blocked, false),
];

fn over_sockets(size: Size, out: &mut impl Write) -> io::Result<bool> {
    writeln!(out, "requests a second, medians of {} rounds of {} s", size.rounds, size.seconds)?;
    let (mut kept, pinned) = (true, wrk::pin());
    for (peer, ours, promised) in OVER_SOCKETS {
        let Some(rounds) = wrk::compare(peer, ours, size.rounds, size.seconds, pinned)? else {
            writeln!(out, "skipped: there is no wrk")?;
            return Ok(true);
        };
        let ratios = rounds.ratios();
        let ratio = quantile(&ratios, 2);
        write!(
            out,
            "{ours:26}{:8.0}\n{peer:26}{:8.0}   ratio {ratio:.3} (quartiles {:.3} to {:.3})",
            median(rounds.ours),
            median(rounds.peer),
            quantile(&ratios, 1),
            quantile(&ratios, 3),
        )?;
        if promised {
            kept &= ratio >= RATIO_MIN;
            write!(out, " {}", told(ratio >= RATIO_MIN))?;
        }
        writeln!(out)?;
    }
    Ok(kept)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    quantile(&rates, 2)
}

/// The value below which so many quarters lie; of nothing, none.
fn quantile(sorted: &[f64], quarters: usize) -> f64 {
    let place = (sorted.len() * quarters / 4).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

fn told(kept: bool) -> &'static str {
    if kept { "kept" } else { "BROKEN" }
}
