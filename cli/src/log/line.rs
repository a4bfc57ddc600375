//! One line.

use std::{borrow::Cow, net::IpAddr};

use hotgate_detector::Time;
use http::StatusCode;

use super::{RequestLine, date, field};

/// One line of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The first field, canonical and without a zone; `None` if it is a name, a list or `-`.
    pub client: Option<IpAddr>,
    /// The first field where it is a list, as `X-Forwarded-For` holds one.
    pub forwarded: Option<&'a [u8]>,
    /// When, since the unix epoch.
    pub time: Time,
    /// What was asked for.
    pub request: RequestLine,
    /// What was answered; `None` for `-` and for what is no status (nginx writes `000`).
    pub status: Option<StatusCode>,
    /// What only the Combined format holds.
    pub agent: Option<Agent<'a>>,
}

/// The two fields by which the Combined format is more than the Common one; `-` is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent<'a> {
    /// `Referer`.
    pub referer: Option<Cow<'a, [u8]>>,
    /// `User-Agent`.
    pub user_agent: Option<Cow<'a, [u8]>>,
}

/// Why a line cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unparsed {
    /// Nothing in it.
    #[error("the line is empty")]
    Empty,
    /// Longer than is read.
    #[error("the line is longer than {0} bytes")]
    TooLong(usize),
    /// The log's writer put the whole line in quotes.
    #[error("the line begins with a quote; expected an address or a name")]
    Quoted,
    /// Nothing that is shaped like a date and a request.
    #[error("expected [day/Mon/year:hour:minute:second +zone] and a quoted request")]
    NoDate,
    /// The date does not exist, or lies outside the years 1970 to 2554.
    #[error("its date does not exist, or is not between 1970 and 2554")]
    BadDate,
    /// The request's closing quote is missing.
    #[error("the quoted request does not end")]
    OpenRequest,
    /// No status after the request.
    #[error("expected a status of three digits, or -, after the request")]
    NoStatus,
}

impl<'a> Line<'a> {
    /// Reads a line without its end; a syslog header before it is dropped.
    ///
    /// Whatever a client can write (the user name, the request, the referer, the user agent) changes
    /// neither the client nor the time: the client is the first field, and the date is the first
    /// one that stands between ` [` and `] "`, which no quoted or escaped text before it can be.
    ///
    /// # Errors
    ///
    /// When there is no date, no request that ends, or no status.
    pub fn read(line: &'a [u8]) -> Result<Self, Unparsed> {
        match line.trim_ascii() {
            [] => return Err(Unparsed::Empty),
            [b'"', ..] => return Err(Unparsed::Quoted),
            _ => {}
        }
        let line = without_syslog_header(line);
        let first = first_field(line);
        let (date, rest) = find_date(line).ok_or(Unparsed::NoDate)?;
        let time = date::read(date).ok_or(Unparsed::BadDate)?;
        let (request, rest) = field::quoted(rest).ok_or(Unparsed::OpenRequest)?;
        let (status, rest) = read_status(rest).ok_or(Unparsed::NoStatus)?;
        Ok(Line {
            client: client(first),
            forwarded: first.contains(&b',').then_some(first),
            time,
            request: RequestLine::read(&request),
            status,
            agent: read_agent(rest),
        })
    }
}

/// What follows `Sep 15 16:13:46 host nginx[2869]: ` (RFC 3164, 4.1), which servers that log through
/// syslog put before each line. A client writes nothing before its address, so it cannot forge one.
fn without_syslog_header(line: &[u8]) -> &[u8] {
    const SHAPE: &[u8] = b"Aaa 00 00:00:00 ";
    let fits = |(index, (byte, shape)): (usize, (&u8, &u8))| match shape {
        // A day of one digit is padded with a space.
        b'0' => byte.is_ascii_digit() || (index == 4 && *byte == b' '),
        b'A' | b'a' => byte.is_ascii_alphabetic(),
        literal => byte == literal,
    };
    let Some((date, rest)) = line.split_at_checked(SHAPE.len()) else { return line };
    if !date.iter().zip(SHAPE).enumerate().all(fits) {
        return line;
    }
    let mut fields = rest.splitn(3, |byte| *byte == b' ');
    match (fields.next(), fields.next(), fields.next()) {
        (Some(_host), Some([.., b':']), Some(message)) => message,
        _ => line,
    }
}

/// All up to the first space, but for one after a comma: there a list goes on.
fn first_field(line: &[u8]) -> &[u8] {
    let mut before = b' ';
    let end = line.iter().position(|byte| {
        let ends = *byte == b' ' && before != b',';
        before = *byte;
        ends
    });
    &line[..end.unwrap_or(line.len())]
}

/// The first date in ` [date] "`, and what follows that quote.
fn find_date(line: &[u8]) -> Option<(&[u8; date::DATE_BYTES], &[u8])> {
    let mut rest = line;
    loop {
        let start = rest.windows(2).position(|pair| pair == b" [")?;
        rest = &rest[start + 2..];
        if let Some((date, after)) = rest.split_first_chunk()
            && let Some(after) = after.strip_prefix(b"] \"")
            && date::has_shape(date)
        {
            return Some((date, after));
        }
    }
}

fn client(field: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(field).ok()?;
    let without_zone = text.split_once('%').map_or(text, |(address, _)| address);
    without_zone.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// ` 200`, and what follows it.
fn read_status(rest: &[u8]) -> Option<(Option<StatusCode>, &[u8])> {
    let rest = rest.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    let (field, rest) = rest.split_at(end);
    match field {
        b"-" => Some((None, rest)),
        [_, _, _] if field.iter().all(u8::is_ascii_digit) => {
            Some((StatusCode::from_bytes(field).ok(), rest))
        }
        _ => None,
    }
}

/// ` 123 "referer" "user-agent" …`; `None` where no quoted field follows the size. Servers cut long
/// lines, and by then all that is counted is known: a field that does not end is what there is of it.
fn read_agent(rest: &[u8]) -> Option<Agent<'_>> {
    let rest = rest.strip_prefix(b" ")?;
    let size_end = rest.iter().position(|byte| *byte == b' ')?;
    let (referer, rest) = field::quoted_or_cut(rest[size_end..].strip_prefix(b" \"")?);
    let user_agent = rest.strip_prefix(b" \"").map(|rest| field::quoted_or_cut(rest).0);
    Some(Agent { referer: unless_absent(referer), user_agent: user_agent.and_then(unless_absent) })
}

fn unless_absent(field: Cow<'_, [u8]>) -> Option<Cow<'_, [u8]>> {
    (*field != *b"-").then_some(field)
}
