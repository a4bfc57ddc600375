//! The header fields that tell a client when to come back: `Retry-After` (RFC 9110, 10.2.3) and the
//! `RateLimit` fields of draft-ietf-httpapi-ratelimit-headers, which are structured (RFC 9651).

use std::time::Duration;

use hotgate_detector::QuotaLeft;
use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The largest number a structured field may hold (RFC 9651, 3.3.1); a longer wait is said as this.
const SECONDS_MAX: u64 = 999_999_999_999_999;

/// Whole seconds after which a request passes: rounded up, so that none comes too early, and at
/// least 1, so that none hammers.
pub(crate) fn seconds(wait: Duration) -> u64 {
    let part = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(part).clamp(1, SECONDS_MAX)
}

/// `RateLimit` of a rule under which `remaining` requests pass, and more than that after `seconds`.
/// `None`: no name for a field.
pub(crate) fn rate_limit(rule: &str, remaining: u32, seconds: u64) -> Option<HeaderValue> {
    field(rule, &format!(";r={remaining};t={seconds}"))
}

/// `RateLimit-Policy` of a rule: `limit` requests in any `window`, which is left out where it is not
/// of whole seconds (the field knows integers only).
pub(crate) fn rate_limit_policy(rule: &str, limit: u32, window: Duration) -> Option<HeaderValue> {
    if window.subsec_nanos() > 0 {
        return field(rule, &format!(";q={limit}"));
    }
    field(rule, &format!(";q={limit};w={}", window.as_secs()))
}

/// Tells what is left of quotas, in lines of their own. Both fields are lists: what the service says of
/// quotas of its own stays.
pub(crate) fn tell(quotas: &[QuotaLeft], headers: &mut HeaderMap) {
    for quota in quotas {
        let limit = rate_limit(&quota.rule, quota.remaining, seconds(quota.reset));
        let policy = rate_limit_policy(&quota.rule, quota.limit, quota.window);
        for (name, value) in [(RATE_LIMIT, limit), (RATE_LIMIT_POLICY, policy)] {
            let _ = value.map(|value| headers.append(name, value));
        }
    }
}

/// A rule's name holds only `[a-z0-9_-]`, so that quotes are all it takes to make it a string.
fn field(rule: &str, parameters: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("\"{rule}\"{parameters}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_at_least_one_second() {
        // C37: rounded down, a client comes too early; 0 makes it hammer.
        let cases = [
            (0, 1),
            (1, 1),
            (999_999_999, 1),
            (1_000_000_000, 1),
            (1_000_000_001, 2),
            (1_300_000_000, 2),
        ];
        for (nanos, expected) in cases {
            assert_eq!(seconds(Duration::from_nanos(nanos)), expected, "{nanos} ns");
        }
        assert_eq!(seconds(Duration::MAX), SECONDS_MAX);
    }

    #[test]
    fn fields_are_structured_and_hold_integers_only() {
        // C40
        assert_eq!(rate_limit("api", 0, 12).unwrap(), "\"api\";r=0;t=12");
        let policy = |window| rate_limit_policy("api", 100, window).unwrap();
        assert_eq!(policy(Duration::from_secs(60)), "\"api\";q=100;w=60");
        assert_eq!(policy(Duration::from_millis(1_500)), "\"api\";q=100");
        assert_eq!(policy(Duration::from_millis(250)), "\"api\";q=100");
    }
}
