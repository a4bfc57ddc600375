//! Load and figures: what the `load-tests` binary runs.
//!
//! [`play`] sends a real access log to a server.

pub mod play;
