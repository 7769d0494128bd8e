//! Conversions between logits and probabilities.

/// Returns the logistic function of `logit`, in one step for all logits. For a logit of less than
/// about -709 it is 0.
#[inline]
pub fn sigmoid(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Returns the logistic function of `logit`, computed so that no exponential overflows. Negative
/// logits keep their precision, and their results differ from [`sigmoid`] in the last
/// bits.
#[inline]
pub fn stable_sigmoid(logit: f64) -> f64 {
    if logit >= 0.0 {
        sigmoid(logit)
    } else {
        logit.exp() / (1.0 + logit.exp())
    }
}

/// Maximum absolute logit of a probability, for probabilities rounded to 0 or 1.
const MAX_LOGIT: f64 = 16.0;

/// Returns the logit of a probability. It is finite even for 0 and 1.
pub fn logit(probability: f64) -> f32 {
    let logit = (probability / (1.0 - probability)).ln();
    logit.clamp(-MAX_LOGIT, MAX_LOGIT) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_sigmoids_are_positive_where_the_exponential_overflows() {
        assert_eq!((sigmoid(-720.0), stable_sigmoid(720.0)), (0.0, 1.0));
        assert!(stable_sigmoid(-720.0) > 0.0);
        for logit in [-30.0, -1.0, 0.0, 2.0] {
            let ratio = stable_sigmoid(logit) / sigmoid(logit);
            assert!((ratio - 1.0).abs() < 1e-14, "{logit}: {ratio}");
        }
    }
}
