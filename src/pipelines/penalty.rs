//! The penalties of the linear models, by pipeline.

use anyhow::Result;
use serde::Deserialize;

use super::hyper_parameters::{HyperParameters, read_settings};
use super::pipeline_kind::PipelineKind;
use super::solvers::objective::ElasticNetPenalty;

/// Hyper-parameters of the pipeline `enet`.
#[derive(Deserialize)]
struct ElasticNetSettings {
    #[serde(rename = "C")]
    c: f64,
    l1_ratio: f64,
}

/// Hyper-parameters of the pipelines `lasso` and `ridge`.
#[derive(Deserialize)]
struct OnePenaltySettings {
    #[serde(rename = "C")]
    c: f64,
}

/// Returns an L1 penalty for `lasso`, an L2 penalty for `ridge`, a mixture for `enet`.
pub(super) fn linear_penalty(
    kind: PipelineKind,
    parameters: &HyperParameters,
) -> Result<ElasticNetPenalty> {
    if kind == PipelineKind::ElasticNet {
        let ElasticNetSettings { c, l1_ratio } = read_settings(parameters)?;
        return Ok(ElasticNetPenalty { c, l1_ratio });
    }

    let OnePenaltySettings { c } = read_settings(parameters)?;
    let l1_ratio = if kind == PipelineKind::Lasso {
        1.0
    } else {
        0.0
    };
    Ok(ElasticNetPenalty { c, l1_ratio })
}
