//! Which values of a part are meant: one, those that begin so, a network, any.

use ipnet::IpNet;

use super::{
    net,
    reader::Item,
    report::{Read, Report},
};
use crate::{OverridePart, PartKind, RequestPath};

/// In a part that falls back from or to `client`, what reads as a network is one.
pub(super) fn read(
    item: Item<'_>,
    kinds: &[PartKind],
    report: &mut Report<'_>,
) -> Read<OverridePart> {
    let text = item.text("text", report)?;
    if text == "*" {
        return Ok(OverridePart::Any);
    }
    let client = kinds.iter().find_map(|kind| match kind {
        PartKind::Client { v4, v6, .. } => Some((*v4, *v6)),
        _ => None,
    });
    if let (Some(prefixes), Some(net)) = (client, net::parse(text)) {
        return network(item, net, prefixes, report).map(OverridePart::Net);
    }
    if client.is_some() && kinds.len() == 1 {
        return Err(
            item.expected(report, "an address, a network such as \"203.0.113.0/24\", or \"*\"")
        );
    }
    // As the key holds it: what is written in another way would cover nothing.
    let start = |text: &str| match kinds {
        [PartKind::Host] => text.to_ascii_lowercase(),
        [PartKind::Method] => text.to_ascii_uppercase(),
        [PartKind::Path] => RequestPath::new(text).normal().to_owned(),
        _ => text.to_owned(),
    };
    let value = |text: &str| match kinds {
        [PartKind::Path] => RequestPath::new(text).normal_trimmed().to_owned(),
        _ => start(text),
    };
    // A template holds a * of its own: /static/{*rest}.
    let is_template = kinds.contains(&PartKind::Route) && text.contains("{*");
    match text.strip_suffix('*') {
        Some(prefix) if !prefix.contains('*') => {
            Ok(OverridePart::Prefix(start(prefix).into_bytes().into()))
        }
        None if is_template || !text.contains('*') => {
            Ok(OverridePart::Exact(value(text).into_bytes().into()))
        }
        _ => Err(item.expected(report, "a value, or one * at its end")),
    }
}

/// A network that can hold the networks this key counts by.
fn network(item: Item<'_>, net: IpNet, (v4, v6): (u8, u8), report: &mut Report<'_>) -> Read<IpNet> {
    let counted = if net.addr().is_ipv4() { v4 } else { v6 };
    if net.prefix_len() <= counted {
        return net::without_host_bits(item, net, report);
    }
    let wider = IpNet::new(net.addr(), counted).map_or(net, |net| net.trunc());
    let expected = format_args!("a network of /{counted} or wider, as the key counts no narrower");
    Err(item.likely(report, expected, format_args!("\"{wider}\"")))
}
