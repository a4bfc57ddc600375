//! What is compared: governor, and Hotgate in several shapes.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use governor::{DefaultKeyedRateLimiter, RateLimiter};
use hotgate_detector::{Config, Engine, Time};
use hotgate_rules::{Facts, Peer, RequestPath};
use http::{HeaderMap, Request, request::Parts};

use super::workload::Workload;

/// Something that decides requests of clients.
pub(super) trait Limiter: Sync {
    /// Decides one request of each client; how many passed.
    fn pass(&self, clients: &[IpAddr]) -> usize;
}

/// The peer: `check_key` of the bare address.
pub(super) struct Governor(DefaultKeyedRateLimiter<IpAddr>);

impl Governor {
    pub(super) fn new(workload: Workload) -> Self {
        Governor(RateLimiter::keyed(workload.limit.quota()))
    }
}

impl Limiter for Governor {
    fn pass(&self, clients: &[IpAddr]) -> usize {
        clients.iter().filter(|client| self.0.check_key(client).is_ok()).count()
    }
}

/// An engine and its clock.
pub(super) struct Hotgate {
    engine: Engine,
    clock: quanta::Clock,
    origin: u64,
}

impl Hotgate {
    /// Of these rules; `VERDICTS` keys of the rule named `blocks` are blocked.
    pub(super) fn new(workload: Workload, rules: &str, blocks: &str) -> Self {
        let keys = workload.keys.max(KEYS_DEFAULT);
        let rules = format!("app = \"bench\"\n[memory]\nkeys = {keys}\n{rules}");
        let rules = rules.parse().unwrap_or_else(|problems| panic!("{problems}"));
        let config =
            Config { table_seed: [1, 2, 3, 4], privacy_secret: [0; 16], origin_unix_nanos: 0 };
        let (engine, clock) = (Engine::new(rules, config), quanta::Clock::new());
        for n in 0..VERDICTS {
            let key = format!("client={}", Ipv4Addr::from_bits(BLOCKED.to_bits() + n));
            let lasts = Duration::from_secs(86_400);
            engine.block(blocks, &key, lasts, Time::default()).expect("a key that fits the rule");
        }
        Hotgate { engine, origin: clock.raw(), clock }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.clock.delta_as_nanos(self.origin, self.clock.raw()))
    }
}

/// What `[memory]` says where it says nothing.
const KEYS_DEFAULT: u32 = 65_536;

/// Verdicts that stand while requests are decided, of clients that send none.
const VERDICTS: u32 = 10_000;
const BLOCKED: Ipv4Addr = Ipv4Addr::new(100, 0, 0, 0);

/// The counting step: the clock, the key, its hash, its window and its verdict. The facts are there.
pub(super) struct Counting(pub(super) Hotgate);

impl Limiter for Counting {
    fn pass(&self, clients: &[IpAddr]) -> usize {
        let headers = HeaderMap::new();
        let mut facts = Facts {
            method: None,
            path: RequestPath::new(PATH),
            query: None,
            host: None,
            headers: &headers,
            route: None,
            client: None,
            extracted: &(),
        };
        let mut passes = |client: &&IpAddr| {
            facts.client = Some(**client);
            self.0.engine.decide(&facts, self.0.now()).refusal.is_none()
        };
        clients.iter().filter(|client| passes(client)).count()
    }
}

/// One whole decision: the client from the request's extensions and header fields, the path, the
/// rules that match, and what [`Counting`] does. To write the client into the request is part of it.
pub(super) struct Whole(pub(super) Hotgate);

impl Limiter for Whole {
    fn pass(&self, clients: &[IpAddr]) -> usize {
        let mut parts = request();
        let mut passes = |client: &&IpAddr| {
            if let Some(peer) = parts.extensions.get_mut::<SocketAddr>() {
                peer.set_ip(**client);
            }
            self.passes(&parts)
        };
        clients.iter().filter(|client| passes(client)).count()
    }
}

impl Whole {
    #[inline(never)]
    fn passes(&self, parts: &Parts) -> bool {
        let engine = &self.0.engine;
        let peer = parts.extensions.get::<SocketAddr>().map(|peer| Peer::Ip(peer.ip()));
        let facts = Facts {
            method: Some(&parts.method),
            path: RequestPath::new(parts.uri.path()),
            query: parts.uri.query(),
            host: None,
            headers: &parts.headers,
            route: None,
            client: engine.rules().client().resolve(peer, &parts.headers).client,
            extracted: &(),
        };
        engine.decide(&facts, self.0.now()).refusal.is_none()
    }
}

const PATH: &str = "/products/7";

fn request() -> Parts {
    let request = Request::get(PATH)
        .header("host", "shop.example")
        .header("user-agent", "bench/1.0")
        .header("accept", "*/*")
        .extension(SocketAddr::from(([0, 0, 0, 0], 443)))
        .body(());
    request.expect("a valid request").into_parts().0
}
