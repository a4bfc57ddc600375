//! One pattern of `match`, `except` or `[exempt]`.

use http::Method;

use crate::{
    RequestPath,
    path::{is_dots, normal_octets},
};

/// Segments a pattern can have; more is an error. It bounds how deep a match can go, far beyond what
/// any router holds.
const PATTERN_SEGMENTS_MAX: usize = 64;

/// `POST /login`, `/products/{id}`, `/static/{*rest}`: an optional method and a path of whole
/// segments, as axum's router takes them.
///
/// Unlike there, `{*rest}` also covers its bare prefix, and one trailing slash means nothing, in the
/// pattern and in the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub(crate) method: Option<Method>,
    pub(crate) path: Box<str>,
    written: Box<[Segment]>,
    /// The same segments with their literals normalised; only where that differs.
    normal: Option<Box<[Segment]>>,
}

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// Exactly this text.
    Literal(Box<str>),
    /// `{name}`: any one segment; even an empty one, which a router takes where more follows.
    Param(Box<str>),
    /// `{*name}`, last: all that follows, or nothing.
    Rest(Box<str>),
}

impl Pattern {
    /// Reads a pattern as it is written in a rule file; the error says what was expected.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (method, path) = read_method(text)?;
        let written = read_path(path)?;
        let normal: Box<[Segment]> = written.iter().map(Segment::normalised).collect();
        let normal = (normal != written).then_some(normal);
        Ok(Pattern { method, path: path.into(), written, normal })
    }

    /// The path as the rule file writes it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the method and the raw or the normalised path match.
    #[must_use]
    pub fn matches(&self, method: Option<&Method>, path: &RequestPath<'_>) -> bool {
        self.method.as_ref().is_none_or(|own| covers_method(own, method))
            && (self.covers(path.raw()) || (!path.is_normal() && self.covers(path.normal())))
    }

    /// Whether the pattern captures `{name}` or `{*name}`.
    #[must_use]
    pub fn has_param(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// What `{name}` stands for, still percent-encoded: of the raw path where that matches, else of
    /// the normalised one.
    #[must_use]
    pub fn param<'p>(&self, name: &str, path: &'p RequestPath<'_>) -> Option<&'p str> {
        let position = self.position(name)?;
        let form = [path.raw(), path.normal()].into_iter().find(|form| self.covers(form))?;
        let mut rest = form.strip_prefix('/')?;
        for _ in 0..position {
            rest = rest.split_once('/').map_or("", |(_, rest)| rest);
        }
        match self.written[position] {
            Segment::Rest(_) => Some(rest),
            _ => rest.split('/').next(),
        }
    }

    /// Whether this form of a path matches one of the pattern's spellings.
    pub(crate) fn covers(&self, form: &str) -> bool {
        self.spellings().any(|spelling| fits(spelling, form))
    }

    /// The pattern's segments as written and, where that differs, normalised.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = &[Segment]> {
        std::iter::once(&*self.written).chain(self.normal.as_deref())
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.written.iter().position(|segment| segment.name() == Some(name))
    }
}

impl Segment {
    fn name(&self) -> Option<&str> {
        match self {
            Segment::Literal(_) => None,
            Segment::Param(name) | Segment::Rest(name) => Some(name),
        }
    }

    fn normalised(&self) -> Segment {
        match self {
            Segment::Literal(text) => Segment::Literal(normal_octets(text).into()),
            other => other.clone(),
        }
    }
}

/// Whether a pattern's method covers a request's: the same one, or GET for HEAD, which routers
/// answer by their GET handlers. A method that is not known is covered by none.
pub(crate) fn covers_method(own: &Method, request: Option<&Method>) -> bool {
    request.is_some_and(|request| own == request || (own == Method::GET && request == Method::HEAD))
}

/// The segments of one form of a path; `None` where it is no path.
///
/// One trailing slash is dropped, but never a segment before it: a router takes `//` for `/{x}/`
/// with an empty `x`.
pub(crate) fn segments_of(form: &str) -> Option<Segments<'_>> {
    let rest = form.strip_prefix('/')?;
    Some(Segments((!rest.is_empty()).then(|| rest.strip_suffix('/').unwrap_or(rest))))
}

/// The segments of a path that are still to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments<'a>(Option<&'a str>);

impl<'a> Iterator for Segments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0?;
        // By octets: paths are short, and so is this, against a search set up for long texts.
        let Some(slash) = rest.bytes().position(|octet| octet == b'/') else {
            return self.0.take();
        };
        self.0 = Some(&rest[slash + 1..]);
        Some(&rest[..slash])
    }
}

fn fits(pattern: &[Segment], form: &str) -> bool {
    let Some(mut segments) = segments_of(form) else { return false };
    for own in pattern {
        let fits = match own {
            Segment::Rest(_) => return true,
            Segment::Param(_) => segments.next().is_some(),
            Segment::Literal(text) => segments.next() == Some(&**text),
        };
        if !fits {
            return false;
        }
    }
    segments.next().is_none()
}

fn read_method(text: &str) -> Result<(Option<Method>, &str), String> {
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

fn read_path(path: &str) -> Result<Box<[Segment]>, String> {
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
        let segment = read_segment(text)?;
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

fn read_segment(text: &str) -> Result<Segment, String> {
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
        return read_literal(text).map(Segment::Literal);
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
fn read_literal(text: &str) -> Result<Box<str>, String> {
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
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::read(text).unwrap()
    }

    #[track_caller]
    fn check(text: &str, path: &str, expected: bool) {
        let found = pattern(text).matches(Some(&Method::GET), &RequestPath::new(path));
        assert_eq!(found, expected, "{text} and {path}");
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let error = Pattern::read(text).expect_err(text);
        assert!(error.starts_with("expected "), "{text}: {error}");
        assert!(error.contains(expected), "{text}: {error:?} says nothing of {expected:?}");
    }

    #[test]
    fn segments_match_whole() {
        check("/", "/", true);
        check("/", "/a", false);
        check("/login", "/login", true);
        check("/login", "/loginx", false);
        check("/login", "/Login", false); // C17
        check("/login", "/login/x", false);
        check("/products/{id}", "/products/7", true);
        check("/products/{id}", "/products", false);
        check("/products/{id}", "/products/", false);
        check("/products/{id}", "/products/7/x", false);
        check("/a/{x}/b/{y}", "/a/1/b/2", true);
        check("/a/{x}/b/{y}", "/a/1/c/2", false);
        check("/auth.Auth/Login", "/auth.Auth/Login", true);
    }

    #[test]
    fn a_catch_all_covers_its_bare_prefix_too() {
        for path in ["/static", "/static/", "/static/a", "/static/a/b/", "/static//a"] {
            check("/static/{*rest}", path, true);
        }
        check("/static/{*rest}", "/statics", false);
        check("/{*rest}", "/", true);
        check("/{*rest}", "/a/b", true);
    }

    // C16
    #[test]
    fn one_trailing_slash_means_nothing_on_either_side() {
        for text in ["/api/register", "/api/register/"] {
            check(text, "/api/register", true);
            check(text, "/api/register/", true);
        }
    }

    // C18
    #[test]
    fn the_normalised_path_matches_as_well() {
        check("/api/login", "/%61pi/login", true);
        check("/api/login", "/api/%2e%2e/api/login", true);
        check("/api/login", "//api///login", true);
        check("/api/login", "/api/%2Flogin", false);
        check("/api/{x}", "/api/%2Flogin", true);
        check("/api/..%2Flogin", "/api/..%2flogin", true);
        check("/login", "/a/../login", true);
        check("/a/{x}/login", "/a/../login", true);
    }

    #[test]
    fn a_literal_matches_as_written_and_as_it_normalises() {
        for text in ["/café", "/caf%C3%A9", "/caf%c3%a9", "/c%61fé"] {
            check(text, "/caf%C3%A9", true);
            check(text, "/caf%c3%a9", true);
            check(text, "/café", true);
        }
        check("/%61", "/a", true);
        check("/%61", "/%61", true);
        check("/a", "/%61", true);
        check("/{{x}}", "/{x}", true);
        check("/{{x}}", "/%7Bx%7D", true);
        check("/{{x}}", "/7", false);
        check("/{{}}a", "/{}a", true);
    }

    #[test]
    fn what_is_no_path_matches_no_pattern() {
        for path in ["", "*", "example.com:443"] {
            check("/", path, false);
            check("/{*rest}", path, false);
            check("/{x}", path, false);
        }
    }

    #[test]
    fn get_covers_head_and_nothing_else_covers_another() {
        let path = RequestPath::new("/x");
        let matches = |text, method: Option<&Method>| pattern(text).matches(method, &path);
        assert!(matches("GET /x", Some(&Method::GET)));
        assert!(matches("GET /x", Some(&Method::HEAD)));
        assert!(!matches("HEAD /x", Some(&Method::GET)));
        assert!(!matches("POST /x", Some(&Method::GET)));
        assert!(matches("PURGE /x", Some(&Method::from_bytes(b"PURGE").unwrap())));
        assert!(matches("/x", None));
        assert!(!matches("GET /x", None), "a method that is not known is covered by none");
    }

    #[test]
    fn a_parameter_is_taken_as_it_came() {
        let param = |text: &str, name: &str, path: &str| {
            pattern(text).param(name, &RequestPath::new(path)).map(str::to_owned)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(param("/p/{id}", "id", "/p/7"), some("7"));
        assert_eq!(param("/p/{id}", "id", "/p/%61%2f/"), some("%61%2f"));
        assert_eq!(param("/p/{id}", "id", "/x/../p/%61"), some("a"), "of the normalised path");
        assert_eq!(param("/p/{id}", "id", "/p/.."), some(".."), "the raw path goes first");
        assert_eq!(param("/p/{id}", "other", "/p/7"), None);
        assert_eq!(param("/p/{id}", "id", "/q/7"), None);
        assert_eq!(param("/a/{x}/b/{y}", "y", "/a/1/b/2"), some("2"));
        assert_eq!(param("/a/{x}/b/{y}", "x", "/a//b/2"), some(""), "as a router takes it");
        assert_eq!(param("/s/{*rest}", "rest", "/s/a/b/"), some("a/b/"));
        assert_eq!(param("/s/{*rest}", "rest", "/s//a"), some("/a"));
        assert_eq!(param("/s/{*rest}", "rest", "/s"), some(""));
        assert_eq!(param("/s/{*rest}", "rest", "/s/"), some(""));
        assert_eq!(param("/{*rest}", "rest", "/a/b"), some("a/b"));
        assert!(pattern("/a/{x}/{*y}").has_param("x") && pattern("/a/{x}/{*y}").has_param("y"));
        assert!(!pattern("/x").has_param("x"));
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
