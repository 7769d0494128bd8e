//! Values that many jobs have in common, such as an owner, kept once in memory.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A text that several owners share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedText(Arc<str>);

impl SharedText {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SharedText {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for SharedText {
    fn from(text: T) -> SharedText {
        SharedText(text.into())
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The values that were shared so far. Equal values are one.
#[derive(Debug)]
pub(super) struct SharedValues<T>(HashSet<Arc<T>>);

impl<T: Eq + Hash> SharedValues<T> {
    pub(super) fn new() -> SharedValues<T> {
        SharedValues(HashSet::new())
    }

    /// Returns `value`, or the equal value that was shared before.
    pub(super) fn share(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.0.get(&value) {
            return Arc::clone(known);
        }
        let shared = Arc::new(value);
        self.0.insert(Arc::clone(&shared));
        shared
    }
}

/// The texts that were shared so far. Equal texts are one.
#[derive(Debug, Default)]
pub(super) struct SharedTexts(HashSet<SharedText>);

impl SharedTexts {
    /// Returns `text`, or the equal text that was shared before.
    pub(super) fn share(&mut self, text: &str) -> SharedText {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let shared = SharedText::from(text);
        self.0.insert(shared.clone());
        shared
    }
}
