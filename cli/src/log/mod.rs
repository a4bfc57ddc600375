//! Lines of access logs in the Common and the Combined format, as Apache and nginx write them.
//!
//! `host ident user [day/Mon/year:h:m:s ±zone] "request" status bytes`, and in the Combined format
//! `"referer" "user-agent"` after it; whatever follows is ignored. Lines are bytes: nothing is
//! assumed to be UTF-8. A [`Source`] is one log file, a [`Sorter`] puts the lines of several in order.

mod date;
mod field;
mod line;
mod order;
mod request;
mod source;
#[cfg(test)]
mod tests;

pub use field::field_value;
pub use line::{Agent, Line, Unparsed};
pub use order::{Entry, RUN_LINES, Sorted, Sorter};
pub use request::RequestLine;
pub(crate) use source::LINE_BYTES_MAX;
pub use source::{Place, Source};
