//! What the gate's thread does: verdict events and counters, ten times a second.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use crate::{counters::Published, gate::Shared, log};

/// How often the thread looks; a verdict is told at most this late.
const TICK: Duration = Duration::from_millis(100);

/// It holds no gate, so that the last gate's drop ends it.
pub(crate) struct Worker {
    shared: Weak<Shared>,
    stop: Receiver<()>,
    published: Published,
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, stop: Receiver<()>) -> Self {
        let published = Published::new(shared.engine.rules().rules().len());
        Worker { shared: Arc::downgrade(shared), stop, published }
    }

    pub(crate) fn spawn(self) -> io::Result<()> {
        thread::Builder::new().name("hotgate".to_owned()).spawn(|| self.run()).map(drop)
    }

    fn run(mut self) {
        while self.stop.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            self.survive_tick(&shared);
        }
    }

    /// A subscriber or recorder that panics is not ours to fix, and costs its users this one tick;
    /// the panic hook says where it happened. The next tick goes on from what was published.
    fn survive_tick(&mut self, shared: &Shared) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.tick(shared)));
    }

    fn tick(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        for event in shared.engine.tick(now) {
            log::verdict(&event);
        }
        shared.refusals.say_rest(now);
        self.published.publish(shared);
    }
}

#[cfg(test)]
mod tests;
