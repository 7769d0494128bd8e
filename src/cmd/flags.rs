//! Flags that override keys of the configuration.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// The flags that were given, by the configuration key that each one overrides.
pub(super) fn flags<const N: usize>(
    all: [(&'static str, Option<Value>); N],
) -> BTreeMap<&'static str, Value> {
    all.into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

/// The value of a flag, for [`flags`].
pub(super) fn flag(value: &Option<impl Serialize>) -> Option<Value> {
    value.as_ref().map(|value| serde_json::json!(value))
}
