//! What the service registers: functions that know what only the service knows.

use crate::peer::PeerFn;

/// The functions a gate was built with.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) peer: Option<Box<PeerFn>>,
}
