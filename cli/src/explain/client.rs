//! Who the client is, and how it was found.

use hotgate_rules::{ClientConfig, ClientSource, Peer, Resolved};

/// How `resolved` came about, as the end of a sentence that begins with the client.
pub(super) fn how(config: &ClientConfig, peer: Option<Peer>, resolved: &Resolved) -> String {
    let field = match &config.source {
        ClientSource::Peer => return of_peer(peer).to_owned(),
        ClientSource::XForwardedFor => "x-forwarded-for",
        ClientSource::Forwarded => "forwarded",
        ClientSource::Header(name) => name.as_str(),
    };
    let Some(peer) = peer else {
        return format!("as no --peer is given; without a trusted peer {field} is not believed");
    };
    let mut how = match (trusts(config, peer), resolved.client) {
        (false, _) => {
            format!("{}, which is not trusted: {field} is not believed", of_peer(Some(peer)))
        }
        (true, Some(client)) if Peer::Ip(client) == canonical(peer) => {
            format!("the peer, which is trusted, but {field} names no other client")
        }
        (true, Some(_)) => format!("named by {field}, as the peer is trusted"),
        (true, None) => format!("as {field} names none"),
    };
    if resolved.unusable_hop {
        how.push_str("; a hop of it is no address, or it has too many: the walk stopped there");
    }
    if resolved.untrusted_proxy {
        how.push_str("; is the peer a proxy that trusted_proxies should name?");
    }
    how
}

fn of_peer(peer: Option<Peer>) -> &'static str {
    match peer {
        None => "as no --peer is given",
        Some(Peer::Ip(_)) => "the peer",
        Some(Peer::Unix) => "as the peer is a unix socket",
    }
}

fn canonical(peer: Peer) -> Peer {
    match peer {
        Peer::Ip(address) => Peer::Ip(address.to_canonical()),
        Peer::Unix => Peer::Unix,
    }
}

fn trusts(config: &ClientConfig, peer: Peer) -> bool {
    match canonical(peer) {
        Peer::Ip(address) => config.trusted.iter().any(|net| net.contains(&address)),
        Peer::Unix => config.trust_unix,
    }
}
