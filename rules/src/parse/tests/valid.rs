//! Good files, and what they are read as.

use std::{num::NonZeroU32, time::Duration};

use http::{HeaderName, StatusCode};

use super::{read, read_rule};
use crate::{
    Action, ClientSource, Count, Disclose, MissingKey, Mode, OverridePart, PartKind, Rate,
    Standing, StatusClass, Trigger,
};

const FULL: &str = r#"
app  = "shop"
mode = "observe"

[client]
source = "X-Forwarded-For"
trusted_proxies = ["10.0.0.0/8", "192.0.2.1", "::ffff:172.16.0.0/108", "2001:db8::/32", "unix"]
ipv6_prefix = 56

[memory]
keys = 1000
verdicts = 16_777_216

[privacy]
secret_file = "/run/secrets/hotgate"

[exempt]
match = ["/healthz", "/.well-known/{*rest}"]

[[allow]]
clients = ["198.51.100.0/24"]
rules = ["login", "trap"]
until = 2027-01-01T02:00:00+02:00
note = "partner"

[[deny]]
clients = ["203.0.113.0/24", "::ffff:203.0.112.7"]

[[rule]]
name        = "login"
match       = ["POST /login", "/auth.Auth/Login"]
except      = "/auth.Auth/Logout"
key         = ["client/48|bearer", "header:X-Api-Key"]
count       = { status = [401, "4xx", "cancelled", "error"], pending = 5 }
over        = "10/1m"
block       = { for = "15m", status = 429, extend = true, grow = 2, max = "12h", forget = "48h" }
mode        = "observe"
missing_key = "reject"
disclose    = "full"
show_key    = true
note        = "stuffing"

  [[rule.override]]
  key  = ["*", "gold*"]
  over = "3000/60s"

[[rule]]
name     = "trap"
match    = "/wp-admin/{*rest}"
key      = []
always   = true
throttle = {}
mode     = "off"
"#;

fn nets(texts: &[&str]) -> Vec<ipnet::IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn the_tables_of_a_full_file_are_read() {
    let set = read(FULL);
    assert_eq!((set.app(), set.mode()), ("shop", Mode::Observe));
    assert_eq!(set.client().source, ClientSource::XForwardedFor);
    // C59: an IPv4-mapped network is one of IPv4.
    let trusted = nets(&["10.0.0.0/8", "192.0.2.1/32", "172.16.0.0/12", "2001:db8::/32"]);
    assert_eq!(set.client().trusted, trusted);
    assert!(set.client().trust_unix);
    assert_eq!(set.client().ipv6_prefix, 56);
    assert_eq!((set.memory().keys.get(), set.memory().verdicts.get()), (1000, 16_777_216));
    assert_eq!(set.secret_file().unwrap().to_str(), Some("/run/secrets/hotgate"));
}

#[test]
fn the_lists_of_a_full_file_are_read() {
    let set = read(FULL);
    let until = 1_798_761_600 * 1_000_000_000_i128;
    let standing = |client: &str, at| set.lists().standing(client.parse().unwrap(), at);
    assert_eq!(standing("198.51.100.7", until - 1), Standing::AllowedPast([0b11, 0, 0, 0]));
    assert_eq!(
        standing("198.51.100.7", until),
        Standing::Unlisted,
        "2027-01-01T02:00+02:00 is midnight UTC"
    );
    assert_eq!(standing("203.0.113.9", until), Standing::Denied);
    assert_eq!(standing("203.0.112.7", until), Standing::Denied);
    assert_eq!(standing("203.0.112.8", until), Standing::Unlisted);
}

#[test]
fn the_rules_of_a_full_file_are_read() {
    let set = read(FULL);
    let [login, trap] = set.rules() else { panic!("two rules") };
    assert_eq!(&*login.name, "login");
    let paths: Vec<_> =
        login.patterns.iter().flatten().map(|pattern| pattern.path().to_owned()).collect();
    assert_eq!(paths, ["/login", "/auth.Auth/Login"]);
    assert_eq!(login.except.len(), 1);
    assert_eq!(login.key.to_string(), "client/48|bearer,header:x-api-key");
    let statuses = vec![
        StatusClass::Code(StatusCode::UNAUTHORIZED),
        StatusClass::Hundred(4),
        StatusClass::Cancelled,
        StatusClass::Error,
    ];
    assert_eq!(login.count, Count::Responses { statuses, pending: NonZeroU32::new(5) });
    let rate = Rate { limit: NonZeroU32::new(10).unwrap(), window: Duration::from_secs(60) };
    assert_eq!(login.trigger, Trigger::Over(rate));
    let Action::Block(block) = login.action else { panic!("a block") };
    assert_eq!(
        (block.lasts, block.status),
        (Duration::from_secs(900), StatusCode::TOO_MANY_REQUESTS)
    );
    assert_eq!((block.extend, block.grow.get()), (true, 2));
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    assert_eq!((block.max, block.forget), (hours(12), hours(48)));
    assert_eq!((login.mode, login.missing_key), (Mode::Observe, MissingKey::Reject));
    assert_eq!((login.disclose, login.show_key), (Disclose::Full, true));
    assert_eq!(login.note.as_deref(), Some("stuffing"));
    assert_eq!(login.overrides.len(), 1);
    assert_eq!(login.overrides[0].limit, NonZeroU32::new(3000));

    assert_eq!(
        (trap.trigger, trap.action.clone(), trap.mode),
        (Trigger::Always, Action::Throttle(None), Mode::Off)
    );
    assert!(trap.key.is_empty());
}

#[test]
fn what_is_left_out_has_its_default() {
    let set = read("app = \"a\"\n");
    assert_eq!(set.mode(), Mode::Enforce);
    assert_eq!((&set.client().source, set.client().ipv6_prefix), (&ClientSource::Peer, 64));
    assert!(set.client().trusted.is_empty() && !set.client().trust_unix);
    assert_eq!((set.memory().keys.get(), set.memory().verdicts.get()), (65_536, 65_536));
    assert!(set.secret_file().is_none() && set.lists().is_empty() && set.rules().is_empty());

    let throttle = read_rule("throttle = {}");
    assert!(
        throttle.patterns.is_none() && throttle.except.is_empty() && throttle.overrides.is_empty()
    );
    assert_eq!((&throttle.count, throttle.mode), (&Count::Requests, Mode::Enforce));
    assert_eq!((throttle.missing_key, throttle.disclose), (MissingKey::Skip, Disclose::Full));
    assert!(!throttle.show_key && throttle.note.is_none());

    let rule = read_rule("block = { for = \"15m\" }");
    assert_eq!(rule.disclose, Disclose::None);
    let Action::Block(block) = rule.action else { panic!("a block") };
    let day = Duration::from_secs(86_400);
    assert_eq!(
        (block.status, block.extend, block.grow),
        (StatusCode::FORBIDDEN, false, NonZeroU32::MIN)
    );
    assert_eq!((block.max, block.forget), (day, day));

    let Action::Block(long) = read_rule("block = { for = \"2d\" }").action else {
        panic!("a block")
    };
    assert_eq!(long.max, day * 2, "a long block needs no max written");
    let Action::Block(trap) = read_rule("always = true\nblock = {}").action else {
        panic!("a block")
    };
    assert_eq!(trap.lasts, Duration::ZERO);
    let Count::Responses { pending, .. } = read_rule("count = { status = [401] }").count else {
        panic!("responses")
    };
    assert_eq!(pending, None, "each key's own N");
}

#[test]
fn every_source_is_read() {
    for (text, expected) in [
        ("peer", ClientSource::Peer),
        ("x-forwarded-for", ClientSource::XForwardedFor),
        ("Forwarded", ClientSource::Forwarded),
        ("CF-Connecting-IP", ClientSource::Header(HeaderName::from_static("cf-connecting-ip"))),
    ] {
        let proxies = if expected == ClientSource::Peer { "[]" } else { "[\"unix\"]" };
        let text =
            format!("app = \"a\"\n[client]\nsource = \"{text}\"\ntrusted_proxies = {proxies}\n");
        assert_eq!(read(&text).client().source, expected);
    }
}

#[test]
fn every_part_of_a_key_is_read() {
    let client = |written, v4, v6| PartKind::Client { written, v4, v6 };
    for (text, expected) in [
        ("client", client(None, 32, 64)),
        ("client/8", client(Some(8), 8, 64)),
        ("client/31", client(Some(31), 31, 64)),
        ("client/32", client(Some(32), 32, 32)),
        ("client/48", client(Some(48), 32, 48)),
        ("client/128", client(Some(128), 32, 128)),
        ("bearer", PartKind::Bearer),
        ("header:X-Api-Key", PartKind::Header(HeaderName::from_static("x-api-key"))),
        ("cookie:Sid", PartKind::Cookie("Sid".into())),
        ("query:filter[a]", PartKind::Query("filter[a]".into())),
        ("param:id", PartKind::Param("id".into())),
        ("path", PartKind::Path),
        ("route", PartKind::Route),
        ("method", PartKind::Method),
        ("host", PartKind::Host),
        ("agent", PartKind::Agent),
    ] {
        let lines = format!(
            "match = [\"/a/{{id}}\", \"GET /b/{{*id}}\"]\nkey = [\"{text}\"]\nmissing_key = \"skip\""
        );
        let rule = read_rule(&lines);
        assert_eq!(rule.key.parts().collect::<Vec<_>>(), [&[expected][..]], "{text}");
    }
}

#[test]
fn a_fallback_to_what_is_always_there_needs_no_missing_key() {
    // C12.
    let rule = read_rule("key = [\"header:x-api-key|cookie:sid|client\", \"method\"]");
    assert_eq!(rule.key.to_string(), "header:x-api-key|cookie:sid|client,method");
    assert_eq!(rule.missing_key, MissingKey::Skip);
}

#[test]
fn rules_with_the_same_numbers_stay_apart() {
    // C45.
    let one = |name| {
        format!(
            "[[rule]]\nname = \"{name}\"\nmatch = \"/{name}\"\nkey = [\"client\"]\nover = \"3/60s\"\nthrottle = {{}}\n"
        )
    };
    let set = read(&format!("app = \"shop\"\n{}{}", one("a"), one("b")));
    let names: Vec<&str> = set.rules().iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn odd_rates_keep_their_numbers() {
    // C24, C31.
    for (text, limit, millis) in [
        ("7/1s", 7, 1_000),
        ("1/7s", 1, 7_000),
        ("1000000/1s", 1_000_000, 1_000),
        ("20/s", 20, 1_000),
        ("20/m", 20, 60_000),
    ] {
        let rate =
            Rate { limit: NonZeroU32::new(limit).unwrap(), window: Duration::from_millis(millis) };
        assert_eq!(read_rule(&format!("over = \"{text}\"")).trigger, Trigger::Over(rate));
    }
}

#[test]
fn overrides_stand_most_specific_first() {
    let keys = [
        ["*", "*"],
        ["10.0.0.0/8", "*"],
        ["10.1.0.0/16", "a*"],
        ["10.1.0.0/16", "abc"],
        ["10.1.0.0/16", "ab*"],
        ["*", "Abc"],
        ["::ffff:10.1.2.3", "x"],
    ];
    let one = |[client, host]: &[&str; 2]| {
        format!("[[rule.override]]\nkey = [\"{client}\", \"{host}\"]\nmode = \"off\"\n")
    };
    let overrides: String = keys.iter().map(one).collect();
    let rule = read_rule(&format!("key = [\"client\", \"host\"]\n{overrides}"));
    let found: Vec<_> =
        rule.overrides.iter().map(|one| one.key.as_ref().unwrap().0.clone()).collect();
    let net = |text: &str| OverridePart::Net(text.parse().unwrap());
    let exact = |text: &str| OverridePart::Exact(text.as_bytes().into());
    let prefix = |text: &str| OverridePart::Prefix(text.as_bytes().into());
    let any = || OverridePart::Any;
    let expected = [
        vec![net("10.1.2.3/32"), exact("x")],
        vec![net("10.1.0.0/16"), exact("abc")],
        vec![net("10.1.0.0/16"), prefix("ab")],
        vec![net("10.1.0.0/16"), prefix("a")],
        vec![net("10.0.0.0/8"), any()],
        // A host is counted in lower case.
        vec![any(), exact("abc")],
        vec![any(), any()],
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_template_is_a_value_and_no_prefix() {
    let rule = read_rule(
        "key = [\"route\"]\n[[rule.override]]\nkey = [\"/static/{*rest}\"]\nexempt = true",
    );
    assert_eq!(
        rule.overrides[0].key.as_ref().unwrap().0,
        [OverridePart::Exact(b"/static/{*rest}"[..].into())]
    );
    assert!(rule.overrides[0].exempt);
}

#[test]
fn an_override_covers_its_key_however_it_is_written() {
    for (part, written, counted) in [
        ("path", "/Login/", "/Login"),
        ("path", "//%4cogin/./", "/Login"),
        ("path", "/", "/"),
        ("method", "post", "POST"),
        ("host", "Shop.Example", "shop.example"),
    ] {
        let rule = read_rule(&format!(
            "key = [\"{part}\"]\n[[rule.override]]\nkey = [\"{written}\"]\nexempt = true"
        ));
        let key = rule.key.read(&format!("{part}={counted}")).unwrap();
        assert!(rule.overrides[0].key.as_ref().unwrap().covers(&key), "{written} is {counted}");
    }
    let rule =
        read_rule("key = [\"path\"]\n[[rule.override]]\nkey = [\"/a%2fb/*\"]\nmode = \"off\"");
    assert_eq!(
        rule.overrides[0].key.as_ref().unwrap().0,
        [OverridePart::Prefix(b"/a%2Fb/"[..].into())]
    );
}
