//! Tests of `poolcast train`: the same seed gives byte-identical files, even after `kill -9`.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::place::{Outcome, Place, without_version};
use crate::sweep::caught;

const SETTINGS: &str = "--hidden-size 8 --epochs 4 --learning-rate 0.01";
/// Settings for 12 epochs of 219 batches.
const MANY_BATCHES: &str = "--hidden-size 8 --epochs 12 --earlystop-threshold 12 --batch-size 16";

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let place = Place::with_run();
    let train = |name: &str, flags: &str| {
        place.stdout(&format!("{flags} train tensors -o {name} {SETTINGS}"));
        place.files(name)
    };
    let one = train("one", "--threads 1");
    assert_eq!(train("again", "--threads 1"), one);
    assert_eq!(
        (
            train("two", "--threads 2") == one,
            train("eight", "--threads 8") == one
        ),
        (true, true)
    );
    place.stdout(&format!("train tensors -o seed {SETTINGS} --seed 2"));
    assert_ne!(
        place.files("seed")["model.safetensors"],
        one["model.safetensors"]
    );
}

/// Uses models large enough that matrix products are divided among threads.
#[test]
fn models_do_not_depend_on_thread_count() {
    let place = Place::with_run();
    for model in ["lstm", "gru", "mlp", "lstm+static"] {
        let train = |threads: usize| {
            let settings = "--hidden-size 90 --lstm-layers 2 --epochs 1 --batch-size 300";
            place.stdout(&format!(
                "--threads {threads} train tensors -o {model}-{threads} --model {model} {settings}"
            ));
            place.files(&format!("{model}-{threads}"))
        };
        let one = train(1);
        assert!(train(2) == one && train(8) == one, "{model}");
    }
}

#[test]
fn every_model_resumes_is_scored_and_gives_advice() {
    let place = Place::with_run();
    for model in ["gru", "mlp", "lstm+static"] {
        let settings = format!("{SETTINGS} --model {model}");
        place.stdout(&format!("train tensors -o {model} {settings}"));
        let killed = format!("killed-{model}");
        kill_after(&place, &killed, 1, &settings);
        place.stdout(&format!("train tensors -o {killed} {settings} --resume"));
        assert!(
            sound(&place, &killed) == place.files(model),
            "{model}: a resumed training differs from a whole one"
        );
        let manifest: serde_json::Value =
            serde_json::from_slice(&place.files(model)["manifest.json"]).expect("JSON");
        assert_eq!(manifest["training"]["model"], model);
        let scores = place.json(&format!("evaluate {model} tensors --resamples 10 --json"));
        assert_eq!(scores["methods"][0]["name"], model);
        let advice = place.run(&format!("advise {model} --log EventLog.xz 1185.0 --json"));
        let advice: serde_json::Value = serde_json::from_str(&advice.stdout).expect("JSON");
        let probability = advice["advice"][0]["probability"]
            .as_f64()
            .expect("a probability");
        assert!((0.0..1.0).contains(&probability), "{model}");
    }
}

#[test]
fn outcomes_of_related_jobs_are_learned_and_give_advice() {
    let place = Place::with_run();
    place.write("outcomes.yaml", "training: {parameters: {model: outcomes}}");
    let tensors = "tensors events -o related -c outcomes.yaml --j 2 --m 2 --timeframe-len 60";
    place.stdout(tensors);
    let refused = place.run("train tensors -o refused --model outcomes --epochs 1");
    insta::assert_snapshot!(refused, @"
    exit 2
    error: the tensors have no outcome tokens, which the model reads

    hint: set `preprocessing.outcomes: true`, and build them again
    ");

    let train = |threads: usize| {
        let name = format!("outcomes-{threads}");
        place.stdout(&format!(
            "--threads {threads} train related -o {name} -c outcomes.yaml --epochs 2"
        ));
        place.files(&name)
    };
    assert!(train(1) == train(3));
    let scores = place.json("evaluate outcomes-1 related --resamples 10 --json");
    assert_eq!(scores["methods"][0]["name"], "outcomes");
    let advice = place.run("advise outcomes-1 --log EventLog.xz 1185.0 --json");
    let advice: serde_json::Value = serde_json::from_str(&advice.stdout).expect("JSON");
    let probability = advice["advice"][0]["probability"].as_f64();
    assert!((0.0..1.0).contains(&probability.expect("a probability")));
}

#[test]
fn a_run_of_a_model_that_nobody_knows_is_refused() {
    let place = Place::with_run();
    place.copy("run", "foreign");
    let manifest =
        String::from_utf8(place.files("foreign")["manifest.json"].clone()).expect("text");
    let damaged = |from: &str, to: &str| {
        assert!(manifest.contains(from));
        place.write("foreign/manifest.json", manifest.replace(from, to));
        place.run("evaluate foreign tensors")
    };
    insta::assert_snapshot!(damaged("\"lstm\"", "\"transformer\""), @"
    exit 2
    error: cannot use `foreign`
      caused by: there is no model `transformer`

    hint: `model` must be one of `lstm`, `lstm+static`, `gru`, `mlp`, `outcomes`, `attention`
    ");
    insta::assert_snapshot!(damaged("\"lstm\"", "\"gru\""), @"
    exit 2
    error: `foreign/model.safetensors` does not match its manifest

    hint: train it again into another directory with `poolcast train TENSORS -o RUN`
    ");
    insta::assert_snapshot!(damaged("\"uniform\"", "\"related\""), @"
    exit 2
    error: the model of `foreign` reads 0 bits of what each job shares, but its tensors have 6

    hint: train it again into another directory with `poolcast train TENSORS -o RUN`
    ");
    insta::assert_snapshot!(damaged("\"hidden_size\": 8", "\"hidden_size\": 4000000000"), @"
    exit 2
    error: `foreign/model.safetensors` does not match its manifest

    hint: train it again into another directory with `poolcast train TENSORS -o RUN`
    ");
}

#[test]
fn what_this_program_cannot_train_on_is_named() {
    let place = Place::with_run();
    insta::assert_snapshot!(place.run("train tensors -o out --device tpu"), @"
    exit 2
    error: invalid value 'tpu' for '--device <DEVICE>': expected `cpu`, `cuda`, `cuda:N` or `auto`

    For more information, try '--help'.
    ");
    if !cfg!(feature = "cuda") {
        insta::assert_snapshot!(place.run("train tensors -o out --device cuda"), @"
        exit 2
        error: this program was built without CUDA

        hint: use `--device cpu`, or build poolcast with `cargo build --release --features cuda`
        ");
        insta::assert_snapshot!(place.run("evaluate run tensors --device cuda:1"), @"
        exit 2
        error: this program was built without CUDA

        hint: use `--device cpu`, or build poolcast with `cargo build --release --features cuda`
        ");
        place.stdout(&format!("train tensors -o auto --device auto {SETTINGS}"));
        place.stdout(&format!("train tensors -o cpu {SETTINGS}"));
        assert_eq!(place.files("auto"), place.files("cpu"));
    }
}

/// Returns the files in `name`, without those that a kill left half-written.
fn sound(place: &Place, name: &str) -> std::collections::BTreeMap<String, Vec<u8>> {
    place
        .files(name)
        .into_iter()
        .filter(|(name, _)| !name.starts_with('.'))
        .collect()
}

/// Kills a training with SIGKILL once it has reported `epochs` epochs and works on the next.
fn kill_after(place: &Place, name: &str, epochs: usize, settings: &str) {
    caught(|| {
        let mut command = place.command(&format!("train tensors -o {name} {settings}"));
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        assert_eq!(lines.take(epochs).filter(Result::is_ok).count(), epochs);
        child.kill().expect("killed");
        child.wait().expect("it ended");
        unfinished(place, name)
    });

    // The kill may interrupt a write. The next call would then report the leftover. leftovers.rs
    // tests that case.
    for entry in fs_err::read_dir(place.path(name)).expect("listed") {
        let entry = entry.expect("an entry");
        if entry.file_name().to_string_lossy().starts_with('.') {
            fs_err::remove_file(entry.path()).expect("removed");
        }
    }
}

/// Returns `Some` if the training `name` has not finished. Removes it otherwise, so that it can begin
/// again.
fn unfinished(place: &Place, name: &str) -> Option<()> {
    let has_finished = place.path(name).join("manifest.json").exists();
    if has_finished {
        fs_err::remove_dir_all(place.path(name)).expect("removed");
    }
    (!has_finished).then_some(())
}

#[test]
fn a_killed_training_resumes_to_the_same_bytes() {
    let place = Place::with_run();
    place.stdout(&format!("train tensors -o whole {MANY_BATCHES}"));
    for epochs in [1, 2] {
        let name = format!("killed-{epochs}");
        kill_after(&place, &name, epochs, MANY_BATCHES);
        let early = place.run(&format!("evaluate {name} tensors"));
        assert_eq!(early.code, Some(2), "{early}");
        let resumed = place.run(&format!("train tensors -o {name} {MANY_BATCHES} --resume"));
        assert_eq!(resumed.code, Some(0), "{resumed}");
        assert!(epochs_done(&resumed) < 12, "it began anew\n{resumed}");
        assert_eq!(place.files("whole"), sound(&place, &name));
    }
}

/// Starts a training with `args`, and sends it a signal once it has written `checkpoints` checkpoints.
/// With an interval of 0 minutes, it writes a checkpoint after each batch.
fn stopped(place: &Place, args: &str, name: &str, checkpoints: usize, signal: &str) -> Outcome {
    caught(|| {
        let child = begun(place, args, name, checkpoints);
        let outcome = signalled(child, signal);
        unfinished(place, name).map(|()| outcome)
    })
}

/// Starts a training with `args`, and waits until it has written `checkpoints` checkpoints, or has
/// ended.
fn begun(place: &Place, args: &str, name: &str, checkpoints: usize) -> Child {
    let mut command = place.command(&format!("train tensors -o {name} {MANY_BATCHES} {args}"));
    let mut child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let (path, mut seen, mut last) = (place.path(name).join("checkpoint.safetensors"), 0, None);
    while seen < checkpoints && child.try_wait().expect("asked").is_none() {
        let written = fs_err::metadata(&path)
            .ok()
            .and_then(|file| file.modified().ok());
        seen += usize::from(written > last);
        last = written.max(last);
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Counts the epochs that a training has reported.
fn epochs_done(outcome: &Outcome) -> usize {
    outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("epoch "))
        .count()
}

/// Sends a signal and waits for the process to end. It may have ended already.
fn signalled(child: Child, name: &str) -> Outcome {
    let killed = std::process::Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
    killed.expect("kill starts");
    Outcome::of(child.wait_with_output().expect("it ended"))
}

/// Returns the files of a run, without leftovers of a kill, and without the configuration, which
/// has the checkpoint interval.
fn result(place: &Place, name: &str) -> BTreeMap<String, Vec<u8>> {
    let counts = |name: &String| !name.starts_with('.') && name != "config.yaml";
    place
        .files(name)
        .into_iter()
        .filter(|(name, _)| counts(name))
        .collect()
}

#[test]
fn training_stopped_within_an_epoch_resumes_to_the_same_bytes() {
    let place = Place::with_run();
    place.stdout(&format!("train tensors -o whole {MANY_BATCHES}"));
    let whole = result(&place, "whole");
    let often = "--checkpoint-minutes 0";
    for (checkpoints, name, code) in [
        (3, "TERM", 1),
        (9, "INT", 130),
        (20, "TERM", 85),
        (240, "KILL", -1),
        (5, "KILL", -1),
    ] {
        let dir = format!("stopped-{checkpoints}");
        let flags = if code == 85 { "--self-checkpoint" } else { "" };
        let args = format!("{often} {flags} --threads 2");
        let outcome = stopped(&place, &args, &dir, checkpoints, name);
        assert_eq!(outcome.code.unwrap_or(-1), code, "{outcome}");
        // The training resumes in another directory, as on another machine. It knows only the files
        // there.
        let moved = format!("moved-{checkpoints}");
        fs_err::rename(place.path(&dir), place.path(&moved)).expect("moved");
        let flags = if code == 85 {
            "--self-checkpoint"
        } else {
            "--resume"
        };
        let resumed = place.run(&format!(
            "--threads 1 train tensors -o {moved} {MANY_BATCHES} {flags}"
        ));
        assert_eq!(resumed.code, Some(0), "{resumed}");
        assert!(
            checkpoints < 220 || epochs_done(&resumed) < 12,
            "it began anew\n{resumed}"
        );
        assert!(
            result(&place, &moved) == whole,
            "{name} after {checkpoints} checkpoints shows"
        );
    }
}

#[test]
fn a_stop_says_how_to_go_on() {
    let place = Place::with_run();
    let called = stopped(&place, "--checkpoint-minutes 0", "out", 2, "TERM");
    let filters = || {
        vec![
            (r"(?m)^epoch .*\n", ""),
            (r"epoch \d+ after batch \d+ of", "epoch # after batch # of"),
        ]
    };
    insta::with_settings!({filters => filters()}, {
        insta::assert_snapshot!(called, @"
        exit 1
        error: the training was stopped in epoch # after batch # of 219

        hint: run the same command with `--resume` to continue
        ");
    });
    let exits = "--checkpoint-minutes 0 --self-checkpoint";
    let job = stopped(&place, exits, "job", 2, "TERM");
    insta::with_settings!({filters => filters()}, {
        insta::assert_snapshot!(job, @"
        exit 85
        the training was stopped in epoch # after batch # of 219; `job` has its checkpoint
        ");
    });
    let both = place.run("train tensors -o job --self-checkpoint --overwrite");
    assert_eq!(both.code, Some(2), "it would begin anew each time\n{both}");
}

#[test]
fn job_that_exits_after_each_batch_ends_with_the_same_bytes() {
    let place = Place::with_run();
    let settings = "--batch-size 256 --epochs 2 --hidden-size 4";
    place.stdout(&format!("train tensors -o whole {settings}"));
    let command = format!("train tensors -o job {settings} --self-checkpoint=0");
    let codes: Vec<_> = (0..60)
        .map(|_| place.run(&command).code)
        .take_while(|code| *code == Some(85))
        .collect();
    assert!(
        (2..60).contains(&codes.len()),
        "a batch each time: {codes:?}"
    );
    assert!(
        result(&place, "job") == result(&place, "whole"),
        "when it left shows"
    );
    let never = place.run(&format!(
        "train tensors -o never {settings} --self-checkpoint=-1"
    ));
    assert_eq!(never.code, Some(2), "{never}");
}

#[test]
fn a_finished_training_is_left_as_it_is() {
    let place = Place::with_run();
    place.stdout(&format!("train tensors -o mine {SETTINGS}"));
    let before = place.files("mine");
    let again = place.run(&format!("train tensors -o mine {SETTINGS}"));
    let note = "nothing new: `mine` already holds this training\n";
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), note));
    insta::assert_snapshot!(place.run("train tensors -o mine --hidden-size 9"), @"
    exit 2
    error: `mine` already contains a training

    hint: continue it with `--resume`, or name another directory
    ");
    insta::assert_snapshot!(place.run("train tensors -o mine --hidden-size 9 --resume"), @"
    exit 2
    error: `mine/checkpoint.safetensors` belongs to a training on other tensors or with other settings

    hint: use its tensors and settings, or name another directory
    ");
    let resumed = place.run(&format!("train tensors -o mine {SETTINGS} --resume"));
    assert_eq!(
        (resumed.code, resumed.stderr.as_str()),
        (Some(0), note),
        "nothing is trained again"
    );
    assert_eq!(place.files("mine"), before);
    place.stdout("train tensors -o mine --hidden-size 9 --epochs 1 --overwrite");
    assert_ne!(
        place.files("mine")["model.safetensors"],
        before["model.safetensors"]
    );
}

#[test]
fn early_stopping_keeps_the_best_weights() {
    let place = Place::with_run();
    let json = place
        .json("train tensors -o out --hidden-size 8 --learning-rate 0.05 --epochs 60 --earlystop-threshold 3 --json");
    let (epochs, best) = (
        json["epochs"].as_u64().expect("n"),
        json["best"]["epoch"].as_u64().expect("n"),
    );
    assert!(epochs < 60, "it never stopped");
    assert_eq!(epochs - best, 3);
    let files = place.files("out");
    let metrics: serde_json::Value = serde_json::from_slice(&files["metrics.json"]).expect("JSON");
    assert_eq!(
        (&metrics, &metrics["status"]),
        (&without_version(&json), &serde_json::json!("stopped early"))
    );
    assert_eq!(metrics["last"]["epoch"], metrics["epochs"]);
    let lines = std::str::from_utf8(&files["history.jsonl"])
        .expect("text")
        .lines();
    let history: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).expect("an epoch"))
        .collect();
    assert!(
        history
            .iter()
            .zip(1..)
            .all(|(epoch, number)| epoch["epoch"] == number),
        "each once"
    );
    let areas: Vec<f64> = history
        .iter()
        .map(|epoch| epoch["validation"]["roc_auc"].as_f64().expect("an area"))
        .collect();
    assert_eq!(areas.len() as u64, epochs);
    assert!(areas.iter().all(|area| *area <= areas[best as usize - 1]));
}

#[test]
fn what_cannot_be_trained_is_named() {
    let place = Place::with_run();
    insta::assert_snapshot!(place.run("train events -o out"), @"
    exit 2
    error: `events` holds events, not tensors

    hint: make it with `poolcast tensors EVENTS -o DIR`
    ");
    insta::assert_snapshot!(place.run("train nowhere -o out"), @"
    exit 2
    error: `nowhere` holds no tensors (no manifest.json)

    hint: make it with `poolcast tensors EVENTS -o DIR`
    ");
    insta::assert_snapshot!(place.run("train tensors -o out --learning-rate -1"), @"
    exit 2
    error: cannot use the configuration
      caused by: `learning_rate` must be between 0 and 10, got -1

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(place.run("train tensors -o out --epochs 0"), @"
    exit 2
    error: cannot use the configuration
      caused by: `epochs` must be between 1 and 1000000, got 0

    hint: `poolcast config` explains every key
    ");
    place.write("c.yaml", "training: {parameters: {hiden_size: 9}}");
    insta::assert_snapshot!(place.run("train tensors -o out --config c.yaml"), @"
    exit 2
    error: `c.yaml` has an unknown key `training.parameters.hiden_size`

    hint: did you mean `hidden_size`? `poolcast config` prints every key
    ");
    place.copy("tensors", "corrupt");
    let shard = place.path("corrupt/validate-00000.safetensors");
    let mut bytes = fs_err::read(&shard).expect("read");
    let last = bytes.len() - 1;
    bytes.truncate(last);
    fs_err::write(&shard, &bytes).expect("written");
    insta::assert_snapshot!(place.run("train corrupt -o out"), @"
    exit 2
    error: `corrupt/validate-00000.safetensors` is not a usable tensors shard
      caused by: not a safetensors file
      caused by: incomplete metadata, file not fully covered

    hint: rebuild it with `poolcast tensors EVENTS -o DIR`
    ");
    assert!(!place.path("out").exists());
}

/// Returns the byte range of tensor `name` in the shard `bytes`.
fn tensor_at(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header_json: serde_json::Value =
        serde_json::from_slice(&bytes[8..8 + header]).expect("a header");
    let offset = |k: usize| {
        header_json[name]["data_offsets"][k]
            .as_u64()
            .expect("an offset") as usize
    };
    8 + header + offset(0)..8 + header + offset(1)
}

#[test]
fn a_loss_that_is_no_number_stops_the_training() {
    let place = Place::with_run();
    kill_after(&place, "out", 1, MANY_BATCHES);
    let path = place.path("out/checkpoint.safetensors");
    let mut bytes = fs_err::read(&path).expect("read");
    let weights = tensor_at(&bytes, "0/weights/linear.bias");
    bytes[weights].copy_from_slice(&f32::NAN.to_le_bytes());
    fs_err::write(&path, &bytes).expect("written");
    let outcome = place.run(&format!("train tensors -o out {MANY_BATCHES} --resume"));
    let metrics: serde_json::Value =
        serde_json::from_slice(&place.files("out")["metrics.json"]).expect("JSON");
    let epochs = metrics["epochs"].as_u64().expect("a number");
    assert!(
        metrics["status"] == "non-finite" && epochs == metrics["last"]["epoch"] && epochs > 0,
        "{metrics}"
    );
    let expected = format!(
        "error: the loss is not finite in epoch {}; a smaller learning rate may help\n",
        epochs + 1
    );
    assert_eq!((outcome.code, outcome.stderr), (Some(2), expected));
    bytes.truncate(100);
    fs_err::write(&path, &bytes).expect("written");
    insta::assert_snapshot!(place.run(&format!("train tensors -o out {MANY_BATCHES} --resume")), @"
    exit 2
    error: `out/checkpoint.safetensors` is not a usable checkpoint shard
      caused by: not a safetensors file
      caused by: invalid header length

    hint: rebuild it with `poolcast train TENSORS -o RUN`
    ");
}

#[test]
fn checkpoints_of_another_version_are_refused_by_name() {
    let place = Place::with_run();
    kill_after(&place, "out", 1, MANY_BATCHES);
    let path = place.path("out/checkpoint.safetensors");
    let text = fs_err::read(&path).expect("read");
    let (version, old) = (&br#"format_version\":5"#[..], &br#"format_version\":4"#[..]);
    let at = text
        .windows(version.len())
        .position(|bytes| bytes == version)
        .expect("a version");
    fs_err::write(&path, [&text[..at], old, &text[at + old.len()..]].concat()).expect("written");
    insta::assert_snapshot!(place.run(&format!("train tensors -o out {MANY_BATCHES} --resume")), @"
    exit 2
    error: `out/checkpoint.safetensors` is not a usable checkpoint shard
      caused by: it has format version 4, and this program reads version 5

    hint: rebuild it with `poolcast train TENSORS -o RUN`
    ");
}

#[test]
fn positive_weight_raises_recall_and_min_delta_stops_early() {
    let place = Place::with_run();
    let recall = |flags: &str| {
        let name = flags.replace([' ', '-', '.'], "");
        let json = place.json(&format!(
            "train tensors -o out{name} {SETTINGS} {flags} --json"
        ));
        (
            json["last"]["validation"]["recall"]
                .as_f64()
                .expect("a recall"),
            json["epochs"].as_u64().expect("a number"),
        )
    };
    let (plain, weighted) = (recall(""), recall("--pos-weight 20"));
    assert!(weighted.0 > plain.0.max(0.9), "{weighted:?} and {plain:?}");
    assert_eq!(
        recall("--earlystop-min-delta 1000 --earlystop-threshold 2").1,
        3,
        "no gain is large enough"
    );
}
