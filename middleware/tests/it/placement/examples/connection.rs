use std::net::IpAddr;

use axum::{Extension, Router, middleware::AddExtension};
use hotgate::{Peer, PeerAddr};
use tower::Layer;

/// The service of one connection; `source` is what its PROXY header said.
fn of_connection(app: &Router, source: IpAddr) -> AddExtension<Router, PeerAddr> {
    Extension(PeerAddr(Peer::Ip(source))).layer(app.clone())
}
