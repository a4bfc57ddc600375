//! `[[allow]]` and `[[deny]]`: the narrowest prefix wins, a tie denies.

use std::net::IpAddr;

use ipnet::IpNet;

/// All lists of a file.
#[derive(Clone, Debug, Default)]
pub struct ClientLists {}

/// How a client stands on the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// On none.
    Unlisted,
    /// Denied.
    Denied,
    /// Allowed past every rule.
    Allowed,
    /// Allowed past these rules, as bits by their position.
    AllowedPast([u64; 4]),
}

/// One `[[allow]]` or `[[deny]]`, its rule names resolved to positions.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) clients: Vec<IpNet>,
    /// `None`: a deny; `Some(None)`: past all rules; `Some(Some(bits))`: past those.
    pub(crate) allow: Option<Option<[u64; 4]>>,
    /// Seconds since the unix epoch.
    pub(crate) until: Option<i64>,
}

impl ClientLists {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let _ = entries;
        todo!()
    }

    /// How `client` (canonical) stands at `unix_nanos`, nanoseconds since the unix epoch.
    #[must_use]
    pub fn standing(&self, client: IpAddr, unix_nanos: i128) -> Standing {
        let _ = (client, unix_nanos);
        todo!()
    }

    /// Whether there is nothing to look up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        true
    }
}
