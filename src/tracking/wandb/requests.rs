//! Builds requests to W&B as its own client does: GraphQL for sweeps and runs, `file_stream` for
//! measurements.

use serde_json::{Map, Value, json};

use super::text::{config_text, history_line, summary_line, system_line};
use crate::runs::TrackedRun;

const FIND_SWEEPS: &str = "query FindSweeps($project: String!, $entity: String, $cursor: String) { \
     project(name: $project, entityName: $entity) { sweeps(after: $cursor, first: 100) { \
     edges { node { id name config description } } pageInfo { endCursor hasNextPage } } } }";

const SWEEP_STATE: &str = "query SweepState($project: String!, $entity: String, $sweep: String!) { \
     project(name: $project, entityName: $entity) { sweep(sweepName: $sweep) { id name state } } }";

const SWEEP_CONFIG: &str = "query SweepConfig($project: String!, $entity: String, $sweep: String!) { \
     project(name: $project, entityName: $entity) { sweep(sweepName: $sweep) { id name config } } }";

const CREATE_AGENT: &str = "mutation CreateAgent($host: String!, $projectName: String, $entityName: String, $sweep: String!) { \
     createAgent(input: {host: $host, projectName: $projectName, entityName: $entityName, sweep: $sweep}) { agent { id } } }";

const AGENT_HEARTBEAT: &str = "mutation Heartbeat($id: ID!, $metrics: JSONString, $runState: JSONString) { \
     agentHeartbeat(input: {id: $id, metrics: $metrics, runState: $runState}) { agent { id } commands } }";

const PENDING_RUNS: &str = "query PendingRuns($project: String!, $entity: String, $filters: JSONString) { \
     project(name: $project, entityName: $entity) { runs(filters: $filters, first: 1000) { \
     edges { node { name state config } } } } }";

/// Host name that agents send. It does not identify the machine.
const AGENT_HOST: &str = "poolcast";

const UPSERT_SWEEP: &str = "mutation UpsertSweep($config: String, $description: String, $entityName: String, \
     $projectName: String) { upsertSweep(input: {config: $config, description: $description, \
     entityName: $entityName, projectName: $projectName}) { sweep { id name project { id name entity { id name } } } \
     configValidationWarnings } }";

const UPSERT_RUN: &str = "mutation UpsertBucket($name: String, $project: String, $entity: String, \
     $groupName: String, $jobType: String, $displayName: String, $config: JSONString, $sweep: String, $tags: [String!]) { \
     upsertBucket(input: {name: $name, modelName: $project, entityName: $entity, groupName: $groupName, \
     jobType: $jobType, displayName: $displayName, config: $config, sweep: $sweep, tags: $tags}) { \
     bucket { id name displayName sweepName historyLineCount project { id name entity { id name } } } inserted } }";

const CREATE_RUN_FILES: &str = "mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, \
     $files: [String!]!) { createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run, \
     files: $files}) { runID uploadHeaders files { name uploadUrl } } }";

/// Maximum size of the lines in one request, in bytes. W&B accepts 10 MiB.
const MAX_LINE_BYTES: usize = 8 << 20;

/// Destination of the runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WandbProject {
    /// The user or the team; the server's default if it is `None`.
    pub(super) entity: Option<String>,
    /// Name of the project.
    pub(super) project: String,
}

/// Builds the query for the sweeps of the project, from `cursor` on.
pub(super) fn find_sweeps(place: &WandbProject, cursor: Option<&str>) -> Value {
    json!({
        "operationName": "FindSweeps",
        "query": FIND_SWEEPS,
        "variables": {"project": place.project, "entity": place.entity, "cursor": cursor},
    })
}

/// Builds the mutation that creates an agent of the sweep `sweep`.
pub(super) fn create_agent(place: &WandbProject, sweep: &str) -> Value {
    json!({
        "operationName": "CreateAgent",
        "query": CREATE_AGENT,
        "variables": {
            "host": AGENT_HOST,
            "projectName": place.project,
            "entityName": place.entity,
            "sweep": sweep,
        },
    })
}

/// Builds the heartbeat of the agent `id`, with its unfinished runs. The answer has commands.
pub(super) fn agent_heartbeat(id: &str, run_ids: &[String]) -> Value {
    let states: Map<String, Value> = run_ids
        .iter()
        .map(|run_id| (run_id.clone(), json!(true)))
        .collect();
    json!({
        "operationName": "Heartbeat",
        "query": AGENT_HEARTBEAT,
        "variables": {"id": id, "metrics": "{}", "runState": Value::Object(states).to_string()},
    })
}

/// Builds the query for the runs of the sweep `sweep` that were handed out but not begun.
pub(super) fn pending_runs(place: &WandbProject, sweep: &str) -> Value {
    let filters = json!({"$and": [{"sweep": sweep}, {"state": "pending"}]});
    json!({
        "operationName": "PendingRuns",
        "query": PENDING_RUNS,
        "variables": {
            "project": place.project,
            "entity": place.entity,
            "filters": filters.to_string(),
        },
    })
}

/// Builds the query for the state of the sweep `sweep`.
pub(super) fn sweep_state(place: &WandbProject, sweep: &str) -> Value {
    json!({
        "operationName": "SweepState",
        "query": SWEEP_STATE,
        "variables": {"project": place.project, "entity": place.entity, "sweep": sweep},
    })
}

/// Builds the query for the configuration of the sweep `sweep`.
pub(super) fn sweep_config(place: &WandbProject, sweep: &str) -> Value {
    json!({
        "operationName": "SweepConfig",
        "query": SWEEP_CONFIG,
        "variables": {"project": place.project, "entity": place.entity, "sweep": sweep},
    })
}

/// Builds the mutation that creates a sweep of this `space`. `mark` identifies the sweep.
pub(super) fn upsert_sweep(place: &WandbProject, space: &Value, mark: &str) -> Value {
    json!({
        "operationName": "UpsertSweep",
        "query": UPSERT_SWEEP,
        "variables": {
            "config": space.to_string(),
            "description": mark,
            "entityName": place.entity,
            "projectName": place.project,
        },
    })
}

/// Builds the mutation that creates or finds `run`, in `sweep` if it is a trial. The answer has the
/// number of history lines on the server.
pub(super) fn upsert_run(place: &WandbProject, sweep: Option<&str>, run: &TrackedRun) -> Value {
    json!({
        "operationName": "UpsertBucket",
        "query": UPSERT_RUN,
        "variables": {
            "name": run.run_id,
            "project": place.project,
            "entity": place.entity,
            "groupName": run.group,
            "jobType": run.kind(),
            "displayName": run.name,
            "config": config_text(run),
            "sweep": sweep,
            "tags": run.tags,
        },
    })
}

/// Returns the path of the file stream of a run.
pub(super) fn stream_path(entity: &str, project: &str, run_id: &str) -> String {
    let [entity, project, run_id] = [entity, project, run_id].map(encode_path_segment);
    format!("/files/{entity}/{project}/{run_id}/file_stream")
}

/// Percent-encodes `name` as a path segment, as in RFC 3986.
fn encode_path_segment(name: &str) -> String {
    let mut part = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) || byte == b'.' && name.len() > 2
        {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}

/// Builds the mutation that returns upload URLs for the files `names` of the run `run_id`.
pub(super) fn create_run_files(entity: &str, project: &str, run_id: &str, names: &[&str]) -> Value {
    json!({
        "operationName": "CreateRunFiles",
        "query": CREATE_RUN_FILES,
        "variables": {"entity": entity, "project": project, "run": run_id, "files": names},
    })
}

/// Builds the message that the files `names` of `run`, which has ended, are uploaded.
pub(super) fn uploaded_message(run: &TrackedRun, names: &[&str]) -> Value {
    json!({"uploaded": names, "complete": true, "exitcode": run.outcome.exit_code()})
}

/// One request of a run's file stream, and the state after it.
pub(super) struct StreamPart {
    /// The JSON document of the request.
    pub(super) body: Value,
    /// Epochs on the server after this request.
    pub(super) known_epochs: usize,
}

/// Builds the next request of `run`. The server has `known_epochs` of its epochs. The request has
/// as many of the missing epochs as fit. The last one also has the summary and the exit code.
pub(super) fn stream_part(run: &TrackedRun, known_epochs: usize) -> StreamPart {
    let known = known_epochs.min(run.epochs.len());
    let mut history = Vec::new();
    let mut system = Vec::new();
    let mut bytes = 0;
    let mut sent = known;
    for epoch in &run.epochs[known..] {
        let line = history_line(run, epoch);
        // Send at least one line, so that a line over the limit does not block the rest.
        if sent > known && bytes + line.len() > MAX_LINE_BYTES {
            break;
        }
        bytes += line.len();
        history.push(line);
        system.extend(system_line(run, epoch));
        sent += 1;
    }

    let mut files = Map::new();
    if !history.is_empty() {
        let lines = json!({"offset": known_epochs, "content": history});
        files.insert("wandb-history.jsonl".to_owned(), lines);
    }
    if !system.is_empty() {
        // Epochs without resource usage have no system line, so the offset counts only the others.
        let earlier = &run.epochs[..known];
        let offset = earlier.iter().filter(|epoch| !epoch.system.is_empty());
        let lines = json!({"offset": offset.count(), "content": system});
        files.insert("wandb-events.jsonl".to_owned(), lines);
    }
    let is_last = sent == run.epochs.len();
    if is_last {
        let lines = json!({"offset": 0, "content": [summary_line(run)]});
        files.insert("wandb-summary.json".to_owned(), lines);
    }

    let mut body = json!({"files": files});
    if let Some(code) = run.outcome.exit_code().filter(|_| is_last) {
        body["complete"] = json!(true);
        body["exitcode"] = json!(code);
    }
    StreamPart {
        body,
        known_epochs: sent,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{TrackedEpoch, TrackedOutcome};

    /// Requests of W&B's own client: `tests/data/wandb/README.md`.
    const RECORDED: &str = include_str!("../../../tests/data/wandb/requests.jsonl");

    fn recorded(scenario: &str, operation: &str) -> Vec<Value> {
        let mut found = Vec::new();
        for line in RECORDED.lines() {
            let request: Value = serde_json::from_str(line).expect("JSON");
            if request["scenario"] == scenario && request["operation"] == operation {
                found.push(request);
            }
        }
        assert!(!found.is_empty(), "{scenario} {operation}");
        found
    }

    fn stream_lines<'a>(streams: &'a [Value], file: &str) -> Vec<&'a Value> {
        let all = streams
            .iter()
            .map(|stream| &stream["body"]["files"][file]["content"]);
        all.filter_map(Value::as_array).flatten().collect()
    }

    fn parsed(line: &Value) -> Map<String, Value> {
        serde_json::from_str(line.as_str().expect("text")).expect("JSON")
    }

    /// Converts the recorded run to poolcast's form.
    fn to_tracked_run(variables: &Value, streams: &[Value]) -> TrackedRun {
        let config: Map<String, Value> = parsed(&variables["config"]);
        let named = config.iter().filter(|(name, _)| *name != "_wandb");
        let mut epochs = Vec::new();
        for line in stream_lines(streams, "wandb-history.jsonl") {
            let line = parsed(line);
            let number = |name: &str| line[name].as_f64().expect("a number");
            let measured = line.iter().filter(|(name, _)| !name.starts_with('_'));
            let values = measured.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
            epochs.push(TrackedEpoch {
                step: line["_step"].as_u64().expect("a step"),
                ended_s: number("_timestamp"),
                values: values.collect::<BTreeMap<String, f64>>(),
                system: BTreeMap::new(),
            });
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let tags = variables["tags"].as_array().into_iter().flatten();
        TrackedRun {
            run_id: text(&variables["name"]).expect("a name"),
            name: text(&variables["displayName"]).unwrap_or_default(),
            group: text(&variables["groupName"]),
            tags: tags.filter_map(text).collect(),
            config: named
                .map(|(name, value)| (name.clone(), value["value"].clone()))
                .collect(),
            began_s: epochs[0].ended_s,
            epochs,
            summary: Map::new(),
            outcome: TrackedOutcome::Finished,
        }
    }

    fn assert_same_run(scenario: &str) {
        let asked = recorded(scenario, "UpsertBucket").remove(0);
        let streams = recorded(scenario, "file_stream");
        let theirs = &asked["variables"];
        let run = to_tracked_run(theirs, &streams);
        let place = WandbProject {
            entity: theirs["entity"].as_str().map(str::to_owned),
            project: "htc-demo".to_owned(),
        };

        let ours = upsert_run(&place, theirs["sweep"].as_str(), &run);
        assert_eq!(ours["operationName"], "UpsertBucket");
        for name in ["name", "project", "entity", "groupName", "sweep"] {
            assert_eq!(ours["variables"][name], theirs[name], "{name}");
        }
        let (our_config, their_config) = (
            parsed(&ours["variables"]["config"]),
            parsed(&theirs["config"]),
        );
        for (name, value) in &their_config {
            if name != "_wandb" {
                assert_eq!(&our_config[name], value, "{name}");
            }
        }
        let version = |config: &Map<String, Value>| config["_wandb"]["value"]["t"]["12"].clone();
        assert_eq!(version(&our_config), version(&their_config));

        let part = stream_part(&run, 0);
        assert_eq!(
            streams[0]["path"],
            stream_path("testuser", "htc-demo", &run.run_id)
        );
        let last = streams.last().expect("a stream");
        for key in ["complete", "exitcode"] {
            assert_eq!(part.body[key], last["body"][key], "{key}");
        }
        let history = &part.body["files"]["wandb-history.jsonl"];
        assert_eq!(history["offset"], 0);
        let ours = history["content"].as_array().expect("lines");
        let theirs = stream_lines(&streams, "wandb-history.jsonl");
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            let (ours, mut theirs) = (parsed(ours), parsed(theirs));
            theirs.retain(|_, value| value.is_number());
            assert_eq!(
                ours.keys().collect::<std::collections::BTreeSet<_>>(),
                theirs.keys().collect::<std::collections::BTreeSet<_>>()
            );
            for (name, value) in &ours {
                let is_time = name == "_runtime";
                assert!(
                    is_time || value.as_f64() == theirs[name].as_f64(),
                    "{name}: {value}"
                );
            }
        }
        assert_eq!(part.body["files"]["wandb-summary.json"]["offset"], 0);
    }

    #[test]
    fn run_requests_match_the_wandb_client() {
        assert_same_run("run_create_log_finish");
    }

    #[test]
    fn sweep_run_requests_match_the_wandb_client() {
        assert_same_run("sync_worker_offline_run_with_sweep_id");
    }

    #[test]
    fn sweep_variables_match_the_wandb_client() {
        let theirs = recorded("sweep_create_cli", "UpsertSweep").remove(0);
        let place = WandbProject {
            entity: None,
            project: "htc-demo".to_owned(),
        };
        let ours = upsert_sweep(&place, &json!({"method": "grid"}), "mark");
        let variables = ours["variables"].as_object().expect("variables");
        for name in variables.keys() {
            assert!(theirs["variables"].get(name).is_some(), "{name}");
        }
        assert_eq!(variables["projectName"], theirs["variables"]["projectName"]);
        assert_eq!(variables["config"], "{\"method\":\"grid\"}");
    }

    #[test]
    fn missing_epochs_are_split_by_request_size() {
        let long = "x".repeat(1 << 20);
        let epoch = |step: u64| TrackedEpoch {
            step,
            ended_s: step as f64,
            values: BTreeMap::from([(long.clone(), 1.0)]),
            system: BTreeMap::new(),
        };
        let run = TrackedRun {
            run_id: "id".to_owned(),
            name: String::new(),
            group: None,
            tags: Vec::new(),
            config: Map::new(),
            began_s: 0.0,
            epochs: (1..=20).map(epoch).collect(),
            summary: Map::new(),
            outcome: TrackedOutcome::Finished,
        };
        let mut known = 0;
        let mut parts = 0;
        while known < run.epochs.len() {
            let part = stream_part(&run, known);
            assert!(part.body.to_string().len() < 10 << 20);
            assert_eq!(part.body["files"]["wandb-history.jsonl"]["offset"], known);
            let is_last = part.known_epochs == run.epochs.len();
            assert_eq!(part.body["complete"] == true, is_last);
            known = part.known_epochs;
            parts += 1;
        }
        assert_eq!(parts, 3);
        assert_eq!(
            stream_path("a b", "..", "id"),
            "/files/a%20b/%2E%2E/id/file_stream"
        );
    }
}
