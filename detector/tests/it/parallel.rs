//! Many threads, one count.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hotgate_detector::{Change, Outcome};
use http::StatusCode;

use crate::harness::{engine, get, ms, post};

/// Calls `ask` from four threads, a thousand times in all.
fn a_thousand(ask: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let ask = &ask;
            scope.spawn(move || (0..250).for_each(|n| ask(thread * 250 + n)));
        }
    });
}

// C53
#[test]
fn exactly_the_limit_passes_under_any_parallelism() {
    for round in 0..200 {
        let engine = engine(
            r#"
            [memory]
            keys = 16
            [[rule]]
            name = "client"
            key = ["client"]
            over = "10/1m"
            throttle = {}
            [[rule]]
            name = "path"
            key = ["path"]
            over = "15/1m"
            throttle = {}
            "#,
        );
        let passed = AtomicU32::new(0);
        a_thousand(|n| {
            if get("/x").passes(&engine, ms(1_000 + n)) {
                passed.fetch_add(1, Relaxed);
            }
        });
        assert_eq!(passed.into_inner(), 10, "round {round}");
        let others =
            (0..10).filter(|_| get("/x").from("192.0.2.1").passes(&engine, ms(3_000))).count();
        assert_eq!(others, 5, "the rule by path was charged ten, in round {round}");
    }
}

#[test]
fn a_block_begins_once_and_nothing_passes_after_it() {
    for round in 0..200 {
        let engine = engine(
            r#"
            [memory]
            keys = 16
            [[rule]]
            name = "all"
            key = ["client"]
            over = "10/1m"
            block = { for = "1h" }
            "#,
        );
        let passed = AtomicU32::new(0);
        a_thousand(|n| {
            if get("/").passes(&engine, ms(1_000 + n)) {
                passed.fetch_add(1, Relaxed);
            }
        });
        assert_eq!(passed.into_inner(), 10, "round {round}");
        assert_eq!(engine.tick(ms(5_000)).len(), 1, "one verdict began in round {round}");
    }
}

#[test]
fn parallel_guesses_stay_within_their_bound_and_leave_nothing_pending() {
    for round in 0..200 {
        let engine = engine(
            r#"
            [memory]
            keys = 16
            [[rule]]
            name = "login"
            match = "POST /login"
            key = ["client"]
            count = { status = [401], pending = 4 }
            over = "10/1m"
            throttle = {}
            "#,
        );
        let reached = AtomicU64::new(0);
        a_thousand(|n| {
            let decision = post("/login").decide(&engine, ms(1_000 + n));
            if decision.refusal.is_none() {
                reached.fetch_add(1, Relaxed);
                std::thread::yield_now();
                let wrong = Outcome::Status(StatusCode::UNAUTHORIZED);
                engine.settle(decision.charges, wrong, ms(1_000 + n));
            }
        });
        let reached = reached.into_inner();
        assert!((10..10 + 4).contains(&reached), "{reached} guesses reached the handler");
        for _ in 0..4 {
            let decision = post("/login").decide(&engine, ms(70_000));
            assert!(decision.refusal.is_none(), "nothing is still pending in round {round}");
        }
    }
}

#[test]
fn rules_that_share_requests_in_any_order_never_deadlock() {
    let rules: String = (0..40)
        .map(|n| {
            format!(
                "[[rule]]\nname = \"r{n}\"\nkey = [\"client\"]\nover = \"5/1m\"\nthrottle = {{}}\n"
            )
        })
        .collect();
    let engine = engine(&format!("[memory]\nkeys = 2\n{rules}"));
    let clients: Vec<String> = (0..64).map(|n| format!("192.0.2.{n}")).collect();
    a_thousand(|n| {
        for round in 0..20 {
            let client = &clients[usize::try_from((n * 31 + round * 17) % 64).unwrap()];
            get("/").from(client).passes(&engine, ms(n));
        }
    });
    assert_eq!(engine.counts()[39].matched, 20_000);
}

#[test]
fn every_verdict_ends_once_whatever_goes_on_beside_it() {
    let engine = engine(
        r#"
        [memory]
        keys = 4
        verdicts = 3
        [[rule]]
        name = "block"
        key = ["client"]
        over = "2/5ms"
        block = { for = "2ms", extend = true, grow = 2, max = "8ms", forget = "5ms" }
        [[rule]]
        name = "throttle"
        key = ["client"]
        over = "1/2ms"
        throttle = {}
        [[rule]]
        name = "login"
        key = ["client"]
        count = { status = [401] }
        over = "1/3ms"
        block = { for = "3ms" }
        "#,
    );
    let clients = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"];
    let clock = AtomicU64::new(1_000);
    let events = Mutex::new(Vec::new());
    a_thousand(|n| {
        for round in 0..40 {
            let now = ms(clock.fetch_add(1, Relaxed) / 8);
            let client = clients[usize::try_from((n + round) % 5).unwrap()];
            let decision = get("/").from(client).decide(&engine, now);
            let wrong = Outcome::Status(StatusCode::UNAUTHORIZED);
            engine.settle(decision.charges, wrong, now);
            let key = format!("client={client}");
            let rule = ["block", "throttle", "login"][usize::try_from(n % 3).unwrap()];
            match n * 40 + round {
                at if at % 7 == 0 => events.lock().unwrap().extend(engine.tick(now)),
                at if at % 31 == 0 => drop(engine.lift(rule, &key, now).unwrap()),
                at if at % 37 == 0 => {
                    // Whether there is room depends on the others.
                    let _ = engine.block(rule, &key, Duration::from_millis(4), now);
                }
                _ => {}
            }
        }
    });
    let mut events = events.into_inner().unwrap();
    events.extend(engine.tick(ms(1_000_000)));
    for (rule, counts) in ["block", "throttle", "login"].iter().zip(engine.counts()) {
        let of = |change| {
            events.iter().filter(|event| &*event.rule == *rule && event.change == change).count()
        };
        assert!(of(Change::Began) > 100, "{rule}: {} began", of(Change::Began));
        assert_eq!(of(Change::Began), of(Change::Ended) + of(Change::Lifted), "{rule}");
        assert_eq!((counts.standing_verdicts, counts.dropped_events), (0, 0), "{rule}");
    }
    for client in clients {
        let later = ms(2_000_000);
        let decision = get("/").from(client).decide(&engine, later);
        assert!(decision.refusal.is_none() && decision.findings.is_empty(), "{client} is free");
    }
}
