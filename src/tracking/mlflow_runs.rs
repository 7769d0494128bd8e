//! Runs → an MLflow tracking server, by its REST interface, so that it has each of them once.
//!
//! A run carries its id as a tag. Before one is made, the server is asked for that tag, also when
//! the answer to making it was lost; everything else may be sent again, as the server keeps what is
//! the same, to the stamp, once.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::http_sender::SendError;
use super::mlflow_batch::{LogBatch, ServerRun, milliseconds, missing_batches};
use super::tracked_run::{TrackedOutcome, TrackedRun};
use poolcast_base::error::hinted;
use poolcast_base::escape;

/// The tag with the id of a run.
const RUN_TAG: &str = "poolcast.run_id";

/// How often a run or an experiment is looked for and made before it is given up.
const MOST_CREATIONS: usize = 5;

/// Whether a request may be sent again when no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    /// Once or twice is the same.
    Harmless,
    /// What it makes would be there twice.
    MakesAnother,
}

/// Sends a request: what follows `/api/2.0/mlflow/` in its address, and its body.
pub(super) type PostRequest<'a> =
    dyn FnMut(&str, &Value, Repetition) -> Result<Value, SendError> + 'a;

/// The runs of one experiment, as far as they are known to be on the server.
#[derive(Debug)]
pub(super) struct MlflowRuns {
    experiment_id: String,
    /// What the server has, by our ids of runs.
    known: BTreeMap<String, ServerRun>,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// The server has all of it; so many epochs are new there.
    Whole {
        /// How many.
        new_epochs: usize,
        /// Whether anything was sent.
        is_new: bool,
    },
    /// Somebody has deleted it there, so nothing was sent.
    Deleted,
}

impl MlflowRuns {
    /// Those of the experiment `name`, which is made if it is not there.
    ///
    /// # Errors
    /// Fails where the server does not answer or refuses, and when the experiment was deleted.
    pub(super) fn open(post: &mut PostRequest<'_>, name: &str) -> Result<MlflowRuns> {
        Ok(MlflowRuns {
            experiment_id: find_or_create_experiment(post, &quotable(name))?,
            known: BTreeMap::new(),
        })
    }

    /// Sends what the server lacks of `run`.
    ///
    /// # Errors
    /// Fails where the server does not answer or refuses. What the server has is asked for anew
    /// then, when the run is sent again.
    pub(super) fn send(
        &mut self,
        post: &mut PostRequest<'_>,
        run: &TrackedRun,
    ) -> Result<SendOutcome> {
        let mut is_new = false;
        let known = match self.known.remove(&run.run_id) {
            Some(server) => Some(server),
            None => find_run(post, &self.experiment_id, &run.run_id)?,
        };
        let mut server = match known {
            Some(server) => server,
            None => {
                is_new = true;
                create_run(post, &self.experiment_id, run)?
            }
        };
        if server.is_deleted {
            return Ok(SendOutcome::Deleted);
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
    /// The path below which the server takes files of the run `run_id` for where it keeps them; `None`
    /// where it does not, as clients are to bring them there themselves.
    ///
    /// # Errors
    /// Fails where the server does not answer or refuses.
    pub(super) fn artifact_path(
        &self,
        post: &mut PostRequest<'_>,
        run_id: &str,
    ) -> Result<Option<String>> {
        let found = match self.known.get(run_id) {
            Some(server) => Some(proxied_path(&server.artifact_uri)),
            None => find_run(post, &self.experiment_id, run_id)?
                .map(|server| proxied_path(&server.artifact_uri)),
        };
        Ok(found.flatten())
    }
}

/// What `mlflow-artifacts:/EXPERIMENT/RUN/artifacts` says, with a host in it or without.
fn proxied_path(artifact_uri: &str) -> Option<String> {
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
                    "restore it there, or name another one by MLFLOW_EXPERIMENT_NAME"
                )
            );
            return Ok(experiment.experiment_id);
        }

        tries += 1;
        let created = post("experiments/create", &body, Repetition::MakesAnother);
        match created {
            Ok(answer) => return Ok(read::<CreatedExperiment>(answer)?.experiment_id),
            // It may be there now: by another sender, or by a request whose answer was lost.
            Err(SendError::InDoubt | SendError::Refused { status: 400, .. })
                if tries < MOST_CREATIONS => {}
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

/// The run that carries `run_id`; where several do, the same one each time.
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

/// Makes `run`. Where the answer was lost, it may be there: so each try looks first.
fn create_run(
    post: &mut PostRequest<'_>,
    experiment_id: &str,
    run: &TrackedRun,
) -> Result<ServerRun> {
    let body = run_body(experiment_id, run);
    let mut tries = 0;
    loop {
        tries += 1;
        match post("runs/create", &body, Repetition::MakesAnother) {
            Ok(answer) => return Ok(read::<CreatedRun>(answer)?.run.into_server_run()),
            Err(SendError::InDoubt) if tries < MOST_CREATIONS => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(found) = find_run(post, experiment_id, &run.run_id)? {
            return Ok(found);
        }
    }
}

fn run_body(experiment_id: &str, run: &TrackedRun) -> Value {
    let tags = [
        (RUN_TAG, run.run_id.clone()),
        ("poolcast.group", run.group.clone().unwrap_or_default()),
        ("poolcast.tags", run.tags.join(",")),
        ("mlflow.source.name", "poolcast".to_owned()),
    ];
    let mut tag_list = Vec::new();
    for (key, value) in tags {
        tag_list.push(json!({ "key": key, "value": value }));
    }
    json!({
        "experiment_id": experiment_id,
        "run_name": run.name,
        "start_time": milliseconds(run.began_s),
        "tags": tag_list,
    })
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

/// What an answer says.
fn read<T: DeserializeOwned>(answer: Value) -> Result<T> {
    T::deserialize(answer).context(hinted(
        "what answers is not an MLflow server, or of a version that is not known",
        "check MLFLOW_TRACKING_URI",
    ))
}

/// MLflow's word for how a run goes or went.
fn status_of(outcome: TrackedOutcome) -> &'static str {
    match outcome {
        TrackedOutcome::Running => "RUNNING",
        TrackedOutcome::Finished => "FINISHED",
        TrackedOutcome::StoppedEarly | TrackedOutcome::EndedOnRequest => "KILLED",
        TrackedOutcome::Failed | TrackedOutcome::Quarantined => "FAILED",
    }
}

/// `name` without what ends a text in a filter.
fn quotable(name: &str) -> String {
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

/// The last value of a metric, which is that of its largest step.
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
            params: params.map(|param| param.key).collect(),
            tags: tags.map(|tag| tag.key).collect(),
            last_steps: metrics.map(|metric| (metric.key, metric.step)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::recorded_run::recorded_run;
    use super::*;

    /// When a request goes wrong, and how.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Loss {
        /// The server never gets it.
        Request,
        /// The server does it, and its answer is lost.
        Answer,
    }

    /// As much of an MLflow server as a sender can tell.
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
        /// As texts, each once: the name, the step, the stamp and the value.
        metrics: BTreeSet<(String, i64, i64, String)>,
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

    /// Sends `runs` by a sender that knows nothing. Request `lost.0`, counted from 0, goes wrong, and
    /// with `dies` so does every later one.
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
                // What does no harm is tried again at once.
                (Some(_), Repetition::Harmless) if !dies => Ok(server.answer(path, body)),
                (Some(_), _) => Err(SendError::InDoubt),
            }
        };
        let mut sender = MlflowRuns::open(&mut post, "it's")?;
        for run in runs {
            sender.send(&mut post, run)?;
        }
        Ok(())
    }

    fn two_runs() -> [TrackedRun; 2] {
        let mut second = recorded_run();
        second.run_id = "run0002".to_owned();
        second.outcome = TrackedOutcome::Failed;
        [recorded_run(), second]
    }

    fn undisturbed() -> FakeServer {
        let mut server = FakeServer::default();
        send_all(&mut server, &two_runs(), None, false).expect("sent");
        server
    }

    #[test]
    fn a_run_has_its_parameters_its_values_and_their_stamps() {
        let server = undisturbed();
        let first = &server.runs[0];
        assert_eq!(first.status, "FINISHED");
        assert_eq!(first.params["opt.name"], "adam");
        assert_eq!(first.params["opt.betas"], "[0.9,0.99]");
        assert_eq!(first.tags["poolcast.group"], "g1");
        let best = ("summary.best_loss", 2, "0.3333");
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
        assert_eq!(server.runs[1].status, "FAILED");
    }

    #[test]
    fn a_run_is_four_requests_and_what_is_there_is_not_sent() {
        let mut server = undisturbed();
        let paths = std::mem::take(&mut server.paths);
        let of_run = [
            "runs/search",
            "runs/create",
            "runs/log-batch",
            "runs/update",
        ];
        assert_eq!(paths[..2], ["experiments/search", "experiments/create"]);
        assert_eq!(paths[2..6], of_run);
        assert_eq!(paths[6..], of_run);

        send_all(&mut server, &two_runs(), None, false).expect("sent");
        let again = ["experiments/search", "runs/search", "runs/search"];
        assert_eq!(server.paths, again);
    }

    #[test]
    fn whatever_is_lost_the_server_has_each_run_once() {
        let expected = undisturbed();
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
    fn a_run_that_goes_on_gets_what_is_new() {
        let mut server = FakeServer::default();
        let mut begun = recorded_run();
        begun.outcome = TrackedOutcome::Running;
        begun.epochs.truncate(1);
        begun.summary.clear();
        send_all(&mut server, &[begun], None, false).expect("sent");
        assert_eq!(server.runs[0].status, "RUNNING");

        send_all(&mut server, &two_runs(), None, false).expect("sent");
        assert_eq!(server.runs, undisturbed().runs);
    }

    #[test]
    fn what_was_deleted_there_is_not_made_again() {
        let mut server = undisturbed();
        server.runs[0].is_deleted = true;
        let mut post =
            |path: &str, body: &Value, _| Ok::<Value, SendError>(server.answer(path, body));
        let mut sender = MlflowRuns::open(&mut post, "it's").expect("opened");
        let sent = sender.send(&mut post, &recorded_run()).expect("answered");
        assert_eq!(sent, SendOutcome::Deleted);
        assert_eq!(server.runs.len(), 2);
    }

    #[test]
    fn files_go_by_way_of_a_server_that_takes_them() {
        let path = |uri: &str| proxied_path(uri);
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
    fn what_is_not_mlflow_is_told_so() {
        let mut post = |_: &str, _: &Value, _| Ok(json!("<html>"));
        let error = MlflowRuns::open(&mut post, "a").expect_err("no experiment");
        assert!(
            error.to_string().contains("is not an MLflow server"),
            "{error}"
        );
    }
}
