use std::{collections::HashSet, num::NonZeroU32, time::Duration};

use http::{HeaderMap, HeaderValue, Method};
use proptest::prelude::*;

use super::*;
use crate::{
    Action, Count, Disclose, Facts, MissingKey, Mode, Pattern, Period, Rate, RequestPath, Rule,
    Trigger,
};

const SECRET: [u8; 16] = *b"a secret of ours";

const CLIENT: PartKind = PartKind::Client { written: None, v4: 32, v6: 64 };

fn header_kind(name: &str) -> PartKind {
    PartKind::Header(HeaderName::try_from(name).unwrap())
}

fn cookie_kind(name: &str) -> PartKind {
    PartKind::Cookie(name.into())
}

fn query_kind(name: &str) -> PartKind {
    PartKind::Query(name.into())
}

fn rule_of(key: Vec<Vec<PartKind>>) -> Rule {
    let key = key.into_iter().map(Vec::into_boxed_slice).collect();
    let rate = Rate { limit: NonZeroU32::MIN, window: Duration::from_secs(1) };
    Rule {
        name: "rule".into(),
        patterns: None,
        except: vec![],
        key: KeySpec(key),
        count: Count::Requests,
        trigger: Trigger::Over(rate),
        action: Action::Throttle(None),
        when: Vec::new(),
        respond: None,
        fields: false,
        period: Period::default(),
        mode_max: Mode::default(),
        mode: Mode::Enforce,
        missing_key: MissingKey::Skip,
        disclose: Disclose::Full,
        show_key: true,
        overrides: vec![],
        note: None,
    }
}

/// A rule of single kinds.
fn rule(kinds: &[PartKind]) -> Rule {
    rule_of(kinds.iter().map(|kind| vec![kind.clone()]).collect())
}

fn matching(texts: &[&str], kinds: &[PartKind]) -> Rule {
    let patterns = texts.iter().map(|text| Pattern::read(text).unwrap()).collect();
    Rule { patterns: Some(patterns), ..rule(kinds) }
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
    };
    lines.iter().map(line).collect()
}

fn facts<'a>(headers: &'a HeaderMap, path: &'a str) -> Facts<'a> {
    Facts {
        method: Some(&Method::GET),
        path: RequestPath::new(path),
        query: None,
        host: None,
        headers,
        route: None,
        client: None,
        extracted: &(),
    }
}

fn text(rule: &Rule, facts: &Facts<'_>) -> Option<String> {
    rule.key(facts).ok().map(|key| key.text(&rule.show(&SECRET)))
}

fn text_by_client(rule: &Rule, client: &str) -> String {
    let headers = HeaderMap::new();
    let client = Some(client.parse().unwrap());
    text(rule, &Facts { client, ..facts(&headers, "/") }).unwrap()
}

/// The value of a key of one kind, which is neither hashed nor missing.
#[track_caller]
fn check(kind: PartKind, lines: &[(&str, &str)], expected: Option<&str>) {
    let headers = headers(lines);
    let rule = rule(&[kind]);
    let facts = facts(&headers, "/");
    let found = rule.key(&facts).ok().map(|key| match &key.parts()[0].value {
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    assert_eq!(found.as_deref(), expected, "of {lines:?}");
}

#[track_caller]
fn check_query(query: &str, expected: Option<&str>) {
    let headers = HeaderMap::new();
    let found =
        text(&rule(&[query_kind("q")]), &Facts { query: Some(query), ..facts(&headers, "/") });
    assert_eq!(found.as_deref(), expected, "of ?{query}");
}

// C13
#[test]
fn parts_that_join_to_the_same_text_are_two_keys() {
    let rule = rule(&[header_kind("a"), header_kind("b")]);
    let values = [
        "",
        "1.1.1.1",
        "2/a",
        "1.1.1.12",
        "/a",
        ",",
        "=",
        "b=",
        ",header:b=",
        "%2C",
        "&",
        "<missing>",
        "#00",
    ];
    let mut keys = HashSet::new();
    let mut texts = HashSet::new();
    for a in values {
        for b in values {
            let headers = headers(&[("a", a), ("b", b)]);
            let facts = facts(&headers, "/");
            let key = rule.key(&facts).unwrap();
            texts.insert(key.text(&rule.show(&SECRET)));
            keys.insert(key.into_owned());
        }
    }
    assert_eq!(keys.len(), values.len() * values.len());
    assert_eq!(texts.len(), keys.len(), "and print apart");
}

// C10
#[test]
fn ipv6_clients_are_one_key_by_their_prefix_and_ipv4_ones_are_not_widened() {
    let rule = rule(&[CLIENT]);
    for last in 1..=9 {
        assert_eq!(
            text_by_client(&rule, &format!("2001:db8:1:2::{last}")),
            "client=2001:db8:1:2::/64"
        );
    }
    assert_eq!(text_by_client(&rule, "2001:db8:1:3::1"), "client=2001:db8:1:3::/64");
    assert_eq!(text_by_client(&rule, "203.0.113.9"), "client=203.0.113.9");
    let whole = super::tests::rule(&[PartKind::Client { written: None, v4: 32, v6: 128 }]);
    assert_eq!(text_by_client(&whole, "2001:db8::9"), "client=2001:db8::9");
}

// C59
#[test]
fn mapped_addresses_are_the_ipv4_addresses_they_are() {
    let rule = rule(&[CLIENT]);
    assert_eq!(text_by_client(&rule, "::ffff:203.0.113.9"), "client=203.0.113.9");
    assert_ne!(
        text_by_client(&rule, "::ffff:203.0.113.8"),
        text_by_client(&rule, "::ffff:203.0.113.9")
    );
}

#[test]
fn a_wider_prefix_counts_and_prints_its_network() {
    let v4 = rule(&[PartKind::Client { written: Some(24), v4: 24, v6: 64 }]);
    assert_eq!(v4.key.to_string(), "client/24");
    assert_eq!(text_by_client(&v4, "203.0.113.9"), "client=203.0.113.0/24");
    let v6 = rule(&[PartKind::Client { written: Some(48), v4: 32, v6: 48 }]);
    assert_eq!(text_by_client(&v6, "2001:db8:1:2::9"), "client=2001:db8:1::/48");
    assert_eq!(text_by_client(&v6, "203.0.113.9"), "client=203.0.113.9");
}

#[test]
fn a_clients_text_is_read_as_its_address_or_its_network() {
    let key = |text| rule(&[PartKind::Client { written: Some(24), v4: 24, v6: 64 }]).key.read(text);
    let network = key("client=203.0.113.0/24").unwrap();
    assert_eq!(key("client=203.0.113.9").unwrap(), network);
    assert_eq!(key("client=::ffff:203.0.113.9").unwrap(), network);
    for text in [
        "client=203.0.113.0/16",
        "client=203.0.113.9/32",
        "client=x",
        "client=",
        "client=1.2.3.4/24/24",
    ] {
        assert!(matches!(key(text), Err(KeyTextError::Address(_))), "{text}");
    }
}

#[test]
fn a_bearer_token_is_what_follows_its_scheme() {
    let bearer = |value| [("authorization", value)];
    check(PartKind::Bearer, &bearer("Bearer abc"), Some("abc"));
    check(PartKind::Bearer, &bearer("bEARER   abc "), Some("abc"));
    check(PartKind::Bearer, &bearer("Bearer "), None);
    check(PartKind::Bearer, &bearer("Bearer"), None);
    check(PartKind::Bearer, &bearer("Basic abc"), None);
    check(PartKind::Bearer, &bearer("Bearerabc"), None);
    check(PartKind::Bearer, &[], None);
}

#[test]
fn all_lines_of_a_field_are_its_value() {
    let kind = || header_kind("x-api-key");
    check(kind(), &[("x-api-key", "a"), ("other", "b")], Some("a"));
    check(kind(), &[("x-api-key", "a"), ("x-api-key", "b")], Some("a, b"));
    check(kind(), &[("x-api-key", "")], Some(""));
    check(kind(), &[], None);
    check(PartKind::Agent, &[("user-agent", "curl/8")], Some("curl/8"));
}

#[test]
fn the_first_cookie_of_a_name_counts_whichever_line_it_is_in() {
    let kind = || cookie_kind("sid");
    check(kind(), &[("cookie", "a=1; sid=x; sid=y")], Some("x"));
    check(kind(), &[("cookie", "a=1"), ("cookie", "sid=x=y")], Some("x=y"));
    check(kind(), &[("cookie", "sid; sid2=1;sid= x ")], Some("x"));
    check(kind(), &[("cookie", "asid=1; SID=2")], None);
    check(kind(), &[], None);
}

#[test]
fn all_values_of_a_query_name_are_its_value() {
    check_query("q=a", Some("query:q=a"));
    check_query("x=1&q=a+b%2C&y", Some("query:q=a%20b%2C"));
    check_query("q=a&q=b", Some("query:q=a&b"));
    check_query("q=a%26b", Some("query:q=a%26b"));
    check_query("q=&q=", Some("query:q=&"));
    check_query("q", Some("query:q="));
    check_query("%71=a", Some("query:q=a"));
    check_query("Q=a", None);
    check_query("", None);
}

#[test]
fn a_parameter_is_decoded_once_as_the_handler_sees_it() {
    let headers = HeaderMap::new();
    let rule = matching(&["/p/{id}"], &[PartKind::Param("id".into())]);
    let by = |path| text(&rule, &facts(&headers, path));
    assert_eq!(by("/p/7").as_deref(), Some("param:id=7"));
    assert_eq!(by("/p/%37").as_deref(), Some("param:id=7"));
    assert_eq!(by("/p/%2537").as_deref(), Some("param:id=%2537"));
    assert_eq!(by("/p/a%2Fb/").as_deref(), Some("param:id=a/b"));
    assert_eq!(by("/q/7"), None);
}

#[test]
fn captures_are_of_the_pattern_that_the_router_went_by() {
    let headers = HeaderMap::new();
    let kinds = [PartKind::Param("id".into()), PartKind::Route];
    let rule = matching(&["/{id}/b", "/a/{id}"], &kinds);
    let by = |path, route| text(&rule, &Facts { route, ..facts(&headers, path) }).unwrap();
    assert_eq!(by("/a/b", None), "param:id=a,route=/{id}/b");
    assert_eq!(by("/a/b", Some("/a/{id}")), "param:id=b,route=/a/{id}");
    assert_eq!(by("/a/b", Some("/else")), "param:id=a,route=/else");
    // The normalised path, /x/b, matches the first pattern; a router goes by the raw one.
    let rule = matching(&["/{id}/b", "/a/{id}/x/b"], &kinds);
    let found = text(&rule, &facts(&headers, "/a/../x/b"));
    assert_eq!(found.as_deref(), Some("param:id=..,route=/a/{id}/x/b"));
}

// C16, C20
#[test]
fn path_and_route_make_one_key_of_all_spellings() {
    let headers = HeaderMap::new();
    let path = rule(&[PartKind::Path]);
    for spelling in ["/api/register", "/api/register/", "//api/./register", "/%61pi/register"] {
        assert_eq!(text(&path, &facts(&headers, spelling)).as_deref(), Some("path=/api/register"));
    }
    assert_eq!(text(&path, &facts(&headers, "")), None);
    let route = matching(&["GET /u/{id}"], &[PartKind::Route]);
    for id in 1..100 {
        let found = text(&route, &facts(&headers, &format!("/u/{id}")));
        assert_eq!(found.as_deref(), Some("route=/u/{id}"));
    }
    let anything = rule(&[PartKind::Route]);
    assert_eq!(text(&anything, &facts(&headers, "/u/1")), None, "no router and no pattern");
}

#[test]
fn host_is_in_lower_case_and_method_as_it_is() {
    let headers = HeaderMap::new();
    let rule = rule(&[PartKind::Host, PartKind::Method]);
    let facts = |host| Facts { host, ..facts(&headers, "/") };
    assert_eq!(
        text(&rule, &facts(Some("Shop.Example"))).as_deref(),
        Some("host=shop.example,method=GET")
    );
    assert_eq!(text(&rule, &facts(None)), None);
}

// C14
#[test]
fn secrets_are_printed_by_no_rule() {
    let headers = headers(&[
        ("authorization", "Bearer S3cret"),
        ("proxy-authorization", "Basic S3cret"),
        ("cookie", "sid=S3cret"),
    ]);
    let kinds = [
        PartKind::Bearer,
        cookie_kind("sid"),
        header_kind("authorization"),
        header_kind("proxy-authorization"),
        header_kind("cookie"),
    ];
    for kind in kinds {
        let rule = rule(std::slice::from_ref(&kind));
        assert!(rule.show_key);
        let facts = facts(&headers, "/");
        let key = rule.key(&facts).unwrap();
        let text = key.text(&rule.show(&SECRET));
        let (name, hash) = text.split_once('=').unwrap();
        assert_eq!(name, kind.to_string());
        assert!(hash.starts_with('#') && hash.len() == 17, "{text}");
        assert_ne!(text, key.text(&rule.show(&[0; 16])), "the hash is keyed");
        assert!(!format!("{text}{key:?}").contains("S3cret"), "{text}");
        assert!(matches!(rule.key.read(&text), Err(KeyTextError::Hashed(_))));
        assert!(kind.is_hashed(true));
    }
}

#[test]
fn what_the_rule_does_not_show_is_printed_as_a_hash() {
    let headers = headers(&[("x-api-key", "k"), ("user-agent", "curl/8")]);
    let kinds = [header_kind("x-api-key"), query_kind("q"), PartKind::Agent, PartKind::Path];
    let shown = rule(&kinds);
    let hidden = Rule { show_key: false, ..shown.clone() };
    let facts = Facts { query: Some("q=1"), ..facts(&headers, "/p") };
    assert_eq!(
        text(&shown, &facts).as_deref(),
        Some("header:x-api-key=k,query:q=1,agent=curl/8,path=/p")
    );
    let hidden = text(&hidden, &facts).unwrap();
    let hashes = hidden.split(',').filter(|part| part.contains("=#")).count();
    assert!(hashes == 3 && hidden.ends_with(",path=/p"), "{hidden}");
}

// C14
#[test]
fn a_long_value_is_printed_as_its_hash() {
    let long = "k".repeat(60 * 1024);
    let headers = headers(&[("x-api-key", &long)]);
    let rule = rule(&[header_kind("x-api-key")]);
    let printed = text(&rule, &facts(&headers, "/")).unwrap();
    assert!(printed.starts_with("header:x-api-key=#") && printed.len() < 64, "{printed}");
    let edge = "k".repeat(256);
    let headers = super::tests::headers(&[("x-api-key", &edge)]);
    assert_eq!(text(&rule, &facts(&headers, "/")).unwrap(), format!("header:x-api-key={edge}"));
    let many_empty = "q&".repeat(20_000);
    let headers = HeaderMap::new();
    let facts = Facts { query: Some(&many_empty), ..facts(&headers, "/") };
    let printed = text(&super::tests::rule(&[query_kind("q")]), &facts).unwrap();
    assert!(printed.starts_with("query:q=#") && printed.len() < 64, "{printed}");
}

#[test]
fn a_fallback_keeps_its_kind_apart() {
    let headers = headers(&[("x-tenant", "203.0.113.9"), ("x-user", "203.0.113.9")]);
    let rule = rule_of(vec![vec![header_kind("x-tenant"), header_kind("x-user"), CLIENT]]);
    assert_eq!(rule.key.to_string(), "header:x-tenant|header:x-user|client");
    let mut facts = Facts { client: Some("203.0.113.9".parse().unwrap()), ..facts(&headers, "/") };
    let tenant = rule.key(&facts).unwrap().into_owned();
    let only_user = super::tests::headers(&[("x-user", "203.0.113.9")]);
    facts.headers = &only_user;
    let user = rule.key(&facts).unwrap().into_owned();
    let none = HeaderMap::new();
    facts.headers = &none;
    let client = rule.key(&facts).unwrap().into_owned();
    assert_ne!(tenant, user, "the same bytes of another kind are another key");
    let texts = [&tenant, &user, &client].map(|key| key.text(&rule.show(&SECRET)));
    assert_eq!(
        texts,
        ["header:x-tenant=203.0.113.9", "header:x-user=203.0.113.9", "client=203.0.113.9"]
    );
    for (text, key) in texts.iter().zip([tenant, user, client]) {
        assert_eq!(rule.key.read(text).unwrap(), key);
    }
}

// C11, C12
#[test]
fn a_missing_part_is_skipped_or_shared_but_never_made_up() {
    let none = HeaderMap::new();
    let skip = rule(&[CLIENT, header_kind("x-api-key")]);
    let facts = facts(&none, "/");
    assert_eq!(
        skip.key(&facts),
        Err(MissingPart { by_client: false }),
        "we should know the client"
    );
    let known =
        Facts { client: Some("203.0.113.9".parse().unwrap()), ..super::tests::facts(&none, "/") };
    assert_eq!(skip.key(&known), Err(MissingPart { by_client: true }));
    let either = rule_of(vec![vec![header_kind("x-api-key"), CLIENT]]);
    assert_eq!(either.key(&facts), Err(MissingPart { by_client: false }));

    let share = Rule { missing_key: MissingKey::Share, ..skip };
    let key = share.key(&facts).unwrap().into_owned();
    let printed = key.text(&share.show(&SECRET));
    assert_eq!(printed, "client=<missing>,header:x-api-key=<missing>");
    assert_eq!(share.key.read(&printed).unwrap(), key);
    let literally = headers(&[("x-api-key", "<missing>")]);
    let literally = super::tests::facts(&literally, "/");
    assert_ne!(
        share.key(&literally).unwrap().into_owned(),
        key,
        "nobody can ask for the shared key"
    );
    let share = Rule { missing_key: MissingKey::Share, ..either };
    assert_eq!(share.key.read("client=<missing>"), Ok(share.key(&facts).unwrap().into_owned()));
}

#[test]
fn hashing_a_key_without_making_it_gives_the_keys_own_hash() {
    use std::hash::{BuildHasher, Hash as _, Hasher as _, RandomState};

    let headers = headers(&[("x-a", "a"), ("x-a", "b")]);
    let kinds = [CLIENT, header_kind("x-a"), query_kind("q"), PartKind::Host];
    let share = Rule { missing_key: MissingKey::Share, ..rule(&kinds) };
    let random = RandomState::new();
    for client in ["203.0.113.9", "2001:db8::9"] {
        for query in [None, Some("q=1"), Some("q=1&q=2")] {
            let client = Some(client.parse().unwrap());
            let facts = Facts { client, query, ..facts(&headers, "/") };
            let key = share.key(&facts).unwrap();
            let (mut made, mut unmade) = (random.build_hasher(), random.build_hasher());
            key.hash(&mut made);
            share.hash_key(&facts, &mut unmade).unwrap();
            assert_eq!(made.finish(), unmade.finish(), "{key:?}");
            assert_eq!(random.hash_one(&key), random.hash_one(key.clone().into_owned()));
        }
    }
    let facts = facts(&headers, "/");
    let missing = rule(&kinds).hash_key(&facts, &mut random.build_hasher());
    assert_eq!(missing, Err(MissingPart { by_client: false }));
}

#[test]
fn an_empty_key_is_one_for_all() {
    let none = HeaderMap::new();
    let rule = rule(&[]);
    let facts = facts(&none, "/");
    let key = rule.key(&facts).unwrap().into_owned();
    assert!(rule.key.is_empty() && key.parts().is_empty());
    assert_eq!(key.text(&rule.show(&SECRET)), "");
    assert_eq!(rule.key.read("").unwrap(), key);
}

#[test]
fn text_of_other_parts_is_refused() {
    let spec = rule(&[CLIENT, header_kind("x-a")]).key;
    for text in [
        "",
        "client=203.0.113.9",
        "client=203.0.113.9,x-a=1",
        "client,header:x-a=1",
        "header:x-a=1,client=203.0.113.9",
        "client=203.0.113.9,header:x-a=1,",
    ] {
        let expected = "client,header:x-a".to_owned();
        assert_eq!(spec.read(text), Err(KeyTextError::Parts { expected }), "{text:?}");
    }
    for text in ["%", "%2", "%zz", "a%2,", "é%é1"] {
        let error = rule(&[header_kind("x-a")])
            .key
            .read(&format!("header:x-a={}", text.trim_end_matches(',')));
        assert!(matches!(error, Err(KeyTextError::Encoding(_))), "{text:?}: {error:?}");
    }
}

#[test]
fn a_query_name_of_any_bytes_prints_and_reads_back() {
    let none = HeaderMap::new();
    let rule = rule(&[query_kind("a,b=c"), query_kind("ü")]);
    let facts = Facts { query: Some("a,b%3Dc=1&ü=2"), ..facts(&none, "/") };
    let key = rule.key(&facts).unwrap().into_owned();
    let printed = key.text(&rule.show(&SECRET));
    assert_eq!(printed, "query:a%2Cb%3Dc=1,query:%C3%BC=2");
    assert_eq!(rule.key.read(&printed).unwrap(), key);
}

fn a_value() -> impl Strategy<Value = Value<'static>> {
    let bytes = || {
        prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b",=%&<># ".to_vec())],
            0..20,
        )
    };
    prop_oneof![
        1 => Just(Value::Missing),
        4 => bytes().prop_map(|bytes| Value::Bytes(bytes.into())),
        2 => prop::collection::vec(bytes().prop_map(Cow::from), 2..5).prop_map(|values| Value::List(values.into())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn printing_and_reading_a_key_are_inverses(
        values in prop::collection::vec((a_value(), 0_u8..2), 3),
        client in any::<std::net::IpAddr>(),
    ) {
        let mut kinds = vec![vec![CLIENT]];
        kinds.extend(["a", "b,=", "c"].map(|name| vec![query_kind(name), header_kind("x-a")]));
        let rule = rule_of(kinds);
        let mut parts = SmallVec::new();
        parts.push(Part { alternative: 0, value: Value::network(client, 32, 64) });
        parts.extend(values.into_iter().map(|(value, alternative)| match value {
            Value::Missing => Part::MISSING,
            value => Part { alternative, value },
        }));
        let key = Key(parts);
        let printed = key.text(&rule.show(&SECRET));
        prop_assert!(printed.bytes().all(|byte| byte.is_ascii_graphic()), "{}", printed);
        prop_assert_eq!(rule.key.read(&printed), Ok(key));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(client=|query:a=|[%,=&#0-9a-f.:/]|\\PC){0,12}") {
        let rule = rule_of(vec![vec![CLIENT, query_kind("a")]]);
        if let Ok(key) = rule.key.read(&text) {
            let printed = key.text(&rule.show(&SECRET));
            prop_assert_eq!(rule.key.read(&printed), Ok(key));
        }
    }
}
