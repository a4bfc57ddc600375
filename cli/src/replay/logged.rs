//! A log line as the facts of a request.

use std::net::IpAddr;

use hotgate_rules::{ClientConfig, ClientSource, Facts, Peer, RequestPath};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::log::{Line, field_value};

/// There is no constant for it in `http`.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Header fields of one line, kept from line to line so that each need not allocate a map.
#[derive(Debug, Default)]
pub(super) struct Logged {
    headers: HeaderMap,
}

impl Logged {
    /// The facts that `line` holds.
    pub(super) fn facts<'a>(&'a mut self, line: &'a Line<'_>, config: &ClientConfig) -> Facts<'a> {
        self.headers.clear();
        if let Some(agent) = &line.agent {
            self.insert(header::REFERER, agent.referer.as_deref());
            self.insert(header::USER_AGENT, agent.user_agent.as_deref());
        }
        Facts {
            method: line.request.method.as_ref(),
            path: RequestPath::new(&line.request.path),
            query: line.request.query.as_deref(),
            host: None,
            headers: &self.headers,
            route: None,
            client: client(line, config),
            extracted: &(),
        }
    }

    fn insert(&mut self, name: HeaderName, value: Option<&[u8]>) {
        if let Some(value) = value.and_then(field_value) {
            self.headers.insert(name, value);
        }
    }
}

/// The client of `line`: of a list, by the same walk over the trusted proxies as of a live request
/// whose peer is its last hop. Only where the rules go by `X-Forwarded-For` is a list believed.
pub(super) fn client(line: &Line<'_>, config: &ClientConfig) -> Option<IpAddr> {
    let Some(hops) = line.forwarded.filter(|_| config.source == ClientSource::XForwardedFor) else {
        return line.client;
    };
    let comma = hops.iter().rposition(|byte| *byte == b',')?;
    let peer = str::from_utf8(&hops[comma + 1..]).ok()?.trim().parse().ok()?;
    let left = HeaderValue::from_bytes(&hops[..comma]).ok()?;
    let headers = HeaderMap::from_iter([(X_FORWARDED_FOR, left)]);
    config.resolve(Some(Peer::Ip(peer)), &headers).client
}

#[cfg(test)]
mod tests {
    use hotgate_rules::RuleSet;

    use super::*;

    /// C102
    #[test]
    fn a_list_of_hops_is_walked_as_live_where_the_rules_go_by_it() {
        let walk = "source = \"x-forwarded-for\"\ntrusted_proxies = [\"10.0.0.0/8\"]";
        let table = [
            (walk, "203.0.113.9", Some("203.0.113.9")),
            (walk, "198.51.100.1, 203.0.113.9", Some("203.0.113.9")),
            (walk, "198.51.100.1, 203.0.113.9, 10.0.0.1", Some("203.0.113.9")),
            (walk, "203.0.113.9,10.0.0.2,10.0.0.1", Some("203.0.113.9")),
            (walk, "10.0.0.2, 10.0.0.1", Some("10.0.0.2")),
            (walk, "203.0.113.9, unknown, 10.0.0.1", Some("10.0.0.1")),
            (walk, "203.0.113.9, unknown", None),
            (walk, "203.0.113.9, ", None),
            (walk, "-", None),
            ("source = \"peer\"", "198.51.100.1, 203.0.113.9", None),
        ];
        for (config, first, expected) in table {
            let rules: RuleSet = format!("app = \"t\"\n[client]\n{config}\n").parse().unwrap();
            let text = format!("{first} - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1");
            let line = Line::read(text.as_bytes()).unwrap();
            let found = client(&line, rules.client());
            assert_eq!(found, expected.map(|text| text.parse().unwrap()), "{config}: {first}");
        }
    }
}
