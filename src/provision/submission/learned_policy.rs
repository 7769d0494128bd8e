//! Policies that a model has learned.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::policies::{AskedMoment, SubmissionChoice, SubmissionPolicy};
use poolcast_base::error::hinted;
use crate::model_inputs::feature_names;
use crate::wait_model::{ModelAnswer, WaitModel};

/// Submits once the wait that a model expects is as long as the predecessor has left, or once the
/// model says so.
pub struct LearnedPolicy {
    /// The model.
    pub model: Arc<WaitModel>,
    /// Its number among the models that are asked.
    pub number: usize,
    /// Which of its cost ratios this policy is for; `None` for a model that decides by itself.
    pub ratio: Option<usize>,
}

/// What a model is called in tables and files: its kind, and that of what it stands on.
pub fn model_name(model: &WaitModel) -> String {
    let description = model.description();
    match description.base {
        Some(base) => format!("{}-{base}", description.kind),
        None => description.kind.to_string(),
    }
}

/// Refuses a model that was told other features of a queue than this program finds.
///
/// # Errors
/// Fails for such a model.
pub fn check_features(model: &WaitModel) -> Result<()> {
    ensure!(
        model.description().feature_names == feature_names(),
        hinted(
            format!(
                "the model {} knows other features of a queue than this program",
                model_name(model)
            ),
            "make its samples and the model anew"
        )
    );
    Ok(())
}

impl LearnedPolicy {
    /// The policies of `model`, which is the model `number` of those that are asked.
    pub fn all_of(model: &Arc<WaitModel>, number: usize) -> Vec<LearnedPolicy> {
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

    /// An hour of interruption costs as much as so many of overlap.
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

    fn choose(&self, asked: &AskedMoment<'_>) -> SubmissionChoice {
        match (asked.model_answer(self.number, &self.model), self.ratio) {
            (ModelAnswer::Waits { waits_s }, ratio) => asked.choose(waits_s[ratio.unwrap_or(0)]),
            (ModelAnswer::Decision { submit: true }, _) => {
                SubmissionChoice::Now { expected_s: 0.0 }
            }
            (ModelAnswer::Decision { submit: false }, _) => SubmissionChoice::NotYet,
        }
    }
}
