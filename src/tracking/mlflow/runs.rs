//! Sends runs to an MLflow tracking server by its REST interface, each of them once.
//!
//! Each run carries its id as a tag. Before the sender creates a run, it searches for that tag,
//! also after a lost answer to a creation. All other requests are repeatable, because the server
//! stores identical entries (with the same time) once.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use super::batch::{LogBatch, ServerRun, milliseconds, missing_batches};
use crate::runs::{DATA, DIGEST, TrackedOutcome, TrackedRun};
use crate::server::SendError;
use poolcast_base::error::hinted;
use poolcast_base::escape;

/// Tag with the id of a run.
const RUN_TAG: &str = "poolcast.run_id";

/// Maximum number of tries to create a run or an experiment.
const MAX_CREATE_TRIES: usize = 5;

/// Effect of repeating a request after a lost answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    /// A repeated request has no further effect.
    Harmless,
    /// A repeated request would create a duplicate.
    CreatesDuplicate,
}

/// Sends a request: its path after `/api/2.0/mlflow/`, and its body.
pub(super) type PostRequest<'a> =
    dyn FnMut(&str, &Value, Repetition) -> Result<Value, SendError> + 'a;

/// The runs of one experiment, with the known state on the server.
#[derive(Debug)]
pub(super) struct MlflowRuns {
    experiment_id: String,
    /// The run of the sweep, below which its trials are.
    sweep: SweepOnServer,
    /// The server's data of runs, by poolcast's run id.
    known: BTreeMap<String, ServerRun>,
}

/// The run of a sweep on the server.
#[derive(Debug)]
enum SweepOnServer {
    /// It was not sent yet by this sender.
    NotSent,
    /// There is none: a single run, or a user has deleted it there.
    None,
    /// The server's id of it.
    Run(String),
}

/// Result of sending one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// The server has the whole run.
    Whole {
        /// Epochs that are new on the server.
        new_epochs: usize,
        /// True if anything was sent.
        is_new: bool,
    },
    /// A user has deleted the run on the server, so nothing was sent.
    Deleted,
}

impl MlflowRuns {
    /// Opens the experiment `name`, and creates it if it does not exist.
    ///
    /// # Errors
    /// Fails if the server rejects a request or does not answer, or if the experiment was deleted.
    pub(super) fn open(post: &mut PostRequest<'_>, name: &str) -> Result<MlflowRuns> {
        Ok(MlflowRuns {
            experiment_id: find_or_create_experiment(post, &replace_quotes(name))?,
            sweep: SweepOnServer::NotSent,
            known: BTreeMap::new(),
        })
    }

    /// Sends what the server lacks of `run`.
    ///
    /// # Errors
    /// Fails if the server rejects a request or does not answer. The next call for this run then
    /// asks the server for its state again.
    pub(super) fn send(
        &mut self,
        post: &mut PostRequest<'_>,
        run: &TrackedRun,
    ) -> Result<SendOutcome> {
        let mut is_new = false;
        // Remove the entry, and put it back at the end. After an error it is missing, so the next
        // call asks the server again.
        let known = match self.known.remove(&run.run_id) {
            Some(server) => Some(server),
            None => find_run(post, &self.experiment_id, &run.run_id)?,
        };
        let mut server = match known {
            Some(server) => server,
            None => {
                is_new = true;
                create_run(post, self.new_run(run), &self.experiment_id, &run.run_id)?
            }
        };
        if server.is_deleted {
            return Ok(SendOutcome::Deleted);
        }

        if let Some(body) = dataset_body(run, &server) {
            post("runs/log-inputs", &body, Repetition::Harmless)?;
            server.has_dataset = true;
            is_new = true;
        }
        let mut new_epochs = 0;
        for batch in missing_batches(run, &server) {
            log_batch(post, &server.server_id, &batch)?;
            server.add(&batch);
            new_epochs += batch.epochs;
            is_new = true;
        }
        let status = status_of(run.outcome);
        if server.status != status {
            update_status(post, &server.server_id, run, status)?;
            server.status = status.to_owned();
            is_new = true;
        }
        self.known.insert(run.run_id.clone(), server);
        Ok(SendOutcome::Whole { new_epochs, is_new })
    }
}

impl MlflowRuns {
    /// Sends `sweep`, which is the run that the trials are below, like any other run. `None` is for a single run, which
    /// is below none.
    ///
    /// # Errors
    /// Fails like [`MlflowRuns::send`].
    pub(super) fn send_sweep(
        &mut self,
        post: &mut PostRequest<'_>,
        sweep: Option<&TrackedRun>,
    ) -> Result<()> {
        // It is not below itself.
        self.sweep = SweepOnServer::None;
        let Some(sweep) = sweep else {
            return Ok(());
        };
        self.send(post, sweep)?;
        if let Some(server) = self.known.get(&sweep.run_id) {
            self.sweep = SweepOnServer::Run(server.server_id.clone());
        }
        Ok(())
    }

    /// Returns true before the first call of [`MlflowRuns::send_sweep`].
    pub(super) fn is_without_sweep(&self) -> bool {
        matches!(self.sweep, SweepOnServer::NotSent)
    }

    /// The server's id of the run of the sweep, if there is one.
    pub(super) fn sweep_server_id(&self) -> Option<&str> {
        match &self.sweep {
            SweepOnServer::Run(id) => Some(id),
            SweepOnServer::NotSent | SweepOnServer::None => None,
        }
    }

    /// Returns the request that creates `run`.
    fn new_run(&self, run: &TrackedRun) -> Value {
        let mut tags = vec![
            (RUN_TAG, run.run_id.as_str()),
            ("poolcast.group", run.group.as_deref().unwrap_or_default()),
            ("mlflow.source.name", "poolcast"),
        ];
        let joined = run.tags.join(",");
        tags.push(("poolcast.tags", &joined));
        let sweep = self.sweep_server_id();
        tags.extend(sweep.map(|id| ("mlflow.parentRunId", id)));
        let tags = tags.into_iter();
        json!({
            "experiment_id": self.experiment_id,
            "run_name": run.name,
            "start_time": milliseconds(run.began_s),
            "tags": Vec::from_iter(tags.map(|(key, value)| json!({"key": key, "value": value}))),
        })
    }

    /// Returns the path below which the server itself accepts files of the run `run_id`. Returns
    /// `None` if clients must upload them to the storage directly.
    ///
    /// # Errors
    /// Fails if the server rejects a request or does not answer.
    pub(super) fn artifact_path(
        &self,
        post: &mut PostRequest<'_>,
        run_id: &str,
    ) -> Result<Option<String>> {
        let found = match self.known.get(run_id) {
            Some(server) => Some(proxied_artifact_path(&server.artifact_uri)),
            None => find_run(post, &self.experiment_id, run_id)?
                .map(|server| proxied_artifact_path(&server.artifact_uri)),
        };
        Ok(found.flatten())
    }
}

/// Parses the path in `mlflow-artifacts:/EXPERIMENT/RUN/artifacts`, with or without a host.
fn proxied_artifact_path(artifact_uri: &str) -> Option<String> {
    let path = artifact_uri.strip_prefix("mlflow-artifacts:")?;
    let path = match path.strip_prefix("//") {
        Some(with_host) => with_host.split_once('/')?.1,
        None => path,
    };
    let path = path.trim_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let is_usual = !path.contains("..") && path.bytes().all(is_plain);
    (is_usual && !path.is_empty()).then(|| path.to_owned())
}

fn find_or_create_experiment(post: &mut PostRequest<'_>, name: &str) -> Result<String> {
    let body = json!({ "name": name });
    let mut tries = 0;
    loop {
        if let Some(experiment) = find_experiment(post, name)? {
            ensure!(
                experiment.lifecycle_stage != "deleted",
                hinted(
                    format!(
                        "the experiment `{}` was deleted on MLflow",
                        escape::value(name)
                    ),
                    "restore it there, or set MLFLOW_EXPERIMENT_NAME to another one"
                )
            );
            return Ok(experiment.experiment_id);
        }

        tries += 1;
        let created = post("experiments/create", &body, Repetition::CreatesDuplicate);
        match created {
            Ok(answer) => return Ok(read::<CreatedExperiment>(answer)?.experiment_id),
            // Another sender may have created it, or a request whose answer was lost.
            Err(SendError::InDoubt | SendError::Refused { status: 400, .. })
                if tries < MAX_CREATE_TRIES => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn find_experiment(post: &mut PostRequest<'_>, name: &str) -> Result<Option<Experiment>> {
    let body = json!({
        "filter": format!("name = '{name}'"),
        "max_results": 1,
        "view_type": "ALL",
    });
    let answer = post("experiments/search", &body, Repetition::Harmless)?;
    Ok(read::<FoundExperiments>(answer)?
        .experiments
        .into_iter()
        .next())
}

/// Finds the run with the tag `run_id`. If there are several, the result is always the same one.
fn find_run(
    post: &mut PostRequest<'_>,
    experiment_id: &str,
    run_id: &str,
) -> Result<Option<ServerRun>> {
    let body = json!({
        "experiment_ids": [experiment_id],
        "filter": format!("tags.`{RUN_TAG}` = '{run_id}'"),
        "max_results": 1,
        "run_view_type": "ALL",
        "order_by": ["attributes.run_id ASC"],
    });
    let answer = post("runs/search", &body, Repetition::Harmless)?;
    let first = read::<FoundRuns>(answer)?.runs.into_iter().next();
    Ok(first.map(FoundRun::into_server_run))
}

/// Creates the run `run_id` of this `body`. A try whose answer was lost may have created it, so the next try searches for
/// it first.
fn create_run(
    post: &mut PostRequest<'_>,
    body: Value,
    experiment_id: &str,
    run_id: &str,
) -> Result<ServerRun> {
    let mut tries = 0;
    loop {
        tries += 1;
        match post("runs/create", &body, Repetition::CreatesDuplicate) {
            Ok(answer) => return Ok(read::<CreatedRun>(answer)?.run.into_server_run()),
            Err(SendError::InDoubt) if tries < MAX_CREATE_TRIES => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(found) = find_run(post, experiment_id, run_id)? {
            return Ok(found);
        }
    }
}

/// Returns the request that names what `run` learned from; `None` if the server has it, or if it is not known.
fn dataset_body(run: &TrackedRun, server: &ServerRun) -> Option<Value> {
    let facts = run.config.get(DATA)?;
    let digest = facts[DIGEST].as_str().filter(|_| !server.has_dataset)?;
    let dataset = json!({
        "name": run.group.as_ref().unwrap_or(&run.name),
        "digest": digest,
        "source_type": "poolcast",
        "source": facts.to_string(),
    });
    let context = json!({"key": "mlflow.data.context", "value": "training"});
    Some(json!({
        "run_id": server.server_id,
        "datasets": [{"tags": [context], "dataset": dataset}],
    }))
}

fn log_batch(post: &mut PostRequest<'_>, server_id: &str, batch: &LogBatch) -> Result<()> {
    let body = json!({
        "run_id": server_id,
        "metrics": batch.metrics,
        "params": batch.params,
        "tags": batch.tags,
    });
    post("runs/log-batch", &body, Repetition::Harmless)?;
    Ok(())
}

fn update_status(
    post: &mut PostRequest<'_>,
    server_id: &str,
    run: &TrackedRun,
    status: &str,
) -> Result<()> {
    let mut body = json!({ "run_id": server_id, "status": status });
    if run.outcome != TrackedOutcome::Running {
        body["end_time"] = json!(milliseconds(run.ended_s()));
    }
    post("runs/update", &body, Repetition::Harmless)?;
    Ok(())
}

/// Parses an answer of the server.
fn read<T: DeserializeOwned>(answer: Value) -> Result<T> {
    T::deserialize(answer).context(hinted(
        "the server is not an MLflow server, or its version is not supported",
        "check MLFLOW_TRACKING_URI",
    ))
}

/// Returns MLflow's name for an outcome.
fn status_of(outcome: TrackedOutcome) -> &'static str {
    match outcome {
        TrackedOutcome::Running => "RUNNING",
        TrackedOutcome::Finished | TrackedOutcome::StoppedEarly => "FINISHED",
        TrackedOutcome::TerminatedEarly
        | TrackedOutcome::EndedOnRequest
        | TrackedOutcome::Quarantined => "KILLED",
        TrackedOutcome::Failed => "FAILED",
    }
}

/// Replaces the characters of `name` that would end a string in a filter, and shortens it.
fn replace_quotes(name: &str) -> String {
    let is_plain = |c: char| !matches!(c, '\'' | '"' | '`' | '\\') && !c.is_control();
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(400)
        .collect()
}

#[derive(Deserialize)]
struct CreatedExperiment {
    experiment_id: String,
}

#[derive(Deserialize)]
struct FoundExperiments {
    #[serde(default)]
    experiments: Vec<Experiment>,
}

#[derive(Deserialize)]
struct Experiment {
    experiment_id: String,
    #[serde(default)]
    lifecycle_stage: String,
}

#[derive(Deserialize)]
struct FoundRuns {
    #[serde(default)]
    runs: Vec<FoundRun>,
}

#[derive(Deserialize)]
struct CreatedRun {
    run: FoundRun,
}

#[derive(Deserialize)]
struct FoundRun {
    info: RunInfo,
    #[serde(default)]
    data: RunData,
    #[serde(default)]
    inputs: RunInputs,
}

#[derive(Deserialize)]
struct RunInfo {
    run_id: String,
    status: String,
    #[serde(default)]
    lifecycle_stage: String,
    #[serde(default)]
    artifact_uri: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RunData {
    metrics: Vec<LastMetric>,
    params: Vec<FoundName>,
    tags: Vec<FoundName>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RunInputs {
    dataset_inputs: Vec<IgnoredAny>,
}

/// The last value of a metric: the value of its largest step.
#[derive(Deserialize)]
struct LastMetric {
    key: String,
    #[serde(default)]
    step: i64,
}

#[derive(Deserialize)]
struct FoundName {
    key: String,
}

impl FoundRun {
    fn into_server_run(self) -> ServerRun {
        let metrics = self.data.metrics.into_iter();
        let params = self.data.params.into_iter();
        let tags = self.data.tags.into_iter();
        ServerRun {
            server_id: self.info.run_id,
            status: self.info.status,
            is_deleted: self.info.lifecycle_stage == "deleted",
            artifact_uri: self.info.artifact_uri,
            has_dataset: !self.inputs.dataset_inputs.is_empty(),
            params: params.map(|param| param.key).collect(),
            tags: tags.map(|tag| tag.key).collect(),
            last_steps: metrics.map(|metric| (metric.key, metric.step)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::runs::recorded_run;

    /// The way in which a request fails.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Loss {
        /// The request does not reach the server.
        Request,
        /// The server executes the request, and its answer is lost.
        Answer,
    }

    /// The behavior of an MLflow server that a sender can observe.
    #[derive(Debug, Default, Clone, PartialEq)]
    struct FakeServer {
        experiments: Vec<String>,
        runs: Vec<FakeRun>,
        paths: Vec<String>,
    }

    #[derive(Debug, Default, Clone, PartialEq)]
    struct FakeRun {
        tags: BTreeMap<String, String>,
        params: BTreeMap<String, String>,
        /// Distinct entries: name, step, time and value as a text.
        metrics: BTreeSet<(String, i64, i64, String)>,
        /// Distinct datasets among its inputs.
        datasets: BTreeSet<String>,
        status: String,
        is_deleted: bool,
    }

    impl FakeServer {
        fn answer(&mut self, path: &str, body: &Value) -> Value {
            self.paths.push(path.to_owned());
            match path {
                "experiments/search" => {
                    let experiments: Vec<Value> = self
                        .experiments
                        .iter()
                        .filter(|name| body["filter"] == format!("name = '{name}'"))
                        .map(|_| json!({ "experiment_id": "7", "lifecycle_stage": "active" }))
                        .collect();
                    json!({ "experiments": experiments })
                }
                "experiments/create" => {
                    self.experiments.push(text(&body["name"]));
                    json!({ "experiment_id": "7" })
                }
                "runs/search" => self.search_runs(body),
                "runs/create" => {
                    self.runs.push(FakeRun {
                        tags: texts(&body["tags"]),
                        status: "RUNNING".to_owned(),
                        ..FakeRun::default()
                    });
                    json!({ "run": self.run_json(self.runs.len() - 1) })
                }
                "runs/log-batch" => self.log_batch(body),
                "runs/log-inputs" => {
                    let dataset = body["datasets"][0]["dataset"].clone();
                    self.run_of(body).datasets.insert(dataset.to_string());
                    json!({})
                }
                "runs/update" => {
                    self.run_of(body).status = text(&body["status"]);
                    json!({})
                }
                other => panic!("{other}"),
            }
        }

        fn run_of(&mut self, body: &Value) -> &mut FakeRun {
            let at: usize = text(&body["run_id"]).parse().expect("a number");
            &mut self.runs[at]
        }

        fn search_runs(&self, body: &Value) -> Value {
            let mut runs = Vec::new();
            for (at, run) in self.runs.iter().enumerate() {
                if body["filter"] == format!("tags.`{RUN_TAG}` = '{}'", run.tags[RUN_TAG]) {
                    runs.push(self.run_json(at));
                }
            }
            json!({ "runs": runs })
        }

        fn log_batch(&mut self, body: &Value) -> Value {
            let params = texts(&body["params"]);
            let tags = texts(&body["tags"]);
            let run = self.run_of(body);
            for (key, value) in params {
                let known = run.params.entry(key).or_insert_with(|| value.clone());
                assert_eq!(*known, value, "a parameter never changes");
            }
            run.tags.extend(tags);
            let metrics = body["metrics"].as_array().expect("a list");
            assert!(metrics.len() <= 1000);
            for metric in metrics {
                run.metrics.insert((
                    text(&metric["key"]),
                    metric["step"].as_i64().expect("a step"),
                    metric["timestamp"].as_i64().expect("a stamp"),
                    metric["value"].to_string(),
                ));
            }
            json!({})
        }

        fn run_json(&self, at: usize) -> Value {
            let run = &self.runs[at];
            let mut last_steps: BTreeMap<&str, i64> = BTreeMap::new();
            for (key, step, ..) in &run.metrics {
                last_steps.insert(key, *step);
            }
            let stage = if run.is_deleted { "deleted" } else { "active" };
            let metrics = last_steps
                .iter()
                .map(|(key, step)| json!({ "key": key, "step": step }));
            let params = run.params.keys().map(|key| json!({ "key": key }));
            let tags = run.tags.keys().map(|key| json!({ "key": key }));
            json!({
                "info": {
                    "run_id": at.to_string(), "status": run.status, "lifecycle_stage": stage,
                },
                "inputs": {"dataset_inputs": Vec::from_iter(&run.datasets)},
                "data": {
                    "metrics": metrics.collect::<Vec<Value>>(),
                    "params": params.collect::<Vec<Value>>(),
                    "tags": tags.collect::<Vec<Value>>(),
                },
            })
        }
    }

    fn text(value: &Value) -> String {
        value.as_str().expect("a text").to_owned()
    }

    fn texts(list: &Value) -> BTreeMap<String, String> {
        let pairs = list.as_array().expect("a list").iter();
        pairs
            .map(|pair| (text(&pair["key"]), text(&pair["value"])))
            .collect()
    }

    /// Sends `runs`, which are below a sweep, with a new sender. Request `lost.0`, counted from 0, fails; with `dies`, all
    /// later ones fail, too.
    fn send_all(
        server: &mut FakeServer,
        runs: &[TrackedRun],
        lost: Option<(usize, Loss)>,
        dies: bool,
    ) -> Result<()> {
        let mut number = 0;
        let mut post = |path: &str, body: &Value, repetition| {
            let loss = lost.filter(|(at, _)| *at == number).map(|(_, loss)| loss);
            let is_dead = dies && lost.is_some_and(|(at, _)| number > at);
            number += 1;
            if is_dead {
                return Err(SendError::Stopped);
            }
            if loss == Some(Loss::Answer) {
                server.answer(path, body);
            }
            match (loss, repetition) {
                (None, _) => Ok(server.answer(path, body)),
                // A repeatable request is retried at once.
                (Some(_), Repetition::Harmless) if !dies => Ok(server.answer(path, body)),
                (Some(_), _) => Err(SendError::InDoubt),
            }
        };
        let mut sender = MlflowRuns::open(&mut post, "it's")?;
        sender.send_sweep(&mut post, Some(&sweep()))?;
        for run in runs {
            sender.send(&mut post, run)?;
        }
        Ok(())
    }

    fn sweep() -> TrackedRun {
        let mut sweep = recorded_run();
        sweep.run_id = "sweep0001".to_owned();
        sweep.epochs.clear();
        sweep
    }

    fn two_runs() -> [TrackedRun; 2] {
        let mut first = recorded_run();
        let facts = json!({"digest": "abc", "log_digest": "def"});
        first.config.insert(DATA.to_owned(), facts);
        let mut second = first.clone();
        second.run_id = "run0002".to_owned();
        second.outcome = TrackedOutcome::Failed;
        [first, second]
    }

    fn state_without_faults() -> FakeServer {
        let mut server = FakeServer::default();
        send_all(&mut server, &two_runs(), None, false).expect("sent");
        server
    }

    #[test]
    fn run_has_its_parameters_values_and_times() {
        let server = state_without_faults();
        let first = &server.runs[1];
        assert_eq!(first.status, "FINISHED");
        assert_eq!(first.params["opt.name"], "adam");
        assert_eq!(first.params["opt.betas"], "[0.9,0.99]");
        assert_eq!(first.tags["poolcast.group"], "g1");
        let best = ("best_loss", 2, "0.3333");
        let is_best = |(key, step, _, value): &&(String, i64, i64, String)| {
            (key.as_str(), *step, value.as_str()) == best
        };
        assert!(first.metrics.iter().any(|metric| is_best(&metric)));
        let of_nan = |metric: &&(String, i64, i64, String)| metric.3 == "\"NaN\"";
        let nan = first.metrics.iter().find(of_nan).expect("NaN as a text");
        let (key, step, stamp, _) = nan;
        assert_eq!(
            (key.as_str(), *step, *stamp),
            ("nanv", 1, 1_795_226_144_336)
        );
        assert_eq!(server.runs[2].status, "FAILED");
        let sweep = &server.runs[0];
        assert!(!sweep.tags.contains_key("mlflow.parentRunId"));
        for trial in &server.runs[1..] {
            assert_eq!(trial.tags["mlflow.parentRunId"], "0");
            assert_eq!(trial.params["data.log_digest"], "def");
            let dataset = trial.datasets.first().expect("a dataset");
            assert!(dataset.contains("\"digest\":\"abc\""), "{dataset}");
        }
    }

    #[test]
    fn run_takes_five_requests_and_nothing_is_sent_twice() {
        let mut server = state_without_faults();
        let paths = std::mem::take(&mut server.paths);
        let from_run = [
            "runs/search",
            "runs/create",
            "runs/log-inputs",
            "runs/log-batch",
            "runs/update",
        ];
        assert_eq!(paths[..2], ["experiments/search", "experiments/create"]);
        let of_sweep = [
            "runs/search",
            "runs/create",
            "runs/log-batch",
            "runs/update",
        ];
        assert_eq!(
            paths[2..6],
            of_sweep,
            "it says nothing of what it learned from"
        );
        assert_eq!(paths[6..11], from_run);
        assert_eq!(paths[11..], from_run);

        send_all(&mut server, &two_runs(), None, false).expect("sent");
        let again = [
            "experiments/search",
            "runs/search",
            "runs/search",
            "runs/search",
        ];
        assert_eq!(server.paths, again);
    }

    #[test]
    fn server_has_each_run_once_after_any_lost_request() {
        let expected = state_without_faults();
        for at in 0..expected.paths.len() {
            for loss in [Loss::Request, Loss::Answer] {
                for dies in [false, true] {
                    let mut server = FakeServer::default();
                    let sent = send_all(&mut server, &two_runs(), Some((at, loss)), dies);
                    assert_eq!(sent.is_ok(), !dies, "{loss:?} of request {at}");
                    if dies {
                        send_all(&mut server, &two_runs(), None, false).expect("sent");
                    }
                    assert_eq!(server.runs, expected.runs, "{loss:?} of request {at}");
                    assert_eq!(server.experiments.len(), 1, "{loss:?} of request {at}");
                }
            }
        }
    }

    #[test]
    fn running_run_receives_new_epochs() {
        let mut server = FakeServer::default();
        let mut begun = recorded_run();
        begun.outcome = TrackedOutcome::Running;
        begun.epochs.truncate(1);
        begun.summary.clear();
        send_all(&mut server, &[begun], None, false).expect("sent");
        assert_eq!(server.runs[1].status, "RUNNING");

        send_all(&mut server, &two_runs(), None, false).expect("sent");
        assert_eq!(server.runs, state_without_faults().runs);
    }

    #[test]
    fn deleted_run_is_not_created_again() {
        let mut server = state_without_faults();
        server.runs[1].is_deleted = true;
        let mut post =
            |path: &str, body: &Value, _| Ok::<Value, SendError>(server.answer(path, body));
        let mut sender = MlflowRuns::open(&mut post, "it's").expect("opened");
        let sent = sender.send(&mut post, &recorded_run()).expect("answered");
        assert_eq!(sent, SendOutcome::Deleted);
        assert_eq!(server.runs.len(), 3, "with the sweep");
    }

    #[test]
    fn runs_that_others_ended_are_killed() {
        use TrackedOutcome::{
            EndedOnRequest, Failed, Finished, Quarantined, StoppedEarly, TerminatedEarly,
        };
        let outcomes = [
            Finished,
            StoppedEarly,
            TerminatedEarly,
            EndedOnRequest,
            Quarantined,
            Failed,
        ];
        let expected = [
            "FINISHED", "FINISHED", "KILLED", "KILLED", "KILLED", "FAILED",
        ];
        assert_eq!(outcomes.map(status_of), expected);
    }

    #[test]
    fn only_proxied_artifact_uris_have_a_path() {
        let path = |uri: &str| proxied_artifact_path(uri);
        let expected = Some("7/ab/artifacts".to_owned());
        assert_eq!(path("mlflow-artifacts:/7/ab/artifacts"), expected);
        assert_eq!(path("mlflow-artifacts://a.org:80/7/ab/artifacts"), expected);
        for uri in [
            "",
            "s3://a/7",
            "file:///7",
            "mlflow-artifacts:/../7",
            "mlflow-artifacts:/a?b",
        ] {
            assert_eq!(path(uri), None, "{uri}");
        }
    }

    #[test]
    fn answers_of_other_servers_are_reported() {
        let mut post = |_: &str, _: &Value, _| Ok(json!("<html>"));
        let error = MlflowRuns::open(&mut post, "a").expect_err("no experiment");
        assert!(
            error.to_string().contains("is not an MLflow server"),
            "{error}"
        );
    }
}
