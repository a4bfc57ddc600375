//! The other end of the connection, as the server or an outer layer tells it.

use std::net::SocketAddr;

use hotgate_rules::Peer;
use http::request::Parts;

/// A request extension that says who the peer is, for servers that have no extension of their own
/// that the gate knows, or that know better than it says: of a connection that a load balancer
/// passes on with the PROXY protocol, Axum knows the balancer's address only.
///
/// Whatever accepts the connection inserts it; nothing that a client sends may decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub Peer);

impl PeerAddr {
    /// What this extension says; shaped for [`GateBuilder::peer`](crate::GateBuilder::peer).
    #[must_use]
    pub fn of(parts: &Parts) -> Option<Peer> {
        parts.extensions.get::<PeerAddr>().map(|peer| peer.0)
    }
}

/// A function that finds the peer.
pub(crate) type PeerFn = dyn Fn(&Parts) -> Option<Peer> + Send + Sync;

/// Whether a gate can know a peer without being told how.
pub(crate) const KNOWS_PEERS: bool = cfg!(feature = "axum");

/// The peer of a request: what `registered` says, else what the extensions hold. [`PeerAddr`] is meant
/// for us and goes before what others wrote for whatever ends.
pub(crate) fn find(registered: Option<&PeerFn>, parts: &Parts) -> Option<Peer> {
    registered.and_then(|find| find(parts)).or_else(|| PeerAddr::of(parts)).or_else(|| {
        let addr = connect_info(parts).or_else(|| parts.extensions.get::<SocketAddr>());
        addr.map(|addr| Peer::Ip(addr.ip()))
    })
}

#[cfg(feature = "axum")]
fn connect_info(parts: &Parts) -> Option<&SocketAddr> {
    parts.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>().map(|info| &info.0)
}

#[cfg(not(feature = "axum"))]
fn connect_info(_: &Parts) -> Option<&SocketAddr> {
    None
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn what_says_more_surely_who_the_peer_is_goes_first() {
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let mut parts = http::Request::new(()).into_parts().0;
        assert_eq!(find(None, &parts), None);
        parts.extensions.insert(SocketAddr::from((address(1), 80)));
        assert_eq!(find(None, &parts), Some(Peer::Ip(address(1))));
        #[cfg(feature = "axum")]
        {
            let info = axum::extract::ConnectInfo(SocketAddr::from((address(2), 80)));
            parts.extensions.insert(info);
            assert_eq!(find(None, &parts), Some(Peer::Ip(address(2))));
        }
        parts.extensions.insert(PeerAddr(Peer::Unix));
        assert_eq!(find(None, &parts), Some(Peer::Unix));
        let registered = |_: &Parts| Some(Peer::Ip(IpAddr::from([192, 0, 2, 3])));
        assert_eq!(find(Some(&registered), &parts), Some(Peer::Ip(address(3))));
        let silent = |_: &Parts| None;
        assert_eq!(find(Some(&silent), &parts), Some(Peer::Unix), "as if it were not there");
    }
}
