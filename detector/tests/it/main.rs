//! The engine against the rule file's meaning, through its public face only.

mod cases;
mod harness;
mod oracle;
mod parallel;
