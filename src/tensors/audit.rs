//! Tensors → what in them could tell a model more than it will know when advice is asked for.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use serde::Serialize;

use super::dataset::Dataset;
use super::frames::Frames;
use super::split_side::SplitSide;

/// What could leak from the samples that are learned from into those that are tested.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeakageAudit {
    /// The first moment of asking on the test side, epoch ms.
    pub test_from_ms: i64,
    /// What two sides have in common.
    pub shared: Vec<SideOverlap>,
    /// Samples of the train and validate sides whose window ends after that moment: they show
    /// the pool, and perhaps tested jobs, at a time that is tested.
    pub windows_after_test: usize,
    /// Samples of the train and validate sides whose outcome came after that moment: nobody knew
    /// their label then.
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
struct SideColumns {
    side: SplitSide,
    groups: HashSet<u32>,
    hold_seconds: HashSet<i64>,
    /// How many failures and successes have the same codes, by a digest of their bytes.
    labels_of_codes: HashMap<u128, LabelCounts>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LabelCounts {
    failures: usize,
    successes: usize,
}

/// Looks for leaks in `dataset`.
///
/// # Errors
/// Fails when a shard cannot be read.
pub fn audit(dataset: &Dataset) -> Result<LeakageAudit> {
    let train = SideColumns::read(dataset, SplitSide::Train)?;
    let validate = SideColumns::read(dataset, SplitSide::Validate)?;
    let test = SideColumns::read(dataset, SplitSide::Test)?;
    let shared = vec![
        overlap(dataset, &train, &validate)?,
        overlap(dataset, &train, &test)?,
        overlap(dataset, &validate, &test)?,
    ];

    let test_times_ms = dataset.column::<i64>(SplitSide::Test, "asked_time_ms")?;
    let test_from_ms = test_times_ms.into_iter().min().unwrap_or(i64::MAX);
    let mut windows_after_test = 0;
    let mut outcomes_after_test = 0;
    for side in [SplitSide::Train, SplitSide::Validate] {
        let outcomes_ms: Vec<i64> = dataset.column(side, "outcome_time_ms")?;
        outcomes_after_test += count_after(&outcomes_ms, test_from_ms);
        windows_after_test += count_after(&window_ends_ms(dataset, side)?, test_from_ms);
    }

    Ok(LeakageAudit {
        test_from_ms,
        shared,
        windows_after_test,
        outcomes_after_test,
        by_code: by_code(dataset)?,
    })
}

impl SideColumns {
    fn read(dataset: &Dataset, side: SplitSide) -> Result<SideColumns> {
        let labels: Vec<u8> = dataset.column(side, "label")?;
        let mut labels_of_codes: HashMap<u128, LabelCounts> = HashMap::new();
        for (index, label) in labels.into_iter().enumerate() {
            let counts = labels_of_codes
                .entry(digest(dataset.codes(side, index)))
                .or_default();
            match label {
                0 => counts.failures += 1,
                _ => counts.successes += 1,
            }
        }

        let groups: Vec<u32> = dataset.column(side, "group")?;
        let hold_ms: Vec<i64> = dataset.column(side, "hold_time_ms")?;
        Ok(SideColumns {
            side,
            groups: groups.into_iter().collect(),
            hold_seconds: hold_ms.into_iter().map(|ms| ms.div_euclid(1000)).collect(),
            labels_of_codes,
        })
    }
}

fn digest(codes: &[u8]) -> u128 {
    twox_hash::XxHash3_128::oneshot(codes)
}

fn count_after(times_ms: &[i64], after_ms: i64) -> usize {
    times_ms.iter().filter(|&&ms| ms > after_ms).count()
}

fn overlap(dataset: &Dataset, from: &SideColumns, to: &SideColumns) -> Result<SideOverlap> {
    let labels: Vec<u8> = dataset.column(to.side, "label")?;
    let mut duplicates = 0;
    let mut duplicates_of_one_label = 0;
    for (index, label) in labels.into_iter().enumerate() {
        let digest = digest(dataset.codes(to.side, index));
        if let Some(counts) = from.labels_of_codes.get(&digest) {
            let is_mostly_success = counts.successes > counts.failures;
            duplicates += 1;
            duplicates_of_one_label += usize::from(is_mostly_success == (label == 1));
        }
    }

    Ok(SideOverlap {
        from: from.side,
        to: to.side,
        clusters: from.groups.intersection(&to.groups).count(),
        hold_seconds: from.hold_seconds.intersection(&to.hold_seconds).count(),
        duplicates,
        duplicates_of_one_label,
    })
}

/// When the window of each sample ends, epoch ms.
fn window_ends_ms(dataset: &Dataset, side: SplitSide) -> Result<Vec<i64>> {
    let settings = &dataset.summary.settings;
    let asked_ms: Vec<i64> = dataset.column(side, "asked_time_ms")?;
    let since_submit_s: Vec<u32> = dataset.column(side, "since_submit_s")?;

    let mut ends_ms = Vec::with_capacity(asked_ms.len());
    for (asked_ms, since_submit_s) in asked_ms.into_iter().zip(since_submit_s) {
        let submit_ms = asked_ms - i64::from(since_submit_s) * 1000;
        let frames = Frames::new(
            settings.window,
            asked_ms,
            submit_ms,
            settings.m,
            settings.timeframe_len_s,
        );
        ends_ms.push(frames.window().to_ms);
    }
    Ok(ends_ms)
}

fn by_code(dataset: &Dataset) -> Result<Vec<HoldCodeSamples>> {
    let mut by_code: BTreeMap<(i32, i32), HoldCodeSamples> = BTreeMap::new();
    for side in SplitSide::ALL {
        let codes: Vec<i32> = dataset.column(side, "hold_code")?;
        let subcodes: Vec<i32> = dataset.column(side, "hold_subcode")?;
        let labels: Vec<u8> = dataset.column(side, "label")?;
        for ((hold_code, hold_subcode), label) in codes.into_iter().zip(subcodes).zip(labels) {
            let counts = by_code
                .entry((hold_code, hold_subcode))
                .or_insert_with(|| HoldCodeSamples::none(hold_code, hold_subcode));
            *counts.samples.entry(side).or_default() += 1;
            *counts.successes.entry(side).or_default() += usize::from(label);
        }
    }
    Ok(by_code.into_values().collect())
}

impl HoldCodeSamples {
    /// No samples, on each side.
    fn none(hold_code: i32, hold_subcode: i32) -> HoldCodeSamples {
        let zeros = BTreeMap::from(SplitSide::ALL.map(|side| (side, 0)));
        HoldCodeSamples {
            hold_code,
            hold_subcode,
            samples: zeros.clone(),
            successes: zeros,
        }
    }
}
