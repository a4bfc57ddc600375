//! What a refused client is told.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};
use tower::{Layer as _, Service as _, ServiceBuilder};
use tower_http::cors::CorsLayer;

use crate::support::{answered, gate, get, limit, ok, request, status};

type Json = serde_json::Value;

/// The first refusal that `rules` give to a client that does not stop.
async fn refusal(rules: &str) -> (StatusCode, HeaderMap, Json) {
    let service = gate(rules).layer().layer(ok());
    for _ in 0..10 {
        let (status, headers, body) = answered(&service, get("/api/orders")).await;
        if !status.is_success() {
            let length: usize = headers["content-length"].to_str().unwrap().parse().unwrap();
            assert_eq!(length, body.len());
            // C41: no cache keeps a refusal.
            assert_eq!(headers["cache-control"], "no-store");
            assert_eq!(headers["content-type"], "application/problem+json");
            let document: Json = serde_json::from_slice(&body).unwrap();
            assert_eq!(document["status"], status.as_u16());
            assert!(document["instance"].as_str().unwrap().starts_with("urn:uuid:"));
            assert!(!document["title"].as_str().unwrap().is_empty());
            assert!(!document["detail"].as_str().unwrap().contains("203.0.113"), "never the key");
            return (status, headers, document);
        }
    }
    panic!("nothing was refused");
}

const QUOTA: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const ABNORMAL: &str = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";

/// One row of the table of answers.
struct Row {
    rules: String,
    status: u16,
    kind: &'static str,
    /// Whether Retry-After is there.
    waits: bool,
    /// Whether the rule is named.
    names: bool,
    /// `RateLimit-Policy`.
    policy: Option<&'static str>,
}

#[tokio::test]
async fn every_refusal_says_what_its_rule_discloses() {
    // C39, C40, C41
    let always =
        |action: &str| format!("[[rule]]\nname = \"limit\"\nkey = []\nalways = true\n{action}\n");
    let with_count = |more: &str| limit("1/1m", &format!("count = {{ status = [200] }}\n{more}"));
    let row = |rules, status, kind, waits, names, policy| Row {
        rules,
        status,
        kind,
        waits,
        names,
        policy,
    };
    let policy = Some("\"limit\";q=2;w=60");
    let one = Some("\"limit\";q=1;w=60");
    let rows = [
        row(limit("2/1m", "throttle = {}"), 429, QUOTA, true, true, policy),
        row(limit("2/1500ms", "throttle = {}"), 429, QUOTA, true, true, Some("\"limit\";q=2")),
        row(limit("2/1m", "throttle = {}\ndisclose = \"none\""), 429, QUOTA, true, false, None),
        row(with_count("throttle = {}"), 429, QUOTA, true, true, one),
        row(limit("2/1m", "block = { for = \"15m\" }"), 403, ABNORMAL, false, false, None),
        row(
            limit("2/1m", "block = { for = \"15m\" }\ndisclose = \"full\""),
            403,
            ABNORMAL,
            true,
            true,
            policy,
        ),
        row(
            limit("2/1m", "block = { for = \"15m\", status = 429 }"),
            429,
            ABNORMAL,
            true,
            false,
            None,
        ),
        row(with_count("block = { for = \"15m\" }"), 403, ABNORMAL, false, false, None),
        row(always("throttle = {}"), 429, QUOTA, true, true, None),
        row(always("block = {}"), 403, ABNORMAL, false, false, None),
        row(
            "[[deny]]\nclients = [\"203.0.113.0/24\"]\n".to_owned(),
            403,
            "about:blank",
            false,
            false,
            None,
        ),
    ];
    for row in rows {
        let (status, headers, document) = refusal(&row.rules).await;
        let rules = &row.rules;
        assert_eq!(status.as_u16(), row.status, "{rules}");
        assert_eq!(document["type"], row.kind, "{rules}");
        let wait = headers.get(header::RETRY_AFTER).map(|wait| wait.to_str().unwrap());
        assert_eq!(wait.is_some(), row.waits, "Retry-After of {rules}");
        let policies = document.get("violated-policies");
        assert_eq!(policies.is_some(), row.names, "{rules}");
        let limit = headers.get("ratelimit").map(|limit| limit.to_str().unwrap().to_owned());
        // C38: the wait is the same in both fields, and never zero.
        let expected = wait.filter(|_| row.names).map(|wait| format!("\"limit\";r=0;t={wait}"));
        assert_eq!(limit, expected, "{rules}");
        assert_ne!(wait, Some("0"));
        let policy = headers.get("ratelimit-policy").map(|policy| policy.to_str().unwrap());
        assert_eq!(policy, row.policy, "{rules}");
        if !row.names {
            assert!(!document.to_string().contains("limit"), "no rule name in {document}");
        }
    }
}

#[tokio::test]
async fn an_unresolved_guess_too_many_is_told_to_come_back_in_a_second() {
    let rules = limit("9/1m", "count = { status = [401], pending = 1 }\nblock = { for = \"1m\" }");
    let mut service = gate(&rules).layer().layer(ok());
    let _unresolved = service.call(get("/"));
    let (status, headers, _) = answered(&service, get("/")).await;
    assert_eq!((status.as_u16(), headers["retry-after"].to_str().unwrap()), (429, "1"));
}

#[tokio::test]
async fn a_refusal_of_head_has_the_fields_and_no_body() {
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(ok());
    status(&service, get("/")).await;
    let (_, of_get, body) = answered(&service, get("/")).await;
    let (code, of_head, empty) = answered(&service, request(Method::HEAD, "/", 1)).await;
    assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
    assert!(empty.is_empty() && !body.is_empty());
    assert_eq!(of_head["content-length"], of_get["content-length"]);
    assert_eq!(of_head["content-type"], of_get["content-type"]);
}

#[tokio::test]
async fn a_retry_after_the_time_told_passes() {
    // C37
    let service = gate(&limit("1/1500ms", "throttle = {}")).layer().layer(ok());
    assert_eq!(status(&service, get("/")).await, StatusCode::OK);
    let (code, headers, _) = answered(&service, get("/")).await;
    assert_eq!((code.as_u16(), headers["retry-after"].to_str().unwrap()), (429, "2"));
    // The wait told is what is tested, so it is waited.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(status(&service, get("/")).await, StatusCode::OK);
}

#[tokio::test]
async fn inside_a_cors_layer_a_refusal_can_be_read_by_the_page() {
    // C22
    let gate = gate(&limit("1/1m", "throttle = {}"));
    let service =
        ServiceBuilder::new().layer(CorsLayer::permissive()).layer(gate.layer()).service(ok());
    let with_origin = || {
        let mut request = get("/");
        request.headers_mut().insert(header::ORIGIN, "https://shop.example".parse().unwrap());
        request
    };
    status(&service, with_origin()).await;
    let (code, headers, _) = answered(&service, with_origin()).await;
    assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(headers["access-control-allow-origin"], "*");
}

#[tokio::test]
async fn preflights_pass_and_are_not_counted() {
    // C21
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(ok());
    let preflight = || {
        let mut request = request(Method::OPTIONS, "/", 1);
        request.headers_mut().insert(header::ORIGIN, "https://shop.example".parse().unwrap());
        request.headers_mut().insert(header::ACCESS_CONTROL_REQUEST_METHOD, "PUT".parse().unwrap());
        request
    };
    for _ in 0..40 {
        assert_eq!(status(&service, preflight()).await, StatusCode::OK);
    }
    assert_eq!(status(&service, get("/")).await, StatusCode::OK);
    assert_eq!(status(&service, get("/")).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(status(&service, preflight()).await, StatusCode::OK, "nor refused");
}

#[tokio::test]
async fn an_options_request_that_is_no_preflight_counts_like_any_other() {
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(ok());
    assert_eq!(status(&service, request(Method::OPTIONS, "/", 1)).await, StatusCode::OK);
    let (code, headers, _) = answered(&service, request(Method::OPTIONS, "/", 1)).await;
    assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
    assert!(headers.contains_key(header::RETRY_AFTER));
}

#[tokio::test]
async fn a_health_probe_is_never_refused() {
    // C23
    let rules = "[exempt]\nmatch = [\"/healthz\"]\n".to_owned() + &limit("2/1m", "throttle = {}");
    let service = gate(&rules).layer().layer(ok());
    for _ in 0..100 {
        assert_eq!(status(&service, get("/healthz")).await, StatusCode::OK);
    }
    for expected in [200, 200, 429] {
        assert_eq!(status(&service, get("/")).await.as_u16(), expected, "probes were not counted");
    }
}
