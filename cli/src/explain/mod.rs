//! `hotgate explain`: what do these rules make of one request?

mod client;
mod judge;

use std::{
    borrow::Cow,
    io::{self, Write},
    net::IpAddr,
    path::PathBuf,
};

use hotgate_rules::{Extract, Facts, Mode, Peer, RequestPath, RuleSet, Standing};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header, uri::Authority};
use jiff::Timestamp;
use serde::Serialize;

use crate::{Status, log::RequestLine, rule_file, sentence, write_json};
use judge::Judged;

/// Say which rules a request matches, with which keys, and why not the others.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The rule file.
    #[arg(long, value_name = "RULES")]
    rules: PathBuf,
    /// The request, such as "GET /api/x?y=1".
    #[arg(value_name = "REQUEST", value_parser = read_request)]
    request: Request,
    /// A header field; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = read_header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The other end of the connection: an address, or unix.
    #[arg(long, value_name = "ADDR", value_parser = read_peer)]
    peer: Option<Peer>,
    /// The template the router matched, such as /products/{id}.
    #[arg(long, value_name = "TEMPLATE")]
    route: Option<String>,
    /// Who the service would say the user is.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// What an extractor of the service would say; may be given several times.
    #[arg(long = "x", value_name = "NAME=VALUE", value_parser = read_extra)]
    extras: Vec<(String, String)>,
    /// When the request comes, such as 2027-01-01T00:00:00Z; left out: now.
    #[arg(long, value_name = "RFC3339")]
    at: Option<Timestamp>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the service would tell.
#[derive(Debug)]
struct Told<'a>(&'a Args);

impl Extract for Told<'_> {
    fn user(&self) -> Option<Cow<'_, str>> {
        self.0.user.as_deref().map(Cow::Borrowed)
    }

    fn extra(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut extras = self.0.extras.iter();
        extras.find(|(own, _)| own == name).map(|(_, value)| Cow::Borrowed(value.as_str()))
    }
}

/// A request line with its method.
#[derive(Clone, Debug)]
struct Request {
    method: Method,
    line: RequestLine,
}

#[derive(Serialize)]
struct Explanation<'a> {
    method: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    /// Left out where it is the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    normalised: Option<&'a str>,
    client: Option<String>,
    client_how: String,
    /// What holds whatever the rules say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'static str>,
    rules: Vec<Judged<'a>>,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Status> {
    let Some(rules) = rule_file::load_or_explain(&args.rules, err)? else {
        return Ok(Status::Usage);
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &args.headers {
        headers.append(name, value.clone());
    }
    let resolved = rules.client().resolve(args.peer, &headers);
    let Request { method, line } = &args.request;
    let facts = Facts {
        method: Some(method),
        path: RequestPath::new(&line.path),
        query: line.query.as_deref(),
        host: host(line, &headers),
        headers: &headers,
        route: args.route.as_deref(),
        client: resolved.client,
        extracted: &Told(args),
    };
    let now = args.at.unwrap_or_else(Timestamp::now).as_nanosecond();
    let standing = facts.client.map(|client| rules.lists().standing(client, now));
    let standing = standing.unwrap_or(Standing::Unlisted);
    let explanation = Explanation {
        method: method.as_str(),
        path: facts.path.raw(),
        query: facts.query,
        normalised: (!facts.path.is_normal()).then(|| facts.path.normal()),
        client: resolved.client.map(|client| client.to_string()),
        client_how: client::how(rules.client(), args.peer, &resolved),
        notes: notes(&rules, &facts, standing),
        rules: judge::all(&rules, &facts, standing, now),
    };
    if args.json {
        write_json(out, &explanation)?;
    } else {
        write_text(&explanation, out)?;
    }
    Ok(Status::Done)
}

fn notes(rules: &RuleSet, facts: &Facts<'_>, standing: Standing) -> Vec<&'static str> {
    let preflight =
        "a CORS preflight: charged to no rule and refused by none, except by a standing block";
    let preflight = facts.is_preflight().then_some(preflight);
    let denied = rules.mode() == Mode::Observe && standing == Standing::Denied;
    let denied = denied.then_some("[[deny]] would refuse the client before all rules");
    sentence::file_mode(rules.mode()).into_iter().chain(denied).chain(preflight).collect()
}

fn write_text(explanation: &Explanation<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Explanation { method, path, query, normalised, client, client_how, notes, rules } =
        explanation;
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    writeln!(out, "request: {method} {path}{query}")?;
    if let Some(normalised) = normalised {
        writeln!(out, "  its path is also matched as {normalised}")?;
    }
    writeln!(out, "client: {}, {client_how}", client.as_deref().unwrap_or("unknown"))?;
    notes.iter().try_for_each(|note| writeln!(out, "{note}"))?;
    for Judged { name, sentence, applies, key, why, .. } in rules {
        writeln!(out, "\n{name}: {sentence}")?;
        let applies = if *applies { "applies" } else { "does not apply" };
        write!(out, "  {applies}")?;
        if let Some(key) = key {
            write!(out, ", key {}", if key.is_empty() { "[]" } else { key })?;
        }
        match why {
            Some(why) => writeln!(out, ": {why}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// The host of the target or of the `Host` field, without its port.
fn host<'a>(line: &'a RequestLine, headers: &'a HeaderMap) -> Option<&'a str> {
    let field = || headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let authority = line.authority.as_deref().or_else(field)?;
    // Its host is a part of the text, which outlives the parsed authority.
    let host = authority.parse::<Authority>().ok()?.host().len();
    let start = authority.rfind('@').map_or(0, |at| at + 1);
    authority.get(start..start + host)
}

fn read_request(text: &str) -> Result<Request, String> {
    let line = RequestLine::read(text.as_bytes());
    match line.method.clone() {
        Some(method) => Ok(Request { method, line }),
        None => Err("expected a method and a path, such as \"GET /api/x?y=1\"".to_owned()),
    }
}

fn read_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let expected = || "expected 'name: value'".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(expected)?;
    let name = name.trim().parse().map_err(|_| expected())?;
    Ok((name, value.trim().parse().map_err(|_| expected())?))
}

fn read_extra(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| "expected NAME=VALUE, such as plan=gold".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

fn read_peer(text: &str) -> Result<Peer, String> {
    if text == "unix" {
        return Ok(Peer::Unix);
    }
    let address = text.split_once('%').map_or(text, |(address, _zone)| address);
    let address = address.parse::<IpAddr>();
    address.map(Peer::Ip).map_err(|_| "expected an address without a port, or unix".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_targets_or_the_fields_without_its_port() {
        let table = [
            ("GET / HTTP/1.1", Some("shop.example"), Some("shop.example")),
            ("GET / HTTP/1.1", Some("shop.example:8080"), Some("shop.example")),
            ("GET / HTTP/1.1", Some("[2001:db8::1]:80"), Some("[2001:db8::1]")),
            ("GET http://u:p@h.example:80/ HTTP/1.1", Some("shop.example"), Some("h.example")),
            ("GET / HTTP/1.1", Some("a b"), None),
            ("GET / HTTP/1.1", None, None),
        ];
        for (line, field, expected) in table {
            let line = RequestLine::read(line.as_bytes());
            let headers = field.map(|field| (header::HOST, HeaderValue::from_static(field)));
            assert_eq!(host(&line, &headers.into_iter().collect()), expected, "{line:?} {field:?}");
        }
    }

    #[test]
    fn a_header_is_a_name_and_a_value() {
        assert_eq!(read_header("X-Key: a:b ").unwrap().1, "a:b");
        assert_eq!(read_header("x-key:").unwrap().1, "");
        for text in ["x-key", "x key: 1", ": 1", "x-key: a\nb"] {
            assert!(read_header(text).is_err(), "{text}");
        }
    }
}
