//! What must hold for any text. Each check takes one text, of a form that a person can write, and panics
//! where a promise is broken: the tests beside this and the fuzz targets of `fuzz/` both call them.

use std::{
    borrow::Cow,
    fmt::Write as _,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher},
    net::IpAddr,
};

use hotgate_rules::{
    Commands, Extract, Facts, KeyTextError, Pattern, Peer, Problems, RequestPath, RuleSet, Standing,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// A rule file: it is read, always in the same way, or every problem says where.
pub(crate) fn rule_file(text: &str) -> Option<RuleSet> {
    let (first, second) = (text.parse::<RuleSet>(), text.parse::<RuleSet>());
    let lines: Vec<&str> = text.split('\n').collect();
    let stands = |line: usize, column: usize| {
        let width = lines.get(line - 1).map_or(0, |line| line.chars().count());
        assert!(line <= lines.len() && (1..=width + 1).contains(&column), "{line}:{column}");
    };
    match (first, second) {
        (Ok(first), Ok(second)) => {
            assert_eq!(format!("{first:?}"), format!("{second:?}"), "read twice");
            first.warnings().iter().for_each(|warning| stands(warning.line, warning.column));
            use_all(&first);
            Some(first)
        }
        (Err(first), Err(second)) => {
            assert_eq!(first.to_string(), second.to_string(), "the same problems");
            assert!(first.iter().next().is_some(), "an error without a problem");
            first.iter().for_each(|problem| stands(problem.line, problem.column));
            None
        }
        _ => panic!("read once, and once not"),
    }
}

/// Whatever a valid file says can be used.
fn use_all(rules: &RuleSet) {
    let headers = HeaderMap::new();
    let facts = facts(Some(&Method::GET), "/a/b", &headers);
    let matched = rules.matching(&facts);
    assert!(matched.rules().all(|at| at < rules.rules().len()));
    let as_it_is = rules.under(&Commands::default());
    for (at, rule) in rules.rules().iter().enumerate() {
        assert_eq!(rules.identity(at), as_it_is.identity(at), "commands change no identity");
        let _ = rules.needs_inner_door(at);
        if let (true, Ok(key)) = (rule.holds(&facts), rule.key(&facts)) {
            let _ = rule.override_for(&facts, &key);
            assert!(key.text(&rule.show(&[1; 16])).len() < 100_000);
        }
    }
    let standing = rules.lists().standing("192.0.2.1".parse().unwrap(), 0);
    assert!(!rules.lists().is_empty() || standing == Standing::Unlisted);
}

/// The client's address. The lines are: the source, the peer, the trusted proxies with commas between
/// them, and then each line of the source's header field.
pub(crate) fn client(text: &[u8]) {
    let mut lines = text.split(|byte| *byte == b'\n');
    let mut word = || String::from_utf8_lossy(lines.next().unwrap_or_default()).trim().to_owned();
    let (source, peer, trusted) = (word(), word(), word());
    let mut file = format!("app = \"a\"\n[client]\nsource = {}\n", quoted(&source));
    if source != "peer" {
        let trusted: Vec<String> = trusted.split(',').map(|net| quoted(net.trim())).collect();
        let _ = writeln!(file, "trusted_proxies = [{}]", trusted.join(","));
    }
    let Ok(rules) = file.parse::<RuleSet>() else { return };
    let field = match source.as_str() {
        "peer" => "x-forwarded-for",
        source => source,
    };
    let Ok(field) = HeaderName::try_from(field) else { return };
    let mut headers = HeaderMap::new();
    for line in lines {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(&field, value);
        }
    }
    let peer_address = peer.parse::<IpAddr>().ok().map(|addr| addr.to_canonical());
    let peer = if peer == "unix" { Some(Peer::Unix) } else { peer_address.map(Peer::Ip) };
    let resolved = rules.client().resolve(peer, &headers);
    let Some(client) = resolved.client else {
        return assert!(peer_address.is_none(), "an address is known: the peer's");
    };
    assert_eq!(client, client.to_canonical());
    assert!(peer.is_some(), "without a peer nothing is believed");
    if Some(client) != peer_address {
        let written = headers.get_all(&field).iter().any(|line| names(line.as_bytes(), client));
        assert!(written, "{client} is neither the peer nor written in {headers:?}");
    }
    let is_list = source == "x-forwarded-for" || source == "forwarded";
    let trusts = rules.client().trusted.iter().any(|net| net.contains(&client));
    if is_list && !trusts && !resolved.unusable_hop {
        // Whatever stands further left is the client's own invention.
        let mut spoofed = HeaderMap::new();
        spoofed.append(&field, HeaderValue::from_static("for=198.51.100.77, 198.51.100.77, \""));
        for line in headers.get_all(&field) {
            spoofed.append(&field, line.clone());
        }
        assert_eq!(rules.client().resolve(peer, &spoofed).client, Some(client), "{headers:?}");
    }
}

/// Whether an address is written somewhere in a field, with a port or without.
fn names(line: &[u8], address: IpAddr) -> bool {
    let is_address = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
    let runs = line.split(|byte| !is_address(byte));
    let texts = runs.filter_map(|run| std::str::from_utf8(run).ok());
    let mut forms = texts.flat_map(|text| {
        let without_port = text.rsplit_once(':').map_or(text, |(text, _)| text);
        [text, without_port].map(|text| text.parse::<IpAddr>().ok())
    });
    forms.any(|form| form.is_some_and(|form| form.to_canonical() == address))
}

/// A request's path in the first line, and a pattern in each of the others.
pub(crate) fn paths(text: &str) {
    let mut lines = text.lines();
    let raw = lines.next().unwrap_or_default();
    let path = RequestPath::new(raw);
    normal_form(&path);
    let is_valid = |line: &&str| rules_of(&[line], &[]).is_ok();
    let patterns: Vec<&str> = lines.take(6).filter(is_valid).collect();
    let (except, matched) = patterns.split_at(patterns.len() / 3);
    let rules = rules_of(matched, except);
    let rules = rules.unwrap_or_else(|problems| panic!("each is valid by itself: {problems}"));
    let headers = HeaderMap::new();
    let normal = RequestPath::new(path.normal());
    for method in [None, Some(&Method::GET), Some(&Method::HEAD), Some(&Method::POST)] {
        let facts = facts(method, raw, &headers);
        let at_once: Vec<usize> = rules.matching(&facts).rules().collect();
        for (at, rule) in rules.rules().iter().enumerate() {
            let covers = |pattern: &Pattern| pattern.matches(method, &path);
            let matches = rule.patterns.as_ref().is_none_or(|own| own.iter().any(covers));
            let spared = rule.except.iter().any(covers);
            // Of a path that is not normal, `except` must cover both forms.
            let expected = if path.is_normal() { matches && !spared } else { matches };
            let found = at_once.contains(&at);
            assert!(!found || matches, "rule {at} sees {raw:?} of {patterns:?}");
            assert!(found || !expected || spared, "rule {at} misses {raw:?} of {patterns:?}");
            assert!(!path.is_normal() || found == expected, "rule {at}, {raw:?} of {patterns:?}");
        }
        for pattern in rules.rules().iter().flat_map(|rule| rule.patterns.iter().flatten()) {
            let matches = pattern.matches(method, &path);
            if normal.normal() == path.normal() && pattern.matches(method, &normal) {
                assert!(matches, "{pattern} sees {raw:?} as it sees its normal form");
            }
            let head = method == Some(&Method::HEAD) && pattern.matches(Some(&Method::GET), &path);
            assert!(!head || matches, "GET covers HEAD: {pattern}, {raw:?}");
            for name in ["a", "id", "rest"] {
                let param = pattern.param(name, &path);
                assert!(
                    !matches || pattern.has_param(name) == param.is_some(),
                    "{pattern}, {raw:?}"
                );
                let written = |text: &str| raw.contains(text) || path.normal().contains(text);
                assert!(param.is_none_or(written), "{param:?} stands in {raw:?}");
            }
        }
    }
}

fn normal_form(path: &RequestPath<'_>) {
    let (raw, normal) = (path.raw(), path.normal());
    if !raw.starts_with('/') {
        return assert_eq!(normal, raw, "no path stays as it is");
    }
    assert!(normal.starts_with('/') && normal.is_ascii(), "{normal:?}");
    assert!(!normal.contains("//"), "{normal:?} of {raw:?}");
    assert!(!normal.split('/').any(|segment| [".", ".."].contains(&segment)), "{normal:?}");
    assert_eq!(path.is_normal(), raw == normal);
    let whole = |escape: &str| {
        let digits = escape.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if raw.split('%').skip(1).all(whole) {
        assert_eq!(RequestPath::new(normal).normal(), normal, "nothing is decoded twice: {raw:?}");
    }
}

/// Rules for these patterns: one for each, one for all but those of `except`, and one for every request.
fn rules_of(patterns: &[&str], except: &[&str]) -> Result<RuleSet, Problems> {
    let list = |patterns: &[&str]| {
        let each: Vec<String> = patterns.iter().map(|pattern| quoted(pattern)).collect();
        format!("[{}]", each.join(","))
    };
    let mut file = String::from("app = \"a\"\n");
    let terms = "key = []\nover = \"1/1s\"\nthrottle = {}\n";
    for (at, pattern) in patterns.iter().enumerate() {
        let _ = writeln!(file, "[[rule]]\nname = \"r{at}\"\nmatch = {}\n{terms}", quoted(pattern));
    }
    let spared =
        if except.is_empty() { String::new() } else { format!("except = {}", list(except)) };
    if !patterns.is_empty() {
        let all = list(patterns);
        let _ = writeln!(file, "[[rule]]\nname = \"all\"\nmatch = {all}\n{spared}\n{terms}");
    }
    let _ = writeln!(file, "[[rule]]\nname = \"every\"\n{spared}\n{terms}");
    file.parse()
}

/// Keys. The lines are: the key's parts with commas between them, the request's target, its header
/// fields as `name: value`, and anything else to be read as a printed key.
pub(crate) fn keys(text: &[u8]) {
    let mut lines = text.split(|byte| *byte == b'\n');
    let mut line = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (parts, target) = (line(), line());
    let parts: Vec<String> = parts.split(',').map(|part| quoted(part.trim())).collect();
    let parts = if parts == ["\"\""] { String::new() } else { parts.join(",") };
    let shared = "missing_key = \"share\"\nover = \"1/1s\"\nthrottle = {}\nshow_key = true";
    let matches = "match = [\"/{id}\", \"/{id}/{*rest}\"]";
    let rule = format!("[[rule]]\nname = \"r\"\nkey = [{parts}]\n{shared}\n{matches}\n");
    let file = format!("app = \"a\"\n{rule}");
    let Ok(rules) = file.parse::<RuleSet>() else { return };
    let rule = &rules.rules()[0];
    let mut headers = HeaderMap::new();
    let lines: Vec<&[u8]> = lines.collect();
    for line in &lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) =
            (name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()))
        {
            headers.append(name, value);
        }
    }
    let (path, query) =
        target.split_once('?').map_or((&*target, None), |(path, query)| (path, Some(query)));
    let said = Said(headers.get("x-said").and_then(|said| said.to_str().ok()));
    for client in [None, Some("203.0.113.9"), Some("2001:db8::9")] {
        let facts = Facts {
            query,
            host: headers.get("host").and_then(|host| host.to_str().ok()),
            client: client.map(|client| client.parse().unwrap()),
            extracted: &said,
            ..facts(Some(&Method::GET), path, &headers)
        };
        let key = rule.key(&facts).expect("a missing part is shared");
        let (mut own, mut made) = (hasher(), hasher());
        rule.hash_key(&facts, &mut own).expect("as the key is");
        key.hash(&mut made);
        assert_eq!(own.finish(), made.finish(), "hashed without being made: {file}");
        let printed = key.text(&rule.show(&[1; 16]));
        assert!(printed.bytes().all(|byte| byte.is_ascii_graphic()), "{printed:?}");
        match rule.key.read(&printed) {
            Ok(read) => assert_eq!(read, key.into_owned(), "printed as {printed}"),
            Err(KeyTextError::Hashed(_)) => assert!(printed.contains("=#"), "{printed}"),
            Err(error) => panic!("{error}: {printed} of {file}"),
        }
    }
    for line in lines {
        let line = String::from_utf8_lossy(line);
        if let Ok(key) = rule.key.read(&line) {
            let printed = key.text(&rule.show(&[1; 16]));
            let again = rule.key.read(&printed);
            assert!(
                again.is_ok_and(|again| again == key) || printed.contains("=#"),
                "{line}: {printed}"
            );
        }
    }
}

/// What the service says, of whatever it is asked.
#[derive(Debug)]
struct Said<'a>(Option<&'a str>);

impl Extract for Said<'_> {
    fn user(&self) -> Option<Cow<'_, str>> {
        self.0.map(Cow::Borrowed)
    }

    fn extra(&self, _: &str) -> Option<Cow<'_, str>> {
        self.user()
    }
}

fn hasher() -> DefaultHasher {
    BuildHasherDefault::<DefaultHasher>::default().build_hasher()
}

fn facts<'a>(method: Option<&'a Method>, path: &'a str, headers: &'a HeaderMap) -> Facts<'a> {
    Facts {
        method,
        path: RequestPath::new(path),
        query: None,
        host: None,
        headers,
        route: None,
        client: None,
        extracted: &(),
    }
}

/// A text as TOML quotes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            ' ' | '!' | '#'..='[' | ']'..='~' => quoted.push(letter),
            _ => drop(write!(quoted, "\\U{:08X}", u32::from(letter))),
        }
    }
    quoted + "\""
}
