//! What a sweep over samples of waits is to try → whether each of its keys counts for a kind of model
//! that is tried.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::model_settings::{FEATURE_KINDS, has_parameter};
use crate::config::{WaitModelConfig, WaitModelName, nearest, quote_words};
use crate::error::hinted;
use crate::pipelines::hyper_parameter_names;

/// Refuses a search of `model` in which a hyper-parameter belongs to no kind that is tried, and one of
/// models that need another one.
///
/// # Errors
/// Names the hyper-parameter, and the nearest that there is.
pub fn check_model_search(model: &WaitModelConfig) -> Result<()> {
    let kinds = model.kinds()?;
    ensure!(
        !kinds.contains(&WaitModelName::PolicyGradient),
        hinted(
            "`policy_gradient` is a head for a model, and trials of a sweep have none to begin with",
            "find the model by a sweep, and train its head with `poolcast provision train --model policy_gradient --base MODEL`"
        )
    );
    for name in model.parameters.keys() {
        check_parameter_name(&kinds, name)?;
    }
    Ok(())
}

fn check_parameter_name(kinds: &[WaitModelName], name: &str) -> Result<()> {
    if kinds.iter().any(|kind| has_parameter(*kind, name)) {
        return Ok(());
    }
    let tried: BTreeSet<String> = kinds.iter().map(WaitModelName::to_string).collect();
    let mut known = BTreeSet::new();
    for kind in kinds.iter().filter(|kind| FEATURE_KINDS.contains(kind)) {
        known.extend(hyper_parameter_names(&kind.to_string())?);
    }
    let tried: Vec<&str> = tried.iter().map(String::as_str).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None if known.is_empty() => "they are for `xgb`, `rf` and `nn`; leave them out".to_owned(),
        None => format!("they have {}", quote_words(&known)),
    };
    Err(hinted(
        format!(
            "`provision.model.parameters` has `{name}`, and no kind that is tried has such a hyper-parameter: {}",
            quote_words(&tried)
        ),
        hint,
    )
    .into())
}
