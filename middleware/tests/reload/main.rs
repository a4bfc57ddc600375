//! The rule file replaced in every way there is, under load: in force within a second, every time.
//!
//! It takes about a minute and a quarter, and is a test binary of its own so that it has the machine for
//! itself: it measures times.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "the lint knows tests, not what they share")]

mod site;
mod ways;

use std::{
    thread,
    time::{Duration, Instant},
};

use hotgate::Mode;
use http::StatusCode;
use site::{Load, Site, pause};
use ways::{WAYS, Way};

/// How often the file is replaced in each way; `HOTGATE_ROUNDS` asks for others.
fn rounds() -> u32 {
    std::env::var("HOTGATE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100)
}

/// The promise.
const IN_FORCE_MAX: Duration = Duration::from_secs(1);

#[test]
fn the_rule_file_is_in_force_within_a_second_however_it_is_replaced() {
    let rounds = rounds();
    thread::scope(|scope| {
        let all: Vec<_> = WAYS
            .iter()
            .map(|way| (way.name, scope.spawn(move || replace_again_and_again(way, rounds))))
            .collect();
        for (name, way) in all {
            let mut took = way.join().unwrap_or_else(|_| panic!("{name} failed, as said above"));
            took.sort_unstable();
            let (median, max) = (took[took.len() / 2], took[took.len() - 1]);
            println!(
                "{name}: in force after {median:.0?}, at most {max:.0?}, {} times",
                took.len()
            );
        }
    });
}

/// How long each change took, from the moment the file was whole.
fn replace_again_and_again(way: &Way, rounds: u32) -> Vec<Duration> {
    let mut site = Site::new(way);
    let load = Load::start(&site);
    let mut took = Vec::new();
    for round in 1..=rounds {
        // Whatever the time between the change and the next tick, it is tried.
        pause(Duration::from_millis(u64::from(round) * 37 % 100));
        let since = site.replace(way, round);
        took.push(in_force(&format!("{}, round {round}", way.name), since, || site.denies(round)));
        site.expect_all_else_as_it_was(round);
    }
    load.stop_expecting_refusals();
    kill_by_file(&mut site, way, rounds + 1);
    kill_by_command(&mut site);
    let requests = load.stop();
    assert!(requests > u64::from(rounds) * 100, "{requests} requests are no load");
    took
}

/// Waits for what must come, and says how long after `since` it came.
fn in_force(what: &str, since: Instant, is_so: impl Fn() -> bool) -> Duration {
    const GLANCE: Duration = Duration::from_millis(2);
    // What the machine, busy with others, kept this thread from looking, it kept the gate's, too.
    let mut kept = Duration::ZERO;
    while !is_so() {
        assert!(since.elapsed() < 10 * IN_FORCE_MAX, "{what}: not in force after ten seconds");
        let looked = Instant::now();
        pause(GLANCE);
        kept += looked.elapsed().saturating_sub(5 * GLANCE);
    }
    let took = since.elapsed();
    assert!(took <= IN_FORCE_MAX + kept, "{what}: in force only after {took:?}, kept {kept:?}");
    took
}

fn kill_by_file(site: &mut Site, way: &Way, round: u32) {
    assert_eq!(site.last(), StatusCode::FORBIDDEN);
    site.mode = "observe";
    let since = site.replace(way, round);
    in_force("the kill switch by file", since, || site.last() == StatusCode::OK);
    site.mode = "enforce";
    let since = site.replace(way, round + 1);
    in_force("the file's end of it", since, || site.last() == StatusCode::FORBIDDEN);
}

fn kill_by_command(site: &mut Site) {
    for (mode, status) in [
        (Mode::Off, StatusCode::OK),
        (Mode::Observe, StatusCode::OK),
        (Mode::Enforce, StatusCode::FORBIDDEN),
    ] {
        site.gate.set_mode(None, mode).unwrap();
        assert_eq!(site.last(), status, "{mode:?} by command, as soon as it is given");
    }
}
