//! Tests of `poolcast track`, which sends a run or a sweep to a server. The key appears nowhere but
//! in a header.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::json_documents::{self, PrintedKeys};
use crate::mlflow_server::MlflowServer;
use crate::place::{Outcome, Place};
use crate::run::SMALL;
use crate::sweep::wait;
use crate::wandb_server::{Fault, ServedRun, WandbServer};

const KEY: &str = "canary0123456789canary0123456789canary01";

/// Base64 of `canary`. [`KEY`] has that word at three offsets, so its Base64 form in the header
/// contains this text.
const ENCODED_KEY: &str = "Y2FuYXJ5";

/// [`KEY`] as sent in the header.
const SENT_KEY: &str = "YXBpOmNhbmFyeTAxMjM0NTY3ODljYW5hcnkwMTIzNDU2Nzg5Y2FuYXJ5MDE=";

/// Headers of an answer after which a sender with less than an hour left gives up at once.
const AFTER_AN_HOUR: &[(&str, &str)] = &[("Retry-After", "3600")];

/// Returns a command that sends to `server` with [`KEY`], and logs everything.
fn tracked(place: &Place, server: &WandbServer, args: &str) -> Command {
    let mut command = place.command(args);
    command
        .env("WANDB_BASE_URL", &server.base_url)
        .env("WANDB_API_KEY", KEY)
        .env("NO_PROXY", "127.0.0.1")
        .env("POOLCAST_LOG", "trace");
    command
}

/// Runs the command of [`tracked`], and asserts that it does not print the key.
fn run_tracked(place: &Place, server: &WandbServer, args: &str) -> Outcome {
    let outcome = Outcome::of(tracked(place, server, args).output().expect("it starts"));
    for text in [&outcome.stdout, &outcome.stderr] {
        assert!(
            !text.contains("canary") && !text.contains(ENCODED_KEY),
            "{text}"
        );
    }
    outcome
}

/// A test directory with a finished sweep of two networks and a pipeline.
fn place_with_sweep() -> Place {
    let place = Place::with_short_log();
    let small = SMALL.replace("runs: 3", "runs: 2")
        + "pipelines: {lasso: {runs: 1, parameters: {C: 0.1}}}\n";
    place.write("small.yaml", small);
    place.stdout("sweep init small.yaml -o sweep");
    place.stdout("sweep run sweep");
    place
}

/// Asserts that no file below `dir` contains the key.
fn assert_no_key_below(dir: &Path) {
    for entry in fs_err::read_dir(dir).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            assert_no_key_below(&path);
        } else if let Ok(bytes) = fs_err::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                !text.contains("canary") && !text.contains(ENCODED_KEY),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn sweep_sent_repeatedly_is_stored_once() {
    let place = place_with_sweep();
    let server = WandbServer::begin();
    let first = run_tracked(&place, &server, "track sweep --to wandb");
    assert_eq!(first.code, Some(0), "{first}");
    assert!(
        first
            .stdout
            .starts_with("3 runs with 7 epochs and 2 files sent to http://127.0.0.1:"),
        "{first}"
    );
    assert!(
        first
            .stdout
            .ends_with("/testuser/poolcast: 3 ended, 0 running\n"),
        "{first}"
    );
    assert_eq!(server.requests().len(), 2 + 2 * 3 + 4);
    assert_has_files_of_best(&place, &server);

    let state = server.state();
    assert_eq!(state.sweeps.len(), 1);
    let text = fs_err::read_to_string(place.path("sweep/results.jsonl")).expect("read");
    for (line, number) in text.lines().zip(1..) {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let name = format!("trial-{number:04}");
        let run = state
            .runs
            .values()
            .find(|run| run.display_name == name.as_str());
        let run = run.expect("it was sent");
        assert_eq!(
            (run.exit_code, &run.sweep),
            (Some(0), &Value::from("swp00001"))
        );
        for (name, value) in row["parameters"].as_object().expect("parameters") {
            assert_eq!(&run.config[name]["value"], value, "{name}");
        }
        let summary: Value =
            serde_json::from_str(run.summary.as_deref().expect("a summary")).expect("JSON");
        assert_eq!(summary["judged_roc_auc"], row["value"]);
        let kept = &row["metrics"]["best"]["validation"]["roc_auc"];
        let of_model = if kept.is_null() { &row["value"] } else { kept };
        assert_eq!(&summary["validation_roc_auc"], of_model);
        let epochs = usize::max(row["values"].as_array().expect("values").len(), 1);
        assert_eq!(run.history.len(), epochs);
        let stamps = run.history.values().map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            line["_timestamp"].as_f64().expect("a stamp")
        });
        assert!(stamps.into_iter().all(|stamp| stamp > 1.7e9));
    }

    let again = run_tracked(&place, &server, "track sweep --to wandb");
    assert_eq!(again.code, Some(0), "{again}");
    assert_eq!(
        server.requests().len(),
        2 + 2 * 3 + 4,
        "its notes say that all is there"
    );
    fs_err::remove_file(place.path("sweep/tracked-wandb.json")).expect("removed");
    assert_eq!(
        run_tracked(&place, &server, "track sweep --to wandb").code,
        Some(0)
    );
    assert_eq!(server.state(), state);

    let machine = fs_err::read_to_string("/proc/sys/kernel/hostname").expect("read");
    for request in server.requests() {
        let headers = request.headers.to_lowercase();
        let is_own = !request.path.starts_with("/storage/");
        assert_eq!(headers.contains("authorization: basic "), is_own);
        let here = place.path("").to_string_lossy().into_owned();
        for secret in ["canary", ENCODED_KEY, "EventLog", &here] {
            assert!(
                !request.text.contains(secret) && !request.path.contains(secret),
                "{secret}"
            );
        }
        let is_named = machine.trim().len() > 3 && request.text.contains(machine.trim());
        assert!(!is_named, "the host is named");
    }
    assert_no_key_below(&place.path("sweep"));
}

/// Asserts that only the best run has files: its model, and a page that names nobody.
fn assert_has_files_of_best(place: &Place, server: &WandbServer) {
    let best = fs_err::read_to_string(place.path("sweep/best.json")).expect("read");
    let best: Value = serde_json::from_str(&best).expect("JSON");
    let name = format!("trial-{:04}", best["trial"].as_u64().expect("a trial"));
    for run in server.state().runs.values() {
        if run.display_name != name.as_str() {
            assert!(run.files.is_empty(), "{run:?}");
            continue;
        }
        assert_eq!(run.files.len(), 2, "{:?}", run.files.keys());
        assert_eq!(run.exit_code, Some(0));
        let page = &run.files["report.html"];
        let anonymous = place.stdout("report sweep --anonymous -o page.html");
        assert_eq!(anonymous, "page.html\n");
        assert!(page.contains("<svg") && !page.contains("EventLog.xz"));
        let model = run.files.keys().find(|name| *name != "report.html");
        let path = place.path(&format!("sweep/trials/{name}/{}", model.expect("a model")));
        let kept = fs_err::read(path).expect("read");
        assert_eq!(
            String::from_utf8_lossy(&kept),
            run.files[model.expect("one")]
        );
    }
}

#[test]
fn dry_run_shows_all_requests_without_key_or_server() {
    let place = place_with_sweep();
    let printed = place.stdout("track sweep --to wandb --dry-run");
    let requests: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(requests.len(), 1 + 2 * 3 + 4);
    let shown = |name: &str| {
        let is_file = |request: &&Value| request["file"]["name"] == name;
        let found = requests.iter().find(is_file).expect(name);
        found["file"]["text"].as_str().map(str::to_owned)
    };
    assert!(shown("report.html").expect("a text").contains("<svg"));
    assert_eq!(requests[0]["body"]["operationName"], "UpsertSweep");
    let server = WandbServer::begin();
    assert_eq!(
        run_tracked(&place, &server, "track sweep --to wandb").code,
        Some(0)
    );
    for request in server.requests() {
        let is_asked = request.body["operationName"] == "FindSweeps";
        let name = &request.body["variables"]["name"];
        let is_shown = requests.iter().any(|shown| {
            shown["body"]["files"] == request.body["files"]
                && &shown["body"]["variables"]["name"] == name
                && shown["body"]["variables"]["config"] == request.body["variables"]["config"]
        });
        let is_file = request.path.starts_with("/storage/");
        if is_file {
            let name = request.path.rsplit('/').next().expect("a name");
            assert!(
                shown(name).is_none_or(|text| text == request.text),
                "{name}"
            );
        }
        assert!(is_asked || is_shown || is_file, "{}", request.text);
    }
}

#[test]
fn training_is_sent_live_and_succeeds_without_a_server() {
    let place = Place::with_run();
    let server = WandbServer::begin();
    place.write("enabled.yaml", "wandb: {enable: true, project: held}\n");
    let train = |name: &str| {
        format!("train tensors -c enabled.yaml -o {name} --hidden-size 4 --epochs 2 --seed 3")
    };
    let sent = run_tracked(&place, &server, &train("sent"));
    assert_eq!(sent.code, Some(0), "{sent}");
    let state = server.state();
    let run = state.runs.values().next().expect("a run");
    assert_eq!((run.history.len(), run.exit_code), (2, Some(0)));
    assert!(state.sweeps.is_empty(), "it is no sweep");

    server.is_down.store(true, Ordering::Relaxed);
    let mut unsent = place.command(&train("unsent"));
    unsent.env("WANDB_BASE_URL", &server.base_url);
    let unsent = Outcome::of(unsent.output().expect("it starts"));
    assert_eq!(unsent.code, Some(0), "{unsent}");
    assert!(
        unsent.stderr.contains("there is no key for W&B"),
        "{unsent}"
    );
    let files = |name: &str| place.files(name);
    let mut sent = files("sent");
    sent.remove("tracked-wandb.json");
    sent.remove("tracker-wandb.json");
    let names: BTreeSet<String> = ["tracking.lock".to_owned()].into();
    sent.retain(|name, _| !names.contains(name));
    let mut unsent = files("unsent");
    unsent.retain(|name, _| !names.contains(name));
    assert!(sent == unsent, "training does not depend on the server");
}

#[test]
fn running_sweep_is_sent_live() {
    let place = Place::with_short_log();
    place.write(
        "small.yaml",
        format!("{SMALL}wandb: {{enable: true, sweep: {{name: live}}}}\n"),
    );
    place.stdout("sweep init small.yaml -o sweep");
    let server = WandbServer::begin();
    let swept = run_tracked(&place, &server, "sweep run sweep --threads 2");
    assert_eq!(swept.code, Some(0), "{swept}");
    let state = server.state();
    assert_eq!((state.sweeps.len(), state.runs.len()), (1, 3));
    for run in state.runs.values() {
        assert_eq!((run.exit_code, &run.group), (Some(0), &Value::from("live")));
        let steps = run.history.values().zip(1..).all(|(line, step)| {
            line.contains(&format!("\"_step\":{step},")) && line.contains("\"train_loss\":")
        });
        assert!(steps && !run.history.is_empty());
        assert_eq!(run.system.len(), run.history.len());
    }
    assert_no_key_below(&place.path("sweep"));
}

#[test]
fn sweep_is_sent_to_mlflow_once_even_if_wandb_is_down() {
    let place = Place::with_short_log();
    let wandb = WandbServer::begin();
    let mlflow = MlflowServer::begin();
    let enabled = format!(
        "wandb: {{enable: true, sweep: {{name: live}}}}\nmlflow: {{enable: true, tracking_uri: \"{}\", experiment: held}}\n",
        mlflow.base_url
    );
    place.write("small.yaml", format!("{SMALL}{enabled}"));
    place.stdout("sweep init small.yaml -o sweep");
    // Neither tracker waits for the other.
    wandb.is_down.store(true, Ordering::Relaxed);
    let host = mlflow.base_url.trim_start_matches("http://");
    let netrc = format!("machine {host} login me password {KEY}\n");
    place.write("netrc", netrc);
    let mode = std::fs::Permissions::from_mode(0o600);
    fs_err::set_permissions(place.path("netrc"), mode).expect("set");
    let mut command = tracked(&place, &wandb, "sweep run sweep --threads 2");
    command.env("NETRC", "netrc").env_remove("POOLCAST_LOG");
    let swept = Outcome::of(command.output().expect("it starts"));
    assert_eq!(swept.code, Some(0), "{swept}");
    assert!(swept.stderr.contains("--to wandb"), "{swept}");

    assert_eq!(mlflow.experiment().as_deref(), Some("held"));
    let runs = mlflow.runs();
    let names: BTreeSet<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let expected = ["live", "trial-0001", "trial-0002", "trial-0003"];
    assert_eq!(names, expected.into());
    let sweep = runs.iter().position(|run| run.name == "live");
    let sweep = sweep.expect("the sweep").to_string();
    for run in &runs {
        assert_eq!(run.status, "FINISHED", "{run:?}");
        let dataset = run.dataset.as_ref().expect("a dataset");
        assert_eq!(dataset["name"], "live");
        let Some(parent) = run.tags.get("mlflow.parentRunId") else {
            let best = &run.tags["best_run"];
            assert!(names.contains(&best.as_str()), "{best}");
            continue;
        };
        assert_eq!(*parent, sweep);
        assert!(run.params.contains_key("data.log_digest"), "{run:?}");
        // The trials differ in `j`, so they have no samples in common.
        assert!(!run.params.contains_key("data.samples_train"), "{run:?}");
        assert_eq!(run.tags["poolcast.group"], "live");
        let losses = run.metrics.iter().filter(|(name, ..)| name == "train_loss");
        let steps: Vec<u64> = losses.map(|(_, step, _)| *step).collect();
        assert!(
            !steps.is_empty() && steps.is_sorted_by(|a, b| a < b),
            "{steps:?}"
        );
    }
    for request in mlflow.requests() {
        let headers = request.headers.to_lowercase();
        assert!(headers.contains("authorization: basic "), "{headers}");
        assert!(!request.text.contains("canary"), "{}", request.text);
    }
    assert_no_key_below(&place.path("sweep"));

    // The notes of the sweep show that everything was sent.
    let before = mlflow.requests().len();
    let mut command = tracked(&place, &wandb, "track sweep --to mlflow");
    command.env("NETRC", "netrc");
    let again = Outcome::of(command.output().expect("it starts"));
    assert_eq!(again.code, Some(0), "{again}");
    assert!(again.stdout.ends_with("3 ended, 0 running\n"), "{again}");
    // Two requests look up the experiment and the best run, and two requests send files.
    assert_eq!(mlflow.requests().len() - before, 4);
    let with_files = mlflow
        .runs()
        .into_iter()
        .filter(|run| !run.files.is_empty());
    let files: Vec<BTreeSet<String>> = with_files
        .map(|run| run.files.into_keys().collect())
        .collect();
    let names = ["model.safetensors", "report.html"].map(str::to_owned);
    assert_eq!(files, [BTreeSet::from(names)]);

    let mut command = tracked(&place, &wandb, "track sweep --to mlflow");
    command.env("NETRC", "netrc");
    let third = Outcome::of(command.output().expect("it starts"));
    assert_eq!(third.code, Some(0), "{third}");
    assert_eq!(mlflow.requests().len() - before, 5, "the files are there");
}

#[test]
fn tracker_files_are_exported_without_a_network() {
    let place = Place::with_run();
    for name in ["wandb", "tensorboard"] {
        let printed = place.stdout(&format!("track run --export {name} -o files/{name}"));
        let told = format!("1 run written to files/{name}: ");
        assert!(printed.starts_with(&told), "{printed}");
        place.stdout(&format!("track run --export {name} -o again/{name}"));
    }
    assert!(place.files("files").len() == 2 && place.files("files") == place.files("again"));
}

#[test]
fn send_failures_are_reported() {
    let place = Place::with_run();
    let server = WandbServer::begin();
    let mut without_key = place.command("track run --to wandb");
    without_key.env("WANDB_BASE_URL", "https://wandb.example");
    insta::assert_snapshot!(Outcome::of(without_key.output().expect("it starts")), @"
    exit 2
    error: there is no key for W&B at wandb.example

    hint: set WANDB_API_KEY, or write `machine wandb.example login user password KEY` into ~/.netrc
    ");

    server.add_fault(
        0,
        Fault::Status(401, &[], "{\"error\": \"invalid API key\"}"),
    );
    let refused = run_tracked(&place, &server, "track run --to wandb --json");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("answers 401: invalid API key"),
        "{refused}"
    );

    server.is_down.store(true, Ordering::Relaxed);
    let down = run_tracked(&place, &server, "track run --to wandb --for 1");
    assert_eq!(down.code, Some(1), "{down}");
    assert!(
        down.stderr.contains("poolcast track run --to wandb"),
        "{down}"
    );

    let nothing = place.run("track nowhere --to wandb --dry-run");
    assert_eq!(nothing.code, Some(2), "{nothing}");
}

#[test]
fn second_sender_exits_with_an_error() {
    let place = Place::with_run();
    let server = WandbServer::begin();
    let first = fs_err::File::create(place.path("run/tracking.lock")).expect("made");
    first.file().lock().expect("locked");
    let second = run_tracked(&place, &server, "track run --to wandb");
    assert_eq!(second.code, Some(1), "{second}");
    let told = "another process is sending the results in `run`";
    assert!(second.stderr.contains(told), "{second}");
    assert!(server.requests().is_empty());
    drop(first);
    assert_eq!(
        run_tracked(&place, &server, "track run --to wandb").code,
        Some(0)
    );
}

#[test]
fn truncated_history_is_replaced_by_the_result_row() {
    let place = place_with_sweep();
    let name = "sweep/trials/trial-0001/history.jsonl";
    let history = fs_err::read_to_string(place.path(name)).expect("read");
    place.write(name, &history[..history.len() - 20]);
    let server = WandbServer::begin();
    let sent = run_tracked(&place, &server, "track sweep --to wandb");
    assert_eq!(sent.code, Some(0), "{sent}");
    let state = server.state();
    let is_cut = |run: &&ServedRun| run.display_name == "trial-0001";
    let run = state.runs.values().find(is_cut).expect("it was sent");
    assert_eq!((run.history.len(), run.exit_code), (3, Some(0)));
    for line in run.history.values() {
        assert!(line.contains("\"validation_roc_auc\":"), "{line}");
        assert!(!line.contains("train_loss"), "{line}");
    }
}

#[test]
fn runs_are_sent_even_if_the_best_model_has_another_version() {
    let place = place_with_sweep();
    let best = fs_err::read_to_string(place.path("sweep/best.json")).expect("read");
    let best: Value = serde_json::from_str(&best).expect("JSON");
    let trial = best["trial"].as_u64().expect("a trial");
    let name = format!("sweep/trials/trial-{trial:04}/manifest.json");
    let manifest = fs_err::read_to_string(place.path(&name)).expect("read");
    let mut manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    manifest["format_version"] = 1.into();
    place.write(&name, manifest.to_string());
    let server = WandbServer::begin();
    let sent = run_tracked(&place, &server, "track sweep --to wandb");
    assert_eq!(sent.code, Some(0), "{sent}");
    let told = "the report and the best model were not sent: ";
    assert!(sent.stderr.contains(told), "{sent}");
    assert!(sent.stderr.contains("format version 1"), "{sent}");
    let state = server.state();
    assert_eq!(state.runs.len(), 3);
    assert!(state.runs.values().all(|run| run.files.is_empty()));
}

#[test]
fn netrc_key_is_used_for_its_host_and_a_loose_mode_is_reported() {
    let place = Place::with_run();
    let server = WandbServer::begin();
    let host = server.base_url.trim_start_matches("http://");
    place.write(
        "netrc",
        format!(
            "machine other login user password no\nmachine {host}\n  login user\n  password {KEY}\n"
        ),
    );
    let send = |mode: u32| {
        let path = place.path("netrc");
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        let mut command = tracked(&place, &server, "track run --to wandb");
        command.env_remove("WANDB_API_KEY").env("NETRC", "netrc");
        Outcome::of(command.output().expect("it starts"))
    };
    let loose = send(0o644);
    assert_eq!(loose.code, Some(0), "{loose}");
    assert!(
        loose
            .stderr
            .contains("others may read `netrc`: chmod 600 netrc"),
        "{loose}"
    );
    let tight = send(0o600);
    assert!(
        tight.code == Some(0) && !tight.stderr.contains("chmod"),
        "{tight}"
    );
    assert!(!loose.stderr.contains("canary"));
}

/// Returns the keys that `track --json` prints for a run.
pub(crate) fn track_documents() -> PrintedKeys {
    let place = Place::with_run();
    let server = WandbServer::begin();
    let args = "track run --to wandb --json";
    let sent = run_tracked(&place, &server, args);
    let document = serde_json::from_str(&sent.stdout).expect("JSON");
    json_documents::printed_keys(args, &document)
}

#[test]
fn htcondor_programs_get_no_key_in_their_environment() {
    let place = Place::with_log();
    place.write("small.yaml", SMALL);
    fs_err::create_dir(place.path("bin")).expect("made");
    place.put_program("bin/condor_submit_dag", "/usr/bin/env > ../seen");
    place.write("x.sif", "");
    let mut command = place.command("dag small.yaml -o dag --image x.sif --submit");
    command
        .env("WANDB_API_KEY", KEY)
        .env("MLFLOW_TRACKING_TOKEN", KEY)
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", place.path("bin").display()),
        );
    let outcome = Outcome::of(command.output().expect("it starts"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let seen = fs_err::read_to_string(place.path("seen")).expect("it was called");
    assert!(seen.contains("PATH=") && !seen.contains("canary"), "{seen}");
}

/// Writes the servers into the configuration of the run in `dir`, as a stranger could who hands on
/// results.
fn name_servers(place: &Place, dir: &str, wandb: &WandbServer, mlflow: &MlflowServer) {
    let name = format!("{dir}/config.yaml");
    let written = fs_err::read_to_string(place.path(&name)).expect("read");
    let named = written
        .replace("base_url: null", &format!("base_url: {}", wandb.base_url))
        .replace(
            "tracking_uri: null",
            &format!("tracking_uri: {}", mlflow.base_url),
        );
    assert_eq!(named.matches("127.0.0.1").count(), 2, "{written}");
    place.write(&name, named);
}

#[test]
fn key_is_not_sent_to_a_server_that_only_the_results_name() {
    let place = Place::with_run();
    let (wandb, mlflow) = (WandbServer::begin(), MlflowServer::begin());
    name_servers(&place, "run", &wandb, &mlflow);
    let send = |args: &str, netrc: &str| {
        place.write("netrc", netrc);
        let mode = std::fs::Permissions::from_mode(0o600);
        fs_err::set_permissions(place.path("netrc"), mode).expect("set");
        let mut command = tracked(&place, &wandb, args);
        command
            .env_remove("WANDB_BASE_URL")
            .env("MLFLOW_TRACKING_TOKEN", KEY)
            .env("NETRC", "netrc");
        Outcome::of(command.output().expect("it starts"))
    };
    let default = format!("default login user password {KEY}\n");
    for (tracker, base_url) in [("wandb", &wandb.base_url), ("mlflow", &mlflow.base_url)] {
        let refused = send(&format!("track run --to {tracker}"), &default);
        assert_eq!(refused.code, Some(2), "{refused}");
        let host = base_url.trim_start_matches("http://");
        let told = format!("is not sent to {host}: only `");
        assert!(refused.stderr.contains(&told), "{refused}");
        assert!(refused.stderr.contains("--server URL"), "{refused}");
        assert!(!refused.stderr.contains("canary"), "{refused}");
    }
    assert!(wandb.requests().is_empty() && mlflow.requests().is_empty());

    // A training, too, sends nothing to the server of its configuration.
    let enabled = format!(
        "wandb: {{enable: true, base_url: \"{}\"}}\n",
        wandb.base_url
    );
    place.write("enabled.yaml", enabled);
    let trained = send(
        "train tensors -c enabled.yaml -o sent --hidden-size 4 --epochs 1",
        &default,
    );
    assert_eq!(trained.code, Some(0), "{trained}");
    assert!(
        trained.stderr.contains("is not sent to 127.0.0.1:"),
        "{trained}"
    );
    assert!(wandb.requests().is_empty());

    // The user repeats the address, or has a key for the host.
    let confirmed = send(
        &format!("track run --to wandb --server {}", wandb.base_url),
        &default,
    );
    assert_eq!(confirmed.code, Some(0), "{confirmed}");
    assert!(!wandb.requests().is_empty());
    let host = mlflow.base_url.trim_start_matches("http://");
    let netrc = format!("machine {host} login me password {KEY}\n");
    let known = send("track run --to mlflow", &netrc);
    assert_eq!(known.code, Some(0), "{known}");
    for request in mlflow.requests() {
        let headers = request.headers.to_lowercase();
        assert!(headers.contains("authorization: basic "), "{headers}");
    }

    let both = send("track run --to wandb,mlflow --server https://a.example", "");
    assert_eq!(both.code, Some(2), "{both}");
    assert!(both.stderr.contains("address of one tracker"), "{both}");
}

/// Begins a server that answers each request one byte each half second, without an end. Returns its
/// URL, and the number of requests so far.
fn begin_dripping_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                counted.fetch_add(1, Ordering::Relaxed);
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
                let _ = stream.write_all(head.as_bytes());
                while stream.write_all(b" ").is_ok() {
                    std::thread::sleep(Duration::from_millis(500));
                }
            });
        }
    });
    (format!("http://{address}"), requests)
}

#[test]
fn dripping_answer_ends_with_the_time_limit_or_a_signal() {
    let place = Place::with_run();
    let (base_url, requests) = begin_dripping_server();
    let command = |args: &str| {
        let mut command = place.command(args);
        command
            .env("WANDB_BASE_URL", &base_url)
            .env("WANDB_API_KEY", KEY)
            .env("NO_PROXY", "127.0.0.1");
        command
    };
    // On a busy machine, the time may be over before the first request.
    let limited = [1, 10, 100, 1000].into_iter().find_map(|limit_s| {
        let mut limited = command(&format!("track run --to wandb --for {limit_s}"));
        let limited = Outcome::of(limited.output().expect("it starts"));
        (requests.load(Ordering::Relaxed) > 0).then_some(limited)
    });
    let limited = limited.expect("a request in time");
    assert_eq!(limited.code, Some(1), "{limited}");
    assert!(
        limited.stderr.contains("no complete answer within "),
        "{limited}"
    );

    let before = requests.load(Ordering::Relaxed);
    let mut stopped = command("track run --to wandb --watch");
    let mut child = stopped.stderr(Stdio::null()).spawn().expect("it starts");
    wait(|| requests.load(Ordering::Relaxed) > before);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("sent");
    // Otherwise it goes on for ever.
    child.wait().expect("it ends");
}

#[test]
fn key_and_control_characters_that_a_server_repeats_are_not_shown() {
    let place = Place::with_run();
    let server = WandbServer::begin();
    let message = format!("\u{1b}[31mno user for Basic {SENT_KEY}, {KEY}");
    let echo = serde_json::json!({"errors": [{ "message": message }]}).to_string();
    // Tests of one process live as long as it does.
    let echo: &'static str = Box::leak(echo.into_boxed_str());
    let plain: &'static str = Box::leak(message.into_boxed_str());

    server.add_fault(0, Fault::Status(500, AFTER_AN_HOUR, echo));
    let retried = run_tracked(&place, &server, "track run --to wandb --for 3000");
    assert_eq!(retried.code, Some(1), "{retried}");
    let told = "it answers 500: \\u{1b}[31mno user for Basic [key], [key]";
    assert!(retried.stderr.contains(told), "{retried}");
    let state = fs_err::read_to_string(place.path("run/tracker-wandb.json")).expect("read");
    assert!(state.contains("no user for Basic [key], [key]"), "{state}");

    for (status, body) in [(401, echo), (403, plain), (200, echo)] {
        server.add_fault(server.requests().len(), Fault::Status(status, &[], body));
        let refused = run_tracked(&place, &server, "track run --to wandb");
        assert_eq!(refused.code, Some(2), "{refused}");
        let told = format!("answers {status}: \\u{{1b}}[31mno user for Basic [key], [key]");
        assert!(refused.stderr.contains(&told), "{refused}");
    }
    assert_no_key_below(&place.path("run"));
}

#[test]
fn answers_with_too_many_values_are_rejected() {
    let place = Place::with_run();
    let server = WandbServer::begin();
    let body = format!("[{}[]]", "[],".repeat(3_000_000));
    let body: &'static str = Box::leak(body.into_boxed_str());
    server.add_fault(0, Fault::Status(200, AFTER_AN_HOUR, body));
    let sent = run_tracked(&place, &server, "track run --to wandb --for 3000");
    assert_eq!(sent.code, Some(1), "{sent}");
    assert!(
        sent.stderr.contains("its answer is not usable JSON"),
        "{sent}"
    );
}
