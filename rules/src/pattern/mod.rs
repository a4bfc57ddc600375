//! One pattern of `match`, `except` or `[exempt]`.

mod read;

use std::fmt;

use http::Method;

use crate::{RequestPath, path::normal_octets};

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
        let (method, path) = read::method(text)?;
        let written = read::segments(path)?;
        let normal: Box<[Segment]> = written.iter().map(Segment::normalised).collect();
        let normal = (normal != written).then_some(normal);
        Ok(Pattern { method, path: path.into(), written, normal })
    }

    /// The method, if the pattern names one.
    #[must_use]
    pub fn method(&self) -> Option<&Method> {
        self.method.as_ref()
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

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.method {
            Some(method) => write!(f, "{method} {}", self.path),
            None => f.write_str(&self.path),
        }
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
#[inline(never)]
pub(crate) fn covers_method(own: &Method, request: Option<&Method>) -> bool {
    request.is_some_and(|request| own == request || (own == Method::GET && request == Method::HEAD))
}

/// The segments of one form of a path, without one trailing slash; `None` where it is no path.
fn segments_of(form: &str) -> Option<impl Iterator<Item = &str>> {
    let rest = form.strip_prefix('/')?;
    let segments = (!rest.is_empty()).then(|| rest.strip_suffix('/').unwrap_or(rest).split('/'));
    Some(segments.into_iter().flatten())
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
}
