//! What people press on W&B's pages, and what comes of it on a machine whose workers have no network.

use serde_json::Value;

use crate::place::{Outcome, Place};
use crate::run::SMALL;
use crate::sweep::{start, wait};
use crate::wandb_server::WandbServer;

/// Sends once, and hears what was pressed.
fn track(place: &Place, server: &WandbServer) {
    let mut command = place.command("track sweep --to wandb");
    command
        .env("WANDB_BASE_URL", &server.base_url)
        .env("WANDB_API_KEY", "0123456789012345678901234567890123456789")
        .env("NO_PROXY", "127.0.0.1");
    let outcome = Outcome::of(command.output().expect("it starts"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
}

/// How many trials are at work, ready and done.
fn counts(place: &Place) -> (usize, u64, u64) {
    let status = place.json("sweep status sweep --json");
    let running = status["running"].as_array().map_or(0, Vec::len);
    let count = |name: &str| status[name].as_u64().unwrap_or(0);
    (running, count("ready"), count("done"))
}

/// Waits until the one trial at work is known to the server, and returns the id of its run.
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
fn a_stop_ends_a_trial_and_a_paused_sweep_hands_nothing_out() {
    let place = Place::with_log();
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

    // The trial at work goes on while the sweep is paused, and is the last.
    let second = run_at_work(&place, &server);
    server.set_sweep_state("PAUSED");
    server.stop(&second);
    track(&place, &server);
    wait(|| counts(&place).2 == 2);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(counts(&place), (0, 2, 2));
    let shown = place.stdout("sweep status sweep --once");
    assert!(shown.contains("\npaused on its page: "), "{shown}");

    // What is said here counts, also if the page says the same as before.
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
        shown.contains("\nstopped on its page: 1 of them were not made"),
        "{shown}"
    );
}
