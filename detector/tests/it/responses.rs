//! Rules that count responses.

use std::time::Duration;

use hotgate_detector::{Cause, Outcome};
use http::StatusCode;

use crate::harness::{engine, ms, post, secs};

const LOGIN: &str = r#"
    [[rule]]
    name = "login"
    match = "POST /login"
    key = ["client"]
    count = { status = [401, 403] }
    over = "5/300s"
    throttle = {}
"#;

// C46
#[test]
fn only_failed_logins_count_and_the_next_guess_stops_before_the_handler() {
    let engine = engine(LOGIN);
    let login = |status| post("/login").answered(&engine, status, secs(10));
    assert!((0..4).all(|_| login(401)));
    assert!((0..50).all(|_| login(200)), "successes cost nothing");
    assert!(login(403), "the fifth failure is still answered by the handler");
    assert!(!login(200), "the next one is refused before it");
    assert!(post("/login").passes(&engine, secs(310)), "until the first failure leaves the window");
}

// C46
#[test]
fn parallel_guesses_are_bounded_by_what_may_be_pending() {
    let engine = engine(LOGIN);
    let waiting: Vec<_> = (0..30).map(|_| post("/login").decide(&engine, secs(1))).collect();
    let (admitted, refused): (Vec<_>, Vec<_>) =
        waiting.into_iter().partition(|decision| decision.refusal.is_none());
    assert_eq!(admitted.len(), 5, "pending is N where it is left out");
    for decision in &refused {
        let refusal = decision.refusal.as_ref().unwrap();
        assert_eq!(
            (refusal.cause, refusal.status),
            (Cause::Pending, StatusCode::TOO_MANY_REQUESTS)
        );
        assert_eq!(refusal.wait, Duration::from_secs(1));
    }
    for decision in admitted {
        engine.settle(decision.charges, Outcome::Cancelled, secs(2));
    }
    assert!(
        post("/login").passes(&engine, secs(2)),
        "a dropped request frees its place and counts for nothing"
    );
}

// C46
#[test]
fn at_most_n_and_pending_less_one_guesses_ever_reach_the_handler() {
    let engine = engine(LOGIN);
    let (mut reached, mut open) = (0, Vec::new());
    for round in 0..100 {
        let decision = post("/login").decide(&engine, ms(round));
        if decision.refusal.is_none() {
            reached += 1;
            open.push(decision.charges);
        }
        if open.len() == 5 {
            engine.settle(open.remove(0), Outcome::Status(StatusCode::UNAUTHORIZED), ms(round));
        }
    }
    assert_eq!(reached, 5 + 5 - 1);
}
