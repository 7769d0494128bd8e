//! Submission policies that use a learned model.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::policies::{QueriedTime, SubmissionChoice, SubmissionPolicy};
use crate::model_inputs::feature_names;
use crate::wait_model::{ModelAnswer, WaitModel};
use poolcast_base::error::hinted;

/// Submits once the wait that a model predicts is as long as the predecessor's remaining time. With
/// a model that decides, submits once the model decides to.
pub struct LearnedPolicy {
    /// The model.
    pub model: Arc<WaitModel>,
    /// Index of the model among all queried models.
    pub number: usize,
    /// Index of the cost ratio of this policy; `None` for a model that decides.
    pub ratio: Option<usize>,
}

/// Returns the name of a model in tables and files: its kind, and the kind of its base.
pub fn model_name(model: &WaitModel) -> String {
    let description = model.description();
    match description.base {
        Some(base) => format!("{}-{base}", description.kind),
        None => description.kind.to_string(),
    }
}

/// Rejects a model that was trained on features other than this program's.
///
/// # Errors
/// Fails for such a model.
pub fn check_features(model: &WaitModel) -> Result<()> {
    ensure!(
        model.description().feature_names == feature_names(),
        hinted(
            format!(
                "the model {} was trained on other features than this program computes",
                model_name(model)
            ),
            "create its samples again with `poolcast provision samples`, and train it again"
        )
    );
    Ok(())
}

impl LearnedPolicy {
    /// Returns the policies of `model`, the model with index `number` among all queried models.
    pub fn from_model(model: &Arc<WaitModel>, number: usize) -> Vec<LearnedPolicy> {
        let policy = |ratio| LearnedPolicy {
            model: Arc::clone(model),
            number,
            ratio,
        };
        if model.decides() {
            return vec![policy(None)];
        }
        let ratios = 0..model.description().cost_ratios.len();
        ratios.map(|ratio| policy(Some(ratio))).collect()
    }

    /// Returns the cost of an hour of interruption, in hours of overlap.
    pub fn cost_ratio(&self) -> f64 {
        let ratios = &self.model.description().cost_ratios;
        self.ratio.map_or(1.0, |ratio| ratios[ratio])
    }
}

impl SubmissionPolicy for LearnedPolicy {
    fn name(&self) -> String {
        let model = model_name(&self.model);
        match self.ratio {
            Some(_) => format!("{model}-{}", self.cost_ratio()),
            None => model,
        }
    }

    fn choose(&self, time: &QueriedTime<'_>) -> SubmissionChoice {
        match (time.model_answer(self.number, &self.model), self.ratio) {
            (ModelAnswer::Waits { waits_s }, ratio) => time.choose(waits_s[ratio.unwrap_or(0)]),
            (ModelAnswer::Decision { submit: true }, _) => {
                SubmissionChoice::Now { expected_s: 0.0 }
            }
            (ModelAnswer::Decision { submit: false }, _) => SubmissionChoice::NotYet,
        }
    }
}
