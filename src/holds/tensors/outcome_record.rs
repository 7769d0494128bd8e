//! What became of several holds, or first runs, that have something in common: the counts that
//! advice quotes, and the columns that a model gets of them.

use super::log_count::log_count;

/// How many ended which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutcomeCounts {
    /// Those that ended well.
    pub successes: u32,
    /// Those that did not.
    pub failures: u32,
}

impl OutcomeCounts {
    /// How many ended.
    pub fn decided(self) -> u32 {
        self.successes.saturating_add(self.failures)
    }
}

/// What had become, by a moment, of holds that have something in common with the one that is asked
/// about. An outcome counts from when it was decided, a release from when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OutcomeRecord {
    /// How many holds there were, the one that is asked about included.
    pub held: u32,
    /// How many of them were released.
    pub released: u32,
    /// What came of those whose outcome was decided.
    pub outcomes: OutcomeCounts,
    /// The last three outcomes.
    pub last_3: OutcomeCounts,
    /// The last ten.
    pub last_10: OutcomeCounts,
    /// How long ago the last success was decided.
    pub since_success_ms: Option<i64>,
    /// How long ago the last failure was.
    pub since_failure_ms: Option<i64>,
    /// The last outcomes with weights that halve with their age.
    pub recent: WeightedOutcomes,
}

/// Sums of weights of outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WeightedOutcomes {
    /// Of those that ended well.
    pub successes: f32,
    /// Of all.
    pub decided: f32,
}

/// An outcome, and when it was decided: epoch ms shifted by one bit, and the bit says whether it
/// is a success. So a list of outcomes is small, and in order of time where it is in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DatedOutcome(i64);

impl DatedOutcome {
    pub(super) fn new(decided_ms: i64, is_success: bool) -> DatedOutcome {
        DatedOutcome(decided_ms << 1 | i64::from(is_success))
    }

    pub(super) fn decided_ms(self) -> i64 {
        self.0 >> 1
    }

    pub(super) fn is_success(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Outcomes in order of time, and how many successes there are up to each, itself included.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutcomeList<'a> {
    pub(super) outcomes: &'a [DatedOutcome],
    pub(super) successes: &'a [u32],
}

/// What happened to those of one key, in order of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyLists<'a> {
    pub(super) held: &'a [i64],
    pub(super) released: &'a [i64],
    pub(super) decided: OutcomeList<'a>,
}

impl<'a> KeyLists<'a> {
    /// What was written, or decided, by `asked_ms`.
    pub(super) fn until(self, asked_ms: i64) -> KeyLists<'a> {
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
    /// Those that were decided by `asked_ms`.
    fn until(self, asked_ms: i64) -> OutcomeList<'a> {
        let known = (self.outcomes).partition_point(|outcome| outcome.decided_ms() <= asked_ms);
        OutcomeList {
            outcomes: &self.outcomes[..known],
            successes: &self.successes[..known],
        }
    }

    /// What became of the last `count`, or of all if they are fewer.
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

    /// The place of the last success, or of the last failure.
    fn last_place(self, is_success: bool) -> Option<usize> {
        let count = self.outcomes.len();
        let near = count.saturating_sub(SEARCHED_ONE_BY_ONE);
        let is_sought = |outcome: &DatedOutcome| outcome.is_success() == is_success;
        if let Some(at) = self.outcomes[near..].iter().rposition(is_sought) {
            return Some(near + at);
        }

        // It is the first place that has as many up to it as the last one.
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

/// So many of the last outcomes are looked at before a search by halves begins.
const SEARCHED_ONE_BY_ONE: usize = 8;

/// So many outcomes have a weight at most: where they are many, the last ones say enough.
const WEIGHTED: usize = 30;

/// Those have none that are older than so many half-lives.
const WEIGHTED_HALF_LIVES: f32 = 10.0;

impl WeightedOutcomes {
    /// The weights of the last of `outcomes` at `asked_ms`, each halved every `half_life_ms`.
    fn of_last(outcomes: &[DatedOutcome], asked_ms: i64, half_life_ms: f32) -> WeightedOutcomes {
        let mut weights = WeightedOutcomes::default();
        let last = &outcomes[outcomes.len().saturating_sub(WEIGHTED)..];
        for outcome in last.iter().rev() {
            let age_ms = asked_ms - outcome.decided_ms();
            let half_lives = age_ms as f32 / half_life_ms;
            if half_lives > WEIGHTED_HALF_LIVES {
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
    /// The record of `known`, which is what was known at `asked_ms`. The weight of an outcome halves
    /// every `half_life_ms`.
    pub(super) fn new(known: KeyLists<'_>, asked_ms: i64, half_life_ms: f32) -> OutcomeRecord {
        let list = known.decided;
        let age_ms = |at: usize| asked_ms - list.outcomes[at].decided_ms();
        OutcomeRecord {
            held: known.held.len() as u32,
            released: known.released.len() as u32,
            outcomes: list.last_counts(list.outcomes.len()),
            last_3: list.last_counts(3),
            last_10: list.last_counts(10),
            since_success_ms: list.last_place(true).map(age_ms),
            since_failure_ms: list.last_place(false).map(age_ms),
            recent: WeightedOutcomes::of_last(list.outcomes, asked_ms, half_life_ms),
        }
    }

    /// The share of successes, drawn to `prior`, the rate of what this is a part of, as if
    /// four more had ended like that.
    pub fn success_rate(&self, prior: f32) -> f32 {
        drawn_rate(
            self.outcomes.successes as f32,
            self.outcomes.decided() as f32,
            prior,
            PRIOR_CASES,
        )
    }
}

/// With as many cases a record says as much as what it is a part of.
const PRIOR_CASES: f32 = 4.0;

fn drawn_rate(successes: f32, decided: f32, prior: f32, prior_cases: f32) -> f32 {
    (successes + prior_cases * prior) / (decided + prior_cases)
}

/// The first of `count` places that `holds` is true for; it is true for all after it.
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

/// A record among those it is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct RatedRecord<'a> {
    pub(super) record: &'a OutcomeRecord,
    /// Its rate of success, drawn to that of what it is a part of.
    pub(super) rate: f32,
    /// What ages are measured by: of this age a thing counts half.
    pub(super) half_life_ms: f32,
}

/// A column of a record: the end of its name, and its value, about from -1 to 1.
type RecordColumn = (&'static str, fn(&RatedRecord<'_>) -> f32);

/// The columns of a record of holds.
pub(super) const HOLD_RECORD_COLUMNS: [RecordColumn; 9] = [
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
pub(super) const FIRST_RUN_COLUMNS: [RecordColumn; 4] = [
    ("decided", |rated| {
        log_share(rated.record.outcomes.decided())
    }),
    ("success", |rated| balance(rated.rate)),
    ("recent", |rated| rated.recent_balance()),
    ("since_success", |rated| {
        rated.nearness(rated.record.since_success_ms)
    }),
];

/// The columns of a record of next runs, whose success is that they got past.
pub(super) const NEXT_RUN_COLUMNS: [RecordColumn; 4] = [
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
    /// The success of a part of the record, drawn to that of the whole.
    fn balance_of(&self, counts: OutcomeCounts, prior_cases: f32) -> f32 {
        let successes = counts.successes as f32;
        let decided = counts.decided() as f32;
        balance(drawn_rate(successes, decided, self.rate, prior_cases))
    }

    fn recent_balance(&self) -> f32 {
        let WeightedOutcomes { successes, decided } = self.record.recent;
        balance(drawn_rate(successes, decided, self.rate, 1.0))
    }

    /// 1 for what is now, 1/2 for what is a half-life old, 0 for what never was.
    fn nearness(&self, age_ms: Option<i64>) -> f32 {
        match age_ms {
            Some(age_ms) => self.half_life_ms / (self.half_life_ms + age_ms as f32),
            None => 0.0,
        }
    }
}

/// A rate, from -1 to 1.
fn balance(rate: f32) -> f32 {
    2.0 * rate - 1.0
}

/// From 0 to 1 on a logarithmic scale, where it stays from 100 on: more cases are no more
/// evidence, and a count that only grows would tell the time.
fn log_share(n: u32) -> f32 {
    log_count(n.min(100)) / 101f32.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record at 100 s of outcomes at some seconds, with a half-life of 10 s.
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
    fn only_what_was_decided_by_then_counts() {
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
    fn the_last_of_each_kind_is_found_however_long_ago() {
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
    fn few_cases_are_drawn_to_the_rate_above() {
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
