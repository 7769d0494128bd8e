//! Leakage audit of tensors: finds information that a model would not have at prediction time.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use serde::Serialize;

use super::dataset::Dataset;
use crate::codes::Frames;
use crate::cycles::Split;

/// Possible leaks from the training samples into the test samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeakageAudit {
    /// Overlaps between pairs of splits.
    pub shared: Vec<SplitOverlap>,
    /// Labels by hold code: the predictive power of the code alone.
    pub by_code: Vec<HoldCodeSamples>,
}

/// The overlap of two splits, which lets a model that memorizes look skilled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitOverlap {
    /// The earlier split, used for training.
    pub from: Split,
    /// The later split, used for scoring.
    pub to: Split,
    /// The first prediction time in the later split, in epoch ms.
    pub to_begins_ms: i64,
    /// Clusters with samples in both splits.
    pub clusters: usize,
    /// Seconds with prediction times in both splits.
    pub asked_seconds: usize,
    /// Samples of `to` whose codes are byte-identical to the codes of a sample of `from`.
    pub duplicates: usize,
    /// Duplicates that have the most frequent label of their copies in `from`.
    pub duplicates_of_one_label: usize,
    /// Samples of `from` whose window does not end before `to` begins. They show the pool, and
    /// perhaps scored jobs, during the scored time.
    pub late_windows: usize,
    /// Samples of `from` whose outcome was not decided before `to` began. Their label was unknown
    /// then.
    pub late_outcomes: usize,
}

/// The samples of one hold code and subcode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HoldCodeSamples {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// Number of samples in each split.
    pub samples: BTreeMap<Split, usize>,
    /// Number of successes in each split.
    pub successes: BTreeMap<Split, usize>,
}

/// The columns of a split that the audit reads.
struct SplitSampleColumns {
    split: Split,
    groups: HashSet<u32>,
    asked_seconds: HashSet<i64>,
    /// The first prediction time, in epoch ms.
    begins_ms: i64,
    outcomes_ms: Vec<i64>,
    window_end_times_ms: Vec<i64>,
    /// Label counts of the samples with the same codes, by a digest of the codes.
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
/// Fails if a shard cannot be read.
pub fn audit(dataset: &Dataset) -> Result<LeakageAudit> {
    let train = SplitSampleColumns::read(dataset, Split::Train)?;
    let validate = SplitSampleColumns::read(dataset, Split::Validate)?;
    let test = SplitSampleColumns::read(dataset, Split::Test)?;
    let shared = vec![
        overlap(dataset, &train, &validate)?,
        overlap(dataset, &train, &test)?,
        overlap(dataset, &validate, &test)?,
    ];

    Ok(LeakageAudit {
        shared,
        by_code: by_code(dataset)?,
    })
}

impl SplitSampleColumns {
    fn read(dataset: &Dataset, split: Split) -> Result<SplitSampleColumns> {
        let labels: Vec<u8> = dataset.column(split, "label")?;
        let mut labels_of_codes: HashMap<u128, LabelCounts> = HashMap::new();
        for (index, label) in labels.into_iter().enumerate() {
            let counts = labels_of_codes
                .entry(digest(dataset.codes(split, index)))
                .or_default();
            match label {
                0 => counts.failures += 1,
                _ => counts.successes += 1,
            }
        }

        let groups: Vec<u32> = dataset.column(split, "group")?;
        let asked_ms: Vec<i64> = dataset.column(split, "asked_time_ms")?;
        Ok(SplitSampleColumns {
            split,
            groups: groups.into_iter().collect(),
            asked_seconds: asked_ms.iter().map(|ms| ms.div_euclid(1000)).collect(),
            begins_ms: asked_ms.into_iter().min().unwrap_or(i64::MAX),
            outcomes_ms: dataset.column(split, "outcome_time_ms")?,
            window_end_times_ms: window_end_times_ms(dataset, split)?,
            labels_of_codes,
        })
    }
}

fn digest(codes: &[u8]) -> u128 {
    twox_hash::XxHash3_128::oneshot(codes)
}

fn count_from(times_ms: &[i64], from_ms: i64) -> usize {
    times_ms.iter().filter(|&&ms| ms >= from_ms).count()
}

fn overlap(
    dataset: &Dataset,
    from: &SplitSampleColumns,
    to: &SplitSampleColumns,
) -> Result<SplitOverlap> {
    let labels: Vec<u8> = dataset.column(to.split, "label")?;
    let mut duplicates = 0;
    let mut duplicates_of_one_label = 0;
    for (index, label) in labels.into_iter().enumerate() {
        let digest = digest(dataset.codes(to.split, index));
        if let Some(counts) = from.labels_of_codes.get(&digest) {
            // A model that memorizes `from` would predict the majority label of the copies.
            let is_mostly_success = counts.successes > counts.failures;
            duplicates += 1;
            duplicates_of_one_label += usize::from(is_mostly_success == (label == 1));
        }
    }

    Ok(SplitOverlap {
        from: from.split,
        to: to.split,
        to_begins_ms: to.begins_ms,
        clusters: from.groups.intersection(&to.groups).count(),
        asked_seconds: from.asked_seconds.intersection(&to.asked_seconds).count(),
        duplicates,
        duplicates_of_one_label,
        late_windows: count_from(&from.window_end_times_ms, to.begins_ms),
        late_outcomes: count_from(&from.outcomes_ms, to.begins_ms),
    })
}

/// Returns the end of the window of each sample, in epoch ms.
fn window_end_times_ms(dataset: &Dataset, split: Split) -> Result<Vec<i64>> {
    let settings = &dataset.summary.settings;
    let asked_ms: Vec<i64> = dataset.column(split, "asked_time_ms")?;
    let since_submit_s: Vec<u32> = dataset.column(split, "since_submit_s")?;

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
    for split in Split::ALL {
        let codes: Vec<i32> = dataset.column(split, "hold_code")?;
        let subcodes: Vec<i32> = dataset.column(split, "hold_subcode")?;
        let labels: Vec<u8> = dataset.column(split, "label")?;
        for ((hold_code, hold_subcode), label) in codes.into_iter().zip(subcodes).zip(labels) {
            let counts = by_code
                .entry((hold_code, hold_subcode))
                .or_insert_with(|| HoldCodeSamples::none(hold_code, hold_subcode));
            *counts.samples.entry(split).or_default() += 1;
            *counts.successes.entry(split).or_default() += usize::from(label);
        }
    }
    Ok(by_code.into_values().collect())
}

impl HoldCodeSamples {
    /// Returns a count of zero samples in each split.
    fn none(hold_code: i32, hold_subcode: i32) -> HoldCodeSamples {
        let zeros = BTreeMap::from(Split::ALL.map(|split| (split, 0)));
        HoldCodeSamples {
            hold_code,
            hold_subcode,
            samples: zeros.clone(),
            successes: zeros,
        }
    }
}
