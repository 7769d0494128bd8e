//! Regression scores: predicted numbers against the true numbers of rows.

use serde::{Deserialize, Serialize};

use poolcast_config::MetricName;
use poolcast_tables::RowNumbers;

/// Scores of one set of predictions. An undefined score is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberScores {
    /// Mean squared error, or pinball loss of a quantile, which models minimise.
    pub loss: Option<f64>,
    /// Mean absolute error.
    pub mae: Option<f64>,
    /// Root of the mean squared error.
    pub rmse: Option<f64>,
    /// R², the coefficient of determination. 1 means no error, 0 means no better than the mean of
    /// these rows.
    pub r2: Option<f64>,
}

impl NumberScores {
    /// Names of the scores, in the order of [`NumberScores::values`].
    pub const NAMES: [&'static str; 3] = ["mae", "rmse", "r2"];

    /// Scores the values `predicted` `[n]` for rows with these `numbers`.
    pub fn compute(predicted: &[f64], numbers: &RowNumbers) -> NumberScores {
        let truth = &numbers.y;
        let n = truth.len() as f64;
        let mean = truth.iter().sum::<f64>() / n;
        let mut absolute = 0.0;
        let mut squared = 0.0;
        let mut around_mean = 0.0;
        for (truth, predicted) in truth.iter().zip(predicted) {
            absolute += (truth - predicted).abs();
            squared += (truth - predicted).powi(2);
            around_mean += (truth - mean).powi(2);
        }

        let known = |value: f64| Some(value).filter(|value| value.is_finite());
        NumberScores {
            loss: known(numbers.loss.mean(truth, predicted)),
            mae: known(absolute / n),
            rmse: known((squared / n).sqrt()),
            r2: known(1.0 - squared / around_mean),
        }
    }

    /// The scores in the order of [`NumberScores::NAMES`].
    pub fn values(&self) -> [Option<f64>; NumberScores::NAMES.len()] {
        [self.mae, self.rmse, self.r2]
    }

    /// The score that a sweep chooses by. `None` for a score of classes.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        match name {
            MetricName::ValidationLoss => self.loss,
            MetricName::ValidationMae => self.mae,
            MetricName::ValidationRmse => self.rmse,
            MetricName::ValidationR2 => self.r2,
            MetricName::ValidationRocAuc
            | MetricName::ValidationAveragePrecision
            | MetricName::ValidationFMeasure
            | MetricName::ValidationAccuracy
            | MetricName::ValidationBrier
            | MetricName::HeldBackPinball
            | MetricName::HeldBackCost
            | MetricName::AnswersLogLoss
            | MetricName::Reported => None,
        }
    }

    /// The mean of each score over the elements of `all` in which it is defined.
    pub fn mean(all: &[NumberScores]) -> NumberScores {
        let mean_of = |score: fn(&NumberScores) -> Option<f64>| {
            let defined: Vec<f64> = all.iter().filter_map(score).collect();
            (!defined.is_empty()).then(|| defined.iter().sum::<f64>() / defined.len() as f64)
        };
        NumberScores {
            loss: mean_of(|one| one.loss),
            mae: mean_of(|one| one.mae),
            rmse: mean_of(|one| one.rmse),
            r2: mean_of(|one| one.r2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_tables::NumberLoss;

    /// Expected values from scikit-learn 1.9.1 for these numbers: `mean_absolute_error`,
    /// `mean_squared_error`, `mean_pinball_loss(alpha=0.9)` and `r2_score`.
    #[test]
    fn scores_of_numbers() {
        let scores = |loss| {
            let y = vec![3.0, -0.5, 2.0, 7.0];
            NumberScores::compute(&[2.5, 0.0, 2.0, 8.0], &RowNumbers { y, loss })
        };
        let squared = scores(NumberLoss::Squared);
        assert_eq!(squared.loss, Some(0.375));
        assert_eq!(squared.mae, Some(0.5));
        assert_eq!(squared.rmse, Some(0.375_f64.sqrt()));
        let r2 = squared.r2.expect("defined");
        assert!((r2 - 0.948_608_137_044_967_9).abs() < 1e-12, "{r2}");
        let pinball = scores(NumberLoss::Pinball { quantile: 0.9 });
        assert!((pinball.loss.expect("defined") - 0.15).abs() < 1e-12);
        assert_eq!((pinball.mae, pinball.r2), (squared.mae, squared.r2));
    }

    #[test]
    fn a_mean_skips_undefined_scores() {
        let of = |y: Vec<f64>| {
            let loss = NumberLoss::Squared;
            NumberScores::compute(&[1.0, 2.0], &RowNumbers { y, loss })
        };
        let alike = of(vec![2.0, 2.0]);
        assert_eq!((alike.r2, alike.mae), (None, Some(0.5)));
        let mean = NumberScores::mean(&[alike, of(vec![1.0, 2.0])]);
        assert_eq!((mean.r2, mean.mae), (Some(1.0), Some(0.25)));
    }
}
