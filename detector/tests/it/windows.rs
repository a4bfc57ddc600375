//! What a window lets pass, and when.

use std::time::Duration;

use crate::harness::{engine, get, ms, rule, secs, throttle};

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

/// The most that passed in any window of this length.
fn most_in_a_window(passed: &[u64], window: u64) -> usize {
    let in_one = |end: &u64| passed.iter().filter(|at| *at + window > *end && *at <= end).count();
    passed.iter().map(in_one).max().unwrap_or(0)
}

// C26
#[test]
fn a_burst_and_what_follows_it_never_pass_the_limit_in_any_window() {
    let engine = throttle("60/60s");
    let asked = std::iter::repeat_n(0, 60).chain((1..=600).map(|n| n * 500));
    let passed: Vec<u64> = asked.filter(|at| get("/").passes(&engine, ms(1_000 + at))).collect();
    assert_eq!(most_in_a_window(&passed, 60_000), 60);
}

// C26
#[test]
fn a_pace_adds_its_burst_and_its_rate_to_the_limit_and_no_more() {
    let engine = rule("60/60s", "throttle = { pace = \"1/2s\", burst = 5 }");
    let asked = std::iter::repeat_n(0, 60).chain((1..=600).map(|n| n * 500));
    let passed: Vec<u64> = asked.filter(|at| get("/").passes(&engine, ms(1_000 + at))).collect();
    let most = most_in_a_window(&passed, 60_000);
    assert!((90..=60 + 5 + 30).contains(&most), "{most} in the minute that it becomes hot in");
    let later: Vec<u64> = passed.into_iter().filter(|at| *at > 60_000).collect();
    assert_eq!(most_in_a_window(&later, 60_000), 30, "then its pace alone");
}

// C50
#[test]
fn a_key_that_is_hot_in_a_flood_of_random_ones_is_found_and_none_beside_it() {
    let engine = engine(
        "[memory]\nkeys = 1000\n[[rule]]\nname = \"all\"\nkey = [\"client\"]\nover = \"50/1m\"\nblock = { for = \"1h\" }",
    );
    for n in 0..200_000_u32 {
        let client = std::net::Ipv4Addr::from_bits(n.wrapping_mul(0x9e37_79b9)).to_string();
        get("/").from(&client).passes(&engine, ms(1_000 + u64::from(n) / 10));
        if n % 20 == 0 {
            get("/").passes(&engine, ms(1_000 + u64::from(n) / 10));
        }
    }
    let hot = engine.verdicts(secs(21));
    let keys: Vec<&str> = hot.iter().map(|verdict| &*verdict.key).collect();
    assert_eq!(keys, ["client=203.0.113.9"], "of 200,001 keys in a table for 3,000");
}
