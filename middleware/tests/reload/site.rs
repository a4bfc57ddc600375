//! A gate with a rule file, a service behind it, and those who send it requests.

use std::{
    convert::Infallible,
    fs,
    future::{Ready, ready},
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hotgate::{Gate, GateService, Peer, PeerAddr};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tempfile::TempDir;
use tower::{Layer as _, Service, service_fn};

use crate::ways::{Change, FILE, Way};

type Handler = fn(Request<()>) -> Ready<Result<Response<Full<Bytes>>, Infallible>>;

/// Requests that the rule `counted` admits.
const COUNTED_MAX: u32 = 60;

/// A gate and what is known of it.
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) gate: Gate,
    service: GateService<tower::util::ServiceFn<Handler>>,
    /// `mode` of the next file.
    pub(crate) mode: &'static str,
    loaded: u64,
}

/// The file of a round: it denies the round's own address. What follows the mark must always be there.
fn text(mode: &str, round: u32) -> String {
    let denied = denied(round);
    format!(
        r#"
app = "test"
mode = "{mode}"
[[deny]]
clients = ["{denied}"]
[[rule]]
name = "free"
match = "/free"
key = ["client"]
over = "10000000/1h"
throttle = {{}}
[[rule]]
name = "counted"
match = "/counted"
key = ["client"]
over = "{COUNTED_MAX}/1h"
throttle = {{}}
[[rule]]
name = "blocked"
match = "/blocked"
key = ["client"]
over = "2/1h"
block = {{ for = "1h" }}
{HALF}
[[rule]]
name = "last"
match = "/last"
key = ["client"]
always = true
block = {{}}
"#
    )
}

/// Up to here a file could be taken for the whole.
const HALF: &str = "# half";

/// The address that a round's file denies, and no other's.
fn denied(round: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + round)
}

/// One that only decoys deny.
fn decoy(round: u32) -> u32 {
    100_000 + round
}

const CLIENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

impl Site {
    pub(crate) fn new(way: &Way) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, text("enforce", 0)).unwrap();
        let gate = Gate::builder().file(file).peer(PeerAddr::of).build().unwrap();
        let handler: Handler = |_| ready(Ok(Response::new(Full::default())));
        let service = gate.layer().layer(service_fn(handler));
        let site = Site { folder, gate, service, mode: "enforce", loaded: 0 };
        for status in [StatusCode::OK, StatusCode::OK, StatusCode::FORBIDDEN] {
            assert_eq!(site.status(CLIENT, "/blocked"), status, "{}", way.name);
        }
        assert!(site.denies(0) && !site.denies(1), "{}", way.name);
        site
    }

    /// Replaces the file; when it was whole.
    pub(crate) fn replace(&mut self, way: &Way, round: u32) -> Instant {
        self.loaded += 1;
        let text = text(self.mode, round);
        let half = text.find(HALF).expect("the file has a mark");
        let decoy = self::text(self.mode, decoy(round));
        let folder = self.folder.path();
        (way.replace)(&Change { folder, round, text: &text, half, decoy: &decoy })
    }

    /// Whether the file of this round is in force, as a client meets it.
    pub(crate) fn denies(&self, round: u32) -> bool {
        self.status(denied(round), "/free") == StatusCode::FORBIDDEN
    }

    pub(crate) fn expect_all_else_as_it_was(&self, round: u32) {
        assert!(!self.denies(round - 1), "round {round}: the file before is no longer in force");
        assert!(
            !self.denies(decoy(round)),
            "round {round}: what stood for some ms is not in force"
        );
        let reload = self.gate.snapshot().reload;
        assert_eq!(reload.loaded, self.loaded, "round {round}: one change each time");
        assert!(reload.failed.is_none(), "round {round}: {:?}", reload.failed);
        let counted =
            if round <= COUNTED_MAX { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
        assert_eq!(self.status(CLIENT, "/counted"), counted, "round {round}: counts go on exactly");
        assert_eq!(
            self.status(CLIENT, "/blocked"),
            StatusCode::FORBIDDEN,
            "round {round}: blocks stand"
        );
    }

    /// What the rule at the end of the file answers.
    pub(crate) fn last(&self) -> StatusCode {
        self.status(CLIENT, "/last")
    }

    fn status(&self, client: Ipv4Addr, path: &str) -> StatusCode {
        status(&mut self.service.clone(), client, path)
    }
}

fn status(
    service: &mut GateService<tower::util::ServiceFn<Handler>>,
    client: Ipv4Addr,
    path: &str,
) -> StatusCode {
    let peer = PeerAddr(Peer::Ip(IpAddr::V4(client)));
    let request = Request::get(path).extension(peer).body(()).unwrap();
    let mut answer = Box::pin(service.call(request));
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(response)) => response.status(),
        Poll::Ready(Err(never)) => match never {},
        Poll::Pending => panic!("a request waits"),
    }
}

/// A thread that sends requests, thousands a second, and expects the same answers all the time.
pub(crate) struct Load {
    state: Arc<State>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    stop: AtomicBool,
    last_may_pass: AtomicBool,
    requests: AtomicU64,
}

impl Load {
    pub(crate) fn start(site: &Site) -> Self {
        let state = Arc::<State>::default();
        let (shared, mut service) = (Arc::clone(&state), site.service.clone());
        let thread = thread::spawn(move || {
            while !shared.stop.load(Relaxed) {
                for host in 1..=20 {
                    let client = Ipv4Addr::new(203, 0, 113, host);
                    assert_eq!(
                        status(&mut service, client, "/free"),
                        StatusCode::OK,
                        "no request fails"
                    );
                }
                let answer = status(&mut service, CLIENT, "/last");
                let may_pass = shared.last_may_pass.load(Relaxed);
                assert!(
                    answer == StatusCode::FORBIDDEN || may_pass,
                    "{answer} without the file's last rule: half a file was in force"
                );
                shared.requests.fetch_add(21, Relaxed);
                // Six sites share the machine; what they test is no race for it.
                pause(Duration::from_millis(1));
            }
        });
        Load { state, thread }
    }

    pub(crate) fn stop_expecting_refusals(&self) {
        self.state.last_may_pass.store(true, Relaxed);
    }

    /// How many requests were sent; none of them failed.
    pub(crate) fn stop(self) -> u64 {
        self.state.stop.store(true, Relaxed);
        self.thread.join().expect("a request failed, as said above");
        self.state.requests.load(Relaxed)
    }
}

/// Waits as long; nobody has this thread's handle, so that nobody wakes it.
pub(crate) fn pause(span: Duration) {
    let until = Instant::now() + span;
    while let Some(left) =
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    {
        thread::park_timeout(left);
    }
}
