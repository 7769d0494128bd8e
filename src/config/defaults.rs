//! The default configuration: every key with its default.

/// Default configuration in YAML. It contains every key, with comments.
pub const DEFAULT: &str = include_str!("../../config/default.yaml");
