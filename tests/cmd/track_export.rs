//! `poolcast track --export`: the files of trackers; and what MLflow would get.

use std::sync::LazyLock;

use serde_json::Value;

use crate::place::Place;
use crate::run::SMALL;

/// A place where `small.yaml` was run to its end in `out`.
static FINISHED: LazyLock<Place> = LazyLock::new(|| {
    let place = Place::with_log();
    place.write("small.yaml", SMALL);
    place.stdout("run small.yaml");
    place
});

#[test]
fn the_files_of_wandb_are_named_as_its_own_and_have_the_same_bytes_again() {
    let told = FINISHED.stdout("track out --export wandb -o offline");
    assert_eq!(
        told,
        "3 runs written to offline: wandb sync offline/offline-run-*\n"
    );
    FINISHED.stdout("track out --export wandb -o again");
    let files = FINISHED.files("offline");
    assert_eq!(files, FINISHED.files("again"));

    assert_eq!(files.len(), 3);
    for (name, bytes) in &files {
        let (dir, file) = name.split_once('/').expect("a directory a run");
        let id = file
            .strip_prefix("run-")
            .and_then(|rest| rest.strip_suffix(".wandb"));
        let id = id.expect("a name of W&B's");
        assert!(
            dir.starts_with("offline-run-20") && dir.ends_with(&format!("-{id}")),
            "{dir}"
        );
        assert!(bytes.starts_with(b":W&B"));
    }
}

#[test]
fn the_files_of_tensorboard_are_a_directory_a_run() {
    let told = FINISHED.stdout("track out --export tensorboard -o events");
    assert_eq!(
        told,
        "3 runs written to events: tensorboard --logdir events\n"
    );
    let files = FINISHED.files("events");
    assert_eq!(files.len(), 3);
    let found = files
        .keys()
        .filter(|name| name.contains("/events.out.tfevents."));
    assert_eq!(found.count(), 3);
}

#[test]
fn no_file_has_a_path_or_a_host_in_it() {
    FINISHED.stdout("track out --export wandb -o private/wandb");
    FINISHED.stdout("track out --export tensorboard -o private/tensorboard");
    let here = FINISHED.path("").to_string_lossy().into_owned();
    let host = fs_err::read_to_string("/proc/sys/kernel/hostname").expect("read");
    for (name, bytes) in FINISHED.files("private") {
        let text = String::from_utf8_lossy(&bytes);
        for word in [here.trim_end_matches('/'), "EventLog"] {
            assert!(!text.contains(word), "{word} is in {name}");
        }
        // A short name of a host may stand in any bytes.
        if host.trim().len() > 5 {
            assert!(!text.contains(host.trim()), "the host is in {name}");
        }
    }
}

#[test]
fn mlflow_gets_each_run_by_requests_that_can_be_looked_at() {
    let mut command = FINISHED.command("track out --to mlflow --dry-run");
    command.env("MLFLOW_TRACKING_URI", "http://127.0.0.1:9/");
    command.env("MLFLOW_TRACKING_TOKEN", "canary-token");
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        !text.contains("canary-token") && !text.contains(&*FINISHED.path("").to_string_lossy())
    );

    let mut created = 0;
    for line in text.lines() {
        let request: Value = serde_json::from_str(line).expect("JSON");
        let url = request["url"].as_str().expect("an address");
        // The report and the model of the best run go by way of the server's files.
        let is_known = ["mlflow/", "mlflow-artifacts/artifacts/"]
            .iter()
            .any(|place| url.starts_with(&format!("http://127.0.0.1:9/api/2.0/{place}")));
        assert!(is_known, "{url}");
        created += usize::from(url.ends_with("/runs/create"));
    }
    assert_eq!(created, 3);
}

#[test]
fn what_cannot_be_done_is_told_with_what_to_do() {
    for (args, told) in [
        ("track out --export wandb", "--out"),
        ("track out", "--to"),
        ("track out --to mlflow", "set MLFLOW_TRACKING_URI"),
        ("track nowhere --export wandb -o offline", "nowhere"),
    ] {
        let outcome = FINISHED.run(args);
        assert_eq!(outcome.code, Some(2), "{args}: {outcome}");
        assert!(outcome.stderr.contains(told), "{args}: {outcome}");
    }
}
