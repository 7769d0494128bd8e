//! The mean in logit of the probabilities of several members.

use poolcast_base::stats::stable_sigmoid;

/// Minimum distance of a probability from 0 and from 1 in a mean and in a logarithmic loss: one step of the
/// calibration. A member that is certain would else silence the others.
const MIN_DISTANCE: f64 = 1.0 / 200.0;

/// Returns the mean in logit of `probabilities`, whatever their order. A single one is returned as it is.
pub(super) fn mean_in_logit(probabilities: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = probabilities.collect();
    if let [only] = all[..] {
        return only;
    }
    // A sum of floating-point numbers depends on their order.
    all.sort_unstable_by(f64::total_cmp);
    let logits = all.iter().map(|p| logit_of(*p));
    stable_sigmoid(logits.sum::<f64>() / all.len() as f64)
}

/// Returns the logarithmic loss of the probability of a success.
pub(crate) fn log_loss(probability: f64, is_success: bool) -> f64 {
    let success = bounded(probability);
    -(if is_success { success } else { 1.0 - success }).ln()
}

fn logit_of(probability: f64) -> f64 {
    let probability = bounded(probability);
    (probability / (1.0 - probability)).ln()
}

fn bounded(probability: f64) -> f64 {
    probability.clamp(MIN_DISTANCE, 1.0 - MIN_DISTANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean(probabilities: &[f64]) -> f64 {
        mean_in_logit(probabilities.iter().copied())
    }

    #[test]
    fn mean_is_of_logits() {
        assert_eq!(mean(&[0.3]), 0.3, "one member is not changed");
        assert_eq!(mean(&[1.0]), 1.0);
        assert!((mean(&[0.2, 0.8]) - 0.5).abs() < 1e-12);
        // The odds are 1/9 and 1, and their geometric mean 1/3.
        assert!((mean(&[0.1, 0.5]) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn certain_member_does_not_silence_the_others() {
        assert!(mean(&[0.0, 0.9]) > 0.1);
        assert!((mean(&[0.0, 1.0]) - 0.5).abs() < 1e-12);
        assert!(log_loss(0.0, true) < 6.0);
        assert!(log_loss(0.9, true) < log_loss(0.9, false));
    }

    proptest! {
        #[test]
        fn order_of_members_does_not_matter(
            mut members in proptest::collection::vec(0.0..=1.0f64, 1..8),
            turn in 0usize..8,
        ) {
            let before = mean(&members);
            prop_assert!((0.0..=1.0).contains(&before));
            let places = turn % members.len();
            members.rotate_left(places);
            prop_assert_eq!(mean(&members), before);
            members.reverse();
            prop_assert_eq!(mean(&members), before);
        }
    }
}
