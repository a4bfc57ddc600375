//! `[[rule]]`.

use super::{
    action, count, key, overrides,
    reader::{Fields, Item, Names},
    report::{Read, Report, Reported},
};
use crate::{
    Action, ClientConfig, Count, Disclose, KeySpec, MissingKey, Mode, Pattern, Period, Rule,
    Trigger, problem::Quoted,
};

pub(super) const NAMES: Names = Names {
    table: "[[rule]]",
    known: &[
        "name",
        "match",
        "except",
        "key",
        "count",
        "over",
        "always",
        "block",
        "throttle",
        "mode",
        "missing_key",
        "disclose",
        "show_key",
        "note",
        "override",
    ],
    later: &[
        "when",
        "cache",
        "tag",
        "handler",
        "respond",
        "fields",
        "from",
        "until",
        "alone",
        "group",
        "space",
        "inflight",
        "cost",
        "levels",
        "hot",
        "step",
        "challenge",
        "feeds",
    ],
};

pub(super) const MODES: [(&str, Mode); 3] =
    [("enforce", Mode::Enforce), ("observe", Mode::Observe), ("off", Mode::Off)];

const MISSING_KEYS: [(&str, MissingKey); 3] =
    [("skip", MissingKey::Skip), ("share", MissingKey::Share), ("reject", MissingKey::Reject)];

const DISCLOSURES: [(&str, Disclose); 2] = [("full", Disclose::Full), ("none", Disclose::None)];

/// Patterns a list of them can hold, to bound what reading a file can cost.
const PATTERNS_MAX: usize = 1024;

/// The longest name, of an app or a rule.
const NAME_BYTES_MAX: usize = 64;

pub(super) fn read(
    fields: &Fields<'_>,
    client: &ClientConfig,
    report: &mut Report<'_>,
) -> Read<Rule> {
    let name = fields.require("name", "\"login\"", report).and_then(|item| name(item, report));
    let matched = fields.read("match", report, matched_patterns);
    let except = fields.read("except", report, |item, report| patterns(item, report));
    let key = key(fields, client, matched.as_ref(), report);
    let trigger = trigger(fields, report);
    let always = matches!(trigger, Ok(Trigger::Always));
    let count = fields.read("count", report, count::read);
    if let (true, Some(item)) = (always, fields.get("count")) {
        item.error(report, "has no meaning beside always = true, which counts nothing");
    }
    let action = action::read(fields, always, report);
    let mode = fields.read("mode", report, |item, report| item.choice(&MODES, report));
    let missing_key =
        fields.read("missing_key", report, |item, report| item.choice(&MISSING_KEYS, report));
    let disclose =
        fields.read("disclose", report, |item, report| item.choice(&DISCLOSURES, report));
    let show_key = fields.read("show_key", report, Item::boolean);
    let note = fields.read("note", report, Item::note);
    let overrides = fields.read("override", report, |item, report| {
        overrides::read(item, key.as_ref().map_err(|reported| *reported), trigger, report)
    });

    let action = action?;
    let disclose = disclose?.unwrap_or(match action {
        Action::Block(_) => Disclose::None,
        _ => Disclose::Full,
    });
    Ok(Rule {
        name: name?,
        patterns: matched?,
        except: except?.unwrap_or_default(),
        when: Vec::new(),
        key: key?,
        count: count?.unwrap_or(Count::Requests),
        trigger: trigger?,
        action,
        respond: None,
        fields: false,
        period: Period::default(),
        mode: mode?.unwrap_or_default(),
        mode_max: Mode::default(),
        missing_key: missing_key?.unwrap_or_default(),
        disclose,
        show_key: show_key?.unwrap_or(false),
        overrides: overrides?.unwrap_or_default(),
        note: note?.map(Into::into),
    })
}

fn key(
    fields: &Fields<'_>,
    client: &ClientConfig,
    matched: Result<&Option<Vec<Pattern>>, &Reported>,
    report: &mut Report<'_>,
) -> Read<KeySpec> {
    let context = key::Context {
        patterns: matched.map(Option::as_deref).map_err(|reported| *reported),
        ipv6_prefix: client.ipv6_prefix,
        says_missing_key: fields.get("missing_key").is_some(),
    };
    let item = fields.require("key", "[\"client\"]", report)?;
    key::read(item, &context, report)
}

/// `[a-z0-9][a-z0-9_-]{0,63}`: fit for a NATS token, a metric label and a command line.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= NAME_BYTES_MAX
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|byte| plain(byte) || byte == b'_' || byte == b'-')
}

pub(super) fn name<T: for<'a> From<&'a str>>(item: Item<'_>, report: &mut Report<'_>) -> Read<T> {
    const EXPECTED: &str = "1 to 64 of a-z, 0-9, _ and -, a letter or digit first";
    let text = item.text(EXPECTED, report)?;
    if is_name(text) {
        return Ok(T::from(text));
    }
    let likely = text.to_lowercase().replace([' ', '.', '/'], "-");
    Err(if is_name(&likely) {
        item.likely(report, EXPECTED, Quoted(&likely))
    } else {
        item.expected(report, EXPECTED)
    })
}

/// `match`: as [`patterns`], and `[]`, which no request matches, for a rule that only handlers ask.
fn matched_patterns(item: Item<'_>, report: &mut Report<'_>) -> Read<Vec<Pattern>> {
    if item.list_or_one().is_empty() { Ok(Vec::new()) } else { patterns(item, report) }
}

/// `match`, `except`: a pattern or a list of them.
pub(super) fn patterns(item: Item<'_>, report: &mut Report<'_>) -> Read<Vec<Pattern>> {
    let items = item.list_or_one();
    if items.is_empty() {
        return Err(item.expected(report, "at least one pattern, or the field left out"));
    }
    if items.len() > PATTERNS_MAX {
        let message =
            format_args!("expected at most {PATTERNS_MAX} patterns, found {}", items.len());
        return Err(item.error(report, message));
    }
    let pattern = |item: Item<'_>| {
        let text = item.text("a pattern such as \"POST /login\"", report)?;
        Pattern::read(text).map_err(|message| item.error(report, message))
    };
    let read: Vec<Read<Pattern>> = items.into_iter().map(pattern).collect();
    read.into_iter().collect()
}

/// Exactly one of `over` and `always`.
fn trigger(fields: &Fields<'_>, report: &mut Report<'_>) -> Read<Trigger> {
    let over = fields.read("over", report, Item::unit);
    let always = fields.read("always", report, Item::only_true);
    if let [(first, _), (second, at), ..] = fields.places(&["over", "always", "inflight"])[..] {
        return Err(
            report.error(at, format_args!("{second} stands beside {first}, expected one of them"))
        );
    }
    match (over?, always?) {
        (Some(rate), _) => Ok(Trigger::Over(rate)),
        (None, Some(())) => Ok(Trigger::Always),
        (None, None) if fields.places(&["inflight"]).is_empty() => Err(report
            .missing(fields.at, "[[rule]] needs over, such as over = \"10/1m\", or always = true")),
        (None, None) => Err(Reported),
    }
}
