//! The gate: the engine inside one service instance, with its clock and its thread.

use std::{
    fmt,
    net::IpAddr,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc::Sender,
    },
};

use arc_swap::ArcSwap;
use hotgate_detector::Time;
use http::request::Parts;

use crate::{
    BuildError, GateBuilder, GateLayer,
    active::Active,
    check::Faults,
    control::Control,
    counters::{Published, Totals},
    hooks::Hooks,
    log::{Notices, RefusalLog},
    mark::Place,
    peer,
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
    pub(crate) faults: Faults,
    pub(crate) refusals: RefusalLog,
    pub(crate) totals: Mutex<Totals>,
    pub(crate) published: Mutex<Published>,
    pub(crate) reloads: Reloads,
    /// How many services stand behind this gate's layers. While it is one, no request can come to
    /// this gate twice.
    pub(crate) doors: AtomicUsize,
    /// Whether rules that ask what the service's functions say have a door of their own.
    pub(crate) has_inner_door: AtomicBool,
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

    /// A layer that puts this gate in front of a service. It belongs outermost.
    #[must_use]
    pub fn layer(&self) -> GateLayer {
        GateLayer::new(self.clone(), Place::Outer)
    }

    /// A layer that puts the gate's second door in front of a service: inside authentication, where
    /// what `.user(f)` and `.extractor(name, f)` look at is there.
    ///
    /// From this call on, whichever layers were made before it, rules whose key or `when` names `user`
    /// or `x:NAME` are asked here only, fallbacks such as `user|client` included; requests that
    /// do not come as far are not counted by them. All other rules are asked at the outermost of the
    /// gate's layers; where none stands further out, that is this one. A request is counted once,
    /// however many layers of the gate it passes, as long as what stands between them passes its
    /// extensions on.
    #[must_use]
    pub fn inner_layer(&self) -> GateLayer {
        self.0.has_inner_door.store(true, Relaxed);
        GateLayer::new(self.clone(), Place::Inner)
    }

    /// Who the client of a request is, as `[client]` of the rules says; `None`: unknown.
    #[must_use]
    pub fn client(&self, parts: &Parts) -> Option<IpAddr> {
        self.0.client(&self.0.active.load(), parts)
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
}

/// Gates this process has built, to tell them apart.
static GATES: AtomicU64 = AtomicU64::new(0);

/// The number of a new gate, from 0.
pub(crate) fn next_number() -> u64 {
    GATES.fetch_add(1, Relaxed)
}

impl Shared {
    pub(crate) fn client(&self, active: &Active, parts: &Parts) -> Option<IpAddr> {
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
