//! Settles the members of the answers: finds the models that `best_of` names, and completes the settings of networks.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::best_model::BestModel;
use crate::config::Config;
use crate::plan::{BEST_FILE, SWEEP, TrialConfig, trial_dir};
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_holds::config::{AdviceConfig, AnswerMember};

/// Returns the section `advice` of `config` with the pipeline itself, or the network with all of its settings, in
/// place of each member that a sweep has found, or that leaves settings to the configuration.
///
/// # Errors
/// Fails for a directory without a model of held jobs, such as a sweep without a finished trial, and for a network
/// with settings that it cannot have.
pub fn find_members(config: &Config) -> Result<AdviceConfig> {
    let find = |member: &AnswerMember| match member {
        AnswerMember::Pipeline { .. } | AnswerMember::Resolved(_) => Ok(member.clone()),
        AnswerMember::Network { name, parameters } => config.network_member(name, parameters),
        AnswerMember::BestOf(dir) => best_model(dir),
    };
    let members: Result<_> = config.advice.members.iter().map(find).collect();
    Ok(AdviceConfig {
        members: members.context("cannot use `advice.members`")?,
        ..config.advice.clone()
    })
}

/// Returns the best model of the sweep in `dir`, or the model of the trial in it.
fn best_model(dir: &Path) -> Result<AnswerMember> {
    let trial = if dir.join(BEST_FILE).is_file() {
        let best: BestModel = manifest::read_json(&dir.join(BEST_FILE))?;
        trial_dir(dir, best.trial)
    } else {
        let is_sweep = manifest::format_name(dir)?.as_deref() == Some(SWEEP.name);
        ensure!(
            !is_sweep,
            hinted(
                format!("the sweep in `{}` has no best trial yet", dir.display()),
                format!("finish it with `poolcast sweep run {}`", dir.display())
            )
        );
        dir.to_owned()
    };
    let no_model = || {
        hinted(
            format!("`{}` has no model of held jobs", dir.display()),
            "name a sweep over logs, or the directory of one of its trials",
        )
    };
    let config = Config::read(&trial).with_context(no_model)?;
    let member = TrialConfig::new(config)?.answer_member()?;
    member.ok_or_else(|| no_model().into())
}

#[cfg(test)]
mod tests {
    use super::super::best_model::tests::trial;
    use super::*;
    use poolcast_base::error::render;
    use poolcast_config::Metric;
    use std::collections::BTreeMap;

    fn config(text: &str) -> Config {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("c.yaml");
        fs_err::write(&file, text).expect("written");
        Config::load(Some(&file), &BTreeMap::new()).expect("a configuration")
    }

    fn found(dir: &Path) -> Result<Vec<AnswerMember>> {
        let mut config = config("{}");
        config.advice.members = vec![AnswerMember::BestOf(dir.to_owned())];
        Ok(find_members(&config)?.members)
    }

    #[test]
    fn pipeline_of_a_trial_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let config = config("pipelines: {ridge: {parameters: {C: 0.5}}}");
        config.write(dir.path()).expect("written");
        let members = found(dir.path()).expect("found");
        let [AnswerMember::Pipeline { name, parameters }] = &members[..] else {
            panic!("{members:?}");
        };
        assert_eq!((&**name, parameters["C"].as_f64()), ("ridge", Some(0.5)));
    }

    #[test]
    fn best_network_of_a_sweep_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let metric: Metric = serde_json::from_value(
            serde_json::json!({"name": "validation_loss", "goal": "minimize"}),
        )
        .expect("a metric");
        let best = BestModel::choose(&metric, vec![trial(1, Some(0.5), None)]).expect("chosen");
        manifest::write_json(&dir.path().join(BEST_FILE), &best).expect("written");
        let trial = trial_dir(dir.path(), 1);
        fs_err::create_dir_all(&trial).expect("made");
        let outcomes = "training: {parameters: {model: outcomes, hidden_size: 7}}";
        config(outcomes).write(&trial).expect("written");
        let same = config("training: {parameters: {hidden_size: 9}}");
        let same = same.network_member(
            "outcomes",
            &BTreeMap::from([("hidden_size".to_owned(), 7.into())]),
        );
        assert_eq!(
            found(dir.path()).expect("found"),
            [same.expect("a network")]
        );
    }

    #[test]
    fn other_directories_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let nothing = render(&found(dir.path()).expect_err("rejected"));
        assert!(
            nothing.contains("config.yaml") && nothing.contains("has no model"),
            "{nothing}"
        );
    }

    #[test]
    fn networks_with_wrong_settings_are_rejected() {
        let member = |space: &str, values: &[(&str, serde_json::Value)]| {
            let values = values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()));
            let member = config(space).network_member("lstm", &values.collect());
            render(&member.expect_err("rejected"))
        };
        for (text, reason) in [
            (
                member("{}", &[("trees", 9.into())]),
                "no hyper-parameter `trees`",
            ),
            (
                member("{}", &[("model", "gru".into())]),
                "no hyper-parameter `model`",
            ),
            (member("{}", &[("hidden_size", 0.into())]), "`hidden_size`"),
            (member("{}", &[("context", "near".into())]), "`context`"),
            (
                member(
                    "training: {parameters: {hidden_size: {values: [8, 16]}}}",
                    &[],
                ),
                "`hidden_size`",
            ),
        ] {
            assert!(text.contains(reason), "{text}");
        }
    }
}
