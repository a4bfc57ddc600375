//! Lines of access logs in the Common and the Combined format, as Apache and nginx write them.
//!
//! `host ident user [day/Mon/year:h:m:s ±zone] "request" status bytes`, and in the Combined format
//! `"referer" "user-agent"` after it; whatever follows is ignored. Lines are bytes: nothing is
//! assumed to be UTF-8.

mod date;
mod field;
mod line;
mod request;
#[cfg(test)]
mod tests;

pub use line::{Agent, Line, Unparsed};
pub use request::RequestLine;
