//! Addresses and networks.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

use super::{
    reader::Item,
    report::{Read, Report},
};

/// A network in its canonical form; a bare address is the network of it alone.
pub(super) fn network(item: Item<'_>, report: &mut Report<'_>) -> Read<IpNet> {
    const EXPECTED: &str = "an address or network such as \"10.0.0.0/8\"";
    let text = item.text(EXPECTED, report)?;
    let net = parse(text).ok_or_else(|| item.expected(report, EXPECTED))?;
    without_host_bits(item, net, report)
}

/// An address or a network, IPv4-mapped ones as IPv4 (C59).
pub(crate) fn parse(text: &str) -> Option<IpNet> {
    let net =
        text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))?;
    Some(canonical(net))
}

/// Whoever writes `10.0.0.1/8` means either the address or the network, and only they know which.
pub(super) fn without_host_bits(
    item: Item<'_>,
    net: IpNet,
    report: &mut Report<'_>,
) -> Read<IpNet> {
    if net == net.trunc() {
        return Ok(net);
    }
    let likely = format!("\"{}\"", net.trunc());
    Err(item.likely(
        report,
        format_args!("no bits beyond the prefix of /{}", net.prefix_len()),
        likely,
    ))
}

fn canonical(net: IpNet) -> IpNet {
    /// `::ffff:0:0/96` holds all of IPv4.
    const MAPPED_PREFIX: u8 = 96;
    let IpNet::V6(mapped) = net else { return net };
    let v4 = Ipv6Addr::to_ipv4_mapped(&mapped.addr());
    let (Some(addr), Some(prefix)) = (v4, mapped.prefix_len().checked_sub(MAPPED_PREFIX)) else {
        return net;
    };
    Ipv4Net::new(addr, prefix).map_or(net, IpNet::V4)
}
