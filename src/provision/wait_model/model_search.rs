//! Checks the search space of a sweep over wait models: each hyper-parameter must belong to a model
//! kind that is tried.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::model_settings::{FEATURE_KINDS, has_parameter};
use crate::config::ProvisionConfig;
use poolcast_base::error::hinted;
use poolcast_config::{WaitModelName, nearest, quote_words};
use poolcast_pipelines::hyper_parameter_names;

/// Rejects a search space in which a hyper-parameter belongs to no model kind that is tried. Also
/// rejects model kinds that need a base model.
///
/// # Errors
/// Names the hyper-parameter, and the most similar valid one.
pub fn check_model_search(provision: &ProvisionConfig) -> Result<()> {
    let kinds = provision.tried_kinds()?;
    ensure!(
        !kinds.contains(&WaitModelName::PolicyGradient),
        hinted(
            "a sweep cannot try `policy_gradient`, which needs a base model",
            "find the base by a sweep, then train its head with `poolcast provision train --model policy_gradient --base MODEL`"
        )
    );
    for name in provision.model.of_pipeline().keys() {
        check_parameter_name(&kinds, name)?;
    }
    Ok(())
}

/// Rejects the hyper-parameter `written` if none of `kinds` has it.
fn check_parameter_name(kinds: &[WaitModelName], written: &str) -> Result<()> {
    // A prefix such as `xgb.` restricts a hyper-parameter to one kind.
    let (kinds, name) = match written.split_once('.') {
        None => (kinds.to_vec(), written),
        Some((of, name)) => {
            let mut own = kinds.to_vec();
            own.retain(|kind| kind.to_string() == of);
            let tried: Vec<String> = kinds.iter().map(WaitModelName::to_string).collect();
            let tried: Vec<&str> = tried.iter().map(String::as_str).collect();
            ensure!(
                !own.is_empty(),
                hinted(
                    format!(
                        "`provision.model.parameters` has `{written}`, and `{of}` is not among the models"
                    ),
                    format!("the models are {}", quote_words(&tried))
                )
            );
            (own, name)
        }
    };
    if kinds.iter().any(|kind| has_parameter(*kind, name)) {
        return Ok(());
    }
    let tried: BTreeSet<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
    let mut known = BTreeSet::new();
    for kind in kinds.iter().filter(|kind| FEATURE_KINDS.contains(kind)) {
        known.extend(hyper_parameter_names(&kind.to_string())?);
    }
    let tried: Vec<&str> = tried.iter().map(String::as_str).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None if known.is_empty() => {
            "only `xgb`, `rf` and `nn` have hyper-parameters; remove it".to_owned()
        }
        None => format!("the hyper-parameters are {}", quote_words(&known)),
    };
    Err(hinted(
        format!(
            "`provision.model.parameters` has `{written}`, which is not a hyper-parameter of {}",
            tried.join(" or ")
        ),
        hint,
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_config::layers;

    fn check(model: &str) -> Result<()> {
        #[derive(serde::Deserialize)]
        struct Keys {
            provision: ProvisionConfig,
        }
        let flags = [("provision.model", serde_json::from_str(model)?)];
        let keys: Keys = layers::merge(&[], "the configuration", &flags.into())?;
        keys.provision.check()?;
        check_model_search(&keys.provision)
    }

    #[test]
    fn hyper_parameters_of_untried_kinds_are_rejected() {
        let refusal =
            |model: &str| poolcast_base::error::render(&check(model).expect_err("refused"));
        let both = r#"{"name": {"values": ["xgb", "rf"]}, "parameters": {"NAME": 0.5}}"#;
        for known in [
            "max_features",
            "subsample",
            "n_estimators",
            "rf.max_features",
        ] {
            check(&both.replace("NAME", known)).expect("of one of them");
        }
        for (name, said) in [
            ("sub_sample", "did you mean `subsample`?"),
            ("alpha", "not a hyper-parameter of `rf` or `xgb`"),
            ("rf.subsample", "has `rf.subsample`, which is not a"),
            ("nn.alpha", "`nn` is not among the models"),
        ] {
            let refusal = refusal(&both.replace("NAME", name));
            assert!(refusal.contains(said), "{refusal}");
        }
        let network = r#"{"name": "lstm", "parameters": {"max_depth": 3}}"#;
        assert!(refusal(network).contains("only `xgb`, `rf` and `nn` have"));
        let head = r#"{"name": {"values": ["xgb", "policy_gradient"]}}"#;
        assert!(refusal(head).contains("cannot try `policy_gradient`"));
    }

    #[test]
    fn values_outside_the_table_are_rejected() {
        for (model, said) in [
            (r#"{"name": "transfomer"}"#, "did you mean `transformer`?"),
            (
                r#"{"size": {"values": ["small", "large"]}}"#,
                "provision.model.size",
            ),
            (
                r#"{"batch_size": {"values": [8, 0]}}"#,
                "`provision.model.batch_size` must be between 1 and 1000000, got 0",
            ),
            (
                r#"{"epochs": 2.5}"#,
                "`provision.model.epochs` must be a whole number, got 2.5",
            ),
            (r#"{"paramters": {}}"#, "did you mean `parameters`?"),
        ] {
            let refusal = poolcast_base::error::render(&check(model).expect_err("refused"));
            assert!(refusal.contains(said), "{refusal}");
        }
        check(r#"{"learning_rate": null, "epochs": null}"#).expect("both are optional");
    }
}
