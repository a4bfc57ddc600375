//! `throttle` and `block`: what happens to a hot key's requests.

use std::{num::NonZeroU32, time::Duration};

use http::StatusCode;

use super::{
    reader::{Fields, Item, Names, alternatives},
    report::{Read, Report, Reported},
};
use crate::{Action, Block, Spoken};

/// The actions of the grammar; two of them are in [`super::rule::NAMES`] as known.
const ACTIONS: &[&str] = &["block", "throttle", "cache", "tag", "handler"];

const THROTTLE: Names = Names { table: "throttle", known: &[], later: &["pace", "burst"] };

const BLOCK: Names = Names {
    table: "block",
    known: &["for", "status", "extend", "grow", "max", "forget"],
    later: &[],
};

/// Fields that say how long a block lasts.
const LASTING: &[&str] = &["for", "extend", "grow", "max", "forget"];

/// The default of `max` and `forget`: a day.
const DAY: Duration = Duration::from_secs(86_400);

/// A block that lasts longer than this is rather a case for `[[deny]]`: it outlives most processes.
const BLOCK_SENSIBLE_MAX: Duration = Duration::from_secs(30 * 86_400);

/// A block that lasts shorter than this hardly keeps anybody out: `ms` was likely written for `m`.
const BLOCK_SENSIBLE_MIN: Duration = Duration::from_secs(1);

/// The rule's one action; `always` tells whether it acts on every request.
pub(super) fn read(rule: &Fields<'_>, always: bool, report: &mut Report<'_>) -> Read<Action> {
    let places = rule.places(ACTIONS);
    if let Some((second, at)) = places.get(1) {
        report.error(
            *at,
            format_args!("{second} stands beside {}, expected one action in a rule", places[0].0),
        );
    }
    let throttle = rule.read("throttle", report, |item, report| item.table(&THROTTLE, report));
    let block = rule.read("block", report, |item, report| block(item, always, report));
    match (throttle?, block?) {
        (Some(_), None) if places.len() == 1 => Ok(Action::Throttle(None)),
        (None, Some(block)) if places.len() == 1 => Ok(Action::Block(block)),
        _ if places.is_empty() => {
            let example = "such as throttle = {} or block = { for = \"15m\" }";
            Err(report.missing(rule.at, format_args!("[[rule]] needs an action, {example}")))
        }
        _ => Err(Reported),
    }
}

fn block(item: Item<'_>, always: bool, report: &mut Report<'_>) -> Read<Block> {
    let fields = item.table(&BLOCK, report)?;
    if always {
        let places = fields.places(LASTING);
        for (name, at) in &places {
            report.error(*at, format_args!("{name} in block has no meaning beside always = true, which blocks each request anew"));
        }
    }
    let status = fields.read("status", report, status);
    let extend = fields.read("extend", report, Item::boolean);
    let grow = fields.read("grow", report, |item, report| item.integer(1..=100, report));
    let max = fields.read("max", report, Item::unit::<Spoken>);
    let forget = fields.read("forget", report, Item::unit::<Spoken>);
    let lasts = if always { Ok(Duration::ZERO) } else { lasts(&fields, report) };

    let grow = grow?.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    let (lasts, max) = (lasts?, max?);
    if let (Some(item), Some(max)) = (fields.get("max"), max)
        && max.0 < lasts
    {
        return Err(item.expected(report, format_args!("at least the {} of for", Spoken(lasts))));
    }
    if grow == NonZeroU32::MIN {
        warn_without_growth(&fields, report);
    } else if let (Some(item), Some(max)) = (fields.get("max"), max) {
        warn_if_absurd(item, max.0, report);
    }
    Ok(Block {
        lasts,
        status: status?.unwrap_or(StatusCode::FORBIDDEN),
        extend: extend?.unwrap_or(false),
        grow,
        // A block longer than a day needs no larger maximum written to be allowed.
        max: max.map_or(DAY.max(lasts), |max| max.0),
        forget: forget?.map_or(DAY, |forget| forget.0),
    })
}

fn lasts(fields: &Fields<'_>, report: &mut Report<'_>) -> Read<Duration> {
    let item = fields.require("for", "\"15m\"", report)?;
    let Spoken(lasts) = item.unit(report)?;
    warn_if_absurd(item, lasts, report);
    Ok(lasts)
}

fn warn_if_absurd(item: Item<'_>, lasts: Duration, report: &mut Report<'_>) {
    let name = item.name;
    if lasts > BLOCK_SENSIBLE_MAX {
        let message = format_args!("{name}: a block of {item} is long, did you mean [[deny]]?");
        report.warn(item.at, message);
    } else if lasts < BLOCK_SENSIBLE_MIN {
        report
            .warn(item.at, format_args!("{name}: a block of {item} is short, ms is milliseconds"));
    }
}

fn status(item: Item<'_>, report: &mut Report<'_>) -> Read<StatusCode> {
    let status = item.integer(400..=599, report)?;
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    status.ok_or(Reported)
}

fn warn_without_growth(fields: &Fields<'_>, report: &mut Report<'_>) {
    let places = fields.places(&["max", "forget"]);
    let names: Vec<&str> = places.iter().map(|(name, _)| *name).collect();
    if let Some((_, at)) = places.first() {
        report.warn(
            *at,
            format_args!(
                "{} in block does nothing without grow, expected grow of 2 or more",
                alternatives(&names)
            ),
        );
    }
}
