//! What the service registers: who the user is, what `x:` means, who answers hot keys.

use std::{borrow::Cow, future::ready};

use bytes::Bytes;
use hotgate::{Decision, Finding};
use http::{HeaderValue, Request, Response, StatusCode, request::Parts};
use http_body_util::Full;
use tower::{Service, ServiceExt as _, service_fn};
use tower_layer::Layer as _;

use crate::support::{
    Answer, Calls, User, answer, answered, builder, get, in_time, limit, ok, status,
};

/// `name` acts on more than one request a minute of everybody.
fn hot(name: &str, action: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\nkey = []\nover = \"1/1m\"\n{action}\n")
}

/// A service that answers with what stands in the request's field `x-hot`, in the order it does.
fn echo() -> impl Service<
    Request<()>,
    Response = Response<Full<Bytes>>,
    Error = std::convert::Infallible,
    Future: Send,
> + Clone {
    service_fn(|request: Request<()>| {
        let lines = request.headers().get_all("x-hot").iter();
        let text = lines.map(|line| line.to_str().unwrap()).collect::<Vec<_>>().join(",");
        ready(Answer::Ok(Response::new(Full::from(text))))
    })
}

fn of(user: &'static str) -> Request<()> {
    let mut request = get("/");
    request.extensions_mut().insert(User(user));
    request
}

#[tokio::test]
async fn rules_count_by_what_the_functions_of_the_service_say() {
    let by = |name: &str, key: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\nkey = [\"{key}\"]\nover = \"2/1m\"\nthrottle = {{}}\n"
        )
    };
    let rules = by("user", "user") + &by("tenant", "x:tenant");
    let gate = builder(&rules)
        .user(|parts| parts.extensions.get::<User>().map(|user| user.0.into()))
        .extractor("tenant", |parts| {
            parts.headers.get("x-tenant").map(|tenant| String::from_utf8_lossy(tenant.as_bytes()))
        })
        .build()
        .unwrap();
    let service = gate.layer().layer(ok());
    for expected in [200, 200, 429] {
        assert_eq!(status(&service, of("alice")).await.as_u16(), expected, "alice");
    }
    assert_eq!(status(&service, of("bob")).await, StatusCode::OK, "another user");
    let of_tenant = || {
        let mut request = get("/");
        request.headers_mut().insert("x-tenant", HeaderValue::from_static("acme"));
        request
    };
    for expected in [200, 200, 429] {
        assert_eq!(status(&service, of_tenant()).await.as_u16(), expected, "acme");
    }
    for _ in 0..9 {
        assert_eq!(status(&service, get("/")).await, StatusCode::OK, "no user, no tenant: no key");
    }
}

#[tokio::test]
async fn a_function_is_asked_once_for_a_request_and_only_by_rules_that_match() {
    let rule = |name: &str, more: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\nkey = [\"user\", \"x:plan\"]\nover = \"1/1m\"\n{more}\n"
        )
    };
    // Verdicts print keys, and responses hold them: both ask for the parts again.
    let rules = rule("a", "match = \"/api\"\nthrottle = {}")
        + &rule("b", "match = \"/api\"\nblock = { for = \"1m\" }\nmode = \"observe\"")
        + &rule("c", "match = \"/api\"\ncount = { status = [200] }\nblock = { for = \"1m\" }")
        + "[[rule.override]]\nkey = [\"zoe\", \"*\"]\nover = \"5/1m\"\n";
    let (users, plans) = (Calls::default(), Calls::default());
    let (counted_users, counted_plans) = (users.clone(), plans.clone());
    let gate = builder(&rules)
        .user(move |parts| {
            counted_users.count();
            User::of(parts)
        })
        .extractor("plan", move |_| {
            counted_plans.count();
            Some(Cow::Borrowed("free"))
        })
        .build()
        .unwrap();
    let service = gate.layer().layer(ok());
    let api = || {
        let mut request = of("alice");
        *request.uri_mut() = "/api".parse().unwrap();
        request
    };
    for times in 1..=3 {
        status(&service, api()).await;
        assert_eq!((users.get(), plans.get()), (times, times), "once a request");
    }
    status(&service, of("alice")).await;
    assert_eq!((users.get(), plans.get()), (3, 3), "no rule matches, nobody is asked");
}

#[tokio::test]
async fn a_function_that_panics_leaves_the_gate_as_it_was() {
    let rules = "[[rule]]\nname = \"a\"\nkey = [\"user\"]\nover = \"1/1m\"\nthrottle = {}\n";
    let gate = builder(rules)
        .user(|parts| {
            assert!(!parts.headers.contains_key("x-panic"), "as asked");
            User::of(parts)
        })
        .build()
        .unwrap();
    let service = gate.layer().layer(ok());
    let mut request = of("alice");
    request.headers_mut().insert("x-panic", HeaderValue::from_static("1"));
    let task = tokio::spawn(service.clone().oneshot(request));
    assert!(task.await.unwrap_err().is_panic());
    for expected in [200, 429] {
        assert_eq!(status(&service, of("alice")).await.as_u16(), expected, "nothing was charged");
    }
}

#[tokio::test]
async fn a_hot_key_is_tagged_with_the_names_of_its_rules() {
    let rules = hot("b", "tag = { header = \"x-hot\" }")
        + &hot("a", "tag = { header = \"x-hot\" }")
        + &hot("watched", "tag = { header = \"x-hot\" }\nmode = \"observe\"");
    let service = builder(&rules).build().unwrap().layer().layer(echo());
    let (_, _, before) = answered(&service, get("/")).await;
    assert_eq!(before, "", "not hot yet");
    let (_, _, after) = answered(&service, get("/")).await;
    assert_eq!(after, "b,a", "all that apply; one that observes marks nothing");
}

#[tokio::test]
async fn nobody_tags_a_request_but_the_gate() {
    let tag = "tag = { header = \"X-Hot\" }";
    let off = |more: &str| format!("{}{more}", hot("a", &format!("{tag}\nmode = \"off\"")));
    for rules in [
        hot("a", tag),
        off(""),
        format!("[exempt]\nmatch = \"/\"\n{}", hot("a", tag)),
        format!("[[allow]]\nclients = [\"203.0.113.0/24\"]\n{}", hot("a", tag)),
        hot("a", &format!("match = \"/elsewhere\"\n{tag}")),
        format!("mode = \"off\"\n{}", hot("a", tag)),
    ] {
        let service = builder(&rules).build().unwrap().layer().layer(echo());
        let mut spoofed = get("/");
        for value in ["a", "b"] {
            spoofed.headers_mut().append("x-hot", HeaderValue::from_static(value));
        }
        assert_eq!(answered(&service, spoofed).await.2, "", "stripped with\n{rules}");
    }
    let service = builder(&hot("a", tag)).build().unwrap().layer().layer(echo());
    for expected in ["", "a"] {
        let mut spoofed = get("/");
        spoofed.headers_mut().append("x-hot", HeaderValue::from_static("mine"));
        assert_eq!(answered(&service, spoofed).await.2, expected);
    }
}

/// A handler that says its name.
fn says(name: &'static str) -> impl Fn(&Parts, &Finding) -> Option<Response<Bytes>> {
    move |parts, finding| {
        assert!(finding.acts && !parts.headers.contains_key("x-hot"));
        (parts.uri.path() != "/pass").then(|| Response::new(Bytes::from_static(name.as_bytes())))
    }
}

#[tokio::test]
async fn the_handler_of_the_rule_first_by_name_answers_and_no_tag_is_set() {
    let rules = hot("z", "handler = \"maze\"")
        + &hot("b", "handler = \"tar\"")
        + &hot("a", "handler = \"lab\"\nmode = \"observe\"")
        + &hot("t", "tag = { header = \"x-hot\" }");
    let gate = builder(&rules)
        .handler("maze", says("maze"))
        .handler("tar", says("tar"))
        .handler("lab", says("lab"))
        .build()
        .unwrap();
    let calls = Calls::default();
    let counted = calls.clone();
    let service = gate.layer().layer(service_fn(move |request: Request<()>| {
        counted.count();
        let hot = request.headers().get("x-hot").map(|name| name.as_bytes().to_vec());
        ready(Answer::Ok(Response::new(Full::from(hot.unwrap_or_default()))))
    }));
    assert_eq!(answered(&service, get("/")).await.2, "", "not hot yet");
    assert_eq!(answered(&service, get("/")).await.2, "tar");
    assert_eq!(calls.get(), 1, "the service is not asked");
    assert_eq!(answered(&service, get("/pass")).await.2, "t", "a handler may let it go on");
    assert_eq!(calls.get(), 2);
}

#[tokio::test]
async fn a_refusal_goes_before_handlers() {
    let rules = hot("a", "handler = \"maze\"") + &limit("2/1m", "throttle = {}");
    let gate = builder(&rules).handler("maze", says("maze")).build().unwrap();
    let service = gate.layer().layer(ok());
    let mut answers = Vec::new();
    for _ in 0..3 {
        let (status, _, body) = answered(&service, get("/")).await;
        answers.push((status.as_u16(), body == "maze"));
    }
    assert_eq!(answers, [(200, false), (200, true), (429, false)]);
}

#[tokio::test]
async fn what_a_handler_answers_is_no_response_to_count() {
    let rules = hot("a", "handler = \"maze\"")
        + &limit(
            "2/1m",
            "count = { status = [200, \"cancelled\"], pending = 1 }\nblock = { for = \"1m\" }",
        );
    let gate = builder(&rules)
        .handler("maze", |parts, _| {
            assert!(!parts.headers.contains_key("x-panic"), "as asked");
            Some(Response::new(Bytes::new()))
        })
        .build()
        .unwrap();
    let service = gate.layer().layer(ok());
    for _ in 0..9 {
        assert_eq!(status(&service, get("/")).await, StatusCode::OK);
    }
    // One counted before the key was hot; another does when a handler panics, and none stays open.
    let mut request = get("/");
    request.headers_mut().insert("x-panic", HeaderValue::from_static("1"));
    assert!(tokio::spawn(service.clone().oneshot(request)).await.unwrap_err().is_panic());
    assert_eq!(status(&service, get("/")).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_tagged_request_carries_its_decision() {
    let gate = builder(&hot("a", "tag = { header = \"x-hot\" }")).build().unwrap();
    let service = gate.layer().layer(service_fn(|request: Request<()>| {
        let decision = request.extensions().get::<Decision>();
        let acts = decision.is_some_and(|decision| decision.findings[0].acts);
        ready(answer(if acts { StatusCode::ACCEPTED } else { StatusCode::OK }))
    }));
    for expected in [200, 202] {
        assert_eq!(status(&service, get("/")).await.as_u16(), expected);
    }
}

#[tokio::test]
async fn an_admitted_answer_tells_what_is_left_where_rules_say_so() {
    let rules = limit("3/1m", "throttle = {}\nfields = true")
        + &hot("watched", "throttle = {}\nfields = true\nmode = \"observe\"")
        + "[[rule]]\nname = \"all\"\nkey = []\nover = \"9/1h\"\nthrottle = {}\nfields = true\n"
        + "[[rule]]\nname = \"quiet\"\nkey = []\nover = \"9/1h\"\nthrottle = {}\n";
    let inner = service_fn(|_: Request<()>| {
        let own = Response::builder().header("ratelimit", "\"own\";r=1");
        ready(Answer::Ok(own.body(Full::<Bytes>::default()).unwrap()))
    });
    let service = builder(&rules).build().unwrap().layer().layer(inner);
    let lines = |response: &Response<_>, name: &str| -> Vec<String> {
        let all = response.headers().get_all(name).iter();
        all.map(|line| line.to_str().unwrap().to_owned()).collect()
    };
    let response = in_time(service.clone().oneshot(get("/"))).await.unwrap();
    let mut limits = lines(&response, "ratelimit");
    limits.sort();
    assert_eq!(limits.len(), 3, "the service's own line stays: {limits:?}");
    assert!(limits[0].starts_with("\"all\";r=8;t="), "{limits:?}");
    assert!(limits[1].starts_with("\"limit\";r=2;t="), "{limits:?}");
    assert_eq!(limits[2], "\"own\";r=1");
    let mut policies = lines(&response, "ratelimit-policy");
    policies.sort();
    assert_eq!(policies, ["\"all\";q=9;w=3600", "\"limit\";q=3;w=60"]);
    // C38
    for left in [1, 0] {
        let response = in_time(service.clone().oneshot(get("/"))).await.unwrap();
        let limits = lines(&response, "ratelimit");
        let own = limits.iter().find(|line| line.starts_with("\"limit\"")).unwrap();
        let (_, reset) = own.split_once(";t=").unwrap();
        assert!(own.contains(&format!(";r={left};")), "{own}");
        assert!(reset.parse::<u64>().unwrap() > 0, "never zero: {own}");
    }
}
