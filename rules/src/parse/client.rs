//! `[client]`: where the client's address comes from.

use http::HeaderName;
use ipnet::IpNet;

use super::{
    net,
    reader::{Fields, Item, Names},
    report::{Read, Report},
};
use crate::{
    ClientConfig, ClientSource,
    problem::{Quoted, nearest},
};

const NAMES: Names =
    Names { table: "[client]", known: &["source", "trusted_proxies", "ipv6_prefix"], later: &[] };

/// The sources with a name of their own.
const SOURCES: [&str; 3] = ["peer", "x-forwarded-for", "forwarded"];

/// The prefix IPv6 clients are counted by: what one customer is usually given at least (C10).
const IPV6_PREFIX: u8 = 64;

/// Proxies a file can trust: each request of theirs is looked up among them.
const TRUSTED_MAX: usize = 1024;

/// The configuration without `[client]`: the peer.
pub(super) fn default() -> ClientConfig {
    ClientConfig {
        source: ClientSource::Peer,
        trusted: Vec::new(),
        trust_unix: false,
        ipv6_prefix: IPV6_PREFIX,
    }
}

pub(super) fn read(item: Item<'_>, report: &mut Report<'_>) -> Read<ClientConfig> {
    let fields = item.table(&NAMES, report)?;
    let source = fields.read("source", report, source);
    let proxies = fields.read("trusted_proxies", report, proxies);
    let ipv6_prefix = fields.read("ipv6_prefix", report, ipv6_prefix);

    let source = source?.unwrap_or(ClientSource::Peer);
    let proxies = proxies?;
    check_trust(&fields, &source, proxies.as_ref(), report)?;
    let (trusted, trust_unix) = proxies.unwrap_or_default();
    Ok(ClientConfig {
        source,
        trusted,
        trust_unix,
        ipv6_prefix: ipv6_prefix?.unwrap_or(IPV6_PREFIX),
    })
}

fn source(item: Item<'_>, report: &mut Report<'_>) -> Read<ClientSource> {
    const EXPECTED: &str = "\"peer\", \"x-forwarded-for\", \"forwarded\" or the name of a field that holds one address";
    let text = item.text(EXPECTED, report)?.to_ascii_lowercase();
    match text.as_str() {
        "peer" => return Ok(ClientSource::Peer),
        "x-forwarded-for" => return Ok(ClientSource::XForwardedFor),
        "forwarded" => return Ok(ClientSource::Forwarded),
        _ => {}
    }
    let name = HeaderName::try_from(&text).map_err(|_| item.expected(report, EXPECTED))?;
    if let Some(near) = nearest(&text, SOURCES) {
        let message = format_args!(
            "source: {item} is read as a field that holds one address, did you mean {}?",
            Quoted(near)
        );
        report.warn(item.at, message);
    }
    Ok(ClientSource::Header(name))
}

/// The networks, and whether a unix socket is trusted.
fn proxies(item: Item<'_>, report: &mut Report<'_>) -> Read<(Vec<IpNet>, bool)> {
    let items = item.list("[\"10.0.0.0/8\"]", report)?;
    if items.len() > TRUSTED_MAX {
        let message =
            format_args!("expected at most {TRUSTED_MAX} networks, found {}", items.len());
        return Err(item.error(report, message));
    }
    let (unix, networks): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| item.value().as_str() == Some("unix"));
    let read: Vec<Read<IpNet>> = networks.into_iter().map(|item| proxy(item, report)).collect();
    Ok((read.into_iter().collect::<Read<_>>()?, !unix.is_empty()))
}

fn proxy(item: Item<'_>, report: &mut Report<'_>) -> Read<IpNet> {
    let net = net::network(item, report)?;
    if net.prefix_len() == 0 {
        report.warn(
            item.at,
            format_args!(
                "trusted_proxies: {item} lets everybody choose the address they are counted by"
            ),
        );
    }
    Ok(net)
}

fn ipv6_prefix(item: Item<'_>, report: &mut Report<'_>) -> Read<u8> {
    let prefix = item.integer(32..=128, report)?;
    Ok(u8::try_from(prefix).unwrap_or(IPV6_PREFIX))
}

/// Trusted proxies and a field they set come together or not at all: either alone would be ignored (C57).
fn check_trust(
    fields: &Fields<'_>,
    source: &ClientSource,
    proxies: Option<&(Vec<IpNet>, bool)>,
    report: &mut Report<'_>,
) -> Read<()> {
    let trusts = proxies.is_some_and(|(networks, unix)| !networks.is_empty() || *unix);
    match (source, fields.get("trusted_proxies")) {
        (ClientSource::Peer, Some(item)) if trusts => {
            let message = "not used with source = \"peer\", expected the field that these proxies set, such as source = \"x-forwarded-for\"";
            Err(item.error(report, message))
        }
        (ClientSource::Peer, _) => Ok(()),
        (_, None) => fields.require("trusted_proxies", "[\"10.0.0.0/8\"]", report).map(|_| ()),
        (_, Some(item)) if !trusts => {
            Err(item.expected(report, "at least one proxy that sets the source"))
        }
        _ => Ok(()),
    }
}
