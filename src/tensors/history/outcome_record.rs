//! Outcome statistics of a group of holds or runs: counts for advice, and feature columns for a
//! model.

use super::log_count::log_count;

/// Numbers of successes and failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutcomeCounts {
    /// Successes.
    pub successes: u32,
    /// Failures.
    pub failures: u32,
}

impl OutcomeCounts {
    /// The number of decided outcomes.
    pub fn decided(self) -> u32 {
        self.successes.saturating_add(self.failures)
    }
}

/// Statistics of the holds of one group at a prediction time. An outcome counts from when it was
/// decided, and a release from when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OutcomeRecord {
    /// Holds, including the queried one.
    pub held: u32,
    /// Released holds.
    pub released: u32,
    /// Decided outcomes.
    pub outcomes: OutcomeCounts,
    /// The last three outcomes.
    pub last_3: OutcomeCounts,
    /// The last ten outcomes.
    pub last_10: OutcomeCounts,
    /// Time since the last success was decided, in ms.
    pub since_success_ms: Option<i64>,
    /// Time since the last failure was decided, in ms.
    pub since_failure_ms: Option<i64>,
    /// The last outcomes, with weights that halve with their age.
    pub recent: WeightedOutcomes,
}

/// Sums of the weights of outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WeightedOutcomes {
    /// Weight of the successes.
    pub successes: f32,
    /// Weight of all outcomes.
    pub decided: f32,
}

/// An outcome and its decision time, packed: epoch ms shifted by one bit, with 1 in the low bit for
/// a success. So a list of outcomes is small, and sorts by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatedOutcome(i64);

impl DatedOutcome {
    /// Packs an outcome and its decision time, in epoch ms.
    #[inline]
    pub fn new(decided_ms: i64, is_success: bool) -> DatedOutcome {
        DatedOutcome(decided_ms << 1 | i64::from(is_success))
    }

    /// The time of the decision, in epoch ms.
    #[inline]
    pub fn decided_ms(self) -> i64 {
        self.0 >> 1
    }

    /// Returns true for a success.
    #[inline]
    pub fn is_success(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Outcomes in order of time. `successes` holds the number of successes up to and including each
/// outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutcomeList<'a> {
    pub(crate) outcomes: &'a [DatedOutcome],
    pub(crate) successes: &'a [u32],
}

/// The events of one key, in order of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyLists<'a> {
    pub(crate) held: &'a [i64],
    pub(crate) released: &'a [i64],
    pub(crate) decided: OutcomeList<'a>,
}

impl<'a> KeyLists<'a> {
    /// Returns the events written and the outcomes decided by `asked_ms`.
    pub(crate) fn until(self, asked_ms: i64) -> KeyLists<'a> {
        let until = |times_ms: &'a [i64]| {
            &times_ms[..times_ms.partition_point(|&time_ms| time_ms <= asked_ms)]
        };
        KeyLists {
            held: until(self.held),
            released: until(self.released),
            decided: self.decided.until(asked_ms),
        }
    }
}

impl<'a> OutcomeList<'a> {
    /// Returns the outcomes decided by `asked_ms`.
    fn until(self, asked_ms: i64) -> OutcomeList<'a> {
        let known = (self.outcomes).partition_point(|outcome| outcome.decided_ms() <= asked_ms);
        OutcomeList {
            outcomes: &self.outcomes[..known],
            successes: &self.successes[..known],
        }
    }

    /// Counts the last `count` outcomes, or all if there are fewer.
    fn last_counts(self, count: usize) -> OutcomeCounts {
        let all = self.successes.len();
        let successes_by = |place: Option<usize>| place.map_or(0, |place| self.successes[place]);
        let before = all.saturating_sub(count);
        let successes = successes_by(all.checked_sub(1)) - successes_by(before.checked_sub(1));
        OutcomeCounts {
            successes,
            failures: (all - before) as u32 - successes,
        }
    }

    /// Returns the index of the last success, or of the last failure.
    fn last_index_of(self, is_success: bool) -> Option<usize> {
        let count = self.outcomes.len();
        let near = count.saturating_sub(LINEAR_SEARCH_LENGTH);
        let is_sought = |outcome: &DatedOutcome| outcome.is_success() == is_success;
        if let Some(at) = self.outcomes[near..].iter().rposition(is_sought) {
            return Some(near + at);
        }

        // The outcome is at the first index where the running count reaches its final value.
        let so_far = |at: usize| {
            let successes = self.successes[at];
            if is_success {
                successes
            } else {
                at as u32 + 1 - successes
            }
        };
        let all = so_far(near.checked_sub(1)?);
        (all > 0).then(|| first_place(near, |at| so_far(at) >= all))
    }
}

/// Number of last outcomes that are scanned one by one before a binary search begins.
const LINEAR_SEARCH_LENGTH: usize = 8;

/// Maximum number of weighted outcomes. If there are more, the last ones are enough evidence.
const MAX_WEIGHTED_OUTCOMES: usize = 30;

/// Maximum age of a weighted outcome, in half-lives. Older outcomes have no weight.
const MAX_HALF_LIVES: f32 = 10.0;

impl WeightedOutcomes {
    /// Sums the weights of the last of `outcomes` at `asked_ms`. A weight halves every
    /// `half_life_ms`.
    fn from_last(outcomes: &[DatedOutcome], asked_ms: i64, half_life_ms: f32) -> WeightedOutcomes {
        let mut weights = WeightedOutcomes::default();
        let last = &outcomes[outcomes.len().saturating_sub(MAX_WEIGHTED_OUTCOMES)..];
        for outcome in last.iter().rev() {
            let age_ms = asked_ms - outcome.decided_ms();
            let half_lives = age_ms as f32 / half_life_ms;
            if half_lives > MAX_HALF_LIVES {
                break;
            }
            let weight = (-half_lives).exp2();
            weights.decided += weight;
            weights.successes += if outcome.is_success() { weight } else { 0.0 };
        }
        weights
    }
}

impl OutcomeRecord {
    /// Computes the record from `known`, the events known at `asked_ms`. The weight of an outcome
    /// halves every `half_life_ms`.
    pub(crate) fn new(known: KeyLists<'_>, asked_ms: i64, half_life_ms: f32) -> OutcomeRecord {
        let list = known.decided;
        let age_ms = |at: usize| asked_ms - list.outcomes[at].decided_ms();
        OutcomeRecord {
            held: known.held.len() as u32,
            released: known.released.len() as u32,
            outcomes: list.last_counts(list.outcomes.len()),
            last_3: list.last_counts(3),
            last_10: list.last_counts(10),
            since_success_ms: list.last_index_of(true).map(age_ms),
            since_failure_ms: list.last_index_of(false).map(age_ms),
            recent: WeightedOutcomes::from_last(list.outcomes, asked_ms, half_life_ms),
        }
    }

    /// Returns the success rate, shrunk to `prior`, the rate of the parent record. The prior weighs
    /// as much as four cases.
    pub fn success_rate(&self, prior: f32) -> f32 {
        shrunk_rate(
            self.outcomes.successes as f32,
            self.outcomes.decided() as f32,
            prior,
            PRIOR_CASES,
        )
    }
}

/// Prior weight, in cases.
const PRIOR_CASES: f32 = 4.0;

/// Returns the rate of `successes` in `decided` cases, shrunk to `prior` with the weight of
/// `prior_cases`.
pub fn shrunk_rate(successes: f32, decided: f32, prior: f32, prior_cases: f32) -> f32 {
    (successes + prior_cases * prior) / (decided + prior_cases)
}

/// Returns the first of `count` indices for which `holds` is true. `holds` must be true for all
/// later ones.
fn first_place(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from.midpoint(to);
        if holds(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

/// A record with its success rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RatedRecord<'a> {
    pub(crate) record: &'a OutcomeRecord,
    /// Success rate, shrunk to the rate of the parent record.
    pub(crate) rate: f32,
    /// Age at which an event counts half, in ms.
    pub(crate) half_life_ms: f32,
}

/// A column of a record: the end of its name, and the function that computes its value, about -1 to
/// 1.
type RecordColumn = (&'static str, fn(&RatedRecord<'_>) -> f32);

/// The columns of a record of holds.
pub(crate) const HOLD_RECORD_COLUMNS: [RecordColumn; 9] = [
    ("held", |rated| log_share(rated.record.held)),
    ("released", |rated| log_share(rated.record.released)),
    ("decided", |rated| {
        log_share(rated.record.outcomes.decided())
    }),
    ("success", |rated| balance(rated.rate)),
    ("last_3", |rated| rated.balance_of(rated.record.last_3, 1.0)),
    ("last_10", |rated| {
        rated.balance_of(rated.record.last_10, 2.0)
    }),
    ("recent", |rated| rated.recent_balance()),
    ("since_success", |rated| {
        rated.nearness(rated.record.since_success_ms)
    }),
    ("since_failure", |rated| {
        rated.nearness(rated.record.since_failure_ms)
    }),
];

/// The columns of a record of first runs.
pub(crate) const FIRST_RUN_COLUMNS: [RecordColumn; 4] = [
    ("decided", |rated| {
        log_share(rated.record.outcomes.decided())
    }),
    ("success", |rated| balance(rated.rate)),
    ("recent", |rated| rated.recent_balance()),
    ("since_success", |rated| {
        rated.nearness(rated.record.since_success_ms)
    }),
];

/// The columns of a record of next runs. A success is a run that got past the point of the hold.
pub(crate) const NEXT_RUN_COLUMNS: [RecordColumn; 4] = [
    ("last_3", |rated| rated.balance_of(rated.record.last_3, 1.0)),
    ("last_10", |rated| {
        rated.balance_of(rated.record.last_10, 1.0)
    }),
    ("since_past", |rated| {
        rated.nearness(rated.record.since_success_ms)
    }),
    ("since_stopped", |rated| {
        rated.nearness(rated.record.since_failure_ms)
    }),
];

impl RatedRecord<'_> {
    /// Returns the balance of `counts`, a part of the record, shrunk to the rate of the whole
    /// record.
    fn balance_of(&self, counts: OutcomeCounts, prior_cases: f32) -> f32 {
        let successes = counts.successes as f32;
        let decided = counts.decided() as f32;
        balance(shrunk_rate(successes, decided, self.rate, prior_cases))
    }

    fn recent_balance(&self) -> f32 {
        let WeightedOutcomes { successes, decided } = self.record.recent;
        balance(shrunk_rate(successes, decided, self.rate, 1.0))
    }

    /// Returns 1 for an age of 0, 1/2 for one half-life, and 0 for an event that never happened.
    fn nearness(&self, age_ms: Option<i64>) -> f32 {
        match age_ms {
            Some(age_ms) => self.half_life_ms / (self.half_life_ms + age_ms as f32),
            None => 0.0,
        }
    }
}

/// Scales a rate to the range from -1 to 1.
fn balance(rate: f32) -> f32 {
    2.0 * rate - 1.0
}

/// Scales a count logarithmically to the range from 0 to 1, with its maximum at 100. More cases add
/// no evidence, and a count that only grows would reveal the date.
pub fn log_share(n: u32) -> f32 {
    log_count(n.min(100)) / 101f32.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the record at 100 s for outcomes at the given seconds, with a half-life of 10 s.
    fn record_of(outcomes: &[(i64, bool)]) -> OutcomeRecord {
        let outcomes: Vec<DatedOutcome> = (outcomes.iter())
            .map(|&(s, is_success)| DatedOutcome::new(s * 1000, is_success))
            .collect();
        let mut so_far = 0;
        let mut successes = Vec::new();
        for outcome in &outcomes {
            so_far += u32::from(outcome.is_success());
            successes.push(so_far);
        }
        let list = OutcomeList {
            outcomes: &outcomes,
            successes: &successes,
        };
        let lists = KeyLists {
            held: &[1_000; 50],
            released: &[2_000; 40],
            decided: list,
        };
        OutcomeRecord::new(lists.until(100_000), 100_000, 10_000.0)
    }

    #[test]
    fn outcomes_after_prediction_time_do_not_count() {
        let outcomes = [
            (60, true),
            (70, true),
            (80, false),
            (90, true),
            (100, false),
        ];
        let record = record_of(&[&outcomes[..], &[(101, true), (102, true)]].concat());
        assert_eq!(record, record_of(&outcomes));
        assert_eq!((record.held, record.released), (50, 40));
        let counts = |successes, failures| OutcomeCounts {
            successes,
            failures,
        };
        assert_eq!(record.outcomes, counts(3, 2));
        assert_eq!(
            (record.last_3, record.last_10),
            (counts(1, 2), counts(3, 2))
        );
        assert_eq!(record.since_success_ms, Some(10_000));
        assert_eq!(record.since_failure_ms, Some(0));
        let weights = WeightedOutcomes {
            successes: 0.0625 + 0.125 + 0.5,
            decided: 0.0625 + 0.125 + 0.25 + 0.5 + 1.0,
        };
        assert_eq!(record.recent, weights);
    }

    #[test]
    fn last_success_and_failure_are_found_at_any_age() {
        for (kind, other) in [(true, false), (false, true)] {
            let mut outcomes = vec![(1, kind), (2, kind), (3, other)];
            outcomes.extend((4..90).map(|s| (s, other)));
            let record = record_of(&outcomes);
            let (of_kind, of_other) = if kind {
                (record.since_success_ms, record.since_failure_ms)
            } else {
                (record.since_failure_ms, record.since_success_ms)
            };
            assert_eq!((of_kind, of_other), (Some(98_000), Some(11_000)));
        }
        let one_kind = record_of(&[(5, true); 40]);
        assert_eq!(
            (one_kind.since_failure_ms, one_kind.outcomes.successes),
            (None, 40)
        );
    }

    #[test]
    fn small_records_shrink_to_the_prior_rate() {
        assert_eq!(record_of(&[]).success_rate(0.25), 0.25);
        let record = record_of(&[(1, true); 4]);
        assert_eq!(record.success_rate(0.25), 0.625);
        let rated = RatedRecord {
            record: &record,
            rate: 0.625,
            half_life_ms: 10_000.0,
        };
        let values = HOLD_RECORD_COLUMNS.map(|(name, value)| (name, value(&rated)));
        let value = |wanted| {
            values
                .iter()
                .find(|(name, _)| *name == wanted)
                .expect(wanted)
                .1
        };
        assert_eq!(value("success"), 0.25);
        assert_eq!(value("last_3"), 2.0 * (3.0 + 0.625) / 4.0 - 1.0);
        assert_eq!(
            (value("since_failure"), value("since_success")),
            (0.0, 10.0 / 109.0)
        );
        assert!((value("held") - 51f32.ln() / 101f32.ln()).abs() < 1e-6);
        for (name, value) in values {
            assert!((-1.0..=1.0).contains(&value), "{name}: {value}");
        }
    }
}
