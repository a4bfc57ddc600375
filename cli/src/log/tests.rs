//! Whole lines: what real servers write, and what clients forge.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

const DATE: &str = "17/May/2015:10:05:03 +0000";
const SECONDS: u64 = 1_431_857_103;

fn read(line: &str) -> Line<'_> {
    Line::read(line.as_bytes()).unwrap_or_else(|reason| panic!("{line}: {reason}"))
}

fn agent(text: &str) -> Option<Cow<'_, [u8]>> {
    Some(Cow::Borrowed(text.as_bytes()))
}

#[test]
fn a_combined_line_holds_everything_and_what_follows_is_ignored() {
    for rest in ["", " \"203.0.113.1\"", " 12 \"a router\" 1ms", " \"never ends"] {
        let text = format!(
            "203.0.113.9 - - [{DATE}] \"GET /x?y=1 HTTP/1.1\" 200 123 \"http://r.example/\" \"Agent/1 (\\\"x\\\")\"{rest}"
        );
        let line = read(&text);
        assert_eq!(line.client, Some("203.0.113.9".parse().unwrap()));
        assert_eq!(line.time.as_nanos(), SECONDS * 1_000_000_000);
        assert_eq!(line.request, RequestLine::read(b"GET /x?y=1 HTTP/1.1"));
        assert_eq!(line.status, Some(http::StatusCode::OK));
        let fields = line.agent.unwrap();
        assert_eq!(fields.referer, agent("http://r.example/"));
        assert_eq!(fields.user_agent, agent("Agent/1 (\"x\")"));
    }
}

#[test]
fn a_common_line_has_no_agent() {
    for rest in ["", " -", " 123", " 123 ", " 123 4 \"x\" \"y\""] {
        let text = format!("203.0.113.9 - - [{DATE}] \"GET /x HTTP/1.1\" 200{rest}");
        assert_eq!(read(&text).agent, None, "{text}");
    }
}

/// One of the 10,000 lines of a public Apache log ends so.
#[test]
fn a_line_that_was_cut_is_what_there_is_of_it() {
    let table = [
        ("\"r", Some("r"), None),
        ("\"r\"", Some("r"), None),
        ("\"r\" \"Agent/1 (", Some("r"), Some("Agent/1 (")),
        ("\"-\" \"a\\", None, Some("a\\")),
    ];
    for (rest, referer, user_agent) in table {
        let text = format!("203.0.113.9 - - [{DATE}] \"GET / HTTP/1.1\" 200 1 {rest}");
        let found = read(&text).agent.unwrap();
        assert_eq!(found.referer, referer.and_then(agent), "{rest}");
        assert_eq!(found.user_agent, user_agent.and_then(agent), "{rest}");
    }
}

#[test]
fn the_first_field_is_the_client_if_it_is_an_address() {
    let table = [
        ("203.0.113.9", Some("203.0.113.9")),
        ("2001:db8::1", Some("2001:db8::1")),
        ("::ffff:203.0.113.9", Some("203.0.113.9")),
        ("fe80::1%eth0", Some("fe80::1")),
        // C102
        ("-", None),
        ("198.51.100.1, 203.0.113.9", None),
        ("www.example.com 203.0.113.9", None),
        ("203.0.113.9:80", None),
        ("203.0.113.256", None),
        ("", None),
    ];
    for (first, expected) in table {
        let text = format!("{first} - - [{DATE}] \"GET / HTTP/1.1\" 200 1");
        assert_eq!(read(&text).client, expected.map(|ip| ip.parse().unwrap()), "{first}");
    }
}

/// C48: the same line through syslog.
#[test]
fn a_syslog_header_is_no_part_of_the_line() {
    let line = format!("203.0.113.9 - - [{DATE}] \"GET /x HTTP/1.1\" 200 1");
    for header in ["Sep 15 16:13:46 host nginx[2869]: ", "Sep  5 16:13:46 a.example nginx: "] {
        assert_eq!(read(&format!("{header}{line}")), read(&line), "{header}");
    }
    let others =
        ["Sep 15 16:13:46 host ", "Sep 15 16:13 host nginx: ", "host nginx: ", "Sep 15 16:13:46 "];
    for header in others {
        assert_eq!(read(&format!("{header}{line}")).client, None, "{header}");
    }
}

/// C101
#[test]
fn any_user_name_parses() {
    for user in
        ["\"\"", "john smith", "john [smith]", "a [b] c", "[17/May/2015]", "", "ü \\\"x\\\""]
    {
        let text = format!("203.0.113.9 - {user} [{DATE}] \"GET / HTTP/1.1\" 401 -");
        let line = read(&text);
        assert_eq!(line.time.as_nanos(), SECONDS * 1_000_000_000, "{user}");
        assert_eq!(&*line.request.path, "/", "{user}");
        assert_eq!(line.status, Some(http::StatusCode::UNAUTHORIZED), "{user}");
    }
}

/// C103: what the client writes never moves its address or its time.
#[test]
fn a_forged_field_changes_neither_client_nor_time() {
    let forged = "- 198.51.100.66 - - [01/Jan/2001:00:00:00 +0000] \\\"GET / HTTP/1.1\\\" 401 1";
    let table = [
        format!("203.0.113.9 - - [{DATE}] \"GET / HTTP/1.1\" 200 1 \"{forged}\" \"a\""),
        format!("203.0.113.9 - - [{DATE}] \"GET / HTTP/1.1\" 200 1 \"r\" \"{forged}\""),
        format!("203.0.113.9 - - [{DATE}] \"GET /{forged} HTTP/1.1\" 200 1"),
        format!("203.0.113.9 - {forged} [{DATE}] \"GET / HTTP/1.1\" 200 1"),
    ];
    for text in table {
        let line = read(&text);
        assert_eq!(line.client, Some("203.0.113.9".parse().unwrap()), "{text}");
        assert_eq!(line.time.as_nanos(), SECONDS * 1_000_000_000, "{text}");
        assert_eq!(line.status, Some(http::StatusCode::OK), "{text}");
    }
}

/// C99: counted for the client, with no path.
#[test]
fn a_line_without_a_usable_request_is_still_a_request_of_its_client() {
    for request in ["-", "", "HELP", "\\x16\\x03\\x01", "Gh0st\\xAD\\x00", "lv|'|'|x|'|'|Win XP"] {
        let text = format!("203.0.113.9 - - [{DATE}] \"{request}\" 408 - \"-\" \"-\"");
        let line = read(&text);
        assert_eq!(line.client, Some("203.0.113.9".parse().unwrap()), "{request}");
        assert_eq!(line.request, RequestLine::default(), "{request}");
        assert_eq!(line.agent, Some(Agent { referer: None, user_agent: None }), "{request}");
    }
}

#[test]
fn a_status_is_three_digits_or_none() {
    let table = [("200", Some(200)), ("-", None), ("000", None), ("009", None), ("999", Some(999))];
    for (status, expected) in table {
        let text = format!("203.0.113.9 - - [{DATE}] \"GET / HTTP/1.1\" {status} 1");
        assert_eq!(read(&text).status.map(|status| status.as_u16()), expected, "{status}");
    }
}

#[test]
fn what_cannot_be_used_says_why() {
    let table = [
        (String::new(), Unparsed::Empty),
        (" \t".to_owned(), Unparsed::Empty),
        // C100
        (format!("\"203.0.113.9 - - [{DATE}] \"GET / HTTP/1.1\" 200 1\""), Unparsed::Quoted),
        ("garbage".to_owned(), Unparsed::NoDate),
        ("203.0.113.9 - - [17/May/2015] \"GET / HTTP/1.1\" 200 1".to_owned(), Unparsed::NoDate),
        // C105: no zone, no guess.
        (
            "203.0.113.9 - - [17/May/2015:10:05:03] \"GET / HTTP/1.1\" 200 1".to_owned(),
            Unparsed::NoDate,
        ),
        (
            "203.0.113.9 - - [31/Feb/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1".to_owned(),
            Unparsed::BadDate,
        ),
        (format!("203.0.113.9 - - [{DATE}] \"GET / HT"), Unparsed::OpenRequest),
        (format!("203.0.113.9 - - [{DATE}] \"GET / HTTP/1.1\""), Unparsed::NoStatus),
        (format!("203.0.113.9 - - [{DATE}] \"GET / HTTP/1.1\" 20 1"), Unparsed::NoStatus),
        (format!("203.0.113.9 - - [{DATE}] \"GET / HTTP/1.1\" 2000 1"), Unparsed::NoStatus),
        (format!("203.0.113.9 - - [{DATE}] \"GET /\"x HTTP/1.1\" 200 1"), Unparsed::NoStatus),
    ];
    for (text, expected) in table {
        assert_eq!(Line::read(text.as_bytes()), Err(expected), "{text}");
    }
}

/// As Apache writes a quoted field.
fn escaped(field: &[u8]) -> Vec<u8> {
    field
        .iter()
        .flat_map(|byte| match byte {
            b'"' => b"\\\"".to_vec(),
            b'\\' => b"\\\\".to_vec(),
            b'\n' => b"\\n".to_vec(),
            0x20..=0x7e => vec![*byte],
            _ => format!("\\x{byte:02x}").into_bytes(),
        })
        .collect()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    // Often the bytes that mean something in a line.
    let byte = prop_oneof![any::<u8>(), proptest::sample::select(b"\"\\ []-x/:+0%".to_vec())];
    proptest::collection::vec(byte, 0..60)
}

proptest! {
    #[test]
    fn no_bytes_panic(mut start in bytes(), end in bytes()) {
        let _ = Line::read(&start);
        start.extend(format!(" [{DATE}] \"").as_bytes());
        start.extend(end);
        let _ = Line::read(&start);
    }

    #[test]
    fn a_line_parses_back_to_the_fields_it_was_built_of(
        client in any::<std::net::IpAddr>(),
        user in bytes(),
        days in 1_u8..29,
        request in bytes(),
        status in 100_u16..1000,
        referer in bytes(),
        user_agent in bytes(),
    ) {
        let mut text = format!("{client} - ").into_bytes();
        text.extend(escaped(&user));
        text.extend(format!(" [{days:02}/May/2015:00:00:00 +0000] \"").as_bytes());
        text.extend(escaped(&request));
        text.extend(format!("\" {status} 1 \"").as_bytes());
        text.extend(escaped(&referer));
        text.extend(b"\" \"");
        text.extend(escaped(&user_agent));
        text.push(b'"');

        let line = Line::read(&text).unwrap();
        prop_assert_eq!(line.client, Some(client.to_canonical()));
        let midnight = 1_430_438_400 + u64::from(days - 1) * 86_400;
        prop_assert_eq!(line.time.as_nanos(), midnight * 1_000_000_000);
        prop_assert_eq!(line.request, RequestLine::read(&request));
        prop_assert_eq!(line.status.map(|status| status.as_u16()), Some(status));
        let held = |field: Vec<u8>| (field != b"-").then_some(field);
        let fields = line.agent.unwrap();
        prop_assert_eq!(fields.referer.map(Cow::into_owned), held(referer));
        prop_assert_eq!(fields.user_agent.map(Cow::into_owned), held(user_agent));
    }
}
