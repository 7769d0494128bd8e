//! Values that many jobs have in common, such as an owner, kept once in memory.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A text that several owners share. Each of them stores a single pointer, as there may be very many.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedText(Arc<Box<str>>);

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

impl<T: Into<Box<str>>> From<T> for SharedText {
    fn from(text: T) -> SharedText {
        SharedText(Arc::new(text.into()))
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

/// Stands for a number in the words of a [`NumberedText`].
const NUMBER_MARK: char = '\0';

/// A text whose numbers are stored apart from its words, so that texts that differ only in numbers
/// can share their words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedText {
    /// The text, with a [`NUMBER_MARK`] in the place of each number.
    words: SharedText,
    /// The numbers, in order and separated by blanks; absent if the words are the whole text.
    numbers: Option<Box<str>>,
}

impl NumberedText {
    fn new(text: &str, share: impl FnOnce(&str) -> SharedText) -> NumberedText {
        let is_digit = |c: char| c.is_ascii_digit();
        if text.contains(NUMBER_MARK) || !text.contains(is_digit) {
            return NumberedText {
                words: share(text),
                numbers: None,
            };
        }
        let mut words = String::with_capacity(text.len());
        let mut numbers = String::new();
        let mut rest = text;
        while let Some(begin) = rest.find(is_digit) {
            let number = &rest[begin..];
            let end = number.find(|c| !is_digit(c)).unwrap_or(number.len());
            words.push_str(&rest[..begin]);
            words.push(NUMBER_MARK);
            if !numbers.is_empty() {
                numbers.push(' ');
            }
            numbers.push_str(&number[..end]);
            rest = &number[end..];
        }
        words.push_str(rest);
        NumberedText {
            words: share(&words),
            numbers: Some(numbers.into()),
        }
    }
}

impl From<&str> for NumberedText {
    fn from(text: &str) -> NumberedText {
        NumberedText::new(text, |words| SharedText::from(words))
    }
}

impl fmt::Display for NumberedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(numbers) = &self.numbers else {
            return f.write_str(&self.words);
        };
        let mut numbers = numbers.split(' ');
        for (at, words) in self.words.split(NUMBER_MARK).enumerate() {
            if at > 0 {
                f.write_str(numbers.next().unwrap_or_default())?;
            }
            f.write_str(words)?;
        }
        Ok(())
    }
}

impl Serialize for NumberedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The values that were shared so far. Equal values are one.
#[derive(Debug)]
pub struct SharedValues<T>(HashSet<Arc<T>>);

impl<T> Default for SharedValues<T> {
    fn default() -> SharedValues<T> {
        SharedValues(HashSet::new())
    }
}

impl<T: Eq + Hash> SharedValues<T> {
    /// Returns `value`, or the equal value that was shared before.
    pub fn share(&mut self, value: T) -> Arc<T> {
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
pub struct SharedTexts(HashSet<SharedText>);

impl SharedTexts {
    /// Returns `text`, or the equal text that was shared before.
    pub fn share(&mut self, text: &str) -> SharedText {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let shared = SharedText::from(text);
        self.0.insert(shared.clone());
        shared
    }

    /// Returns `text`, whose words are shared.
    pub fn share_numbered(&mut self, text: &str) -> NumberedText {
        NumberedText::new(text, |words| self.share(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_that_differ_in_numbers_share_their_words() {
        let mut texts = SharedTexts::default();
        let [a, b] =
            ["slot1_2@host17: 404", "slot1_10@host8: 404"].map(|text| texts.share_numbered(text));
        assert!(Arc::ptr_eq(&a.words.0, &b.words.0));
        assert_eq!(b.to_string(), "slot1_10@host8: 404");
    }

    proptest! {
        #[test]
        fn texts_are_kept(text in "[a-c0-3 \\x00]{0,20}") {
            prop_assert_eq!(NumberedText::from(text.as_str()).to_string(), text);
        }
    }
}
