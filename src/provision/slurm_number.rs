//! Numbers and words in the JSON output of Slurm's programs. Slurm up to 22.05 writes plain values,
//! later versions write objects and lists.

use anyhow::{Result, bail};
use serde::Deserialize;

/// A number that may be missing or unlimited, such as 60, null, or
/// `{"set": true, "infinite": false, "number": 60}`.
#[derive(Debug, Default, Deserialize)]
#[serde(
    untagged,
    expecting = "a number, null, or an object with `set`, `infinite` and `number`"
)]
pub enum SlurmNumber {
    /// A plain number.
    Plain(i64),
    /// An object of later versions.
    Wrapped {
        /// False if the number is missing.
        set: bool,
        /// True if it is unlimited.
        infinite: bool,
        /// Its value, otherwise.
        number: f64,
    },
    #[default]
    /// `null`, or no field at all.
    Missing,
}

impl SlurmNumber {
    /// Returns the number, or `None` if it is missing or unlimited.
    pub fn known(&self) -> Option<i64> {
        match *self {
            SlurmNumber::Plain(number) => Some(number),
            SlurmNumber::Wrapped {
                set: true,
                infinite: false,
                number,
            } => Some(number as i64),
            SlurmNumber::Wrapped { .. } | SlurmNumber::Missing => None,
        }
    }

    /// Returns the number if it is above 0, for fields in which 0 means missing, as do the two largest
    /// 32-bit numbers.
    pub fn positive(&self) -> Option<i64> {
        let unset = [u32::MAX - 1, u32::MAX].map(i64::from);
        self.known()
            .filter(|number| *number > 0 && !unset.contains(number))
    }

    /// Returns a limit in minutes. `None` means no limit, for which Slurm also writes the largest
    /// 32-bit numbers.
    pub fn minutes(&self) -> Option<i64> {
        self.known()
            .filter(|minutes| *minutes < i64::from(u32::MAX - 1))
    }
}

/// One word (older Slurm versions) or several words (newer versions).
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a word, or a list of words")]
pub enum SlurmWords {
    /// A word, of older versions.
    One(String),
    /// A list of words, of newer versions.
    Several(Vec<String>),
}

impl SlurmWords {
    /// Returns all words.
    pub fn all(&self) -> &[String] {
        match self {
            SlurmWords::One(word) => std::slice::from_ref(word),
            SlurmWords::Several(words) => words,
        }
    }
}

/// An entry of the list `errors` in Slurm's JSON. An answer with errors may lack jobs or nodes.
#[derive(Debug, Deserialize)]
pub struct SlurmError {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

/// Fails if Slurm has reported `errors`; the message has the first one.
pub fn reject_errors(program: &str, errors: &[SlurmError]) -> Result<()> {
    let Some(first) = errors.first() else {
        return Ok(());
    };
    let texts = [&first.error, &first.description];
    let mut texts = texts.into_iter().flatten().filter(|text| !text.is_empty());
    let text = texts.next().map_or("no description", String::as_str);
    bail!("`{program}` reports an error: {text}")
}
