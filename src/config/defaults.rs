//! Every key with its default.

/// The defaults, commented; every key there is.
pub const DEFAULT: &str = include_str!("../../config/default.yaml");
