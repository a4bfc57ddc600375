//! The promise of the matcher, against a real `axum::Router`: every URI that reaches a handler whose
//! template equals a rule's pattern is seen by that rule, and `param:` is what that handler sees.

use std::{cell::RefCell, collections::BTreeMap};

use axum::{
    Router,
    body::Body,
    extract::{MatchedPath, Path, rejection::PathRejection},
    response::Response,
    routing::any,
};
use hotgate_rules::{Facts, RequestPath, Rule, RuleSet, Value};
use http::{HeaderMap, Method, Request};
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestCaseError, TestRunner},
};
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Literals beside parameters, catch-alls beside both, and literals that are not in normal form.
const TEMPLATES: &[&str] = &[
    "/",
    "/login",
    "/login/",
    "/products/{id}",
    "/products/{id}/",
    "/products/{id}/reviews",
    "/products/new",
    "/products/new/{tab}",
    "/a/{x}/b/{y}",
    "/a/b/b/{y}",
    "/a/{x}/c/",
    "/static/{*rest}",
    "/static/app.js",
    "/n/{n}/{*tail}",
    "/caf%C3%A9",
    "/caf%c3%a9/{x}",
    "/café",
    "/%61pi/{v}",
    "/api/{v}",
    "/x.y/~z",
    "/{{x}}/y",
    "/auth.Auth/Login",
    "/{top}",
    "/{top}/",
    "/{top}/{*below}",
];

/// The same, under a catch-all that takes whatever no other template does.
const UNDER_CATCH_ALL: &[&str] = &[
    "/",
    "/{*rest}",
    "/login",
    "/a/{x}/b/{y}",
    "/a/b",
    "/a/{x}",
    "/static/app.js",
    "/p/{id}/{*rest}",
];

/// What a handler saw; it travels in the response's extensions.
#[derive(Clone)]
struct Handled {
    template: String,
    /// `None` where a parameter is no UTF-8, which axum gives to no handler.
    params: Option<Vec<(String, String)>>,
}

async fn handle(
    template: MatchedPath,
    params: Result<Path<Vec<(String, String)>>, PathRejection>,
) -> Response {
    let template = template.as_str().to_owned();
    let mut response = Response::new(Body::empty());
    response
        .extensions_mut()
        .insert(Handled { template, params: params.ok().map(|Path(params)| params) });
    response
}

/// A router, and a rule for each of its templates.
struct Setup {
    runtime: Runtime,
    router: Router,
    rules: RuleSet,
}

impl Setup {
    fn new(templates: &[&str]) -> Self {
        let mut router = Router::new();
        let mut text = String::from("app = \"routes\"\n");
        for (index, template) in templates.iter().enumerate() {
            router = router.route(template, any(handle));
            let names = names(template);
            let key: Vec<String> = names.iter().map(|name| format!("\"param:{name}\"")).collect();
            text += &format!(
                "[[rule]]\nname = \"r{index}\"\nmatch = '{template}'\nkey = [{}]\nover = \"10/1m\"\nthrottle = {{}}\n",
                key.join(", ")
            );
        }
        let rules = text.parse().unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Setup { runtime, router, rules }
    }

    fn handled(&self, method: &Method, uri: &str) -> Option<Handled> {
        let request = Request::builder().method(method).uri(uri).body(Body::empty()).ok()?;
        let response = self
            .runtime
            .block_on(self.router.clone().oneshot(request))
            .unwrap_or_else(|never| match never {});
        response.extensions().get().cloned()
    }

    /// The template that answered, if one did, once the promise held.
    fn check(
        &self,
        templates: &[&str],
        method: &Method,
        uri: &str,
    ) -> Result<Option<usize>, TestCaseError> {
        let Some(handled) = self.handled(method, uri) else { return Ok(None) };
        let index = templates.iter().position(|template| *template == handled.template);
        let index = index.expect("a template of this router");
        let headers = HeaderMap::new();
        for route in [None, Some(&*handled.template)] {
            let facts = Facts {
                method: Some(method),
                path: RequestPath::new(uri),
                query: None,
                host: None,
                headers: &headers,
                route,
                client: None,
                extracted: &(),
            };
            let seen = self.rules.matching(&facts).rules().any(|rule| rule == index);
            prop_assert!(seen, "{uri:?} reached {} unseen", handled.template);
            if let Some(params) = &handled.params {
                check_params(&self.rules.rules()[index], &facts, params)?;
            }
        }
        Ok(Some(index))
    }
}

fn check_params(
    rule: &Rule,
    facts: &Facts<'_>,
    params: &[(String, String)],
) -> Result<(), TestCaseError> {
    let key = rule.key(facts).map_err(|_| TestCaseError::fail("a parameter is missing"))?;
    prop_assert_eq!(key.parts().len(), params.len());
    for (part, (name, expected)) in key.parts().iter().zip(params) {
        let Value::Bytes(found) = &part.value else { panic!("a parameter is bytes") };
        let path = facts.path.raw();
        prop_assert_eq!(&**found, expected.as_bytes(), "{} of {:?}", name, path);
    }
    Ok(())
}

fn names(template: &str) -> Vec<&str> {
    let inner =
        template.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    inner.filter(|name| !name.starts_with('{')).map(|name| name.trim_start_matches('*')).collect()
}

/// How one character of a path is written.
fn spelled(char: char, choice: u8) -> String {
    let escape = |lower: bool| {
        let mut buffer = [0; 4];
        let octets = char.encode_utf8(&mut buffer).bytes();
        octets
            .map(|octet| if lower { format!("%{octet:02x}") } else { format!("%{octet:02X}") })
            .collect()
    };
    match choice {
        0 => escape(false),
        1 => escape(true),
        2 => escape(false).replace('%', "%25"),
        _ => char.to_string(),
    }
}

/// The path of a template, its parameters filled in.
fn filled(templates: &'static [&'static str]) -> impl Strategy<Value = String> {
    let value = select(vec![
        "7", "new", "b", "a", ".", "..", "", "x.y", "%2F", "%2e%2E", "%FF", "a%20b", "é", "%C3%A9",
        "%25", "%", "{x}", "reviews", "a;v=1", "a+b", "%2525", "login", "c",
    ]);
    let rest = select(vec!["", "a", "a/b", "a//b/", "../x", "/", "./", "app.js", "%2F/%61"]);
    (select(templates), prop::collection::vec((value, rest), 3)).prop_map(|(template, values)| {
        let mut values = values.into_iter();
        let segments = template.split('/').map(|segment| {
            if segment.starts_with("{*") {
                values.next().map_or("", |(_, rest)| rest).to_owned()
            } else if segment.starts_with('{') && !segment.starts_with("{{") {
                values.next().map_or("", |(value, _)| value).to_owned()
            } else {
                segment.replace("{{", "{").replace("}}", "}")
            }
        });
        segments.collect::<Vec<_>>().join("/")
    })
}

/// The same path in other spellings: escaped, dotted, with doubled and trailing slashes.
fn respelled(path: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let detour = select(vec![
        "/",
        "/",
        "/",
        "/",
        "/",
        "/",
        "//",
        "/./",
        "/x/../",
        "/%2e/",
        "/a/%2E%2e/",
        "/../",
    ]);
    let escapes = prop_oneof![4 => Just(vec![3]), 1 => prop::collection::vec(0_u8..16, 1..12)];
    let tail = select(vec!["", "", "", "/", "//", "/.", "/..", "/%2e"]);
    let slashes = prop_oneof![2 => Just(vec!["/"]), 1 => prop::collection::vec(detour, 1..8)];
    (path, slashes, escapes, tail).prop_map(|(path, slashes, escapes, tail)| {
        let mut slashes = slashes.into_iter().cycle();
        let mut escapes = escapes.into_iter().cycle();
        let mut uri = String::new();
        for char in path.chars() {
            match char {
                '/' => uri += slashes.next().unwrap_or("/"),
                '%' => uri.push('%'),
                char => uri += &spelled(char, escapes.next().unwrap_or(3)),
            }
        }
        uri + tail
    })
}

fn random() -> impl Strategy<Value = String> {
    let segment = select(vec![
        "",
        ".",
        "..",
        "a",
        "b",
        "c",
        "login",
        "products",
        "new",
        "static",
        "app.js",
        "%61",
        "%2e%2e",
        "%2F",
        "é",
        "caf%C3%A9",
        "caf%c3%a9",
        "café",
        "api",
        "%61pi",
        "x.y",
        "~z",
        "%7Ez",
        "{x}",
        "%7Bx%7D",
        "y",
        "n",
        "p",
        "%",
        "reviews",
        "auth.Auth",
        "Login",
    ]);
    prop_oneof![
        3 => prop::collection::vec(segment, 1..7).prop_map(|segments| format!("/{}", segments.join("/"))),
        1 => "/([a-z./~é{}]|%[0-9a-fA-F]{2}){0,12}",
    ]
}

#[track_caller]
fn hold_the_promise(templates: &'static [&'static str]) {
    let setup = Setup::new(templates);
    let uris =
        prop_oneof![1 => filled(templates), 4 => respelled(filled(templates)), 2 => random()];
    let method = select(vec![Method::GET, Method::HEAD, Method::POST]);
    let reached = RefCell::new(BTreeMap::<usize, u32>::new());
    let config = Config { cases: 30_000, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&(uris, method), |(uri, method)| {
        if let Some(index) = setup.check(templates, &method, &uri)? {
            *reached.borrow_mut().entry(index).or_default() += 1;
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let reached = reached.into_inner();
    for (index, template) in templates.iter().enumerate() {
        assert!(
            reached.get(&index).is_some_and(|count| *count >= 20),
            "{template} was hardly tried"
        );
    }
}

#[test]
fn every_uri_that_reaches_a_handler_is_seen_by_the_rule_of_its_template() {
    hold_the_promise(TEMPLATES);
}

#[test]
fn every_uri_that_reaches_a_catch_all_is_seen_by_its_rule() {
    hold_the_promise(UNDER_CATCH_ALL);
}
