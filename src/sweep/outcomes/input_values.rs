//! The best value that models reach with each input: the frames alone, outcomes of related jobs
//! alone, static features, and all together.

use serde::Serialize;

use super::best_model::{BestModel, best_by};
use super::best_trial::BestTrial;
use poolcast_models::find_architecture;

/// The inputs of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// The frames, without static features.
    Frames,
    /// Outcome tokens.
    Outcomes,
    /// Static features, with the frames or counts of them.
    Statics,
}

/// The best trial of the models with one input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InputValue {
    /// The input.
    pub input: InputKind,
    /// The best of their trials, by the metric of the choice; `None` if there is none with a value.
    pub best: Option<BestTrial>,
}

impl InputKind {
    /// All inputs.
    pub const ALL: [InputKind; 3] = [InputKind::Frames, InputKind::Outcomes, InputKind::Statics];

    /// The input of the network or pipeline with this name.
    fn of_model(model: &str) -> InputKind {
        match find_architecture(model) {
            Ok(network) if network.takes_tokens() => InputKind::Outcomes,
            Ok(network) if !network.takes_statics() => InputKind::Frames,
            _ => InputKind::Statics,
        }
    }

    /// The name of the input in reports.
    pub fn title(self) -> &'static str {
        match self {
            InputKind::Frames => "frames alone",
            InputKind::Outcomes => "outcomes alone",
            InputKind::Statics => "static features, with the frames",
        }
    }

    /// The settings with which a search also has models of this input.
    pub fn setting(self) -> &'static str {
        match self {
            InputKind::Frames => "model: lstm",
            InputKind::Outcomes => "model: outcomes",
            InputKind::Statics => "pipelines: {enet: {}, et: {}}",
        }
    }
}

impl BestModel {
    /// Returns the best trial of each input.
    pub fn best_by_input(&self) -> Vec<InputValue> {
        let of_input = |input| {
            let trials = self.trials.iter();
            let trials = trials.filter(|trial| InputKind::of_model(&trial.model) == input);
            InputValue {
                input,
                best: best_by(&self.metric, trials)
                    .map(|(trial, value)| BestTrial { trial, value }),
            }
        };
        InputKind::ALL.map(of_input).into()
    }

    /// The value of the model that answers: the ensemble's, or the best trial's.
    pub fn answering_value(&self) -> f64 {
        self.ensemble
            .as_ref()
            .map_or(self.value, |ensemble| ensemble.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcomes::best_model::TrialResult;
    use crate::outcomes::best_model::tests::trial;
    use poolcast_config::{Goal, Metric, MetricName};

    #[test]
    fn each_input_has_its_best_trial() {
        let metric = Metric {
            name: MetricName::ValidationLoss,
            goal: Goal::Minimize,
            reported: None,
            target: None,
        };
        let of_model = |number, model: &str, loss| TrialResult {
            model: model.to_owned(),
            ..trial(number, Some(loss), None)
        };
        let trials = vec![
            of_model(1, "lstm", 0.7),
            of_model(2, "et", 0.5),
            of_model(3, "lstm+static", 0.4),
            of_model(4, "gru", 0.6),
        ];
        let best = BestModel::choose(&metric, trials).expect("chosen");
        let found: Vec<_> = best.best_by_input();
        let trials: Vec<Option<usize>> = found
            .into_iter()
            .map(|of_input| of_input.best.map(|best| best.trial))
            .collect();
        assert_eq!(trials, [Some(4), None, Some(3)]);
        assert_eq!(best.answering_value(), 0.4);
    }
}
