//! A request's path, as it came and normalised.

/// The path of a request target, in the two forms that rules are matched against.
#[derive(Clone, Debug)]
pub struct RequestPath<'a> {
    raw: &'a str,
    /// Only where it differs from `raw`.
    normal: Option<String>,
}

impl<'a> RequestPath<'a> {
    /// Normalises `raw` (RFC 3986, 6.2.2, and empty segments merged); allocates only where that changes it. `""` is "no path".
    #[must_use]
    pub fn new(raw: &'a str) -> Self {
        let _ = raw;
        todo!()
    }

    /// The path as it came.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The normalised path.
    #[must_use]
    pub fn normal(&self) -> &str {
        self.normal.as_deref().unwrap_or(self.raw)
    }

    /// The normalised path without one trailing slash (`/` stays).
    #[must_use]
    pub fn normal_trimmed(&self) -> &str {
        todo!()
    }

    /// Whether normalising changed the path.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        self.normal.is_none()
    }
}
