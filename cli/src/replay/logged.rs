//! A log line as the facts of a request.

use hotgate_rules::{Facts, RequestPath};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::log::Line;

/// What a field value cannot hold; the one control it can, the tab, does no harm encoded.
const NOT_IN_VALUE: &AsciiSet = CONTROLS;

/// Header fields of one line, kept from line to line so that each need not allocate a map.
#[derive(Debug, Default)]
pub(super) struct Logged {
    headers: HeaderMap,
}

impl Logged {
    /// The facts that `line` holds.
    pub(super) fn facts<'a>(&'a mut self, line: &'a Line<'_>) -> Facts<'a> {
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
            client: line.client,
        }
    }

    fn insert(&mut self, name: HeaderName, value: Option<&[u8]>) {
        let Some(value) = value else { return };
        let value = HeaderValue::from_bytes(value).or_else(|_| {
            let encoded: String = percent_encode(value, NOT_IN_VALUE).collect();
            HeaderValue::from_str(&encoded)
        });
        if let Ok(value) = value {
            self.headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_no_field_can_hold_is_encoded_and_others_stay_as_they_are() {
        let table: [(&[u8], &[u8]); 4] = [
            (b"Agent/1", b"Agent/1"),
            (b"a\tb %00 \xff", b"a\tb %00 \xff"),
            (b"a\nb\x7f\x00", b"a%0Ab%7F%00"),
            (b"", b""),
        ];
        for (logged, expected) in table {
            let mut held = Logged::default();
            held.insert(header::USER_AGENT, Some(logged));
            assert_eq!(held.headers[header::USER_AGENT].as_bytes(), expected);
        }
    }
}
