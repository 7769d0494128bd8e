//! Tensors → what in them could tell a model more than it will know when advice is asked for.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use serde::Serialize;

use super::dataset::{Dataset, SplitSide};
use super::settings::TensorSettings;
use super::window::Frames;

/// What could leak from the samples that are learned from into those that are tested.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeakageAudit {
    /// The first hold on the test side, epoch ms.
    pub test_from_ms: i64,
    /// What two sides have in common.
    pub shared: Vec<SideOverlap>,
    /// Samples of the train and validate sides whose window ends after the first test hold: they show the pool, and
    /// perhaps tested jobs, at a time that is tested.
    pub windows_after_test: usize,
    /// Samples of the train and validate sides whose outcome came after the first test hold: nobody knew their label then.
    pub outcomes_after_test: usize,
    /// How the label goes with the hold code: what the code alone tells.
    pub by_code: Vec<HoldCodeSamples>,
}

/// What two sides have in common, where memory would look like skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideOverlap {
    /// The side that is learned from.
    pub from: SplitSide,
    /// The side that is scored.
    pub to: SplitSide,
    /// Clusters with samples on both.
    pub clusters: usize,
    /// Seconds with holds on both.
    pub hold_seconds: usize,
    /// Samples of `to` whose codes are, byte for byte, those of a sample of `from`.
    pub duplicates: usize,
    /// How many of these have the label that most of their likes in `from` have.
    pub duplicates_of_one_label: usize,
}

/// The samples of one hold code and subcode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HoldCodeSamples {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// How many samples each side has.
    pub samples: BTreeMap<SplitSide, usize>,
    /// How many of them are successes.
    pub successes: BTreeMap<SplitSide, usize>,
}

/// The columns of a side that an audit looks at.
struct Columns {
    group: HashSet<u32>,
    hold_s: HashSet<i64>,
    /// By the bytes of the codes: failures and successes.
    codes: HashMap<u128, [usize; 2]>,
}

/// Looks for leaks in `dataset`.
///
/// # Errors
/// Fails when a shard cannot be read.
pub fn audit(dataset: &Dataset) -> Result<LeakageAudit> {
    let columns = |side| Ok((side, Columns::of(dataset, side)?));
    let sides: Vec<(SplitSide, Columns)> = SplitSide::ALL
        .into_iter()
        .map(columns)
        .collect::<Result<_>>()?;
    let pairs = [(0, 1), (0, 2), (1, 2)];
    let shared = pairs
        .iter()
        .map(|&(a, b)| common(dataset, &sides[a], &sides[b]))
        .collect::<Result<_>>()?;
    let test_from_ms = dataset
        .column::<i64>(SplitSide::Test, "hold_time_ms")?
        .into_iter()
        .min()
        .unwrap_or(i64::MAX);
    let (mut windows_after_test, mut outcomes_after_test) = (0, 0);
    for side in [SplitSide::Train, SplitSide::Validate] {
        let outcomes: Vec<i64> = dataset.column(side, "outcome_time_ms")?;
        outcomes_after_test += outcomes.into_iter().filter(|&ms| ms > test_from_ms).count();
        windows_after_test += window_ends(dataset, side)?
            .into_iter()
            .filter(|&ms| ms > test_from_ms)
            .count();
    }
    Ok(LeakageAudit {
        test_from_ms,
        shared,
        windows_after_test,
        outcomes_after_test,
        by_code: by_code(dataset)?,
    })
}

impl Columns {
    fn of(dataset: &Dataset, side: SplitSide) -> Result<Columns> {
        let labels: Vec<u8> = dataset.column(side, "label")?;
        let mut codes: HashMap<u128, [usize; 2]> = HashMap::new();
        for (index, label) in labels.into_iter().enumerate() {
            codes.entry(digest(dataset.codes(side, index))).or_default()[usize::from(label)] += 1;
        }
        let hold_ms: Vec<i64> = dataset.column(side, "hold_time_ms")?;
        Ok(Columns {
            group: dataset.column(side, "group")?.into_iter().collect(),
            hold_s: hold_ms.into_iter().map(|ms| ms.div_euclid(1000)).collect(),
            codes,
        })
    }
}

fn digest(codes: &[u8]) -> u128 {
    twox_hash::XxHash3_128::oneshot(codes)
}

fn common(
    dataset: &Dataset,
    (from, a): &(SplitSide, Columns),
    (to, b): &(SplitSide, Columns),
) -> Result<SideOverlap> {
    let labels: Vec<u8> = dataset.column(*to, "label")?;
    let (mut duplicates, mut duplicates_of_one_label) = (0, 0);
    for (index, label) in labels.into_iter().enumerate() {
        if let Some([failures, successes]) = a.codes.get(&digest(dataset.codes(*to, index))) {
            duplicates += 1;
            duplicates_of_one_label += usize::from((successes > failures) == (label == 1));
        }
    }
    Ok(SideOverlap {
        from: *from,
        to: *to,
        clusters: a.group.intersection(&b.group).count(),
        hold_seconds: a.hold_s.intersection(&b.hold_s).count(),
        duplicates,
        duplicates_of_one_label,
    })
}

/// When the window of each sample ends, epoch ms.
fn window_ends(dataset: &Dataset, side: SplitSide) -> Result<Vec<i64>> {
    let TensorSettings {
        window,
        m,
        timeframe_len_s,
        ..
    } = dataset.summary.settings;
    let hold_ms: Vec<i64> = dataset.column(side, "hold_time_ms")?;
    let since_submit_s: Vec<u32> = dataset.column(side, "since_submit_s")?;
    let end = |(hold_ms, since_s): (i64, u32)| {
        Frames::new(
            window,
            hold_ms,
            hold_ms - i64::from(since_s) * 1000,
            m,
            timeframe_len_s,
        )
        .stretch()
        .1
    };
    Ok(hold_ms.into_iter().zip(since_submit_s).map(end).collect())
}

fn by_code(dataset: &Dataset) -> Result<Vec<HoldCodeSamples>> {
    let mut shares: BTreeMap<(i32, i32), HoldCodeSamples> = BTreeMap::new();
    for side in SplitSide::ALL {
        let codes: Vec<i32> = dataset.column(side, "hold_code")?;
        let subcodes: Vec<i32> = dataset.column(side, "hold_subcode")?;
        let labels: Vec<u8> = dataset.column(side, "label")?;
        for ((hold_code, hold_subcode), label) in codes.into_iter().zip(subcodes).zip(labels) {
            let none = || SplitSide::ALL.map(|side| (side, 0)).into();
            let empty = || HoldCodeSamples {
                hold_code,
                hold_subcode,
                samples: none(),
                successes: none(),
            };
            let share = shares
                .entry((hold_code, hold_subcode))
                .or_insert_with(empty);
            *share.samples.entry(side).or_default() += 1;
            *share.successes.entry(side).or_default() += usize::from(label);
        }
    }
    Ok(shares.into_values().collect())
}
