//! The ages of holds that answers have learned from. Beyond them, nothing is known about the odds.

use super::answer_model::AnswerModel;
use super::hold_history::HoldHistory;

/// The ages that were learned by one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LearnedAge {
    /// Age up to which the model has learned, in ms.
    pub(crate) max_ms: i64,
    /// The longest hold that a release has ended, in ms; 0 if none has.
    pub(crate) longest_released_ms: i64,
}

impl LearnedAge {
    /// Returns the ages that `model` has learned, for questions at `asked_ms`.
    pub(crate) fn new(model: &AnswerModel, history: &HoldHistory<'_>, asked_ms: i64) -> LearnedAge {
        let ended = history.holds.iter().filter_map(|hold| {
            let release_ms = hold.release_ms.filter(|&at_ms| at_ms <= asked_ms)?;
            Some(release_ms - hold.hold_ms)
        });
        LearnedAge {
            max_ms: (model.max_age * history.unit_ms(asked_ms)) as i64,
            longest_released_ms: ended.max().unwrap_or(0),
        }
    }

    /// Returns true if a hold has lasted for longer than all that the model has learned from.
    pub(crate) fn is_exceeded_by(&self, held_for_ms: i64) -> bool {
        held_for_ms > self.max_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::TestConfig;
    use test_stores::log_with_outages;

    #[test]
    fn longest_hold_is_known_from_its_release_on() {
        let mut log = log_with_outages(6);
        log.add_released(7, 12_000, 15_000, true);
        let store = log.store();
        let history = HoldHistory::new(&store);
        let model = AnswerModel::learn(
            &history,
            16_000_000,
            &TestConfig::without_prior(),
            1,
            &|| false,
        )
        .expect("learned")
        .expect("outcomes");
        let longest_s =
            |asked_ms| LearnedAge::new(&model, &history, asked_ms).longest_released_ms / 1000;
        assert_eq!(longest_s(14_999_999), 81);
        assert_eq!(longest_s(15_000_000), 3_000);
        let learned = LearnedAge::new(&model, &history, 15_000_000);
        assert!((1..600_000).contains(&learned.max_ms), "{learned:?}");
    }
}
