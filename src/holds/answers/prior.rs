//! The prior: rows of other access points, which ship with the program and stand beside the rows of
//! the local log.
//!
//! `ci/build/prior` makes the file. A source that was made from the log that is learned from would
//! count its rows twice, so it is left out. It is recognised by rows that both have, and the contribution
//! of a site, whose rows are coarser, by its mark.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::columns::{COLUMNS_VERSION, age_of, column_names};
use super::contribution::{Contribution, drawn};
use super::named_fault::common_fault;
use super::shared_row::{RowTensors, SharedRow, read_rows};
use crate::config::{AdviceConfig, AnswerMember};
use poolcast_base::shard::{ArtefactFormat, Shard, ShardLayout};

/// Format of the prior, within its compression. The columns give it their version.
const PRIOR_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "prior",
    version: COLUMNS_VERSION,
    rebuild: "ci/build/prior",
};

/// The prior of this program.
const EMBEDDED: &[u8] = include_bytes!("prior.safetensors.zst");

/// Number of rows of a source for one question. More are drawn.
const ROWS_OF_SOURCE: usize = 1_200;

/// Level of the compression of a prior and of its model.
pub(super) const COMPRESSION_LEVEL: i32 = 19;

/// Number of rows that a source has in common with a log from which on it was made from that log.
const SAME_LOG_FROM: usize = 3;

/// Minimum number of rows for each question with which a fault is known.
const MIN_ROWS_OF_FAULT: usize = 20;

/// Rows of other access points.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    sources: Vec<Contribution>,
}

/// The notes of the file.
#[derive(Debug, Serialize, Deserialize)]
struct PriorNotes {
    columns: Vec<String>,
    sources: usize,
    /// The mark of each source; empty if none has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origins: Vec<String>,
}

impl Prior {
    /// Pools `contributions`, in this order, each with equal numbers of rows where it has enough.
    pub fn pool(contributions: &[Contribution]) -> Prior {
        let draw = |(source, at): (&Contribution, i64)| Contribution {
            now: drawn(&source.now, ROWS_OF_SOURCE, "prior now", &[at]),
            later: drawn(&source.later, ROWS_OF_SOURCE, "prior later", &[at]),
            origin: source.origin.clone(),
        };
        Prior {
            sources: contributions.iter().zip(0..).map(draw).collect(),
        }
    }

    /// Returns the prior that ships with the program.
    ///
    /// # Errors
    /// Fails if it has other columns than this program computes.
    pub(crate) fn embedded() -> Result<&'static Prior> {
        static PRIOR: LazyLock<Result<Prior>> = LazyLock::new(|| Prior::from_bytes(EMBEDDED));
        PRIOR
            .as_ref()
            .map_err(|error| anyhow!("cannot read the prior of the program: {error:#}"))
    }

    /// Returns the prior that ships with the program if `advice` asks for one, and the base can learn from it.
    ///
    /// # Errors
    /// Fails if the prior has other columns than this program computes.
    pub fn wanted(advice: &AdviceConfig) -> Result<Option<&'static Prior>> {
        // A network cannot, and may not promise what only other access points have shown.
        let is_of_use = matches!(advice.members.first(), Some(AnswerMember::Pipeline { .. }));
        (advice.prior && is_of_use)
            .then(Prior::embedded)
            .transpose()
    }

    /// Returns the content of the file. Equal rows give equal bytes.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let notes = PriorNotes {
            columns: column_names(),
            sources: self.sources.len(),
            origins: self.origins(),
        };
        let of_rows = |rows: &Vec<SharedRow>| RowTensors::new(rows, notes.columns.len());
        let of_source = |source: &Contribution| [of_rows(&source.now), of_rows(&source.later)];
        let tensors: Vec<[RowTensors; 2]> = self.sources.iter().map(of_source).collect();
        let mut named = Vec::new();
        for (at, [now, later]) in tensors.iter().enumerate() {
            named.extend(now.named(&format!("{at}.now")));
            named.extend(later.named(&format!("{at}.later")));
        }
        let shard = ShardLayout::new(PRIOR_FORMAT, &notes, named)?.bytes();
        zstd::bulk::compress(&shard, COMPRESSION_LEVEL).context("cannot compress the prior")
    }

    /// Returns the mark of each source; nothing if none has one.
    pub(super) fn origins(&self) -> Vec<String> {
        if self.sources.iter().all(|source| source.origin.is_empty()) {
            return Vec::new();
        }
        let origins = self.sources.iter().map(|source| source.origin.clone());
        origins.collect()
    }

    /// Reads what [`Prior::bytes`] returned.
    ///
    /// # Errors
    /// Fails if the bytes are damaged, or have other columns than this program computes.
    fn from_bytes(bytes: &[u8]) -> Result<Prior> {
        let shard = zstd::stream::decode_all(bytes)?;
        let shard = Shard::from_bytes(&shard, PRIOR_FORMAT)?;
        let notes: PriorNotes = shard.notes()?;
        ensure!(
            notes.columns == column_names(),
            "its columns are not those that this program computes"
        );
        let source = |at: usize| -> Result<Contribution> {
            let rows =
                |question| read_rows(&shard, &format!("{at}.{question}"), notes.columns.len());
            Ok(Contribution {
                now: rows("now")?,
                later: rows("later")?,
                origin: notes.origins.get(at).cloned().unwrap_or_default(),
            })
        };
        Ok(Prior {
            sources: (0..notes.sources).map(source).collect::<Result<_>>()?,
        })
    }

    /// Returns the rows of the sources that were made from other logs than the one whose rows have
    /// the digests `local`, and whose site has the mark `origin`.
    pub(crate) fn of_others(&self, local: &HashSet<u64>, origin: &str) -> OtherRows<'_> {
        let is_other = |source: &&Contribution| {
            if !source.origin.is_empty() {
                return source.origin != origin;
            }
            let rows = source.now.iter().chain(&source.later);
            let common = rows.filter(|row| local.contains(&row.digest()));
            common.take(SAME_LOG_FROM).count() < SAME_LOG_FROM
        };
        OtherRows {
            sources: self.sources.iter().filter(is_other).collect(),
        }
    }
}

/// The rows of the prior that the local log does not have.
#[derive(Debug, Default)]
pub(crate) struct OtherRows<'a> {
    sources: Vec<&'a Contribution>,
}

impl<'a> OtherRows<'a> {
    /// Returns the rows about a release now, with their weights. All sources together weigh 1, and
    /// each as much as the others.
    pub(crate) fn now(&self) -> Vec<(&'a SharedRow, f64)> {
        weighted(self.sources.iter().map(|source| &source.now[..]))
    }

    /// Returns the rows about a release later, like [`OtherRows::now`].
    pub(crate) fn later(&self) -> Vec<(&'a SharedRow, f64)> {
        weighted(self.sources.iter().map(|source| &source.later[..]))
    }

    /// Returns the ages of the holds at the moments of the question about now, in typical hold
    /// lengths, `[n]`.
    pub(crate) fn ages(&self) -> Vec<f64> {
        let rows = self.sources.iter().flat_map(|source| &source.now);
        rows.map(|row| age_of(&row.values)).collect()
    }

    /// Returns the faults that enough rows of both questions are about, sorted.
    pub(crate) fn known_faults(&self) -> Vec<u32> {
        let mut counts: BTreeMap<u32, [usize; 2]> = BTreeMap::new();
        for source in &self.sources {
            for (question, rows) in [&source.now, &source.later].into_iter().enumerate() {
                for row in rows {
                    if let Some(fault) = common_fault(row.stated()) {
                        counts.entry(fault).or_default()[question] += 1;
                    }
                }
            }
        }
        let is_known = |counts: &[usize; 2]| counts.iter().all(|&count| count >= MIN_ROWS_OF_FAULT);
        let known = counts.into_iter().filter(|(_, counts)| is_known(counts));
        known.map(|(fault, _)| fault).collect()
    }
}

/// Returns the rows of `sources` with their weights, which sum to 1 over all sources, and to the same
/// in each.
fn weighted<'a>(sources: impl Iterator<Item = &'a [SharedRow]>) -> Vec<(&'a SharedRow, f64)> {
    let sum = |rows: &[SharedRow]| rows.iter().map(|row| row.weight.to_f64()).sum::<f64>();
    let with_sum = sources.map(|rows| (rows, sum(rows)));
    let used: Vec<(&[SharedRow], f64)> = with_sum.filter(|&(_, sum)| sum > 0.0).collect();
    let share = 1.0 / used.len() as f64;
    let of_source = |&(rows, sum): &(&'a [SharedRow], f64)| {
        rows.iter()
            .map(move |row| (row, share / sum * row.weight.to_f64()))
    };
    used.iter().flat_map(of_source).collect()
}

#[cfg(test)]
mod tests {
    use super::super::hold_history::HoldHistory;
    use super::*;
    use htcondor_holdreasons::kind_of_code;
    use test_stores::log_with_outages;

    /// Returns what a log of `stretches` stretches contributes.
    fn contribution(stretches: i64) -> Contribution {
        let store = log_with_outages(stretches).store();
        Contribution::collect(&HoldHistory::new(&store), 0).0
    }

    #[test]
    fn prior_of_the_program_is_current() {
        let prior = Prior::embedded().expect("ci/build/prior makes it again");
        assert_eq!(prior.sources.len(), 4);
        for source in &prior.sources {
            for rows in [&source.now, &source.later] {
                assert!((600..=ROWS_OF_SOURCE).contains(&rows.len()));
            }
        }
        assert!(EMBEDDED.len() < 3_000_000);
        let others = prior.of_others(&HashSet::new(), "");
        let missing_input = common_fault(kind_of_code(13, 2)).expect("a fault");
        assert!(others.known_faults().contains(&missing_input));
    }

    #[test]
    fn written_prior_is_read_back() {
        let prior = Prior::pool(&[contribution(8), contribution(12)]);
        let bytes = prior.bytes().expect("encoded");
        assert_eq!(bytes, prior.bytes().expect("encoded"));
        assert_eq!(Prior::from_bytes(&bytes).expect("read"), prior);
        assert!(Prior::from_bytes(&bytes[..bytes.len() / 2]).is_err());
    }

    #[test]
    fn source_of_the_same_log_is_left_out() {
        let own = contribution(8);
        let mut other = own.clone();
        for row in other.now.iter_mut().chain(&mut other.later) {
            row.values[0] = half::f16::from_f32(7.0);
        }
        let prior = Prior::pool(&[own.clone(), other]);
        let digests = own.now.iter().take(50).map(SharedRow::digest).collect();
        let others = prior.of_others(&digests, "");
        assert_eq!(others.sources, [&prior.sources[1]]);
        let sum: f64 = others.now().iter().map(|(_, weight)| weight).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn coarse_source_of_the_same_site_is_left_out() {
        let (own, mut coarse) = (contribution(8), contribution(12));
        coarse.origin = "site".to_owned();
        let bytes = Prior::pool(&[own, coarse]).bytes().expect("encoded");
        let prior = Prior::from_bytes(&bytes).expect("read");
        let sources = |origin: &str| prior.of_others(&HashSet::new(), origin).sources.len();
        assert_eq!((sources("site"), sources("other")), (1, 2));
    }

    #[test]
    fn sources_weigh_the_same() {
        let prior = Prior::pool(&[contribution(4), contribution(12)]);
        let others = prior.of_others(&HashSet::new(), "");
        let small = prior.sources[0].later.len();
        let sum: f64 = others.later()[..small]
            .iter()
            .map(|(_, weight)| weight)
            .sum();
        assert!((sum - 0.5).abs() < 1e-9, "{sum}");
        assert!(small < prior.sources[1].later.len());
    }
}
