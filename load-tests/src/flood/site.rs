//! A service behind a gate, in this process.

use std::{
    collections::HashSet,
    convert::Infallible,
    future::{Ready, ready},
    net::Ipv4Addr,
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use hotgate::{Gate, GateService, Peer, PeerAddr};
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use tower::{Layer as _, Service, service_fn};

use super::Size;

/// What stands behind the gate.
type Handler = fn(Request<()>) -> Ready<Result<Response<Empty<Bytes>>, Infallible>>;

pub(super) struct Site {
    gate: Gate,
    service: GateService<tower::util::ServiceFn<Handler>>,
}

impl Site {
    /// A gate with one rule, by client, that does `action`.
    pub(super) fn new(size: Size, action: &str) -> Self {
        let memory = size.memory.map(|keys| format!("[memory]\nkeys = {keys}\n"));
        let rules = format!(
            "app = \"flood\"\n{}[[rule]]\nname = \"flood\"\nkey = [\"client\"]\nover = \"{}/1h\"\n{action}\n",
            memory.unwrap_or_default(),
            size.limit,
        );
        let rules = rules.parse().unwrap_or_else(|problems| panic!("{problems}"));
        let gate = Gate::builder().rules(rules).peer(PeerAddr::of).build();
        let gate = gate.unwrap_or_else(|error| panic!("no gate: {error}"));
        let handler: Handler = |_| ready(Ok(Response::new(Empty::new())));
        let service = gate.layer().layer(service_fn(handler));
        Site { gate, service }
    }

    /// Whether a request of `client` comes through.
    pub(super) fn admits(&mut self, client: Ipv4Addr) -> bool {
        let mut request = Request::new(());
        request.extensions_mut().insert(PeerAddr(Peer::Ip(client.into())));
        let future = pin!(self.service.call(request));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(response)) => response.status() == StatusCode::OK,
            Poll::Pending => unreachable!("nothing behind the gate waits"),
        }
    }

    /// The keys that are hot.
    pub(super) fn hot(&self) -> HashSet<Ipv4Addr> {
        let hot = self.gate.hot(Some("flood"), usize::MAX).expect("the rule's name");
        let client = |key: &str| key.strip_prefix("client=")?.parse().ok();
        hot.keys.iter().map(|hot| client(&hot.key).expect("an address")).collect()
    }
}
