//! Keys that only a handler knows.

use hotgate::Decision;
use http::{StatusCode, header};
use tower_layer::Layer as _;

use crate::support::{Logged, User, answer, builder, gate, get, limit, ok, status};

const BY_USER: &str = "[[rule]]\nname = \"login-user\"\nmatch = []\nkey = [\"user\"]\nover = \"2/1m\"\nthrottle = {}\n";

#[test]
fn a_key_from_the_body_is_counted_like_any_other() {
    let gate = gate(BY_USER);
    let email = "alice@shop.example".to_owned();
    let check = |email: &String| gate.check("login-user", [("user", email)]);
    assert!(check(&email).is_ok() && check(&email).is_ok());
    let refused = check(&email).expect_err("two in a minute");
    assert_eq!(refused.to_string(), "refused by rule \"login-user\"");
    assert_eq!(refused.refusal().unwrap().rule.as_deref(), Some("login-user"));
    let response = refused.into_http();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    assert!(response.headers().contains_key(header::RETRY_AFTER));
    assert!(response.extensions().get::<Decision>().is_some());
    let document: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    assert!(!document.to_string().contains("alice"), "never the key: {document}");
    assert!(check(&"bob@shop.example".to_owned()).is_ok());
}

#[tokio::test]
async fn a_rule_for_checks_is_applied_to_no_request() {
    let gate = builder(BY_USER).user(User::of).build().unwrap();
    let service = gate.layer().layer(ok());
    for _ in 0..9 {
        let mut request = get("/");
        request.extensions_mut().insert(User("alice"));
        assert_eq!(status(&service, request).await, StatusCode::OK);
    }
    assert!(gate.check("login-user", [("user", "alice")]).is_ok(), "not counted either");
}

#[test]
fn parts_of_several_kinds_are_given_by_their_names() {
    let gate = gate(
        "[[rule]]\nname = \"a\"\nmatch = []\nkey = [\"client\", \"x:email|user\"]\nover = \"1/1m\"\nthrottle = {}\n",
    );
    let check = |parts: &[(&str, &str)]| gate.check("a", parts.iter().copied()).is_ok();
    assert!(check(&[("client", "203.0.113.9"), ("x:email", "a")]));
    assert!(!check(&[("x:email", "a"), ("client", "::ffff:203.0.113.9")]), "C59: the same client");
    assert!(check(&[("client", "203.0.113.9"), ("user", "a")]), "another kind is another key");
    assert!(check(&[("client", "203.0.113.9"), ("x:email", "b")]));
}

#[test]
fn a_programmers_mistake_refuses_nobody_and_is_said_once() {
    let logged = Logged::start();
    let gate = gate(
        &(BY_USER.to_owned()
            + &limit("1/1m", "count = { status = [401] }\nblock = { for = \"1m\" }")),
    );
    for _ in 0..5 {
        assert!(gate.check("login-usr", [("user", "alice")]).is_ok());
        assert!(gate.check("login-user", [("usr", "alice")]).is_ok());
        assert!(gate.check("limit", [("client", "203.0.113.9")]).is_ok());
    }
    for (rule, why) in [
        ("login-usr", "no rule has this name"),
        ("login-user", "expected the parts user"),
        ("limit", "the rule counts responses, and here is none"),
    ] {
        let lines = logged.lines_with(&format!("gate.check(\"{rule}\", …)"));
        assert!(lines.len() == 1 && lines[0].contains(why), "{lines:?}");
    }
    let none: [(&str, &str); 0] = [];
    assert!(gate.check("login-user", none).is_ok());
}

#[test]
fn an_observing_rule_and_a_gate_that_is_off_refuse_nobody() {
    for rules in [
        format!("{BY_USER}mode = \"observe\"\n"),
        format!("mode = \"observe\"\n{BY_USER}"),
        format!("mode = \"off\"\n{BY_USER}"),
    ] {
        let gate = gate(&rules);
        for _ in 0..9 {
            assert!(gate.check("login-user", [("user", "alice")]).is_ok(), "{rules}");
        }
    }
}

#[tokio::test]
async fn a_refused_check_is_no_response_of_the_service() {
    let rules =
        BY_USER.to_owned() + &limit("1/1m", "count = { status = [429] }\nblock = { for = \"1m\" }");
    let gate = gate(&rules);
    let own = gate.clone();
    let service = gate.layer().layer(tower::service_fn(move |_: http::Request<()>| {
        std::future::ready(match own.check("login-user", [("user", "alice")]) {
            Ok(()) => answer(StatusCode::OK),
            Err(refused) => Ok(refused.into_http().map(http_body_util::Full::new)),
        })
    }));
    for expected in [200, 200, 429, 429, 429] {
        assert_eq!(status(&service, get("/")).await.as_u16(), expected, "never 403");
    }
}
