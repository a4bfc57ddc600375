//! `when`: facts that must hold beside `match`.

use super::{
    key::{self, PARTS_MAX},
    reader::{Entry, Item},
    report::{Read, Report},
    value,
};
use crate::{Condition, OverridePart, PartKind, problem::Quoted};

/// Values that one fact can have; each may cost every request of the rule a look.
const VALUES_MAX: usize = 256;

/// `context` is that of the rule's key.
pub(super) fn read(
    item: Item<'_>,
    context: &key::Context<'_>,
    report: &mut Report<'_>,
) -> Read<Vec<Condition>> {
    // A condition looks at the whole address, whatever network it is counted by. A fact that a
    // request lacks has none of the values.
    let context = key::Context { ipv6_prefix: 128, says_missing_key: true, ..*context };
    let entries = item.entries("{ \"x:plan\" = [\"free\"] }", PARTS_MAX, report)?;
    let conditions: Vec<Read<Condition>> =
        entries.into_iter().map(|entry| condition(&entry, &context, report)).collect();
    conditions.into_iter().collect()
}

fn condition(
    entry: &Entry<'_>,
    context: &key::Context<'_>,
    report: &mut Report<'_>,
) -> Read<Condition> {
    let kinds = key::kinds(entry.name, context)
        .map_err(|message| report.error(entry.at, format_args!("when: {message}")))?;
    if kinds.contains(&PartKind::Agent) {
        // What comes will know bots by more than the text that they give themselves.
        let name = Quoted(entry.name);
        return Err(report.error(entry.at, format_args!("when: {name} is not available yet")));
    }
    let items = entry.item.list_or_one();
    if items.is_empty() || items.len() > VALUES_MAX {
        let found = items.len();
        let message = format_args!("expected 1 to {VALUES_MAX} values, found {found}");
        return Err(entry.item.error(report, message));
    }
    let values: Vec<Read<OverridePart>> =
        items.into_iter().map(|item| value::read(item, &kinds, report)).collect();
    Ok(Condition { values: values.into_iter().collect::<Read<_>>()?, kinds })
}
