//! Durations and rates as the rule file writes them.
