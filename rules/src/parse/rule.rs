//! `[[rule]]`.

use super::{
    action::{self, Counted},
    count, key, overrides, period,
    reader::{Fields, Item, Names},
    report::{Read, Report, Reported},
    respond, when,
};
use crate::{
    Action, ClientConfig, Count, Disclose, MissingKey, Mode, Pattern, Respond, Rule, Trigger,
    mode::MODES, problem::Quoted,
};

pub(super) const NAMES: Names = Names {
    table: "[[rule]]",
    known: &[
        "name",
        "match",
        "except",
        "when",
        "key",
        "count",
        "over",
        "always",
        "block",
        "throttle",
        "tag",
        "handler",
        "respond",
        "mode",
        "missing_key",
        "disclose",
        "fields",
        "from",
        "until",
        "show_key",
        "note",
        "override",
    ],
    later: &[
        "cache",
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
    let context = key::Context {
        patterns: matched.as_ref().map(Option::as_deref).map_err(|reported| *reported),
        ipv6_prefix: client.ipv6_prefix,
        says_missing_key: fields.get("missing_key").is_some(),
    };
    let when = fields.read("when", report, |item, report| when::read(item, &context, report));
    let key = fields
        .require("key", "[\"client\"]", report)
        .and_then(|item| key::read(item, &context, report));
    let trigger = trigger(fields, report);
    let count = fields.read("count", report, count::read);
    let counted = Counted {
        always: matches!(trigger, Ok(Trigger::Always)),
        responses: fields.get("count").is_some(),
    };
    let action = action::read(fields, counted, report);
    let answer = answer(fields, action.as_ref().map_err(|reported| *reported), report);
    let period = period::read(fields, report);
    let mode = fields.read("mode", report, |item, report| item.choice(&MODES, report));
    let missing_key =
        fields.read("missing_key", report, |item, report| item.choice(&MISSING_KEYS, report));
    let show_key = fields.read("show_key", report, Item::boolean);
    let note = fields.read("note", report, Item::note);
    let of = overrides::Of {
        key: key.as_ref().map_err(|reported| *reported),
        action: action.as_ref().map_err(|reported| *reported),
        trigger,
        counted,
        context: &context,
        when: when.as_ref().ok().and_then(Option::as_deref).unwrap_or_default(),
    };
    let overrides = fields.read("override", report, |item, report| of.read(item, report));
    check_count(fields, counted, report);

    let (respond, disclose, tells_fields) = answer?;
    let action = action?.action();
    Ok(Rule {
        name: name?,
        disclose: disclose.unwrap_or(match action {
            Action::Block(_) => Disclose::None,
            _ => Disclose::Full,
        }),
        action,
        when: when?.unwrap_or_default(),
        key: key?,
        patterns: matched?,
        except: except?.unwrap_or_default(),
        count: count?.unwrap_or(Count::Requests),
        trigger: trigger?,
        respond,
        fields: tells_fields,
        period: period?,
        mode: mode?.unwrap_or_default(),
        mode_max: Mode::default(),
        missing_key: missing_key?.unwrap_or_default(),
        show_key: show_key?.unwrap_or(false),
        overrides: overrides?.unwrap_or_default(),
        note: note?.map(Into::into),
    })
}

/// What of the rule would be counted in vain.
fn check_count(fields: &Fields<'_>, counted: Counted, report: &mut Report<'_>) {
    let always = "has no meaning beside always = true, which counts nothing";
    for name in ["count", "fields"] {
        if let (true, Some(item)) = (counted.always, fields.get(name)) {
            item.error(report, always);
        }
    }
    let passes_on = fields.get("tag").or(fields.get("handler"));
    let pending = fields.get("count").and_then(|item| item.field("pending"));
    if let (Some(action), Some(pending)) = (passes_on, pending) {
        let message = format_args!("has no meaning beside {}, which refuses nothing", action.name);
        pending.error(report, message);
    }
}

/// What a refused client is told: `respond`, `disclose`, and whether `fields` tells all the others.
fn answer(
    fields: &Fields<'_>,
    action: Read<&action::Written>,
    report: &mut Report<'_>,
) -> Read<(Option<Respond>, Option<Disclose>, bool)> {
    let respond = fields.read("respond", report, respond::read);
    let disclose =
        fields.read("disclose", report, |item, report| item.choice(&DISCLOSURES, report));
    let tells = fields.read("fields", report, Item::boolean);
    let respond = respond?;
    if let (Ok(action), Some(item), Some(respond)) = (action, fields.get("respond"), &respond) {
        if !action.action().refuses() {
            let beside = action.action().name();
            let message = format_args!("has no meaning beside {beside}, which refuses nothing");
            return Err(item.error(report, message));
        }
        if action.says_status() && respond.status.is_some() {
            let message = "status stands in block already, expected one of them";
            return Err(item.error(report, message));
        }
    }
    Ok((respond, disclose?, tells?.unwrap_or(false)))
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
