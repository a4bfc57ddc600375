//! The questions and commands that the router takes.

use std::{str::FromStr as _, time::Duration};

use axum::{
    Extension,
    body::Bytes,
    extract::{FromRequest, Query, Request, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
};
use hotgate_rules::{Mode, Spoken};
use http::{StatusCode, header};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{Admin, guard::Caller, metrics, problem::Failed};
use crate::{List, gate::Shared, operator::Who};

/// Hot keys that are told where a question does not say how many.
const HOT_DEFAULT: usize = 100;

/// The most hot keys that one answer tells; a question for more is an error.
const HOT_MAX: usize = 10_000;

pub(super) async fn status(State(admin): State<Admin>) -> Result<Response, Failed> {
    aside(move || Ok(json(&admin.gate.snapshot()))).await
}

pub(super) async fn metrics(State(admin): State<Admin>) -> Result<Response, Failed> {
    let render = move || {
        let text = metrics::render(&admin.gate);
        Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
    };
    aside(render).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hot {
    rule: Option<String>,
    #[serde(default = "Hot::limit")]
    limit: usize,
}

impl Hot {
    fn limit() -> usize {
        HOT_DEFAULT
    }
}

pub(super) async fn hot(
    State(admin): State<Admin>,
    query: Result<Query<Hot>, QueryRejection>,
) -> Result<Response, Failed> {
    let bad = |detail| Failed(StatusCode::BAD_REQUEST, detail);
    let Query(Hot { rule, limit }) = query.map_err(|error| bad(error.body_text()))?;
    if limit > HOT_MAX {
        return Err(bad(format!("expected a limit of at most {HOT_MAX}, not {limit}")));
    }
    aside(move || Ok(json(&admin.gate.hot(rule.as_deref(), limit)?))).await
}

/// A question for a key, which may be personal data: in a body, so that it stands in no access log.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    key: String,
}

pub(super) async fn why(
    State(admin): State<Admin>,
    Body(Asked { key }): Body<Asked>,
) -> Result<Response, Failed> {
    aside(move || Ok(json(&admin.gate.why(&key)?))).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetMode {
    #[serde(deserialize_with = "mode")]
    mode: Mode,
    rule: Option<String>,
}

pub(super) async fn set_mode(
    State(admin): State<Admin>,
    Extension(caller): Extension<Caller>,
    Body(SetMode { mode, rule }): Body<SetMode>,
) -> Result<Response, Failed> {
    command(admin, caller, move |shared, who| {
        Ok(json(&shared.set_mode(rule.as_deref(), mode, who)?))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listing {
    clients: String,
    #[serde(rename = "for", deserialize_with = "duration")]
    lasts: Duration,
    note: Option<String>,
}

pub(super) async fn deny(
    admin: State<Admin>,
    caller: Extension<Caller>,
    body: Body<Listing>,
) -> Result<Response, Failed> {
    list(List::Deny, admin, caller, body).await
}

pub(super) async fn allow(
    admin: State<Admin>,
    caller: Extension<Caller>,
    body: Body<Listing>,
) -> Result<Response, Failed> {
    list(List::Allow, admin, caller, body).await
}

async fn list(
    list: List,
    State(admin): State<Admin>,
    Extension(caller): Extension<Caller>,
    Body(Listing { clients, lasts, note }): Body<Listing>,
) -> Result<Response, Failed> {
    command(admin, caller, move |shared, who| {
        Ok(json(&shared.list(list, &clients, lasts, note.as_deref(), who)?))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Block {
    rule: String,
    key: String,
    #[serde(rename = "for", deserialize_with = "duration")]
    lasts: Duration,
}

pub(super) async fn block(
    State(admin): State<Admin>,
    Extension(caller): Extension<Caller>,
    Body(Block { rule, key, lasts }): Body<Block>,
) -> Result<Response, Failed> {
    command(admin, caller, move |shared, who| Ok(json(&shared.block(&rule, &key, lasts, who)?)))
        .await
}

/// What is left out is not meant to be everything: that must be said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lift {
    rule: Option<String>,
    key: Option<String>,
    #[serde(default)]
    all_rules: bool,
    #[serde(default)]
    all_keys: bool,
}

pub(super) async fn lift(
    State(admin): State<Admin>,
    Extension(caller): Extension<Caller>,
    Body(Lift { rule, key, all_rules, all_keys }): Body<Lift>,
) -> Result<Response, Failed> {
    const EXPECTED: &str =
        "expected rule and key, or key and all_rules = true, or rule and all_keys = true";
    command(admin, caller, move |shared, who| {
        let lifted = match (rule, key, all_rules, all_keys) {
            (Some(rule), Some(key), false, false) => shared.lift(&rule, &key, who),
            (None, Some(key), true, false) => shared.lift_all_rules(&key, who),
            (Some(rule), None, false, true) => shared.lift_rule(&rule, who),
            _ => return Err(Failed(StatusCode::BAD_REQUEST, EXPECTED.to_owned())),
        };
        Ok(json(&lifted?))
    })
    .await
}

pub(super) async fn nothing_here() -> Failed {
    const DETAIL: &str = "expected status, hot, why, mode, deny, allow, block, lift or metrics after the router's path";
    Failed(StatusCode::NOT_FOUND, DETAIL.to_owned())
}

pub(super) async fn other_method() -> Failed {
    const DETAIL: &str = "expected GET for status, hot and metrics, POST for the others";
    Failed(StatusCode::METHOD_NOT_ALLOWED, DETAIL.to_owned())
}

/// Gives a command in the name of whoever asks for it.
async fn command(
    admin: Admin,
    Caller(peer): Caller,
    give: impl FnOnce(&Shared, Who<'_>) -> Result<Response, Failed> + Send + 'static,
) -> Result<Response, Failed> {
    aside(move || give(admin.gate.shared(), Who { name: "admin", peer: Some(&peer) })).await
}

/// Works on a thread that may wait: a command takes a lock, and rules that change take some
/// milliseconds, for which no other request shall wait. What it logs goes where its request's would.
async fn aside(
    work: impl FnOnce() -> Result<Response, Failed> + Send + 'static,
) -> Result<Response, Failed> {
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    let span = tracing::Span::current();
    let work = move || tracing::dispatcher::with_default(&dispatch, || span.in_scope(work));
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return work() };
    let failed = || Failed(StatusCode::INTERNAL_SERVER_ERROR, "the gate failed".to_owned());
    runtime.spawn_blocking(work).await.unwrap_or_else(|_| Err(failed()))
}

fn json(value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("our own types can be written as JSON");
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// A JSON body, whatever its content type says: the token says that it is no browser's form.
pub(super) struct Body<T>(T);

impl<T: de::DeserializeOwned> FromRequest<Admin> for Body<T> {
    type Rejection = Failed;

    async fn from_request(request: Request, admin: &Admin) -> Result<Self, Failed> {
        let body = Bytes::from_request(request, admin).await;
        let body = body.map_err(|error| Failed(error.status(), error.body_text()))?;
        let value = serde_json::from_slice(&body);
        let bad = |error| format!("expected a JSON object: {error}");
        value.map(Body).map_err(|error| Failed(StatusCode::BAD_REQUEST, bad(error)))
    }
}

fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
    match &*String::deserialize(deserializer)? {
        "enforce" => Ok(Mode::Enforce),
        "observe" => Ok(Mode::Observe),
        "off" => Ok(Mode::Off),
        other => Err(de::Error::unknown_variant(other, &["enforce", "observe", "off"])),
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    Spoken::from_str(&text).map(|spoken| spoken.0).map_err(de::Error::custom)
}
