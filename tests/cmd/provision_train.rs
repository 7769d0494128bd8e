//! Tests of `poolcast provision train`: models of queue waits, from samples of a real cluster's
//! queue.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::LazyLock;

use crate::place::{Place, begin_directory, call_in};
use crate::provision::{link_jobs, place_with_jobs};
use crate::sweep::caught;

/// Directory with a trace, and `samples` of windows of short jobs, so that ten days have disjoint
/// windows. It is made once for all tests of a process.
static SAMPLES: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = begin_directory("provision-train");
    link_jobs(&dir);
    call_in(
        &dir,
        "provision trace jobs.txt.xz -o trace --tz America/Chicago",
    );
    call_in(
        &dir,
        "-q provision samples trace -o samples --job-limit 480 --interval 2",
    );
    dir
});

/// A test directory with the trace and the samples.
fn place_with_samples() -> Place {
    let place = place_with_jobs();
    for name in ["trace", "samples"] {
        place.copy_all(&SAMPLES.join(name), name);
    }
    place
}

#[test]
fn a_model_learns_from_samples() {
    let place = place_with_samples();
    let train = "provision train samples -o model";
    insta::assert_snapshot!(place.run(&format!("-q {train}")));
    let written = place.files("model");
    assert_eq!(
        written.keys().collect::<Vec<_>>(),
        [
            "manifest.json",
            "pipeline-0/pipeline.json",
            "pipeline-1/pipeline.json"
        ]
    );
    let again = place.run(train);
    assert!(
        again
            .stderr
            .contains("nothing new: `model` already holds this model"),
        "{again}"
    );
    place.stdout("--threads 1 provision train samples -o single");
    assert_eq!(place.files("single"), written);

    let other = place.run(&format!("{train} --model rf"));
    assert_eq!(other.code, Some(2), "{other}");
    assert!(
        other.stderr.contains("already holds something else"),
        "{other}"
    );
    place.stdout(&format!("-q {train} --model rf --cost-ratio 2 --overwrite"));
    assert_eq!(place.files("model").len(), 2, "what was there is gone");
}

#[test]
fn killed_wait_training_resumes_to_the_same_bytes() {
    let place = place_with_samples();
    let settings = "--model lstm --epochs 4";
    place.stdout(&format!("-q provision train samples -o whole {settings}"));
    caught(|| {
        let mut child = place
            .command(&format!("provision train samples -o killed {settings}"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        assert!(lines.take(1).all(|line| line.is_ok()));
        child.kill().expect("killed");
        child.wait().expect("it ended");
        if place.path("killed/manifest.json").exists() {
            fs_err::remove_dir_all(place.path("killed")).expect("removed");
            return None;
        }
        Some(())
    });
    assert!(place.path("killed/checkpoint.safetensors").is_file());

    place.stdout(&format!("-q provision train samples -o killed {settings}"));
    assert_eq!(place.files("killed"), place.files("whole"));
}

#[test]
fn a_head_and_action_values_learn_to_decide() {
    let place = place_with_samples();
    place.stdout("-q provision train samples -o base --target reward");
    insta::assert_snapshot!(
        place.run("-q provision train samples -o head --model policy_gradient --base base")
    );
    insta::assert_snapshot!(
        place.run("-q provision train samples -o values --model dqn --epochs 5 --cost-ratio 3")
    );
}

#[test]
fn what_cannot_be_learned_says_so() {
    let place = place_with_samples();
    let refusal = |args: &str| {
        let outcome = place.run(&format!("provision train {args}"));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        outcome.stderr
    };
    insta::assert_snapshot!(refusal("trace -o model"));
    insta::assert_snapshot!(refusal("samples -o model --model policy_gradient"));
    insta::assert_snapshot!(refusal("samples -o model --base samples"));
    place.write("depth.yaml", "provision: {model: {parameters: {depth: 3}}}");
    insta::assert_snapshot!(refusal("samples -o model -c depth.yaml"));
    place.write("rate.yaml", "provision: {model: {learning_rate: 0}}");
    insta::assert_snapshot!(refusal("samples -o model -c rate.yaml"));

    place.stdout("-q provision samples trace -o few --job-limit 480 --interval 24");
    insta::assert_snapshot!(refusal("few -o model"));
    let manifest = place.path("samples/manifest.json");
    let text = fs_err::read_to_string(&manifest).expect("read");
    place.write(
        "samples/manifest.json",
        text.replacen("_version\": ", "_version\": 9", 1),
    );
    let error = refusal("samples -o model");
    assert!(error.contains("has samples format version 9"), "{error}");
    assert!(!place.path("model").exists(), "nothing is left");
}
