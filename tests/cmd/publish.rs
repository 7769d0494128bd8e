//! `poolcast publish`, and advice by a published model.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

use crate::json_documents::{PrintedKeys, printed_keys};
use crate::node_advice::{put_condor_q, queue_of};
use crate::own_logs::with_programs;
use crate::place::{Outcome, Place, run_for_all};
use crate::run::SMALL;

/// A run on the bundled log, for all tests of this file.
static RUN: LazyLock<PathBuf> = LazyLock::new(|| run_for_all("published-run", SMALL));

/// A directory with the bundled log, a run on it in `out`, and its published model in `model`.
fn place_with_model() -> Place {
    let place = Place::with_log();
    place.copy_all(&RUN, "out");
    place.stdout("publish out -o model");
    place
}

/// Runs the program as a user of a site that publishes the model in `model`.
fn run_at_site(place: &Place, model: &Path, args: &str) -> Outcome {
    let mut command = place.command(args);
    command
        .env("POOLCAST_ADVICE__SITE_MODEL", model)
        .env("XDG_STATE_HOME", place.path("state"));
    Outcome::of(command.output().expect("it starts"))
}

/// Returns the keys for a published model, and for advice by it.
pub(crate) fn publish_documents() -> PrintedKeys {
    let place = place_with_model();
    let call = "publish out -o model --json";
    let mut printed = printed_keys(call, &place.json(call));
    let call = "advise model --log EventLog.xz --json";
    let advice = run_at_site(&place, &place.path("model"), call);
    let advice: Value = serde_json::from_str(&advice.stdout).expect("JSON");
    printed.extend(printed_keys(call, &advice));
    printed
}

/// Returns the answer and the odds of each job.
fn answers(document: &Value) -> BTreeMap<String, (Value, Value)> {
    let jobs = document["advice"].as_array().expect("a list");
    jobs.iter()
        .map(|one| {
            let answer = (one["action"].clone(), one["probability"].clone());
            (one["job"].as_str().expect("an id").to_owned(), answer)
        })
        .collect()
}

#[test]
fn published_model_answers_as_its_run_does() {
    let place = place_with_model();
    let of_run = place.json("advise out --log EventLog.xz --json");
    let user = Place::with_log();
    let model = place.path("model");
    let by_site = run_at_site(&user, &model, "advise --log EventLog.xz --json");
    assert_eq!(by_site.code, Some(0), "{by_site}");
    let by_site: Value = serde_json::from_str(&by_site.stdout).expect("JSON");
    assert_eq!(answers(&by_site), answers(&of_run));
    assert_eq!(by_site["published_model"]["is_of_site"], true);
    assert_eq!(by_site["skill"], of_run["skill"]);

    let page = run_at_site(&user, &model, "advise --log EventLog.xz");
    assert!(
        page.stdout
            .contains("the model of this site, learned 2026-11-21 02:26 UTC"),
        "{page}"
    );
    let ledger = fs_err::read_to_string(user.path("state/poolcast/answers.jsonl"));
    assert!(ledger.expect("answers are recorded").lines().count() > 0);
    let check = run_at_site(&user, &model, "advise --check --log EventLog.xz");
    assert!(check.stdout.starts_with("Answers given since "), "{check}");

    // A held node of a DAG gets the same model.
    put_condor_q(&user, &queue_of(|cluster| cluster == 1161));
    let node = user
        .command("advise --log EventLog.xz --dag A")
        .env("POOLCAST_ADVICE__SITE_MODEL", &model)
        .env("XDG_STATE_HOME", user.path("state"))
        .env("PATH", format!("{}:/usr/bin:/bin", user.path("").display()))
        .env("CONDOR_ID", "14.0")
        .status();
    assert!(node.expect("it starts").success());
    let said = fs_err::read_to_string(user.path("A.advice")).expect("advice");
    assert!(
        said.contains("the model of this site, learned 2026-11-21"),
        "{said}"
    );

    fs_err::create_dir(user.path("copied")).expect("made");
    place.stdout("publish out -o model.tar");
    let unpacked = std::process::Command::new("tar")
        .args(["-xf"])
        .arg(place.path("model.tar"))
        .current_dir(user.path("copied"))
        .status();
    assert!(unpacked.expect("tar").success());
    let copied = run_at_site(&user, &model, "advise copied/model --log EventLog.xz");
    assert!(
        copied
            .stdout
            .contains("the published model in copied/model, learned 2026-11-21"),
        "{copied}"
    );
}

#[test]
fn published_files_name_nobody_and_are_for_everyone() {
    let place = place_with_model();
    let files = place.files("model");
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "answers/later/1/pipeline.json",
            "answers/manifest.json",
            "answers/now/1/pipeline.json",
            "manifest.json"
        ]
    );
    let text: String = files
        .values()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .collect();
    for word in [
        "tester",
        "salt",
        "out.txt",
        "EventLog",
        "/home",
        "10.0.0.",
        "reason\":",
    ] {
        assert!(!text.contains(word), "`{word}` is published");
    }
    for name in names {
        let mode = fs_err::metadata(place.path("model").join(name)).expect("there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o644, "{name}");
    }

    // The answers of a user are not put beside a model that others use.
    let before = place.files("model");
    run_at_site(
        &place,
        &place.path("model"),
        "advise model --log EventLog.xz",
    );
    assert_eq!(place.files("model"), before);
}

#[test]
fn model_that_cannot_be_used_is_noted_and_rules_answer() {
    let place = place_with_model();
    place.write("model/answers/now/1/pipeline.json", "{}");
    let user = Place::with_log();
    let page = run_at_site(&user, &place.path("model"), "advise --log EventLog.xz");
    assert_eq!(page.code, Some(0), "{page}");
    assert!(
        page.stderr
            .contains("note: the model of this site is not used"),
        "{page}"
    );
    let named = place.run("advise model --log EventLog.xz");
    assert_eq!(named.code, Some(2), "{named}");

    let earlier = place_with_model();
    let call = "advise --log EventLog.xz --at 2026-11-21T02:20:00Z";
    let page = run_at_site(&user, &earlier.path("model"), call);
    assert_eq!(page.code, Some(0), "{page}");
    assert!(!page.stdout.contains("the model of this site"), "{page}");
}

/// The model judges jobs by their events, and no log of the jobs in the queue can be read.
#[test]
fn model_of_a_site_that_does_not_answer_is_named() {
    let place = place_with_model();
    let user = Place::new();
    symlink(place.path("model"), user.path("site-model")).expect("linked");
    let job = r#"[{"ClusterId": 7, "ProcId": 1, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102, "Owner": "bob"}]"#;
    let condor_q = format!("echo '{job}'");
    let page = with_programs(&user, "advise --all-users", &[("condor_q", &condor_q)]);
    let words: Vec<&str> = page.stdout.split_whitespace().collect();
    let told = "the model of this site, learned 2026-11-21 02:26 UTC, judges jobs by their events, and no log of these jobs can be read: rules";
    assert!(words.join(" ").contains(told), "{page}");
}

#[test]
fn only_runs_are_published_and_only_models_are_replaced() {
    let place = Place::with_run();
    let refused = place.run("publish run -o model");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("has nothing to publish"),
        "{refused}"
    );
    let place = place_with_model();
    for out in ["out", "."] {
        let refused = place.run(&format!("publish out -o {out}"));
        assert_eq!(refused.code, Some(2), "{refused}");
    }
}

/// Replaces the counts of right kinds of faults in the rehearsal of the run in `out`.
fn count_kinds_right(place: &Place, of_advice: u64, of_rules: u64) {
    let text = fs_err::read_to_string(place.path("out/rehearsal.json")).expect("read");
    let mut tally: Value = serde_json::from_str(&text).expect("JSON");
    for (strategy, count) in [("advice", of_advice), ("rules", of_rules)] {
        tally[strategy]["kind_right"] = serde_json::json!({"count": count, "of": 40});
    }
    place.write("out/rehearsal.json", tally.to_string());
}

#[test]
fn model_that_is_not_better_than_rules_replaces_no_other() {
    let place = place_with_model();
    let before = place.files("model");
    count_kinds_right(&place, 15, 15);
    let kept = place.run("publish out -o model");
    assert!(
        kept.code == Some(0)
            && kept.stdout.is_empty()
            && kept
                .stderr
                .contains("`model` was not written, and it stays as it was")
            && kept
                .stderr
                .contains("of 15 of 40 faults, and the rules for hold codes alone about 15"),
        "{kept}"
    );
    assert_eq!(place.files("model"), before);

    let new = place.run("publish out -o other.tar --json");
    let document: Value = serde_json::from_str(&new.stdout).expect("JSON");
    assert_eq!(
        (new.code, &document["is_published"]),
        (Some(0), &Value::Bool(false))
    );
    assert!(new.stderr.contains("rules answer without a model"), "{new}");
    assert!(!place.path("other.tar").exists());

    // A run whose rehearsal is missing shows nothing, either.
    fs_err::remove_file(place.path("out/rehearsal.json")).expect("removed");
    place.run("publish out -o model");
    assert_eq!(place.files("model"), before);
}
