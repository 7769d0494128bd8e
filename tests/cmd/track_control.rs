//! Tests of control from W&B's pages: stops, pauses and points take effect on a machine whose
//! workers have no network.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::place::{Outcome, Place};
use crate::run::SMALL;
use crate::sweep::{start, wait};
use crate::wandb_server::ServedState;
use crate::wandb_server::WandbServer;

/// Sends the sweep once, and applies the requests of users from the pages.
fn track(place: &Place, server: &WandbServer) {
    let mut command = place.command("track sweep --to wandb");
    command
        .env("WANDB_BASE_URL", &server.base_url)
        .env("WANDB_API_KEY", "0123456789012345678901234567890123456789")
        .env("NO_PROXY", "127.0.0.1");
    let outcome = Outcome::of(command.output().expect("it starts"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
}

/// Returns the numbers of running, ready and done trials.
fn counts(place: &Place) -> (usize, u64, u64) {
    let status = place.json("sweep status sweep --json");
    let running = status["running"].as_array().map_or(0, Vec::len);
    let count = |name: &str| status[name].as_u64().unwrap_or(0);
    (running, count("ready"), count("done"))
}

/// Waits until the server knows the one running trial, and returns the id of its run.
fn run_at_work(place: &Place, server: &WandbServer) -> String {
    let mut found = None;
    wait(|| {
        track(place, server);
        let state = server.state();
        let mut runs = state.runs.into_iter();
        found = runs.find(|(_, run)| run.exit_code.is_none());
        found.is_some()
    });
    found.expect("it was found").0
}

#[test]
fn stop_ends_one_trial_and_a_paused_sweep_starts_none() {
    let place = Place::with_short_log();
    let long = SMALL
        .replace("runs: 3", "runs: 4")
        .replace("epochs: 3", "epochs: 100000\nearlystop_threshold: 100000");
    place.write("long.yaml", long);
    place.stdout("sweep init long.yaml -o sweep");
    let server = WandbServer::begin();
    let mut run = start(&place, "sweep run sweep --threads 1");

    let first = run_at_work(&place, &server);
    server.stop(&first);
    track(&place, &server);
    wait(|| counts(&place).2 == 1);

    // A pause lets the running trial go on, but no other trial begins.
    let second = run_at_work(&place, &server);
    server.set_sweep_state("PAUSED");
    server.stop(&second);
    track(&place, &server);
    wait(|| counts(&place).2 == 2);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(counts(&place), (0, 2, 2));
    let shown = place.stdout("sweep status sweep --once");
    assert!(shown.contains("\npaused on its W&B page: "), "{shown}");

    // A local `sweep resume` takes effect although the page still says the same.
    place.stdout("sweep resume sweep");
    let third = run_at_work(&place, &server);
    assert_ne!(third, second);
    assert_eq!(counts(&place).0, 1);

    server.set_sweep_state("CANCELED");
    track(&place, &server);
    wait(|| run.try_wait().expect("asked").is_some());
    track(&place, &server);
    let rows = fs_err::read_to_string(place.path("sweep/results.jsonl")).expect("read");
    assert_eq!(rows.lines().count(), 3, "the fourth was never made");
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).expect("JSON");
        assert_eq!(row["ended"], "done");
        assert_eq!(row["ended_on_request"], true);
        assert!(row["value"].is_number(), "it has a model");
    }
    let state = server.state();
    assert_eq!(state.runs.len(), 3);
    for run in state.runs.values() {
        assert_eq!(run.exit_code, Some(0));
        let summary = run.summary.as_deref().expect("a summary");
        assert!(summary.contains("\"status\":\"ended on request\""));
    }
    let shown = place.stdout("sweep status sweep --once");
    assert!(
        shown.contains("\nstopped on its W&B page: 1 of them were not started"),
        "{shown}"
    );
}

/// Returns a configuration without a search space. `wandb` names the sweep on a server that gives
/// the points.
pub(crate) fn given_sweep(wandb: &str) -> String {
    SMALL
        .replace("runs: 3", &format!("runs: 9\n{wandb}"))
        .replace("{values: [3, 5]}", "3")
        .replace("{values: [lstm, gru, mlp]}", "mlp")
        .replace("{values: [4, 8]}", "4")
        .replace("{distribution: uniform, min: 0.001, max: 0.02}", "0.01")
}

/// Starts a manager that can reach the server.
fn start_manager(place: &Place, server: &WandbServer) -> Child {
    place
        .command("sweep manage sweep")
        .env("WANDB_BASE_URL", &server.base_url)
        .env("WANDB_API_KEY", "0123456789012345678901234567890123456789")
        .env("NO_PROXY", "127.0.0.1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

/// Returns the state of a server after it has given its points to two workers without a network. If
/// `is_killed`, the manager is killed in the middle and started again.
fn state_after_given_points(is_killed: bool) -> ServedState {
    let place = Place::with_short_log();
    place.write(
        "given.yaml",
        given_sweep("wandb: {sweep: {id: testuser/held/swp7}}"),
    );
    place.stdout("sweep init given.yaml -o sweep");
    let server = WandbServer::begin();
    let point =
        |size: u64| json!({"hidden_size": {"value": size}, "learning_rate": {"value": 0.004}});
    server.give_points([3, 4, 5, 6].map(point).to_vec());

    let mut manager = start_manager(&place, &server);
    let mut workers = [(); 2].map(|()| start(&place, "sweep work sweep"));
    if is_killed {
        wait(|| {
            server
                .state()
                .runs
                .values()
                .any(|run| run.exit_code.is_some())
        });
        manager.kill().expect("killed");
        manager.wait().expect("it ended");
        manager = start_manager(&place, &server);
    }
    let ended = manager.wait().expect("it ends");
    assert_eq!(ended.code(), Some(0));
    for worker in &mut workers {
        assert_eq!(worker.wait().expect("it ends").code(), Some(0));
    }

    let rows = fs_err::read_to_string(place.path("sweep/results.jsonl")).expect("read");
    let mut sizes = Vec::new();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).expect("JSON");
        assert_eq!(row["parameters"]["learning_rate"], 0.004);
        sizes.push(row["parameters"]["hidden_size"].as_u64().expect("a size"));
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [3, 4, 5, 6]);
    server.state()
}

#[test]
fn dag_rejects_points_from_a_server() {
    let place = Place::with_short_log();
    place.write(
        "given.yaml",
        "{logs: [EventLog.xz], wandb: {sweep: {id: a/b/c}}}",
    );
    place.write("x.sif", "");
    let refused = place.run("dag given.yaml -o dag --image x.sif");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("cannot take its points from W&B"),
        "{refused}"
    );
}

#[test]
fn workers_without_a_network_try_the_points_of_a_server() {
    // Both sweeps mostly wait, so they run at the same time.
    let (state, again) = std::thread::scope(|scope| {
        let killed = scope.spawn(|| state_after_given_points(true));
        let state = state_after_given_points(false);
        (state, killed.join().expect("it ends"))
    });
    assert!(state.sweeps.is_empty(), "it was there");
    let names: Vec<&str> = state.runs.keys().map(String::as_str).collect();
    assert_eq!(names, ["given0", "given1", "given2", "given3"]);
    for run in state.runs.values() {
        assert_eq!((run.exit_code, run.history.len()), (Some(0), 3));
        assert_eq!(run.sweep, "swp7");
    }

    let losses = |state: &ServedState| -> Vec<Value> {
        let all = state.runs.values().map(|run| {
            let last: Value = serde_json::from_str(&run.history[&2]).expect("JSON");
            json!([
                run.config["hidden_size"]["value"],
                last["train_loss"],
                run.history.len(),
                run.exit_code
            ])
        });
        all.collect()
    };
    assert_eq!(
        losses(&again),
        losses(&state),
        "a killed manager changes nothing"
    );
}
