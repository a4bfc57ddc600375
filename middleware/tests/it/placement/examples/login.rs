use axum::{
    Form, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use hotgate::Gate;
use serde::Deserialize;

#[derive(Deserialize)]
struct Login {
    user: String,
    password: String,
}

async fn login(State(gate): State<Gate>, Form(login): Form<Login>) -> Response {
    if let Err(refused) = gate.check("login-user", [("user", &login.user)]) {
        return refused.into_response();
    }
    if login.password == "wonderland" {
        "welcome".into_response()
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

fn app(gate: Gate) -> Router {
    Router::new().route("/login", post(login)).layer(gate.layer()).with_state(gate)
}
