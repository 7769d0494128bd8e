//! Runs the commands of docs/tracking.md one after another, against fake servers.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use crate::mlflow_server::MlflowServer;
use crate::place::{Outcome, Place};
use crate::run::SMALL;
use crate::sweep::start;
use crate::track_control::given_sweep;
use crate::wandb_server::WandbServer;

#[test]
fn documented_tracker_commands_succeed() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tracking.md");
    let docs = fs_err::read_to_string(docs).expect("read");
    let mut typed = docs.lines().filter_map(|line| line.strip_prefix("    "));
    let commands: Vec<&str> = typed
        .clone()
        .filter_map(|line| line.strip_prefix("poolcast "))
        .collect();
    let given = typed.find(|line| line.starts_with("wandb: {sweep: {id: "));

    let place = Place::with_short_log();
    place.write("quickstart.yaml", SMALL);
    place.write("config.yaml", given_sweep(given.expect("a configuration")));
    place.stdout("run quickstart.yaml -o out/quickstart");
    symlink("quickstart", place.path("out/sweep")).expect("linked");
    let (wandb, mlflow) = (WandbServer::begin(), MlflowServer::begin());
    wandb.give_points(vec![json!({"hidden_size": {"value": 3}})]);

    let mut workers = Vec::new();
    for args in &commands {
        match *args {
            "sweep init config.yaml -o out/sweep" => {
                fs_err::remove_file(place.path("out/sweep")).expect("removed");
            }
            "sweep manage out/sweep" => workers.push(start(&place, "sweep work out/sweep")),
            _ => {}
        }
        let mut command = place.command(args);
        command
            .env("WANDB_BASE_URL", &wandb.base_url)
            .env("WANDB_API_KEY", "0123456789012345678901234567890123456789")
            .env("MLFLOW_TRACKING_URI", &mlflow.base_url)
            .env("NO_PROXY", "127.0.0.1");
        let outcome = Outcome::of(command.output().expect("it starts"));
        assert_eq!(outcome.code, Some(0), "{args}: {outcome}");
    }
    for worker in &mut workers {
        assert!(worker.wait().expect("it ends").success());
    }

    assert_eq!((commands.len(), workers.len()), (8, 1));
    // MLflow has a run for the sweep, too.
    assert_eq!((wandb.state().runs.len(), mlflow.runs().len()), (4, 4));
    for name in ["out/wandb", "out/events"] {
        assert_eq!(place.files(name).len(), 3, "{name}");
    }
}
