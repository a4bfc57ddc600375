//! Who the client is: the peer, or the walk over the proxies that are trusted.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

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
    #[must_use]
    pub fn resolve(&self, peer: Option<Peer>, headers: &HeaderMap) -> Resolved {
        let _ = (peer, headers);
        todo!()
    }
}
