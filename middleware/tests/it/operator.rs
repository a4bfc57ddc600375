//! What operators command is logged, with who commanded it.

use std::time::Duration;

use hotgate::Mode;

use crate::support::{Logged, gate, limit};

#[test]
fn every_change_is_logged_with_who_made_it() {
    let gate = gate(&limit("2/1m", "throttle = {}"));
    let minute = Duration::from_secs(60);
    let logged = Logged::start();
    gate.set_mode(Some("limit"), Mode::Observe).unwrap();
    gate.deny("203.0.113.0/24", minute, Some("scraper")).unwrap();
    gate.allow("203.0.113.7", minute, None).unwrap();
    gate.block("limit", "203.0.113.9", minute).unwrap();
    gate.lift("limit", "203.0.113.9").unwrap();
    gate.lift_rule("limit").unwrap();
    for (said, fields) in [
        ("mode commanded", &["rule=\"limit\"", "mode=\"observe\""][..]),
        ("denied by command", &["203.0.113.0/24", "note=\"scraper\"", "until=20"]),
        ("allowed by command", &["203.0.113.7/32"]),
        ("blocked by command", &["rule=\"limit\"", "client=203.0.113.9", "observed=true"]),
    ] {
        let lines = logged.lines_with(said);
        assert_eq!(lines.len(), 1, "{said}: {lines:?}");
        for field in fields.iter().chain(&["who=\"service\"", "WARN hotgate"]) {
            assert!(lines[0].contains(field), "{field} in {}", lines[0]);
        }
    }
    assert_eq!(logged.lines_with("lifted by command").len(), 2);
}
