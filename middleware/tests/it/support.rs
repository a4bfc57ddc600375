//! What the tests share.

use std::{
    borrow::Cow,
    convert::Infallible,
    fmt::Debug,
    future::{Future, Ready, ready},
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use hotgate::{Gate, GateBuilder, Peer, PeerAddr};
use http::{HeaderMap, Method, Request, Response, StatusCode, request::Parts};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use tower::{Service, ServiceExt as _, service_fn};

/// What a handler of these tests answers.
pub(crate) type Answer = Result<Response<Full<Bytes>>, Infallible>;

/// No test waits longer for what must come.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// A gate with these rules, which takes peers from [`PeerAddr`].
pub(crate) fn gate(rules: &str) -> Gate {
    builder(rules).build().unwrap()
}

/// The builder of such a gate, to register more on.
pub(crate) fn builder(rules: &str) -> GateBuilder {
    let rules = format!("app = \"test\"\n{rules}");
    let rules = rules.parse().unwrap_or_else(|problems| panic!("{problems}\n{rules}"));
    Gate::builder().rules(rules).peer(PeerAddr::of)
}

/// Who a request is of, as authentication leaves it.
#[derive(Clone)]
pub(crate) struct User(pub(crate) &'static str);

impl User {
    /// Shaped for `.user(f)`.
    pub(crate) fn of(parts: &Parts) -> Option<Cow<'_, str>> {
        parts.extensions.get::<User>().map(|user| user.0.into())
    }
}

/// A rule named `limit`: `over` by client, with `more` lines.
pub(crate) fn limit(over: &str, more: &str) -> String {
    format!("[[rule]]\nname = \"limit\"\nkey = [\"client\"]\nover = \"{over}\"\n{more}\n")
}

/// A request to `path` of the client 203.0.113.`client`.
pub(crate) fn request(method: Method, path: &str, client: u8) -> Request<()> {
    let peer = Peer::Ip(IpAddr::from([203, 0, 113, client]));
    let builder = Request::builder().method(method).uri(path).extension(PeerAddr(peer));
    builder.body(()).unwrap()
}

/// `GET path` of 203.0.113.1.
pub(crate) fn get(path: &str) -> Request<()> {
    request(Method::GET, path, 1)
}

/// An answer of `status` without a body.
pub(crate) fn answer(status: StatusCode) -> Answer {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    Ok(response)
}

/// A service that answers 200 to everything.
pub(crate) fn ok() -> impl Service<
    Request<()>,
    Response = Response<Full<Bytes>>,
    Error = Infallible,
    Future = Ready<Answer>,
> + Clone {
    service_fn(|_: Request<()>| ready(answer(StatusCode::OK)))
}

/// The status that a clone of `service` answers `request` with, within the deadline.
pub(crate) async fn status<S, Q, B>(service: &S, request: Request<Q>) -> StatusCode
where
    S: Service<Request<Q>, Response = Response<B>> + Clone,
    S::Error: Debug,
{
    in_time(service.clone().oneshot(request)).await.unwrap().status()
}

/// The head and the whole body of a clone's answer.
pub(crate) async fn answered<S, Q, B>(
    service: &S,
    request: Request<Q>,
) -> (StatusCode, HeaderMap, Bytes)
where
    S: Service<Request<Q>, Response = Response<B>> + Clone,
    S::Error: Debug,
    B: Body,
    B::Error: Debug,
{
    let (head, body) = in_time(service.clone().oneshot(request)).await.unwrap().into_parts();
    (head.status, head.headers, in_time(body.collect()).await.unwrap().to_bytes())
}

/// What comes within the deadline.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// How often something was called.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<AtomicUsize>);

impl Calls {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// What is logged on this thread while it lives.
pub(crate) struct Logged(Lines, #[expect(dead_code)] tracing::subscriber::DefaultGuard);

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Logged {
    pub(crate) fn start() -> Self {
        static EVERYWHERE: Once = Once::new();
        // While one thread alone has a subscriber, an event that is met first by another thread, which
        // has none, is taken for one that nobody wants.
        EVERYWHERE.call_once(|| {
            let nowhere = tracing_subscriber::fmt().with_writer(io::sink).finish();
            tracing::subscriber::set_global_default(nowhere).expect("no test sets another");
        });
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        Logged(lines, tracing::subscriber::set_default(subscriber))
    }

    /// The lines that hold `text`.
    pub(crate) fn lines_with(&self, text: &str) -> Vec<String> {
        let all = String::from_utf8(self.0.0.lock().unwrap().clone()).unwrap();
        all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
