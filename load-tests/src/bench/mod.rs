//! What does one decision cost, beside governor's keyed check?
//!
//! Every variant decides the same keys, in short slices in rotating order, so that a machine that
//! slows down slows all of them. governor gets the address and nothing else.

mod limiter;
mod workload;

use std::{
    fmt::Write as _,
    io::{self, Write},
    net::IpAddr,
    sync::Barrier,
    time::Instant,
};

use limiter::{Counting, Governor, Hotgate, Limiter, Whole};
use workload::{Limit, Workload};

/// Slices whose keys differ; enough that caches see the whole population.
const SEQUENCES: usize = 16;

/// Runs every combination of limit, keys, skew and threads, and writes a table of each; then how the
/// worst of them stands to what was promised.
///
/// # Errors
///
/// When `out` cannot be written.
pub(crate) fn run(
    rounds: usize,
    slice: usize,
    keys_max: u32,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut ratios = Vec::new();
    for workload in Workload::all().filter(|workload| workload.keys <= keys_max) {
        let figures = compare(workload, rounds, slice);
        write_table(workload, &figures, out)?;
        ratios.extend(promises(workload, &figures));
    }
    write!(
        out,
        "\n{:62}{:>9}{:>9}\n",
        "promised of requests that pass, in the worst workload", "at most", "is"
    )?;
    for promise in PROMISES {
        let all = ratios.iter().filter(|(name, _)| *name == promise.0);
        // Without a workload of its kind there is nothing to say.
        if let Some(worst) = all.map(|(_, ratio)| *ratio).max_by(f64::total_cmp) {
            writeln!(out, "{:62}{:9.2}{worst:9.2}", promise.0, promise.1)?;
        }
    }
    Ok(())
}

/// What is promised, and the greatest ratio that keeps it.
const PROMISES: [(&str, f64); 5] = [
    ("whole decision to governor, 1 thread, up to 100,000 keys", 1.5),
    ("whole decision to governor, 2 threads", 1.0),
    ("whole decision to governor, 1,000,000 keys", 1.0),
    ("counting alone to governor", 0.9),
    ("three rules to one", 2.5),
];

/// What one variant took.
struct Figure {
    name: &'static str,
    /// To a decision, in the lower quartile of all slices.
    nanos: f64,
    passed: f64,
}

/// The ratios of one workload, each by what it was promised.
fn promises(workload: Workload, figures: &[Figure]) -> Vec<(&'static str, f64)> {
    // A refusal is another thing: there Hotgate makes an answer, with its wait and its reason.
    let [governor, counting, one, three] = figures else { return Vec::new() };
    if workload.limit != Limit::Passing {
        return Vec::new();
    }
    let mut ratios = vec![
        (PROMISES[3].0, counting.nanos / governor.nanos),
        (PROMISES[4].0, three.nanos / one.nanos),
    ];
    let whole = one.nanos / governor.nanos;
    if workload.threads > 1 {
        ratios.push((PROMISES[1].0, whole));
    }
    if workload.keys >= 1_000_000 {
        ratios.push((PROMISES[2].0, whole));
    } else if workload.threads == 1 {
        ratios.push((PROMISES[0].0, whole));
    }
    ratios
}

fn compare(workload: Workload, rounds: usize, slice: usize) -> Vec<Figure> {
    let plain = Hotgate::new(workload, &rules(workload, 1, false), "r0");
    let one = Hotgate::new(workload, &rules(workload, 1, true), "r0");
    let three = Hotgate::new(workload, &rules(workload, 3, true), "r0");
    let limiters: [(&str, Box<dyn Limiter>); 4] = [
        ("governor, keyed check", Box::new(Governor::new(workload))),
        ("hotgate, counting alone", Box::new(Counting(plain))),
        ("hotgate, whole, 1 rule of 20", Box::new(Whole(one))),
        ("hotgate, whole, 3 rules of 20", Box::new(Whole(three))),
    ];
    let sequences: Vec<Vec<IpAddr>> =
        (0..SEQUENCES).map(|seed| workload.clients(seed as u64, slice)).collect();
    // Each meets every client once before the clock is looked at.
    for clients in sequences.iter().take(rounds) {
        limiters.iter().for_each(|(_, limiter)| _ = limiter.pass(clients));
    }
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
    let decisions = (rounds * slice * workload.threads) as f64;
    let figure = |((name, _), (times, passed)): (&(&'static str, _), (&mut Vec<f64>, usize))| {
        Figure { name, nanos: lower_quartile(times), passed: passed as f64 / decisions }
    };
    limiters.iter().zip(times.iter_mut().zip(passed)).map(figure).collect()
}

/// Rules by client, the first `matching` of which match [`limiter`]'s request: of 20 with paths of
/// their own, or without any path.
fn rules(workload: Workload, matching: usize, with_paths: bool) -> String {
    let mut rules = String::new();
    for n in 0..if with_paths { 20 } else { matching } {
        let path = match (with_paths, n < matching) {
            (false, _) => String::new(),
            (true, true) => "match = \"/products/{id}\"\n".to_owned(),
            (true, false) => format!("match = \"/section{n}/{{id}}/detail\"\n"),
        };
        let over = workload.limit.over();
        let _ = write!(
            rules,
            "[[rule]]\nname = \"r{n}\"\n{path}key = [\"client\"]\nover = \"{over}\"\nthrottle = {{}}\n"
        );
    }
    rules
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
        let passed = limiter.pass(clients);
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

fn lower_quartile(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 4]
}

fn write_table(workload: Workload, figures: &[Figure], out: &mut impl Write) -> io::Result<()> {
    write!(out, "\n{workload}\n{:31}{:>8}{:>10}{:>11}\n", "", "ns", "ratio", "passed")?;
    let base = figures[0].nanos;
    for Figure { name, nanos, passed } in figures {
        writeln!(out, "{name:31}{nanos:8.1}{:10.2}{:9.1} %", nanos / base, passed * 100.0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_variant_runs_at_size_one() {
        let mut table = Vec::new();
        super::run(1, 1, 1_000, &mut table).expect("a vector takes everything");
        let table = String::from_utf8(table).expect("text");
        assert_eq!(table.matches("governor, keyed check").count(), 12, "a peer in every table");
    }
}
