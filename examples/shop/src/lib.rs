//! A shop on Axum, behind a gate: a catalogue, a login, an API, a health check.
//!
//! The gate is one layer, added in [`app`]; the rules are in `hotgate.toml`.

use std::{
    future::{Future, IntoFuture as _},
    io,
    net::SocketAddr,
    time::Duration,
};

use axum::{
    Form, Json, Router,
    extract::Path,
    http::StatusCode,
    response::Html,
    routing::{get, post},
};
use hotgate::Gate;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot, time::sleep};

/// The rules beside this example, wherever it is started from.
pub const RULES_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hotgate.toml");

/// What the shop sells.
const PRODUCTS: [&str; 3] = ["a teapot", "a looking-glass", "a pack of cards"];

/// The shop, `gate` in front of all of it.
pub fn app(gate: &Gate) -> Router {
    Router::new()
        .route("/", get(catalogue))
        .route("/products/{id}", get(product))
        .route("/login", post(login))
        .route("/api/orders", get(orders))
        .route("/healthz", get(|| async { "ok" }))
        .layer(gate.layer()) // the layer added last is outermost
}

/// How long requests that are under way may take once the shop closes; a client that sends half a
/// request must not keep it open.
const GRACE: Duration = Duration::from_secs(3);

/// Serves `app` until `shutdown` is ready, then answers what is under way, for three seconds at
/// most, and ends.
///
/// # Errors
///
/// When the listener fails.
pub async fn run(
    listener: TcpListener,
    app: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    // With connect info: rules by client need to know who connects.
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    let (close, closed) = oneshot::channel();
    let closing = async {
        shutdown.await;
        let _ = close.send(());
    };
    let grace = async {
        let _ = closed.await;
        sleep(GRACE).await;
    };
    tokio::select! {
        ended = axum::serve(listener, service).with_graceful_shutdown(closing).into_future() => ended,
        () = grace => Ok(()),
    }
}

async fn catalogue() -> Html<String> {
    let items = PRODUCTS.iter().enumerate();
    let items: String =
        items.map(|(id, name)| format!("<li><a href=\"/products/{id}\">{name}</a></li>")).collect();
    Html(format!("<!doctype html><title>Shop</title><h1>Shop</h1><ul>{items}</ul>"))
}

async fn product(Path(id): Path<usize>) -> Result<Json<Value>, StatusCode> {
    let name = PRODUCTS.get(id).ok_or(StatusCode::NOT_FOUND)?;
    Ok(Json(json!({ "id": id, "name": name })))
}

#[derive(Deserialize)]
struct Credentials {
    user: String,
    password: String,
}

/// One customer, `alice`, whose password is `wonderland`.
async fn login(Form(form): Form<Credentials>) -> (StatusCode, &'static str) {
    if form.user == "alice" && form.password == "wonderland" {
        (StatusCode::OK, "welcome\n")
    } else {
        (StatusCode::UNAUTHORIZED, "wrong user or password\n")
    }
}

async fn orders() -> Json<Value> {
    Json(json!({ "orders": [{ "id": 1, "product": 0 }] }))
}
