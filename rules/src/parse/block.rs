//! `block`: for how long, and how repeats make it longer.

use std::{num::NonZeroU32, time::Duration};

use http::StatusCode;

use super::{
    reader::{Fields, Item, Names, alternatives},
    report::{Read, Report, Reported},
};
use crate::{Block, Spoken};

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

/// The fields that are written, so that an override can replace some of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    lasts: Option<Duration>,
    status: Option<StatusCode>,
    extend: Option<bool>,
    grow: Option<NonZeroU32>,
    max: Option<Duration>,
    forget: Option<Duration>,
}

impl Written {
    /// The block, with the defaults of what is not written.
    pub(super) fn block(self) -> Block {
        let lasts = self.lasts.unwrap_or(Duration::ZERO);
        Block {
            lasts,
            status: self.status.unwrap_or(StatusCode::FORBIDDEN),
            extend: self.extend.unwrap_or(false),
            grow: self.grow(),
            // A block longer than a day needs no larger maximum written to be allowed.
            max: self.max.unwrap_or(DAY.max(lasts)),
            forget: self.forget.unwrap_or(DAY),
        }
    }

    pub(super) fn says_status(self) -> bool {
        self.status.is_some()
    }

    fn grow(self) -> NonZeroU32 {
        self.grow.unwrap_or(NonZeroU32::MIN)
    }

    /// These fields, and where one is not written that of the rule.
    fn or(self, rule: Written) -> Self {
        Written {
            lasts: self.lasts.or(rule.lasts),
            status: self.status.or(rule.status),
            extend: self.extend.or(rule.extend),
            grow: self.grow.or(rule.grow),
            max: self.max.or(rule.max),
            forget: self.forget.or(rule.forget),
        }
    }
}

/// A rule's `block`; `always` tells whether it acts on every request. In an override `rule` is what
/// the rule has written, and what its fields are put over.
pub(super) fn read(
    item: Item<'_>,
    always: bool,
    rule: Option<Written>,
    report: &mut Report<'_>,
) -> Read<Written> {
    let fields = item.table(&BLOCK, report)?;
    if always {
        for (name, at) in &fields.places(LASTING) {
            report.error(*at, format_args!("{name} in block has no meaning beside always = true, which blocks each request anew"));
        }
    }
    let status = fields.read("status", report, status);
    let extend = fields.read("extend", report, Item::boolean);
    let grow = fields.read("grow", report, |item, report| item.integer(1..=100, report));
    let max = fields.read("max", report, duration);
    let forget = fields.read("forget", report, duration);
    let lasts = if always { Ok(None) } else { lasts(&fields, rule, report) };
    let own = Written {
        lasts: lasts?,
        status: status?,
        extend: extend?,
        grow: grow?.and_then(NonZeroU32::new),
        max: max?,
        forget: forget?,
    };
    let written = own.or(rule.unwrap_or_default());
    check(&fields, own, written, report)?;
    Ok(written)
}

fn duration(item: Item<'_>, report: &mut Report<'_>) -> Read<Duration> {
    item.unit(report).map(|Spoken(duration)| duration)
}

fn lasts(
    fields: &Fields<'_>,
    rule: Option<Written>,
    report: &mut Report<'_>,
) -> Read<Option<Duration>> {
    if rule.is_some() && fields.get("for").is_none() {
        return Ok(None);
    }
    let item = fields.require("for", "\"15m\"", report)?;
    let lasts = duration(item, report)?;
    warn_if_absurd(item, lasts, report);
    Ok(Some(lasts))
}

/// Checks the fields against each other.
fn check(fields: &Fields<'_>, own: Written, written: Written, report: &mut Report<'_>) -> Read<()> {
    let lasts = written.lasts.unwrap_or(Duration::ZERO);
    if let Some(max) = written.max
        && max < lasts
    {
        return Err(match (fields.get("max"), fields.get("for")) {
            (Some(item), _) => {
                item.expected(report, format_args!("at least the {} of for", Spoken(lasts)))
            }
            (None, Some(item)) => {
                item.expected(report, format_args!("at most the {} of the rule's max", Spoken(max)))
            }
            (None, None) => Reported,
        });
    }
    if written.grow() == NonZeroU32::MIN {
        warn_without_growth(fields, report);
    } else if let (Some(item), Some(max)) = (fields.get("max"), own.max) {
        warn_if_absurd(item, max, report);
    }
    Ok(())
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
    item.status(400..=599, report)
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
