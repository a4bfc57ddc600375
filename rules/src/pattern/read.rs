//! Reading patterns, and saying what was expected instead.

use http::Method;

use super::{Segment, segments_of};
use crate::path::{is_dots, normal_octets};

/// Segments a pattern can have; more is an error. It bounds how deep a match can go, far beyond what
/// any router holds.
const PATTERN_SEGMENTS_MAX: usize = 64;

pub(super) fn method(text: &str) -> Result<(Option<Method>, &str), String> {
    if text.starts_with('/') {
        return Ok((None, text));
    }
    let Some((method, path)) = text.split_once(' ') else {
        return Err(match text {
            "" => "expected a path, such as \"/login\"".to_owned(),
            "*" => "expected a path; {*rest} stands for any: \"/{*rest}\"".to_owned(),
            _ => format!("expected a path that begins with a slash: \"/{text}\""),
        });
    };
    if !path.starts_with('/') {
        return Err(format!(
            "expected a method, one space and a path that begins with a slash, such as \"POST /login\", not {text:?}"
        ));
    }
    let parsed = Method::from_bytes(method.as_bytes());
    let parsed = parsed
        .map_err(|_| format!("expected a method before the space, such as POST, not {method:?}"))?;
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let upper = method.to_ascii_uppercase();
        return Err(format!("expected a method in upper case: \"{upper} {path}\""));
    }
    Ok((Some(parsed), path))
}

pub(super) fn segments(path: &str) -> Result<Box<[Segment]>, String> {
    if path.contains(['?', '#']) {
        return Err(format!("expected a path without query or fragment, not {path:?}"));
    }
    if path.contains(|char: char| char.is_whitespace() || char.is_control()) {
        return Err(format!("expected a path without spaces (%20 is one), not {path:?}"));
    }
    let texts: Vec<&str> = segments_of(path).into_iter().flatten().collect();
    if texts.len() > PATTERN_SEGMENTS_MAX {
        return Err(format!(
            "expected at most {PATTERN_SEGMENTS_MAX} segments, not {}",
            texts.len()
        ));
    }
    if texts.iter().any(|text| text.is_empty() || is_dots(&normal_octets(text))) {
        let plain = plain(&texts);
        return Err(format!("expected no empty segments and no dot segments: {plain:?}"));
    }
    let mut segments = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let segment = segment(text)?;
        if matches!(segment, Segment::Rest(_)) && index + 1 < texts.len() {
            return Err(format!("expected {text} as the last segment, not before others"));
        }
        if let Some(name) = segment.name()
            && segments.iter().any(|earlier: &Segment| earlier.name() == Some(name))
        {
            return Err(format!("expected each name once, not {{{name}}} twice"));
        }
        segments.push(segment);
    }
    Ok(segments.into())
}

/// The path without its empty and its dot segments, to propose it.
fn plain(segments: &[&str]) -> String {
    let mut plain = Vec::new();
    for segment in segments {
        match &*normal_octets(segment) {
            "" | "." => {}
            ".." => drop(plain.pop()),
            _ => plain.push(*segment),
        }
    }
    format!("/{}", plain.join("/"))
}

fn segment(text: &str) -> Result<Segment, String> {
    if let Some(name) = text.strip_prefix('*') {
        let name = if name.is_empty() { "rest" } else { name };
        return Err(format!(
            "expected {{*{name}}} for all that follows, or {{name}} for one segment, not {text:?}"
        ));
    }
    if let Some(name) = text.strip_prefix(':') {
        return Err(format!("expected {{{name}}}, not {text:?}"));
    }
    if !text.starts_with('{') || text.starts_with("{{") {
        return literal(text).map(Segment::Literal);
    }
    let Some(inner) = text[1..].strip_suffix('}') else { return Err(partial(text)) };
    if let Some(name) = inner.strip_suffix('*').filter(|name| is_name(name)) {
        return Err(format!("expected {{*{name}}}, not {text:?}"));
    }
    let (rest, name) = inner.strip_prefix('*').map_or((false, inner), |name| (true, name));
    if name.is_empty() {
        let proposal = if rest { "{*rest}" } else { "{id}" };
        return Err(format!(
            "expected a name between the braces, such as {proposal}, not {text:?}"
        ));
    }
    if name.contains(['{', '}']) {
        return Err(partial(text));
    }
    if !is_name(name) {
        return Err(format!(
            "expected a name of letters, digits, _, - and . between the braces, not {text:?}"
        ));
    }
    Ok(if rest { Segment::Rest(name.into()) } else { Segment::Param(name.into()) })
}

/// A literal's text, `{{` and `}}` read as single braces.
fn literal(text: &str) -> Result<Box<str>, String> {
    let mut literal = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if matches!(char, '{' | '}') && chars.next() != Some(char) {
            return Err(partial(text));
        }
        literal.push(char);
    }
    Ok(literal.into())
}

fn partial(text: &str) -> String {
    format!(
        "expected {{name}} as a whole segment ({{{{ and }}}} are braces that stand for themselves), not {text:?}"
    )
}

/// Names are part of printed keys (`param:id=7`), so they hold none of their separators.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use crate::Pattern;

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let error = Pattern::read(text).expect_err(text);
        assert!(error.starts_with("expected "), "{text}: {error}");
        assert!(error.contains(expected), "{text}: {error:?} says nothing of {expected:?}");
    }

    #[test]
    fn errors_propose_what_was_meant() {
        check_error("", "\"/login\"");
        check_error("login", "\"/login\"");
        check_error("*", "\"/{*rest}\"");
        check_error("POST login", "begins with a slash");
        check_error("post /x", "\"POST /x\"");
        check_error("Post /x", "\"POST /x\"");
        check_error("PO(ST /x", "a method");
        check_error("POST  /x", "one space");
        check_error(" /x", "a method");
        check_error("/x y", "%20");
        check_error("/x\ty", "without spaces");
        check_error("GET /x ", "without spaces");
        check_error("/x?a=b", "without query");
        check_error("/x#a", "fragment");
        check_error("/static/*", "{*rest}");
        check_error("/static/*path", "{*path}");
        check_error("/*/x", "{name}");
        check_error("/users/:id", "{id}");
        check_error("/static/{rest*}", "{*rest}");
        check_error("/{*rest}/x", "last");
        check_error("/a/{x}.png", "whole segment");
        check_error("/a/x{y}", "whole segment");
        check_error("/a/{x", "whole segment");
        check_error("/a/x}", "whole segment");
        check_error("/a/{x}}", "whole segment");
        check_error("/a/{x}{y}", "whole segment");
        check_error("/a/{}", "a name");
        check_error("/a/{*}", "{*rest}");
        check_error("/a/{x,y}", "letters");
        check_error("/{x}/{x}", "once");
        check_error("/{x}/{*x}", "once");
        check_error("//a", "\"/a\"");
        check_error("/a//{b}/", "\"/a/{b}\"");
        check_error("/a/./{b}", "\"/a/{b}\"");
        check_error("/a/../{b}", "\"/{b}\"");
        check_error("/a/%2e%2E/b", "\"/b\"");
        check_error("//", "\"/\"");
        check_error(&"/a".repeat(65), "at most 64 segments");
    }
}
