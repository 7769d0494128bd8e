//! The type and range of a hyper-parameter, and the check of its values.

use std::ops::RangeInclusive;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::nearest::nearest;

/// The type and range of a hyper-parameter.
#[derive(Debug, Clone, Copy)]
pub enum ParameterRange {
    /// A number, both bounds included.
    Real(f64, f64),
    /// An integer, both bounds included.
    Whole(u32, u32),
    /// An integer, both bounds included, or `auto` until it is derived from the log. A trial has
    /// the integer.
    WholeOrAuto(u32, u32),
    /// An integer, or null for no limit. If 0 is in the range, it means null.
    Limit(u32, u32),
    /// True or false.
    Flag,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// One of the words of an enum, which describes each of them.
    Choice(fn() -> Vec<PossibleValue>),
    /// One of a few words, or a number.
    WordOr(&'static [&'static str], f64, f64),
    /// One of a few words, a whole number up to the maximum, or a share from 0.001 to 1.0. `1` is a
    /// whole number, and `1.0` is a share.
    CountOr(&'static [&'static str], u32),
    /// A list of integers. A single integer is a list of one.
    Sizes(u32, u32),
    /// A value that some other type can be deserialized from, such as the words of an enum.
    Typed(fn(&Value) -> Result<(), serde_json::Error>),
}

/// The word for a value that is derived from the log before any trial is created.
pub(super) const AUTO: &str = "auto";

/// Rejects a value that cannot be deserialized as `T`.
///
/// # Errors
/// The error describes the expected form of a `T`.
pub(super) fn check_as<T: DeserializeOwned>(value: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(value).map(drop)
}

/// Returns the words of `T`, with their descriptions.
pub(super) fn choices<T: ValueEnum>() -> Vec<PossibleValue> {
    let words = T::value_variants().iter();
    words.filter_map(ValueEnum::to_possible_value).collect()
}

impl ParameterRange {
    /// Returns the value if it is in range, in its normal form. Whole numbers become integers,
    /// because a distribution may give 100 as 100.0.
    pub fn accept(self, value: &Value) -> Option<Value> {
        match self {
            ParameterRange::Real(min, max) => accept_real(value, min, max),
            ParameterRange::Whole(min, max) | ParameterRange::WholeOrAuto(min, max) => {
                accept_whole(value, min, max)
            }
            ParameterRange::Limit(min, max) => accept_limit(value, min, max),
            ParameterRange::Flag => value.is_boolean().then(|| value.clone()),
            ParameterRange::Word(choices) => accept_word(value, choices),
            ParameterRange::Choice(choices) => accept_word(value, &names(&choices())),
            ParameterRange::WordOr(choices, min, max) => {
                accept_word(value, choices).or_else(|| accept_real(value, min, max))
            }
            ParameterRange::CountOr(choices, max) => {
                let number = match value.is_f64() {
                    true => accept_real(value, 0.001, 1.0),
                    false => accept_whole(value, 1, max),
                };
                number.or_else(|| accept_word(value, choices))
            }
            ParameterRange::Sizes(min, max) => accept_sizes(value, min, max),
            ParameterRange::Typed(check) => check(value).is_ok().then(|| value.clone()),
        }
    }

    /// Returns the bounds, both included, if all values are numbers; else `None`.
    pub(super) fn bounds(self) -> Option<RangeInclusive<f64>> {
        match self {
            ParameterRange::Real(min, max) => Some(min..=max),
            ParameterRange::Whole(min, max) | ParameterRange::WholeOrAuto(min, max) => {
                Some(f64::from(min)..=f64::from(max))
            }
            _ => None,
        }
    }

    /// Returns true if `value` is still to be derived from the log.
    pub(super) fn is_open(self, value: &Value) -> bool {
        matches!(self, ParameterRange::WholeOrAuto(..)) && value == AUTO
    }

    /// Rejects a value of the wrong type. For plain numbers, the range is not checked.
    ///
    /// # Errors
    /// The error describes the expected type.
    pub(super) fn check_kind(self, value: &Value) -> Result<(), String> {
        match self {
            _ if self.is_open(value) => Ok(()),
            ParameterRange::Real(..)
            | ParameterRange::Whole(..)
            | ParameterRange::WholeOrAuto(..) => {
                // Use a word that users know.
                check_as::<f64>(value).map_err(|error| {
                    error
                        .to_string()
                        .replace("expected f64", "expected a number")
                })
            }
            ParameterRange::Typed(check) => check(value).map_err(|error| error.to_string()),
            _ => match self.accept(value) {
                Some(_) => Ok(()),
                None => {
                    let suggestion = self.suggestion(value);
                    let expected = self.describe();
                    Err(format!("expected {expected}, got {value}{suggestion}"))
                }
            },
        }
    }

    /// Returns the end of a message, with the known word that `value` probably means.
    fn suggestion(self, value: &Value) -> String {
        let (ParameterRange::Choice(choices), Some(word)) = (self, value.as_str()) else {
            return String::new();
        };
        let nearest = nearest(word, names(&choices()).into_iter()).map(str::to_owned);
        nearest.map_or(String::new(), |word| format!("; did you mean `{word}`?"))
    }

    /// Describes the range in words, for a message.
    pub fn describe(self) -> String {
        match self {
            ParameterRange::Real(min, max) => format!("a number from {min} to {max}"),
            ParameterRange::Whole(min, max) => {
                format!("a whole number from {min} to {max}")
            }
            ParameterRange::Limit(0, max) => {
                format!("a whole number from 1 to {max}, or null or 0 for no limit")
            }
            ParameterRange::Limit(min, max) => {
                format!("a whole number from {min} to {max}, or null for no limit")
            }
            ParameterRange::WholeOrAuto(min, max) => format!(
                "a whole number from {min} to {max}, or `{AUTO}` in `run`, `sweep init` and `tensors`"
            ),
            ParameterRange::Flag => "true or false".to_owned(),
            ParameterRange::Word(choices) => format!("one of {}", quote_words(choices)),
            ParameterRange::Choice(choices) => {
                format!("one of {}", quote_words(&names(&choices())))
            }
            ParameterRange::WordOr(choices, min, max) => {
                format!("{} or a number from {min} to {max}", quote_words(choices))
            }
            ParameterRange::CountOr(choices, max) => format!(
                "{}, a whole number from 1 to {max}, or a share up to 1.0",
                quote_words(choices)
            ),
            ParameterRange::Sizes(min, max) => {
                format!("a list of 1 to 8 whole numbers from {min} to {max}")
            }
            ParameterRange::Typed(_) => "a value that `poolcast config` explains".to_owned(),
        }
    }
}

fn accept_real(value: &Value, min: f64, max: f64) -> Option<Value> {
    let real = value.as_f64()?;
    (min..=max).contains(&real).then(|| Value::from(real))
}

fn accept_whole(value: &Value, min: u32, max: u32) -> Option<Value> {
    let real = value.as_f64().filter(|real| real.fract() == 0.0)?;
    (f64::from(min)..=f64::from(max))
        .contains(&real)
        .then(|| Value::from(real as u64))
}

fn accept_limit(value: &Value, min: u32, max: u32) -> Option<Value> {
    let is_none = value.is_null() || min == 0 && value.as_f64() == Some(0.0);
    if is_none {
        Some(Value::Null)
    } else {
        accept_whole(value, min, max)
    }
}

fn accept_word(value: &Value, choices: &[&str]) -> Option<Value> {
    let word = value.as_str()?;
    choices.contains(&word).then(|| value.clone())
}

fn names(choices: &[PossibleValue]) -> Vec<&str> {
    choices.iter().map(PossibleValue::get_name).collect()
}

fn accept_sizes(value: &Value, min: u32, max: u32) -> Option<Value> {
    let one = std::slice::from_ref(value);
    let sizes = value
        .as_array()
        .map_or(one, Vec::as_slice)
        .iter()
        .map(|size| accept_whole(size, min, max))
        .collect::<Option<Vec<Value>>>()?;
    (1..=8)
        .contains(&sizes.len())
        .then_some(Value::Array(sizes))
}

/// Quotes words for a message and joins them with commas.
pub fn quote_words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
