//! The gate: the engine inside one service instance, with its clock and its thread.

use std::{
    fmt,
    net::IpAddr,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc::Sender,
    },
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hotgate_detector::{Charges, Outcome, Time};
use http::{Response, request::Parts};
use smallvec::SmallVec;

use crate::{
    BuildError, GateBuilder, GateLayer,
    active::Active,
    control::Control,
    counters::Published,
    facts,
    hooks::Hooks,
    log::{Notices, RefusalLog},
    peer, refusal,
    reload::Reloads,
};

/// The engine inside one service instance.
///
/// A cheap clone: all clones, and all layers made of them, share one set of counts. It needs no
/// runtime, may serve several services, and its one thread, named `hotgate`, ends with the last
/// clone.
#[derive(Clone)]
pub struct Gate(Arc<Shared>);

pub(crate) struct Shared {
    /// Which of the process's gates this is.
    pub(crate) number: u64,
    /// The rules in force. Requests load it, whoever changes it holds `control`.
    pub(crate) active: ArcSwap<Active>,
    pub(crate) control: Mutex<Control>,
    pub(crate) clock: Clock,
    pub(crate) hooks: Hooks,
    pub(crate) notices: Notices,
    pub(crate) refusals: RefusalLog,
    pub(crate) published: Mutex<Published>,
    pub(crate) reloads: Reloads,
    /// How many services stand behind this gate's layers. While it is one, no request can come to
    /// this gate twice.
    pub(crate) doors: AtomicUsize,
    /// Dropped with the last gate; that ends the thread.
    pub(crate) _alive: Sender<()>,
}

/// A monotonic clock whose origin is the building of the gate.
pub(crate) struct Clock {
    clock: quanta::Clock,
    origin: u64,
}

impl Clock {
    pub(crate) fn new(clock: quanta::Clock) -> Self {
        let origin = clock.raw();
        Clock { clock, origin }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.clock.delta_as_nanos(self.origin, self.clock.raw()))
    }
}

/// What the gate says of a request.
pub(crate) enum Admission {
    Refused(Response<Bytes>),
    Admitted(Option<Pending>),
}

impl Gate {
    /// A builder, which needs rules.
    pub fn builder() -> GateBuilder {
        GateBuilder::default()
    }

    /// A gate with the rules of a file.
    ///
    /// # Errors
    ///
    /// Whatever keeps [`GateBuilder::build`] from building it.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Gate, BuildError> {
        Gate::builder().file(path.as_ref()).build()
    }

    /// A layer that puts this gate in front of a service.
    #[must_use]
    pub fn layer(&self) -> GateLayer {
        GateLayer::new(self.clone())
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Gate(shared)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    pub(crate) fn count_door(&self) {
        self.0.doors.fetch_add(1, Relaxed);
    }

    /// Decides a request. A [`Decision`](crate::Decision) that has something to say is left in the
    /// extensions of the request, or of the answer that refuses it.
    pub(crate) fn admit(&self, parts: &mut Parts) -> Admission {
        let shared = &*self.0;
        if shared.doors.load(Relaxed) > 1 && !self.is_first_to_count(parts) {
            return Admission::Admitted(None);
        }
        let active = shared.active.load();
        let client = if active.asks_client { shared.client(&active, parts) } else { None };
        let now = shared.clock.now();
        let mut decision = active.engine.decide(&facts::of(parts, client), now);
        if let Some(refusal) = &decision.refusal {
            shared.refusals.log(refusal, now);
            let mut response = refusal::answer(refusal, &parts.method);
            response.extensions_mut().insert(decision);
            return Admission::Refused(response);
        }
        let charges = std::mem::take(&mut decision.charges);
        if !decision.findings.is_empty() {
            parts.extensions.insert(decision);
        }
        let pending = (!charges.is_empty()).then(|| Pending { gate: self.clone(), charges });
        Admission::Admitted(pending)
    }

    /// Marks the request, and says whether it was unmarked: it is counted once, however many of the
    /// gate's layers it passes.
    fn is_first_to_count(&self, parts: &mut Parts) -> bool {
        let number = self.0.number;
        if number == 0 {
            return parts.extensions.insert(CountedByFirst).is_none();
        }
        let counted = parts.extensions.get_or_insert_default::<CountedBy>();
        let is_first = !counted.0.contains(&number);
        if is_first {
            counted.0.push(number);
        }
        is_first
    }
}

/// Gates this process has built, to tell them apart.
static GATES: AtomicU64 = AtomicU64::new(0);

/// The number of a new gate, from 0.
pub(crate) fn next_number() -> u64 {
    GATES.fetch_add(1, Relaxed)
}

/// That the process's first gate has counted the request. Mostly it is the only one, so its mark has no
/// size: beside other extensions it allocates nothing.
#[derive(Clone)]
struct CountedByFirst;

/// Which other gates have counted the request, by their numbers.
#[derive(Clone, Default)]
struct CountedBy(SmallVec<[u64; 1]>);

impl Shared {
    fn client(&self, active: &Active, parts: &Parts) -> Option<IpAddr> {
        let peer = peer::find(self.hooks.peer.as_deref(), parts);
        let resolved = active.engine.rules().client().resolve(peer, &parts.headers);
        self.notices.client(peer, &resolved);
        resolved.client
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let active = self.0.active.load();
        f.debug_struct("Gate").field("app", &active.engine.rules().app()).finish_non_exhaustive()
    }
}

/// An admitted request whose response some rule counts. Dropped before the response head, the
/// request was cancelled.
pub(crate) struct Pending {
    gate: Gate,
    charges: Charges,
}

impl Pending {
    pub(crate) fn settle(mut self, outcome: Outcome) {
        self.settle_once(outcome);
    }

    fn settle_once(&mut self, outcome: Outcome) {
        let charges = std::mem::take(&mut self.charges);
        if !charges.is_empty() {
            let shared = &*self.gate.0;
            shared.active.load().engine.settle(charges, outcome, shared.clock.now());
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.settle_once(Outcome::Cancelled);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Request;

    use super::*;
    use crate::Decision;

    #[test]
    fn a_request_of_a_hot_key_that_passes_carries_the_decision() {
        let (clock, mock) = quanta::Clock::mock();
        let rules =
            "app = \"test\"\n[[rule]]\nname = \"api\"\nkey = []\nover = \"2/1m\"\nthrottle = {}\n";
        let (gate, _worker) = Gate::builder().rules(rules.parse().unwrap()).pair(clock).unwrap();
        let passes = || {
            let mut parts = Request::new(()).into_parts().0;
            let admitted = matches!(gate.admit(&mut parts), Admission::Admitted(_));
            admitted.then(|| parts.extensions.remove::<Decision>())
        };
        assert!(passes().unwrap().is_none() && passes().unwrap().is_none(), "nothing to say yet");
        assert!(passes().is_none(), "refused");
        mock.increment(Duration::from_secs(61));
        let decision = passes().expect("the window is free").expect("the key is still hot");
        assert!(decision.refusal.is_none() && decision.findings[0].hot);
        mock.increment(Duration::from_secs(600));
        assert!(passes().unwrap().is_none(), "the key has cooled");
    }
}
