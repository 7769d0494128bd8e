//! The sections `parse`, `evaluation` and `advice`.

use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::answer_member::{AnswerMember, check_members, default_members};
use poolcast_config::check_range;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct ParseConfig {
    pub ap: Option<String>,
    pub year: Option<i16>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct EvaluationConfig {
    pub resamples: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct AdviceConfig {
    pub precision: f64,
    pub probable_precision: f64,
    pub cost: Option<AdviceCost>,
    pub remove_from_holds: usize,
    pub rehearsed_models: u32,
    #[serde(default = "members_of_earlier_versions")]
    pub members: Vec<AnswerMember>,
    pub prior: bool,
    #[serde(default)]
    pub site_model: Option<PathBuf>,
}

/// Costs of mistakes, all in the same unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct AdviceCost {
    pub wasted_run: f64,
    pub lost_success: f64,
}

fn members_of_earlier_versions() -> Vec<AnswerMember> {
    default_members().unwrap_or_default()
}

impl AdviceConfig {
    /// Rejects values out of range.
    pub fn check(&self) -> Result<()> {
        check_range("advice.precision", self.precision, 0.5..=1.0)?;
        check_range(
            "advice.probable_precision",
            self.probable_precision,
            0.5..=self.precision,
        )?;
        check_range(
            "advice.rehearsed_models",
            f64::from(self.rehearsed_models),
            1.0..=1000.0,
        )?;
        check_members(&self.members)?;
        if let Some(cost) = self.cost {
            check_range("advice.cost.wasted_run", cost.wasted_run, 1e-9..=1e9)?;
            check_range("advice.cost.lost_success", cost.lost_success, 1e-9..=1e9)?;
        }
        Ok(())
    }
}
