//! What a decision takes from the allocator.

use hotgate_detector::Time;

use crate::harness::{engine, get, post, secs};

/// Allocations of one request, after one that warmed what there is to warm up.
fn allocations(rules: &str, now: Time) -> u64 {
    let (engine, get, post) = (engine(rules), get("/a/7"), post("/login"));
    for ask in [&get, &post] {
        assert!(ask.passes(&engine, secs(1)));
    }
    let info = allocation_counter::measure(|| {
        for ask in [&get, &post] {
            assert!(ask.passes(&engine, now), "it is admitted");
        }
    });
    info.count_total
}

#[test]
fn an_admitted_request_allocates_nothing() {
    let plain = r#"
        [[rule]]
        name = "plain"
        key = ["client"]
        over = "10/1m"
        throttle = {}
    "#;
    let beside = r#"
        [[rule]]
        name = "beside"
        match = "/a/{id}"
        key = ["client", "param:id"]
        over = "100/1s"
        block = { for = "1m" }
        [[rule]]
        name = "login"
        match = "POST /login"
        key = ["client"]
        count = { status = [401] }
        over = "10/1m"
        throttle = {}
          [[rule.override]]
          key = ["203.0.113.0/24"]
          over = "20/1m"
    "#;
    assert_eq!(allocations(plain, secs(2)), 0, "one rule by client");
    assert_eq!(allocations(plain, secs(1_000)), 0, "a key that was idle");
    assert_eq!(allocations(&format!("{plain}{beside}"), secs(2)), 0, "three rules");
}
