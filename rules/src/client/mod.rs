//! Who the client is: the peer, or the walk over the proxies that are trusted.

mod hops;

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;

/// Bytes of a forwarding field that are read, from the right and over all of its lines. Proxies
/// write some tens each; what stands further left is an unusable hop.
const FORWARDING_FIELD_BYTES_MAX: usize = 8 * 1024;

/// Hops of a forwarding field that are read, from the right; a further one is unusable.
const HOPS_MAX: usize = 64;

/// There is no constant for it in `http`.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The other end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A network address.
    Ip(IpAddr),
    /// A unix socket.
    Unix,
}

/// `[client].source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientSource {
    /// The peer itself.
    Peer,
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// A field that holds one address.
    Header(HeaderName),
}

/// `[client]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Where the address is taken from.
    pub source: ClientSource,
    /// Proxies whose word is taken.
    pub trusted: Vec<IpNet>,
    /// Whether a unix socket's peer is trusted.
    pub trust_unix: bool,
    /// The prefix IPv6 clients are counted by.
    pub ipv6_prefix: u8,
}

/// What [`ClientConfig::resolve`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The client's canonical address.
    pub client: Option<IpAddr>,
    /// A trusted proxy's field held a hop that is no address, or more than is read.
    pub unusable_hop: bool,
    /// A private or loopback peer that is not trusted sent a forwarding field: likely a proxy that
    /// is missing in `trusted_proxies`.
    pub untrusted_proxy: bool,
}

impl ClientConfig {
    /// The client of a request from `peer` with these header fields.
    ///
    /// The peer itself, unless it is trusted and `source` names a field. Of a list, the hops are
    /// taken from the right, trusted ones skipped: the first other one is the client; where all are
    /// trusted, the leftmost. A hop that is no address ends that walk at the last trusted address
    /// it reached, at worst the peer. Nothing else that a client sends is believed.
    #[inline]
    #[must_use]
    pub fn resolve(&self, peer: Option<Peer>, headers: &HeaderMap) -> Resolved {
        match peer {
            Some(Peer::Ip(IpAddr::V4(addr))) if self.trusted.is_empty() && !is_local_v4(addr) => {
                Resolved { client: Some(addr.into()), unusable_hop: false, untrusted_proxy: false }
            }
            _ => self.resolve_by_trust(peer, headers),
        }
    }

    fn resolve_by_trust(&self, peer: Option<Peer>, headers: &HeaderMap) -> Resolved {
        let (reached, trusted) = match peer {
            None => return Resolved { client: None, unusable_hop: false, untrusted_proxy: false },
            Some(Peer::Ip(addr)) => {
                let addr = addr.to_canonical();
                (Some(addr), self.trusts(addr))
            }
            Some(Peer::Unix) => (None, self.trust_unix),
        };
        if !trusted {
            let untrusted_proxy = reached.is_none_or(is_local) && self.is_forwarded(headers);
            return Resolved { client: reached, unusable_hop: false, untrusted_proxy };
        }
        let (client, unusable_hop) = match &self.source {
            ClientSource::Peer => (reached, false),
            ClientSource::XForwardedFor => {
                self.walk(reached, hops::x_forwarded_for(headers, &X_FORWARDED_FOR))
            }
            ClientSource::Forwarded => {
                self.walk(reached, hops::forwarded(headers, &header::FORWARDED))
            }
            ClientSource::Header(name) => single(reached, headers, name),
        };
        Resolved { client, unusable_hop, untrusted_proxy: false }
    }

    /// Where the walk from the right ends, and whether an unusable hop ended it.
    fn walk(
        &self,
        mut reached: Option<IpAddr>,
        hops: impl Iterator<Item = Option<IpAddr>>,
    ) -> (Option<IpAddr>, bool) {
        for (index, hop) in hops.enumerate() {
            match hop {
                Some(addr) if index < HOPS_MAX && self.trusts(addr) => reached = Some(addr),
                Some(addr) if index < HOPS_MAX => return (Some(addr), false),
                _ => return (reached, true),
            }
        }
        (reached, false)
    }

    fn trusts(&self, canonical: IpAddr) -> bool {
        self.trusted.iter().any(|net| net.contains(&canonical))
    }

    fn is_forwarded(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(X_FORWARDED_FOR)
            || headers.contains_key(header::FORWARDED)
            || matches!(&self.source, ClientSource::Header(name) if headers.contains_key(name))
    }
}

/// The client by a field of one address: two lines, or two addresses, are none.
fn single(peer: Option<IpAddr>, headers: &HeaderMap, name: &HeaderName) -> (Option<IpAddr>, bool) {
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else { return (peer, false) };
    match hops::address(line.as_bytes()).filter(|_| lines.next().is_none()) {
        Some(addr) => (Some(addr), false),
        None => (peer, true),
    }
}

/// Whether an address is one that a proxy of one's own would have.
fn is_local(canonical: IpAddr) -> bool {
    match canonical {
        IpAddr::V4(addr) => is_local_v4(addr),
        IpAddr::V6(addr) => {
            addr.is_loopback() || addr.is_unique_local() || addr.is_unicast_link_local()
        }
    }
}

fn is_local_v4(addr: Ipv4Addr) -> bool {
    let shared = addr.octets()[0] == 100 && addr.octets()[1] & 0xc0 == 64;
    addr.is_private() || addr.is_loopback() || addr.is_link_local() || shared
}

#[cfg(test)]
mod tests;
