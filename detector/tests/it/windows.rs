//! What a window lets pass, and when.

use std::time::Duration;

use crate::harness::{engine, get, ms, secs, throttle};

// C25
#[test]
fn a_burst_on_either_side_of_a_minute_passes_once() {
    let engine = throttle("5/60s");
    for _ in 0..5 {
        assert!(get("/").passes(&engine, ms(43_259_900)));
    }
    for _ in 0..5 {
        assert!(!get("/").passes(&engine, ms(43_260_100)), "the five before still stand");
    }
    assert!(get("/").passes(&engine, ms(43_319_900)), "and have left a minute after they came");
}

// C32
#[test]
fn a_request_counts_for_one_window_from_its_own_time() {
    let engine = throttle("5/60s");
    assert!(get("/").passes(&engine, ms(43_258_700)));
    for _ in 0..4 {
        assert!(get("/").passes(&engine, ms(43_260_100)));
    }
    assert!(!get("/").passes(&engine, ms(43_318_699)), "the first still stands");
    assert!(get("/").passes(&engine, ms(43_318_700)), "for a minute, no longer");
    assert!(!get("/").passes(&engine, ms(43_320_099)), "the four stand on their own time");
}

// C27
#[test]
fn six_a_minute_may_come_at_once() {
    let engine = throttle("6/60s");
    assert_eq!((0..7).filter(|_| get("/").passes(&engine, secs(1))).count(), 6);
}

// C33
#[test]
fn refused_requests_do_not_use_up_a_throttles_window() {
    let engine = throttle("10/600s");
    let passed: Vec<bool> = (0..120).map(|n| get("/").passes(&engine, secs(1 + n * 30))).collect();
    for twenty in passed.chunks(20) {
        assert_eq!(twenty.iter().filter(|passed| **passed).count(), 10, "ten of each twenty");
    }
}

// C29
#[test]
fn a_month_of_idleness_leaves_a_limit_what_it_was() {
    let engine = throttle("1000000/1s");
    for start in [1, 30 * 86_400] {
        let passed = (0..1_030_000).filter(|_| get("/").passes(&engine, secs(start))).count();
        assert!((1_000_000..=1_020_000).contains(&passed), "{passed} passed at {start} s");
    }
}

// C31
#[test]
fn rates_that_do_not_divide_keep_their_long_run_mean() {
    for (over, seconds, expected) in [("7/1s", 60, 420), ("1/7s", 700, 100)] {
        let engine = throttle(over);
        let asked = (0..seconds * 100).filter(|n| get("/").passes(&engine, ms(n * 10))).count();
        assert_eq!(asked, expected, "{over} for {seconds} s");
    }
}

// C30
#[test]
fn the_wait_is_what_is_left_of_the_window() {
    let engine = throttle("1/1s");
    assert!(get("/").passes(&engine, secs(10)));
    let refusal = get("/").decide(&engine, ms(10_200)).refusal.expect("refused");
    assert_eq!(refusal.wait, Duration::from_millis(800));
    assert!(get("/").passes(&engine, secs(11)));
}

// C47
#[test]
fn the_nth_passes_and_the_next_is_refused() {
    for action in ["throttle = {}", "block = { for = \"1m\" }"] {
        let engine = engine(&format!(
            "[[rule]]\nname = \"all\"\nkey = [\"client\"]\nover = \"3/1m\"\n{action}"
        ));
        let passed: Vec<_> = (0..5).map(|_| get("/").passes(&engine, secs(1))).collect();
        assert_eq!(passed, [true, true, true, false, false], "{action}");
    }
}
