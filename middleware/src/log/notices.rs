//! What is amiss with the clients' addresses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use hotgate_rules::{Peer, Resolved};

use super::warn;

/// What is amiss with the clients' addresses: counted each time, told once.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    pub(crate) no_peer: AtomicU64,
    pub(crate) unusable_hops: AtomicU64,
    said_no_peer: Once,
    said_nameless: Once,
    said_untrusted_proxy: Once,
}

impl Notices {
    pub(crate) fn client(&self, peer: Option<Peer>, resolved: &Resolved) {
        if resolved.unusable_hop {
            self.unusable_hops.fetch_add(1, Relaxed);
        }
        if resolved.untrusted_proxy && self.said_untrusted_proxy.is_first() {
            warn(format_args!(
                "a private address that is no trusted proxy sends a forwarding header: if it is your \
                 proxy, all its clients share one key; set [client] source and trusted_proxies"
            ));
        }
        let nameless = peer == Some(Peer::Unix) && resolved.client.is_none();
        if nameless && !resolved.untrusted_proxy && self.said_nameless.is_first() {
            warn(format_args!(
                "a request over a unix socket names no client, so rules by client do not see it: set \
                 [client] source to the field in which your proxy does, and trusted_proxies = [\"unix\"]"
            ));
        }
        if peer.is_none() {
            self.no_peer.fetch_add(1, Relaxed);
            if self.said_no_peer.is_first() {
                warn(format_args!(
                    "a request came without its peer's address, so rules by client do not see it: serve \
                     with into_make_service_with_connect_info::<SocketAddr>(), or insert a \
                     hotgate::PeerAddr where connections are accepted"
                ));
            }
        }
    }
}

#[derive(Debug, Default)]
struct Once(AtomicBool);

impl Once {
    fn is_first(&self) -> bool {
        !self.0.load(Relaxed) && !self.0.swap(true, Relaxed)
    }
}
