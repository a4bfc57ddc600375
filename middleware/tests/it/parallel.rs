//! N is N, however many ask at once.

use http::{Method, StatusCode};
use tower::{ServiceBuilder, service_fn};

use crate::support::{Answer, Calls, answer, gate, get, limit, request, status};

/// Requests at once in each round.
const REQUESTS: usize = 1_000;

/// Rounds; `HOTGATE_ROUNDS` asks for others.
fn rounds() -> usize {
    std::env::var("HOTGATE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1_000)
}

/// What [`REQUESTS`] parallel requests to `path` found.
struct Round {
    /// How many of them reached the handler.
    handled: usize,
    /// How many were answered with its status.
    passed: usize,
    /// How many of a second client's requests pass afterwards, one after the other.
    left: usize,
}

async fn round(rules: &str, path: &'static str) -> Round {
    let calls = Calls::default();
    let counted = calls.clone();
    let handler = service_fn(move |_: http::Request<()>| {
        let calls = counted.clone();
        async move {
            calls.count();
            tokio::task::yield_now().await;
            answer(StatusCode::OK)
        }
    });
    let service = ServiceBuilder::new().layer(gate(rules).layer()).service(handler);
    let tasks: Vec<_> = (0..REQUESTS)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move { status(&service, get(path)).await })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += usize::from(task.await.unwrap() == StatusCode::OK);
    }
    let handled = calls.get();
    let mut left = 0;
    while status(&service, request(Method::GET, path, 2)).await == StatusCode::OK {
        left += 1;
    }
    Round { handled, passed, left }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_ten_of_a_thousand_parallel_requests_pass() {
    // C53
    for index in 0..rounds() {
        let round = round(&limit("10/1m", "throttle = {}"), "/").await;
        assert_eq!((round.handled, round.passed), (10, 10), "round {index}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_rules_at_once_admit_what_the_stricter_one_does_and_charge_no_more() {
    let by_path = "[[rule]]\nname = \"path\"\nmatch = \"/products/{id}\"\nkey = [\"param:id\"]\nover = \"15/1m\"\nthrottle = {}\n";
    let rules = limit("10/1m", "throttle = {}") + by_path;
    for index in 0..rounds() {
        let round = round(&rules, "/products/7").await;
        assert_eq!((round.handled, round.passed), (10, 10), "round {index}");
        assert_eq!(round.left, 5, "round {index}: ten of the path's fifteen were charged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_guesses_are_bounded_by_the_limit_and_what_may_be_pending() {
    // C46: at most N + pending - 1 guesses, and none once N have failed.
    let rules = limit("10/1m", "count = { status = [401] }\nblock = { for = \"15m\" }");
    for round in 0..rounds() {
        let calls = Calls::default();
        let counted = calls.clone();
        let handler = service_fn(move |_: http::Request<()>| {
            let calls = counted.clone();
            async move {
                calls.count();
                tokio::task::yield_now().await;
                answer(StatusCode::UNAUTHORIZED) as Answer
            }
        });
        let service = ServiceBuilder::new().layer(gate(&rules).layer()).service(handler);
        let tasks: Vec<_> = (0..REQUESTS)
            .map(|_| {
                let service = service.clone();
                let login = request(Method::POST, "/login", 1);
                tokio::spawn(async move { status(&service, login).await })
            })
            .collect();
        for task in tasks {
            let status = task.await.unwrap();
            assert!(
                [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS]
                    .contains(&status),
                "{status}"
            );
        }
        let guesses = calls.get();
        assert!((10..=19).contains(&guesses), "round {round}: {guesses} guesses");
        let after = status(&service, request(Method::POST, "/login", 1)).await;
        assert_eq!(after, StatusCode::FORBIDDEN);
        assert_eq!(calls.get(), guesses, "none reaches the handler once ten have failed");
    }
}
