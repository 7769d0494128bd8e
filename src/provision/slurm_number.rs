//! Numbers and words in the JSON of Slurm's programs: plain ones as up to 22.05, and as later ones
//! write them.

use serde::Deserialize;

/// A number that may be none, or without bound: 60, null, or
/// `{"set": true, "infinite": false, "number": 60}`.
#[derive(Debug, Default, Deserialize)]
#[serde(
    untagged,
    expecting = "a number, null, or an object with `set`, `infinite` and `number`"
)]
pub(in crate) enum SlurmNumber {
    Plain(i64),
    Wrapped {
        set: bool,
        infinite: bool,
        number: f64,
    },
    #[default]
    Missing,
}

impl SlurmNumber {
    /// The number, if there is one.
    pub(in crate) fn known(&self) -> Option<i64> {
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

    /// The number of what is not there if it is 0.
    pub(in crate) fn positive(&self) -> Option<i64> {
        self.known().filter(|number| *number > 0)
    }

    /// A limit in minutes; the largest numbers of 32 bits are Slurm's words for none.
    pub(in crate) fn minutes(&self) -> Option<i64> {
        self.known()
            .filter(|minutes| *minutes < i64::from(u32::MAX - 1))
    }
}

/// One word of older Slurms, several of newer ones.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a word, or a list of words")]
pub(in crate) enum SlurmWords {
    One(String),
    Several(Vec<String>),
}

impl SlurmWords {
    /// All of them.
    pub(in crate) fn all(&self) -> &[String] {
        match self {
            SlurmWords::One(word) => std::slice::from_ref(word),
            SlurmWords::Several(words) => words,
        }
    }
}
