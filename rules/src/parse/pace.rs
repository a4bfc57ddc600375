//! `throttle`: with a pace or without.

use std::{num::NonZeroU32, time::Duration};

use super::{
    reader::{Fields, Item, Names},
    report::{Read, Report},
};
use crate::{Pace, Rate, Spoken, units::LIMITS};

const THROTTLE: Names = Names { table: "throttle", known: &["pace", "burst"], later: &[] };

/// The shortest time between two requests at a pace: ten million a second, as fast as a limit can be.
/// It also keeps the pace within a percent of what is written, as time comes in whole nanoseconds.
const PERIOD_MIN: Duration = Duration::from_nanos(100);

/// The longest time a burst may take to come back, ten years: beyond it time itself would overflow.
const RECOVERY_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// The fields that are written, so that an override can replace some of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    rate: Option<Rate>,
    burst: Option<NonZeroU32>,
}

impl Written {
    /// The pace, with the default of what is not written.
    pub(super) fn pace(self) -> Option<Pace> {
        self.rate.map(|rate| Pace { rate, burst: self.burst.unwrap_or(rate.limit) })
    }
}

/// A rule's `throttle`. `unpaced` is what leaves a pace without meaning, if something does. In an
/// override `rule` is what the rule has written, and what its fields are put over.
pub(super) fn read(
    item: Item<'_>,
    unpaced: Option<&str>,
    rule: Option<Written>,
    report: &mut Report<'_>,
) -> Read<Written> {
    let fields = item.table(&THROTTLE, report)?;
    let rate = fields.read("pace", report, rate);
    let burst = fields.read("burst", report, |item, report| item.integer(LIMITS, report));
    let places = fields.places(&["pace", "burst"]);
    if let (Some((name, at)), Some(beside)) = (places.first(), unpaced) {
        let message = format_args!("{name} in throttle has no meaning beside {beside}");
        return Err(report.error(*at, message));
    }
    let own = Written { rate: rate?, burst: burst?.and_then(NonZeroU32::new) };
    if let (Some(item), Some(Written { rate: None, .. })) = (fields.get("pace"), rule) {
        // What a rule counts, its attempts or what it admits, is the same for all of its keys.
        return Err(item.error(report, "replaces the pace of the rule, which has none"));
    }
    let rule = rule.unwrap_or_default();
    let written = Written { rate: own.rate.or(rule.rate), burst: own.burst.or(rule.burst) };
    check(&fields, written, report)?;
    Ok(written)
}

fn rate(item: Item<'_>, report: &mut Report<'_>) -> Read<Rate> {
    let rate: Rate = item.unit(report)?;
    if rate.window / rate.limit.get() < PERIOD_MIN {
        return Err(item.expected(report, "at most 10000000 a second"));
    }
    Ok(rate)
}

/// Checks the fields against each other.
fn check(fields: &Fields<'_>, written: Written, report: &mut Report<'_>) -> Read<()> {
    let burst = fields.get("burst");
    match (burst, written.pace()) {
        (Some(item), None) => {
            Err(item.error(report, "needs pace beside it, such as pace = \"2/1s\""))
        }
        (_, Some(Pace { rate, burst: many })) => {
            let period = rate.window / rate.limit.get();
            let recovery = period.saturating_mul(many.get());
            match burst.or(fields.get("pace")) {
                Some(item) if recovery > RECOVERY_MAX => {
                    let message = format_args!(
                        "a burst of {many} at one in {} takes more than {} to come back",
                        Spoken(period),
                        Spoken(RECOVERY_MAX)
                    );
                    Err(item.error(report, message))
                }
                _ => Ok(()),
            }
        }
        (None, None) => Ok(()),
    }
}
