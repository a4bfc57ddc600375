//! Threads that decide and settle while engines follow one another.

use std::{
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use hotgate_detector::{Decision, Engine, Outcome, Time};
use http::StatusCode;

use super::stream::{Stream, listed};
use crate::harness::{engine, get, ms, rule_set};

const THREADS: u32 = 4;

/// What a gate does: each request takes the engine of the moment, and settles with that of another.
struct Gate(RwLock<Arc<Engine>>);

impl Gate {
    fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.0.read().unwrap())
    }

    fn decide(&self, path: &str, now: Time) -> Decision {
        get(path).decide(&self.engine(), now)
    }

    fn settle(&self, decision: Decision, status: StatusCode, now: Time) {
        self.engine().settle(decision.charges, Outcome::Status(status), now);
    }

    fn reload(&self, rules: &str, now: Time) {
        let next = self.engine().succeed(rule_set(rules), now);
        let next = Arc::new(next);
        *self.0.write().unwrap() = Arc::clone(&next);
        next.settle_memory();
    }
}

/// Lets the other threads end, also where this one fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A file whose rules stay but for the limits of two, and the action and place of another.
fn rules(round: u32, limit: u32) -> String {
    let rule = |name: &str, over: u32, more: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\nkey = [\"client\"]\nover = \"{over}/1h\"\nmatch = \"/{name}\"\n{more}\n"
        )
    };
    let kind = ["throttle = {}", "block = { for = \"1ms\", grow = 2 }"][round as usize / 3 % 2];
    let login = "count = { status = [401], pending = 3 }\nthrottle = {}";
    let mut parts = [
        rule("exact", 10, "throttle = {}"),
        rule("coarse", 1_000, "throttle = {}"),
        rule("grows", limit, "throttle = {}"),
        rule("login", limit, login),
        rule("kind", 2, kind),
    ];
    parts.rotate_left(round as usize % 5);
    format!("[memory]\nkeys = 4\n{}", parts.concat())
}

#[test]
fn nobody_gains_by_a_reload_and_nothing_is_left_over() {
    let mut limit = 2;
    let gate = Gate(RwLock::new(Arc::new(engine(&rules(0, limit)))));
    let (over, stream) = (AtomicBool::new(false), Mutex::new(Stream::default()));
    let admitted: [AtomicU32; 4] = Default::default();
    let mut last = 0;
    std::thread::scope(|scope| {
        let (gate, over, admitted) = (&gate, &over, &admitted);
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut round = thread;
                while !over.load(Relaxed) {
                    round += 1;
                    let now = ms(1_000 + u64::from(round) / 100);
                    for (path, admitted) in ["/exact", "/coarse", "/grows"].iter().zip(admitted) {
                        let passes = gate.decide(path, now).refusal.is_none();
                        admitted.fetch_add(u32::from(passes), Relaxed);
                    }
                    let _ = gate.decide("/kind", now);
                    let decision = gate.decide("/login", now);
                    if decision.refusal.is_none() {
                        admitted[3].fetch_add(1, Relaxed);
                        std::thread::yield_now();
                        gate.settle(decision, StatusCode::UNAUTHORIZED, now);
                    }
                }
            });
        }
        let (stream, last) = (&stream, &mut last);
        let reloads = scope.spawn(move || {
            let _over = Over(over);
            for round in 1..=400 {
                let now = ms(1_000 + u64::from(round));
                // By one, until windows are no longer exact: past it by many.
                limit += if limit < 60 { u32::from(round % 6 == 0) } else { 40 };
                gate.reload(&rules(round, limit), now);
                let engine = gate.engine();
                let key = "client=203.0.113.9";
                if round % 5 == 0 {
                    engine.block("kind", key, Duration::from_millis(3), now).unwrap();
                }
                if round % 7 == 0 {
                    engine.lift("kind", key, now).unwrap();
                }
                stream.lock().unwrap().hear(engine.tick(now)).unwrap();
                std::thread::yield_now();
            }
            limit
        });
        *last = reloads.join().unwrap();
    });
    let [exact, coarse, grows, login] = admitted.map(AtomicU32::into_inner);
    assert_eq!(exact, 10, "a limit that stays is exact through every reload");
    assert!((1_000..=1_020).contains(&coarse), "{coarse} of 1,000, to two per cent");
    // A thread that is overtaken goes by the limit before, whose window remembers fewer: those that the
    // limit grew by may pass again, once for each such thread and reload. That hardly ever happens.
    let most = last + last / 50 + 40 + THREADS * 40;
    assert!(grows <= most && login <= most + 2, "{grows} and {login} of {last}, at most {most}");
    let (engine, later) = (gate.engine(), ms(10_000));
    let mut stream = stream.into_inner().unwrap();
    stream.hear(engine.tick(later)).unwrap();
    assert_eq!(stream.standing(), listed(&engine, later), "what was said is what stands");
    let end = ms(100_000_000);
    for _ in 0..3 {
        let decision = gate.decide("/login", end);
        assert!(decision.refusal.is_none(), "nothing is still pending: {:?}", decision.refusal);
    }
    stream.hear(engine.tick(end)).unwrap();
    assert!(stream.standing().is_empty(), "all ends");
}
