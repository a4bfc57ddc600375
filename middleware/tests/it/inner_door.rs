//! The second door of a gate, inside authentication.

use std::future::ready;

use hotgate::{Decision, Gate};
use http::{HeaderValue, Request, StatusCode};
use tower::{ServiceBuilder, ServiceExt as _, service_fn};

use crate::support::{
    Answer, Calls, User, answer, answered, builder, get, in_time, limit, ok, status,
};

const BY_USER: &str =
    "[[rule]]\nname = \"user\"\nkey = [\"user\"]\nover = \"2/1m\"\nthrottle = {}\n";
const USER_OR_CLIENT: &str =
    "[[rule]]\nname = \"user\"\nkey = [\"user|client\"]\nover = \"2/1m\"\nthrottle = {}\n";

fn gate(rules: &str) -> Gate {
    builder(rules).user(User::of).build().unwrap()
}

/// More gates than mark requests in the way of a process's first ones.
fn gates(rules: &str) -> impl Iterator<Item = Gate> {
    let rules = rules.to_owned();
    (0..6).map(move |_| gate(&rules))
}

/// What authentication does with a request that names its user.
fn authenticated(mut request: Request<()>) -> Request<()> {
    if request.headers().contains_key("x-alice") {
        request.extensions_mut().insert(User("alice"));
    }
    request
}

fn of_alice(path: &str) -> Request<()> {
    let mut request = get(path);
    request.headers_mut().insert("x-alice", HeaderValue::from_static("1"));
    request
}

#[tokio::test]
async fn rules_by_user_are_asked_behind_authentication_and_others_before_it() {
    let rules = USER_OR_CLIENT.to_owned() + &limit("4/1m", "throttle = {}");
    for gate in gates(&rules) {
        let service = ServiceBuilder::new()
            .layer(gate.layer())
            .map_request(authenticated)
            .layer(gate.inner_layer())
            .service(ok());
        for expected in [200, 200, 429] {
            assert_eq!(status(&service, of_alice("/")).await.as_u16(), expected, "alice");
        }
        assert_eq!(status(&service, get("/")).await, StatusCode::OK, "another key: the client");
        assert_eq!(
            status(&service, get("/")).await,
            StatusCode::TOO_MANY_REQUESTS,
            "the outer door counted all of them"
        );
    }
}

#[tokio::test]
async fn the_doors_change_whenever_the_inner_one_is_asked_for() {
    for gate in gates(USER_OR_CLIENT) {
        let outer = gate.layer();
        let inner = ServiceBuilder::new().map_request(authenticated).layer(gate.inner_layer());
        let service = ServiceBuilder::new().layer(outer).layer(inner).service(ok());
        for expected in [200, 200, 429] {
            assert_eq!(status(&service, of_alice("/")).await.as_u16(), expected);
        }
        assert_eq!(status(&service, get("/")).await, StatusCode::OK, "anonymous ones are apart");
    }
}

#[tokio::test]
async fn without_an_inner_door_all_rules_are_asked_at_the_outermost() {
    for gate in gates(USER_OR_CLIENT) {
        let service =
            ServiceBuilder::new().map_request(authenticated).layer(gate.layer()).service(ok());
        for expected in [200, 200, 429] {
            assert_eq!(status(&service, of_alice("/")).await.as_u16(), expected);
        }
    }
}

#[tokio::test]
async fn requests_that_do_not_come_as_far_are_not_counted_by_the_inner_doors_rules() {
    for gate in gates(BY_USER) {
        // The login is outside the inner door; the rule matches it all the same.
        let inner = ServiceBuilder::new().layer(gate.inner_layer()).service(ok());
        let routes = service_fn(move |request: Request<()>| {
            let inner = inner.clone();
            async move {
                if request.uri().path() == "/login" {
                    return answer(StatusCode::OK);
                }
                let (head, body) = in_time(inner.oneshot(request)).await.unwrap().into_parts();
                drop(body);
                answer(head.status)
            }
        });
        let service =
            ServiceBuilder::new().layer(gate.layer()).map_request(authenticated).service(routes);
        for _ in 0..9 {
            assert_eq!(status(&service, of_alice("/login")).await, StatusCode::OK);
        }
        for expected in [200, 200, 429] {
            assert_eq!(status(&service, of_alice("/api")).await.as_u16(), expected);
        }
    }
}

#[tokio::test]
async fn a_request_is_counted_once_at_each_door_however_many_layers_stand_in_its_way() {
    let rules = BY_USER.to_owned() + &limit("2/1m", "throttle = {}");
    for gate in gates(&rules) {
        let service = ServiceBuilder::new()
            .layer(gate.layer())
            .layer(gate.layer())
            .map_request(authenticated)
            .layer(gate.inner_layer())
            .layer(gate.layer())
            .layer(gate.inner_layer())
            .service(ok());
        for expected in [200, 200, 429] {
            assert_eq!(status(&service, of_alice("/")).await.as_u16(), expected);
        }
    }
}

#[tokio::test]
async fn where_no_layer_stands_further_out_the_inner_one_asks_all_rules() {
    let rules = limit("2/1m", "throttle = {}") + &BY_USER.replace("2/1m", "1/1m");
    for gate in gates(&rules) {
        let service = ServiceBuilder::new()
            .map_request(authenticated)
            .layer(gate.inner_layer())
            .layer(gate.layer())
            .service(ok());
        for expected in [200, 429] {
            assert_eq!(status(&service, of_alice("/")).await.as_u16(), expected, "by user");
        }
        for expected in [200, 429] {
            assert_eq!(status(&service, get("/")).await.as_u16(), expected, "by client");
        }
    }
}

#[tokio::test]
async fn a_refusal_at_the_inner_door_is_no_response_to_the_outer_doors_rules() {
    let rules =
        BY_USER.to_owned() + &limit("1/1m", "count = { status = [429] }\nblock = { for = \"1m\" }");
    for gate in gates(&rules) {
        let service = ServiceBuilder::new()
            .layer(gate.layer())
            .map_request(authenticated)
            .layer(gate.inner_layer())
            .service(ok());
        for expected in [200, 200, 429, 429, 429] {
            assert_eq!(status(&service, of_alice("/")).await.as_u16(), expected, "never 403");
        }
    }
}

#[tokio::test]
async fn what_both_doors_found_stands_in_one_decision() {
    let tag = |name: &str, key: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\nkey = [{key}]\nover = \"1/1m\"\ntag = {{ header = \"x-hot\" }}\n"
        )
    };
    let rules = tag("all", "") + &tag("user", "\"user\"");
    for gate in gates(&rules) {
        let service = ServiceBuilder::new()
            .layer(gate.layer())
            .map_request(authenticated)
            .layer(gate.inner_layer())
            .service(service_fn(|request: Request<()>| {
                let decision = request.extensions().get::<Decision>();
                let found: Vec<String> = decision.map_or(Vec::new(), |decision| {
                    decision.findings.iter().map(|finding| finding.rule.to_string()).collect()
                });
                let tags = request.headers().get_all("x-hot").iter();
                let tags: Vec<&str> = tags.map(|tag| tag.to_str().unwrap()).collect();
                let text = format!("{} {}", found.join(","), tags.join(","));
                ready(Answer::Ok(http::Response::new(http_body_util::Full::from(text))))
            }));
        assert_eq!(answered(&service, of_alice("/")).await.2, " ");
        let mut spoofed = of_alice("/");
        spoofed.headers_mut().insert("x-hot", HeaderValue::from_static("mine"));
        assert_eq!(
            answered(&service, spoofed).await.2,
            "all,user all,user",
            "the inner door takes away no mark of the outer one"
        );
    }
}

#[tokio::test]
async fn functions_are_asked_at_their_own_door_only() {
    let calls = Calls::default();
    let counted = calls.clone();
    let gate = builder(BY_USER)
        .user(move |parts| {
            counted.count();
            User::of(parts)
        })
        .build()
        .unwrap();
    let service = ServiceBuilder::new()
        .layer(gate.layer())
        .map_request(authenticated)
        .layer(gate.inner_layer())
        .service(ok());
    status(&service, of_alice("/")).await;
    assert_eq!(calls.get(), 1);
}

#[tokio::test]
async fn a_rule_that_asks_by_when_belongs_to_the_inner_door_too() {
    let rules = "[[rule]]\nname = \"free\"\nkey = [\"client\"]\nwhen = { \"x:plan\" = [\"free\", \"trial\"] }\nover = \"2/1m\"\nthrottle = {}\n";
    let build =
        || builder(rules).extractor("plan", |parts| User::of(parts).map(|_| "free".into())).build();
    for _ in 0..6 {
        let gate = build().unwrap();
        let service = ServiceBuilder::new()
            .layer(gate.layer())
            .map_request(authenticated)
            .layer(gate.inner_layer())
            .service(ok());
        for expected in [200, 200, 429] {
            assert_eq!(status(&service, of_alice("/")).await.as_u16(), expected);
            assert_eq!(status(&service, get("/")).await, StatusCode::OK, "no plan, no rule");
        }
    }
}
