//! What the fields that tags set mean to the rest of a file: they are stripped from every request.

use std::collections::HashMap;

use http::HeaderName;

use super::{reader::Fields, report::Report};
use crate::{Action, ClientConfig, ClientSource, PartKind, Rule, problem::Quoted};

/// Looks for rules and a `[client]` that read what is stripped.
pub(super) fn check(rules: &[(&Fields<'_>, Rule)], client: &ClientConfig, report: &mut Report<'_>) {
    let mut tagged: HashMap<&HeaderName, &Rule> = HashMap::new();
    for (fields, rule) in rules {
        for action in rule.actions() {
            let Action::Tag(header) = action else { continue };
            if client.source == ClientSource::Header(header.clone()) {
                let message = format_args!(
                    "tag: {} is the source of [client], and a tag's field is stripped from each request",
                    Quoted(header.as_str())
                );
                report.error(fields.get("tag").map_or(fields.at, |item| item.at), message);
            }
            tagged.entry(header).or_insert(rule);
        }
    }
    for (fields, rule) in rules {
        // Behind an inner door the field is there: the tag itself.
        if rule.needs_inner_door() {
            continue;
        }
        for kind in rule.kinds() {
            let PartKind::Header(name) = kind else { continue };
            if let Some(by) = tagged.get(name) {
                let message = format_args!(
                    "[[rule]] {} looks at {kind}, which is stripped from each request, as rule {} tags with it",
                    Quoted(&rule.name),
                    Quoted(&by.name)
                );
                report.warn(fields.at, message);
            }
        }
    }
}
