//! A rule's own answer instead of the standard refusal.

use std::fs;

use hotgate::{Decision, Gate, PeerAddr};
use http::{HeaderMap, Method, Request, StatusCode};
use tempfile::TempDir;
use tower_layer::Layer as _;

use crate::support::{answered, get, ok, request, status};

/// A gate whose rule file, and `sorry.html` beside it, stand in a folder of their own.
fn gate(rules: &str) -> (Gate, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sorry.html"), "<p>Come back later.").unwrap();
    let path = folder.path().join("hotgate.toml");
    fs::write(&path, format!("app = \"test\"\n{rules}")).unwrap();
    let gate = Gate::builder().file(path).peer(PeerAddr::of).build();
    (gate.unwrap_or_else(|error| panic!("{error}\n{rules}")), folder)
}

fn rule(action: &str, respond: &str) -> String {
    format!(
        "[[rule]]\nname = \"limit\"\nkey = [\"client\"]\nover = \"1/1m\"\n{action}\nrespond = {{ {respond} }}\n"
    )
}

/// What the client is told that `request` is of, once its key is hot.
async fn told(rules: &str, request: Request<()>) -> (StatusCode, HeaderMap, bytes::Bytes) {
    let (gate, _folder) = gate(rules);
    let service = gate.layer().layer(ok());
    assert_eq!(status(&service, get("/")).await, StatusCode::OK);
    let (code, headers, body) = answered(&service, request).await;
    assert_eq!(headers["cache-control"], "no-store", "C41: no cache keeps a refusal");
    let id = headers["decision-id"].to_str().unwrap();
    assert!(id.starts_with("urn:uuid:"), "{id}");
    (code, headers, body)
}

const PAGE: &str =
    "status = 503, content_type = \"text/html; charset=utf-8\", body_file = \"sorry.html\"";

#[tokio::test]
async fn a_refused_client_gets_the_rules_own_page() {
    let (code, headers, body) = told(&rule("throttle = {}", PAGE), get("/")).await;
    assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(headers["content-length"], "19");
    assert_eq!(body, "<p>Come back later.");
    let wait: u64 = headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(headers["ratelimit"].to_str().unwrap().starts_with("\"limit\";r=0;t="));
}

#[tokio::test]
async fn head_is_answered_with_the_length_of_the_page_and_no_body() {
    let of = request(Method::HEAD, "/", 1);
    let (code, headers, body) = told(&rule("throttle = {}", PAGE), of).await;
    assert_eq!((code.as_u16(), headers["content-length"].to_str().unwrap()), (503, "19"));
    assert!(body.is_empty());
}

#[tokio::test]
async fn what_a_rule_leaves_out_is_as_the_standard_answer_has_it() {
    let empty = "headers = { x-why = \"too many\" }";
    let (code, headers, body) = told(&rule("throttle = {}", empty), get("/")).await;
    assert_eq!(code, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        (headers["x-why"].to_str().unwrap(), headers["content-length"].to_str().unwrap()),
        ("too many", "0")
    );
    assert!(body.is_empty() && !headers.contains_key("content-type"));

    let (code, headers, _) =
        told(&rule("block = { for = \"1m\", status = 451 }", empty), get("/")).await;
    assert_eq!(code.as_u16(), 451);
    assert!(!headers.contains_key("retry-after"), "a block discloses nothing");
}

#[tokio::test]
async fn a_status_without_content_has_none() {
    for status in [204, 304] {
        let respond = rule("throttle = {}", &format!("status = {status}"));
        let (code, headers, body) = told(&respond, get("/")).await;
        assert_eq!(code.as_u16(), status);
        assert!(body.is_empty() && !headers.contains_key("content-length"), "{status}");
    }
}

#[tokio::test]
async fn what_was_read_when_the_gate_was_built_is_answered() {
    let (gate, folder) = gate(&rule("throttle = {}", PAGE));
    fs::remove_file(folder.path().join("sorry.html")).unwrap();
    let service = gate.layer().layer(ok());
    status(&service, get("/")).await;
    assert_eq!(answered(&service, get("/")).await.2, "<p>Come back later.");
}

#[tokio::test]
async fn a_request_without_its_key_is_told_so() {
    let rules = rule("throttle = {}\nmissing_key = \"reject\"", PAGE)
        .replace("\"client\"", "\"header:x-key\"");
    let (gate, _folder) = gate(&rules);
    let (code, headers, _) = answered(&gate.layer().layer(ok()), get("/")).await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
    assert_eq!(headers["content-type"], "application/problem+json");
}

#[tokio::test]
async fn the_decision_says_the_status_that_was_sent() {
    let (gate, _folder) = gate(&rule("throttle = {}", PAGE));
    let service = gate.layer().layer(ok());
    status(&service, get("/")).await;
    let response = tower::ServiceExt::oneshot(service, get("/")).await.unwrap();
    let decision = response.extensions().get::<Decision>().unwrap();
    assert_eq!(decision.refusal.as_ref().unwrap().status, response.status());
}
