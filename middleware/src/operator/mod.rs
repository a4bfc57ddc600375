//! What operators ask a running gate, and command it.
//!
//! Commands last as long as the process; the rule file is what stays. Every change is logged with who
//! made it. Everything here copies what it tells, and no request waits for it.

mod command;
mod error;
mod hot;
mod list;
mod mode;
mod moment;
mod record;
mod snapshot;
mod why;

use hotgate_rules::Mode;
use serde::Serializer;

use crate::gate::Shared;

pub use command::{Blocked, Lifted};
pub use error::CommandError;
pub use hot::{By, HotKey, HotKeys};
pub use list::{List, ListEntry};
pub use mode::{ModeChange, ModeStatus};
pub use moment::Moment;
pub(crate) use record::Record;
pub use snapshot::{FailedReload, Losses, Notice, ReloadStatus, Requests, RuleStatus, Snapshot};
pub(crate) use why::cause_name;
pub use why::{KeyState, KeyStatus, RefusalStatus, Why};

use moment::Clocks;

/// Who gives a command, for the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    pub(crate) name: &'static str,
    pub(crate) peer: Option<&'a str>,
}

/// The service's own code.
const SERVICE: Who<'static> = Who { name: "service", peer: None };

impl Shared {
    fn clocks(&self) -> Clocks {
        Clocks::read(self.clock.now())
    }
}

/// A mode as the rule file writes it.
pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
        Mode::Off => "off",
    }
}

fn serialize_mode<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode_name(*mode))
}

fn serialize_mode_if_any<S: Serializer>(
    mode: &Option<Mode>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match mode {
        Some(mode) => serialize_mode(mode, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests;
