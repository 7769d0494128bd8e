//! Finds the pipelines that `best_of` names among the members of the answers.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::best_model::{BestModel, best_by};
use crate::attempts::PipelineTask;
use crate::config::Config;
use crate::plan::{BEST_FILE, SWEEP, trial_dir};
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_holds::config::{AdviceConfig, AnswerMember};

/// Returns `advice` with the pipeline itself in place of each member that a sweep has found.
///
/// # Errors
/// Fails for a directory without a pipeline, such as a sweep of networks only, or one without a finished trial.
pub fn find_members(advice: &AdviceConfig) -> Result<AdviceConfig> {
    let find = |member: &AnswerMember| match member {
        AnswerMember::Pipeline { .. } => Ok(member.clone()),
        AnswerMember::BestOf(dir) => best_pipeline(dir),
    };
    let members: Result<_> = advice.members.iter().map(find).collect();
    Ok(AdviceConfig {
        members: members.context("cannot use `advice.members`")?,
        ..advice.clone()
    })
}

/// Returns the best pipeline of the sweep in `dir`, or the pipeline of the trial in it.
fn best_pipeline(dir: &Path) -> Result<AnswerMember> {
    let trial = if dir.join(BEST_FILE).is_file() {
        best_trial_of_pipeline(dir)?.map(|trial| trial_dir(dir, trial))
    } else {
        let is_sweep = manifest::format_name(dir)?.as_deref() == Some(SWEEP.name);
        ensure!(
            !is_sweep,
            hinted(
                format!("the sweep in `{}` has no best trial yet", dir.display()),
                format!("finish it with `poolcast sweep run {}`", dir.display())
            )
        );
        Some(dir.to_owned())
    };
    let no_pipeline = || {
        hinted(
            format!(
                "`{}` has no pipeline; networks cannot answer yet",
                dir.display()
            ),
            "name a sweep with `pipelines`, or the directory of one of its trials",
        )
    };
    let trial = trial.with_context(no_pipeline)?;
    let config = Config::read(&trial).with_context(no_pipeline)?;
    let task = PipelineTask::from_config(&config)?.with_context(no_pipeline)?;
    Ok(AnswerMember::Pipeline {
        name: task.pipeline,
        parameters: task.parameters,
    })
}

/// Returns the best trial of a pipeline of the sweep in `dir`; `None` if there is none.
fn best_trial_of_pipeline(dir: &Path) -> Result<Option<usize>> {
    let best: BestModel = manifest::read_json(&dir.join(BEST_FILE))?;
    let pipelines = best.trials.iter().filter(|trial| trial.fit.is_some());
    Ok(best_by(&best.metric, pipelines).map(|(trial, _)| trial))
}

#[cfg(test)]
mod tests {
    use super::super::best_model::tests::trial;
    use super::*;
    use poolcast_base::error::render;
    use poolcast_config::Metric;
    use std::collections::BTreeMap;

    fn found(dir: &Path) -> Result<Vec<AnswerMember>> {
        let config = Config::load(None, &BTreeMap::new())?;
        let advice = AdviceConfig {
            members: vec![AnswerMember::BestOf(dir.to_owned())],
            ..config.advice
        };
        Ok(find_members(&advice)?.members)
    }

    #[test]
    fn pipeline_of_a_trial_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("c.yaml");
        fs_err::write(&file, "pipelines: {ridge: {parameters: {C: 0.5}}}").expect("written");
        let config = Config::load(Some(&file), &BTreeMap::new()).expect("a configuration");
        config.write(dir.path()).expect("written");
        let members = found(dir.path()).expect("found");
        let [AnswerMember::Pipeline { name, parameters }] = &members[..] else {
            panic!("{members:?}");
        };
        assert_eq!((&**name, parameters["C"].as_f64()), ("ridge", Some(0.5)));
    }

    #[test]
    fn sweep_of_networks_and_other_directories_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let nothing = render(&found(dir.path()).expect_err("rejected"));
        assert!(
            nothing.contains("config.yaml") && nothing.contains("has no pipeline"),
            "{nothing}"
        );

        let metric: Metric = serde_json::from_value(
            serde_json::json!({"name": "validation_loss", "goal": "minimize"}),
        )
        .expect("a metric");
        let best = BestModel::choose(&metric, vec![trial(1, Some(0.5), None)]).expect("chosen");
        manifest::write_json(&dir.path().join(BEST_FILE), &best).expect("written");
        let networks = render(&found(dir.path()).expect_err("rejected"));
        assert!(
            networks.contains("networks cannot answer yet"),
            "{networks}"
        );
    }
}
