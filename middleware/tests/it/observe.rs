//! Observe before you enforce, with the numbers that enforcing would give.

use std::{
    future::ready,
    sync::{Arc, Mutex},
};

use hotgate::{Cause, Decision};
use http::{Request, StatusCode};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::{answer, gate, get, in_time, limit, status};

#[tokio::test]
async fn an_observing_rule_refuses_nobody_and_tells_the_handler() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let service = service_fn(move |request: Request<()>| {
        let decision = request.extensions().get::<Decision>();
        let would = decision.map(|decision| {
            assert!(decision.refusal.is_none());
            let finding = &decision.findings[0];
            (finding.rule.to_string(), finding.refuses, finding.enforced)
        });
        told.lock().unwrap().push(would);
        ready(answer(StatusCode::OK))
    });
    let service = gate(&limit("10/1m", "throttle = {}\nmode = \"observe\"")).layer().layer(service);
    for _ in 0..25 {
        assert_eq!(status(&service, get("/")).await, StatusCode::OK);
    }
    let would = Some(("limit".to_owned(), Some(Cause::Quota), false));
    let mut expected = vec![None; 10];
    expected.resize(25, would);
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_refusal_leaves_its_decision_in_the_answer() {
    let service = service_fn(|request: Request<()>| {
        assert!(request.extensions().get::<Decision>().is_none(), "nothing to say of the first");
        ready(answer(StatusCode::OK))
    });
    let service = gate(&limit("1/1m", "throttle = {}")).layer().layer(service);
    let response = in_time(service.clone().oneshot(get("/"))).await.unwrap();
    assert!(response.extensions().get::<Decision>().is_none());
    let response = in_time(service.clone().oneshot(get("/"))).await.unwrap();
    let decision = response.extensions().get::<Decision>().unwrap();
    let refusal = decision.refusal.as_ref().unwrap();
    assert_eq!((refusal.rule.as_deref(), refusal.cause), (Some("limit"), Cause::Quota));
}
