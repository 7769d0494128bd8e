//! Tests of `poolcast track --export`, which writes files of trackers, and of the requests to
//! MLflow.

use std::sync::LazyLock;

use serde_json::Value;

use crate::place::Place;
use crate::run::SMALL;

/// A test directory with a finished run of `small.yaml` in `out`.
static FINISHED: LazyLock<Place> = LazyLock::new(|| {
    let place = Place::with_short_log();
    place.write("small.yaml", SMALL);
    place.stdout("run small.yaml");
    place
});

#[test]
fn wandb_files_have_its_naming_scheme_and_are_deterministic() {
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
fn tensorboard_files_have_one_directory_per_run() {
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
fn exported_files_contain_no_path_or_host_name() {
    FINISHED.stdout("track out --export wandb -o private/wandb");
    FINISHED.stdout("track out --export tensorboard -o private/tensorboard");
    let here = FINISHED.path("").to_string_lossy().into_owned();
    let host = fs_err::read_to_string("/proc/sys/kernel/hostname").expect("read");
    for (name, bytes) in FINISHED.files("private") {
        let text = String::from_utf8_lossy(&bytes);
        for word in [here.trim_end_matches('/'), "EventLog"] {
            assert!(!text.contains(word), "{word} is in {name}");
        }
        // A short host name may occur in the bytes by chance.
        if host.trim().len() > 5 {
            assert!(!text.contains(host.trim()), "the host is in {name}");
        }
    }
}

#[test]
fn mlflow_dry_run_shows_the_requests_of_each_run() {
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
        // The report and the model of the best run are uploaded as files.
        let is_known = ["mlflow/", "mlflow-artifacts/artifacts/"]
            .iter()
            .any(|place| url.starts_with(&format!("http://127.0.0.1:9/api/2.0/{place}")));
        assert!(is_known, "{url}");
        created += usize::from(url.ends_with("/runs/create"));
    }
    assert_eq!(created, 4, "three trials and their sweep");
}

#[test]
fn failing_exports_name_the_missing_option() {
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
