//! What the gate's thread does: verdict events and counters, ten times a second.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, PoisonError, Weak,
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use crate::{gate::Shared, log};

/// How often the thread looks; a verdict is told at most this late.
const TICK: Duration = Duration::from_millis(100);

/// It holds no gate, so that the last gate's drop ends it; what came since its last tick, that drop
/// tells itself.
pub(crate) struct Worker {
    shared: Weak<Shared>,
    stop: Receiver<()>,
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, stop: Receiver<()>) -> Self {
        Worker { shared: Arc::downgrade(shared), stop }
    }

    pub(crate) fn spawn(self) -> io::Result<()> {
        thread::Builder::new().name("hotgate".to_owned()).spawn(|| self.run()).map(drop)
    }

    fn run(self) {
        while self.stop.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            shared.tick();
        }
    }
}

impl Shared {
    /// A subscriber or recorder that panics is not ours to fix, and costs its users this one tick;
    /// the panic hook says where it happened. The next tick goes on from what was published.
    fn tick(&self) {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let now = self.clock.now();
            for event in self.active.load().engine.tick(now) {
                log::verdict(&event);
            }
            self.refusals.say_rest(now);
            self.published.lock().unwrap_or_else(PoisonError::into_inner).publish(self);
        }));
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.tick();
    }
}

#[cfg(test)]
mod tests;
