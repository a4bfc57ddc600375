//! One gate counts a request once.

use std::future::ready;

use http::{Request, StatusCode};
use tower::{ServiceBuilder, service_fn};

use crate::support::{answer, gate, get, limit, status};

#[tokio::test]
async fn a_request_is_counted_once_however_often_the_layer_stands_in_its_way() {
    // The first gates of a process mark requests in a way of their own; among six, some are none of them.
    for _ in 0..6 {
        let gate = gate(&limit("4/1m", "throttle = {}"));
        let layer = gate.layer();
        let service = ServiceBuilder::new()
            .layer(layer.clone())
            .layer(layer)
            .layer(gate.layer())
            .service(service_fn(|_: Request<()>| ready(answer(StatusCode::OK))));
        for _ in 0..4 {
            assert_eq!(status(&service, get("/")).await, StatusCode::OK);
        }
        assert_eq!(status(&service, get("/")).await, StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn two_gates_count_a_request_each_even_where_their_layers_alternate() {
    let (wide, narrow) =
        (gate(&limit("9/1m", "throttle = {}")), gate(&limit("2/1m", "throttle = {}")));
    let service = ServiceBuilder::new()
        .layer(wide.layer())
        .layer(narrow.layer())
        .layer(wide.layer())
        .layer(narrow.layer())
        .service(service_fn(|_: Request<()>| ready(answer(StatusCode::OK))));
    for _ in 0..2 {
        assert_eq!(status(&service, get("/")).await, StatusCode::OK);
    }
    assert_eq!(status(&service, get("/")).await, StatusCode::TOO_MANY_REQUESTS);
}
