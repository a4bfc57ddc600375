//! `[[allow]]` and `[[deny]]`: the narrowest prefix wins, a tie denies.

use std::{collections::HashMap, net::IpAddr};

use ipnet::IpNet;

/// All lists of a file.
///
/// Entries are kept by the length of their prefix, longest first, so that a look-up is one probe for
/// each length in use, however many entries there are.
#[derive(Clone, Debug, Default)]
pub struct ClientLists {
    v4: Vec<Prefixes>,
    v6: Vec<Prefixes>,
}

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

/// The networks of one prefix length, by their first address.
#[derive(Clone, Debug)]
struct Prefixes {
    length: u8,
    networks: HashMap<IpAddr, Listed>,
}

/// What the entries of one network say, each kind with its end: the first nanosecond since the unix
/// epoch at which it no longer counts.
#[derive(Clone, Debug)]
struct Listed {
    denied: i128,
    allowed: i128,
    past: Vec<([u64; 4], i128)>,
}

/// The end of what was never there.
const NEVER: i128 = i128::MIN;
/// The end of what has none.
const FOREVER: i128 = i128::MAX;

impl ClientLists {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let mut lists = ClientLists::default();
        for entry in entries {
            let end = entry.until.map_or(FOREVER, |seconds| i128::from(seconds) * 1_000_000_000);
            for net in entry.clients {
                let listed = lists.listed(canonical(net));
                match entry.allow {
                    None => listed.denied = listed.denied.max(end),
                    Some(None) => listed.allowed = listed.allowed.max(end),
                    Some(Some(rules)) => listed.past.push((rules, end)),
                }
            }
        }
        lists
    }

    /// How `client` (canonical) stands at `unix_nanos`, nanoseconds since the unix epoch.
    ///
    /// An entry whose `until` has come no longer counts. The narrowest prefix wins between deny and
    /// allow past every rule, and a tie denies; an allow past some rules outweighs neither, and all
    /// that cover the client add up.
    #[must_use]
    pub fn standing(&self, client: IpAddr, unix_nanos: i128) -> Standing {
        let mut past = [0; 4];
        for prefixes in if client.is_ipv4() { &self.v4 } else { &self.v6 } {
            let Some(listed) = prefixes.listed(client) else { continue };
            if unix_nanos < listed.denied {
                return Standing::Denied;
            }
            if unix_nanos < listed.allowed {
                return Standing::Allowed;
            }
            for (rules, _) in listed.past.iter().filter(|(_, end)| unix_nanos < *end) {
                past.iter_mut().zip(rules).for_each(|(word, rules)| *word |= rules);
            }
        }
        if past == [0; 4] { Standing::Unlisted } else { Standing::AllowedPast(past) }
    }

    /// Whether there is nothing to look up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    fn listed(&mut self, net: IpNet) -> &mut Listed {
        let family = if net.addr().is_ipv4() { &mut self.v4 } else { &mut self.v6 };
        let length = net.prefix_len();
        let place = family.partition_point(|prefixes| prefixes.length > length);
        if family.get(place).is_none_or(|prefixes| prefixes.length != length) {
            family.insert(place, Prefixes { length, networks: HashMap::new() });
        }
        let nothing = Listed { denied: NEVER, allowed: NEVER, past: Vec::new() };
        family[place].networks.entry(net.network()).or_insert(nothing)
    }
}

impl Prefixes {
    fn listed(&self, client: IpAddr) -> Option<&Listed> {
        let net = IpNet::new(client, self.length).ok()?;
        self.networks.get(&net.network())
    }
}

/// An IPv4-mapped network as the IPv4 network it is: clients come canonical.
fn canonical(net: IpNet) -> IpNet {
    match net.addr().to_canonical() {
        IpAddr::V4(addr) if net.prefix_len() >= 96 && net.addr().is_ipv6() => {
            IpNet::new(addr.into(), net.prefix_len() - 96).unwrap_or(net)
        }
        _ => net,
    }
}
