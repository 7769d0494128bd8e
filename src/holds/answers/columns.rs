//! The columns of an answer model: the facts about a job and its cluster, and for each kind of
//! cause what was known of it at the prediction time.

use super::cause_kind::CauseKind;
use super::hold_history::{HoldHistory, KnownCause, Pass};
use super::past_hold::PastHold;
use super::taught_rows::ReleaseWay;
use half::f16;
use htcondor_holdreasons::rules::{Action, Party, rule_for};
use poolcast_config::FeatureGroup;
use poolcast_tensors::{DatedOutcome, log_share, shrunk_rate, static_names};

/// Feature groups whose columns an answer model takes. The records of outcomes are replaced by the
/// columns of causes.
const FEATURES: [FeatureGroup; 7] = [
    FeatureGroup::Hold,
    FeatureGroup::Request,
    FeatureGroup::ClusterState,
    FeatureGroup::LastRun,
    FeatureGroup::FirstRuns,
    FeatureGroup::NextRuns,
    FeatureGroup::RecentEvents,
];

/// Version of the columns. A change of what a column means makes a new one.
pub(crate) const COLUMNS_VERSION: u32 = 5;

/// Prior weight of the parent's success rate, in cases.
const PRIOR_CASES: f32 = 4.0;
/// Half-life of the weight of an outcome, in typical hold lengths.
const HALF_LIFE: f64 = 4.0;
/// Maximum number of outcomes in the recent success rate.
const MAX_RECENT: usize = 60;
/// Maximum number of passes and successes whose owners are counted.
const MAX_OWNERS: usize = 30;

/// Columns of one cause.
const CAUSE_COLUMNS: [&str; 19] = [
    "decided",
    "rate",
    "recent_rate",
    "since_success",
    "since_failure",
    "since_hold",
    "since_pass",
    "success_is_newer",
    "passes_since_failure",
    "owners_since_failure",
    "successes_since_hold",
    "failures_since_hold",
    "holds_since_hold",
    "passes_since_hold",
    "holds_in_1",
    "holds_in_4",
    "passes_in_1",
    "held_now",
    "last_3",
];

/// Columns of the hold itself.
const OWN_COLUMNS: [&str; 9] = [
    "age",
    "earlier_for_code",
    "earlier_releases",
    "automatic_share",
    "way",
    "fix_by_rule",
    "later_by_rule",
    "fault_of_user",
    "fault_of_machine",
];

/// Returns the names of all columns, `[f]`.
pub(crate) fn column_names() -> Vec<String> {
    let mut names = static_names(&FEATURES);
    for kind in CauseKind::ALL {
        let columns = CAUSE_COLUMNS.iter();
        names.extend(columns.map(|column| format!("cause_{}_{column}", kind.name())));
    }
    names.extend(OWN_COLUMNS.map(|column| format!("hold_{column}")));
    names
}

/// Returns the values of hold `index` at `asked_ms`, `[f]`. Its age counts up to `max_age` typical
/// hold lengths: what is longer was never learned.
pub(crate) fn columns(
    history: &HoldHistory<'_>,
    index: usize,
    asked_ms: i64,
    way: ReleaseWay,
    max_age: f64,
) -> Vec<f32> {
    let hold = &history.holds[index];
    let mut values = Vec::new();
    let job = history.store.jobs().get(hold.job as usize);
    let mut facts = history.pool.facts(&job, &history.asked(index, asked_ms));
    // Ages are in typical hold lengths, below.
    (facts.held_for_s, facts.since_submit_s) = (0, 0);
    facts.add_static_features(&FEATURES, &mut values);

    let moment = AskedMoment {
        asked_ms,
        hold_ms: hold.hold_ms,
        unit_ms: history.unit_ms(asked_ms),
    };
    let mut rates = [0.5; CauseKind::ALL.len()];
    for kind in CauseKind::ALL {
        let prior = kind.parent().map_or(0.5, |parent| rates[parent as usize]);
        let known = history.known_cause(kind, &hold.causes, asked_ms);
        rates[kind as usize] = moment.add_cause(known, prior, &mut values);
    }
    add_own(hold, moment.age().min(max_age), way, &mut values);
    values
}

/// Returns the age of the hold in a row of `values`, in typical hold lengths.
pub(crate) fn age_of(values: &[f16]) -> f64 {
    let age = values.len().checked_sub(OWN_COLUMNS.len());
    let age = age.and_then(|at| values.get(at));
    age.map_or(0.0, |age| age.to_f64().exp_m1())
}

fn add_own(hold: &PastHold, age: f64, way: ReleaseWay, values: &mut Vec<f32>) {
    let releases = hold.earlier_releases.max(1) as f32;
    values.extend([
        age.ln_1p() as f32,
        count_share(hold.earlier_for_code as usize),
        count_share(hold.earlier_releases as usize),
        hold.earlier_automatic as f32 / releases,
        way.value(),
    ]);
    values.extend(rule_columns(hold).map(|is_so| f32::from(u8::from(is_so))));
}

/// Returns what the table of rules says about what the reason of `hold` states: whether to repair it, or to wait,
/// and whether the user or a machine may be at fault.
fn rule_columns(hold: &PastHold) -> [bool; 4] {
    let rule = rule_for(hold.named_fault.corrects(hold.stated));
    let is_action = |action| rule.is_some_and(|rule| rule.action == action);
    let is_fault = |party| {
        let faults = [party, Party::UserOrMachine];
        rule.is_some_and(|rule| faults.contains(&rule.fault))
    };
    [
        is_action(Action::Fix),
        is_action(Action::Later),
        is_fault(Party::User),
        is_fault(Party::Machine),
    ]
}

/// A moment of a hold, and the unit of all ages.
#[derive(Debug, Clone, Copy)]
struct AskedMoment {
    asked_ms: i64,
    hold_ms: i64,
    unit_ms: f64,
}

impl AskedMoment {
    /// The age of the hold in typical hold lengths.
    fn age(&self) -> f64 {
        (self.asked_ms - self.hold_ms).max(0) as f64 / self.unit_ms
    }

    /// Appends the columns of one cause. Returns its success rate, shrunk to `prior`.
    fn add_cause(&self, known: KnownCause<'_>, prior: f32, values: &mut Vec<f32>) -> f32 {
        let KnownCause {
            held,
            ended,
            outcomes,
            successes: successes_so_far,
            passes,
            ..
        } = known;
        let successes_until = |end: usize| match end {
            0 => 0,
            end => successes_so_far[end - 1] as usize,
        };
        let successes = successes_until(outcomes.len());
        let rate = shrunk_rate(successes as f32, outcomes.len() as f32, prior, PRIOR_CASES);
        let success_ms = known.last_decided_ms(true);
        let failure_ms = known.last_decided_ms(false);
        let other_hold_ms = known.last_other_hold_ms(self.hold_ms);

        let pass_ms = passes.last().map(|pass| pass.known_ms);
        let since_failure = passes.partition_point(|pass| {
            failure_ms.is_some_and(|failure_ms| pass.known_ms <= failure_ms)
        });
        let since_hold = outcomes.partition_point(|outcome| outcome.decided_ms() <= self.hold_ms);
        let successes_since = successes - successes_until(since_hold);
        let holds_after =
            |from_ms: i64| held.len() - held.partition_point(|&at_ms| at_ms <= from_ms);
        let passes_after =
            |from_ms: i64| passes.len() - passes.partition_point(|pass| pass.known_ms <= from_ms);
        let ago = |units: f64| self.asked_ms - (units * self.unit_ms) as i64;

        values.extend([
            count_share(outcomes.len()),
            rate,
            self.recent_rate(outcomes, rate),
            self.nearness(success_ms),
            self.nearness(failure_ms),
            self.nearness(other_hold_ms),
            self.nearness(pass_ms),
            newer(success_ms.max(pass_ms), failure_ms.max(other_hold_ms)),
            count_share(passes.len() - since_failure),
            count_share(owner_count(&passes[since_failure..])),
            count_share(successes_since),
            count_share(outcomes.len() - since_hold - successes_since),
            count_share(holds_after(self.hold_ms)),
            count_share(passes_after(self.hold_ms)),
            count_share(holds_after(ago(1.0))),
            count_share(holds_after(ago(4.0))),
            count_share(passes_after(ago(1.0))),
            count_share(held.len().saturating_sub(ended.len())),
            rate_of_last_3(outcomes, rate),
        ]);
        rate
    }

    /// Returns the success rate of the last outcomes, with weights that halve with their age,
    /// shrunk to `rate`.
    fn recent_rate(&self, outcomes: &[DatedOutcome], rate: f32) -> f32 {
        let (mut successes, mut decided) = (0.0, 0.0);
        for outcome in outcomes.iter().rev().take(MAX_RECENT) {
            let age = (self.asked_ms - outcome.decided_ms()) as f64 / self.unit_ms;
            let weight = (-age / HALF_LIFE).exp2() as f32;
            decided += weight;
            successes += if outcome.is_success() { weight } else { 0.0 };
        }
        shrunk_rate(successes, decided, rate, 1.0)
    }

    /// Returns 1 for now, 1/2 for one typical hold length ago, and 0 for never.
    fn nearness(&self, time_ms: Option<i64>) -> f32 {
        let Some(time_ms) = time_ms else {
            return 0.0;
        };
        let age_ms = (self.asked_ms - time_ms).max(0) as f64;
        (self.unit_ms / (self.unit_ms + age_ms)) as f32
    }
}

/// Returns the success rate of the last three `outcomes`, shrunk to `rate` by one case.
fn rate_of_last_3(outcomes: &[DatedOutcome], rate: f32) -> f32 {
    let last_3 = &outcomes[outcomes.len().saturating_sub(3)..];
    let successes = last_3.iter().filter(|outcome| outcome.is_success()).count();
    shrunk_rate(successes as f32, last_3.len() as f32, rate, 1.0)
}

/// Returns 1 if the first time is later, -1 if the second is, and 0 if neither is known.
fn newer(first_ms: Option<i64>, second_ms: Option<i64>) -> f32 {
    match first_ms.cmp(&second_ms) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Less => -1.0,
        std::cmp::Ordering::Equal => 0.0,
    }
}

/// Counts the owners of the last `passes`.
fn owner_count(passes: &[Pass]) -> usize {
    let last = passes.iter().rev().take(MAX_OWNERS);
    let mut owners: Vec<u64> = last.map(|pass| pass.owner).collect();
    owners.sort_unstable();
    owners.dedup();
    owners.len()
}

/// Scales a count like the columns of records.
fn count_share(count: usize) -> f32 {
    log_share(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_stores::{TestLog, log_with_outages};

    /// Returns the columns of the first hold of the last job of `log` at second `asked_s`.
    fn columns_at(log: &TestLog, cluster: i32, asked_s: i64) -> Vec<f32> {
        let store = log.store();
        let history = HoldHistory::new(&store);
        let jobs = store.jobs();
        let is_job = |hold: &PastHold| jobs.get(hold.job as usize).cluster == cluster;
        let index = history.holds.iter().position(is_job).expect("a hold");
        columns(&history, index, asked_s * 1000, ReleaseWay::ByItself, 1e9)
    }

    #[test]
    fn successes_since_the_hold_are_seen() {
        let mut log = log_with_outages(2);
        let job = log.add_held(7, 11_500);
        let before = columns_at(&log, job, 11_501);
        let after = columns_at(&log, job, 11_990);
        let value = |values: &[f32], name: &str| {
            let at = column_names().iter().position(|known| known == name);
            values[at.expect(name)]
        };
        assert_eq!(value(&before, "cause_file_successes_since_hold"), 0.0);
        assert!(value(&after, "cause_file_successes_since_hold") > 0.3);
        assert!(value(&after, "cause_file_recent_rate") > value(&before, "cause_code_rate"));
        assert_eq!(column_names().len(), after.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn events_after_the_prediction_time_change_nothing(
            later in proptest::collection::vec((12_010..20_000i64, 1..900i64, any::<bool>(), 7..10u32), 1..20),
        ) {
            let mut log = log_with_outages(2);
            let job = log.add_held(7, 11_500);
            let plain = columns_at(&log, job, 12_000);
            for (held_s, for_s, succeeds, file) in later {
                log.add_released(file, held_s, held_s + for_s, succeeds);
            }
            prop_assert_eq!(plain, columns_at(&log, job, 12_000));
        }
    }
}
