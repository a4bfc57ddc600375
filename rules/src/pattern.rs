//! One pattern of `match`, `except` or `[exempt]`.

use std::fmt;

use http::Method;

use crate::RequestPath;

/// `POST /login`, `/products/{id}`, `/static/{*rest}`: an optional method and a path of whole segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub(crate) method: Option<Method>,
    pub(crate) path: Box<str>,
}

impl Pattern {
    /// Reads a pattern as it is written in a rule file; the error says what was expected.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let _ = text;
        todo!()
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
        let _ = (method, path);
        todo!()
    }

    /// Whether the pattern captures `{name}` or `{*name}`.
    #[must_use]
    pub fn has_param(&self, name: &str) -> bool {
        let _ = name;
        todo!()
    }

    /// What `{name}` stands for, still percent-encoded: of the raw path where that matches, else of
    /// the normalised one.
    #[must_use]
    pub fn param<'p>(&self, name: &str, path: &'p RequestPath<'_>) -> Option<&'p str> {
        let _ = (name, path);
        todo!()
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
