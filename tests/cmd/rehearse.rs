//! `poolcast rehearse`: a log replayed as if the program had been used.

use serde_json::Value;

use crate::place::{Outcome, Place};

#[test]
fn bundled_log_is_rehearsed() {
    let place = Place::with_log();
    let rehearse = "rehearse --log EventLog.xz --models 3";
    let with_prior = |more: &str| {
        let mut command = place.command(&format!("{rehearse} {more}"));
        command.env_remove("POOLCAST_ADVICE__PRIOR");
        let outcome = Outcome::of(command.output().expect("it starts"));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        outcome.stdout
    };
    let printed = with_prior("-o out");
    insta::assert_snapshot!(printed);
    assert_eq!(with_prior("--threads 1"), printed);

    let answers = String::from_utf8(place.files("out")["answers.jsonl"].clone()).expect("text");
    let rows: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let counted = rows.iter().filter(|row| row["action"] != "leave").count();
    let tally: Value = serde_json::from_slice(&place.files("out")["rehearsal.json"]).expect("JSON");
    assert_eq!(tally["answers"], counted);
    assert!(counted > 50);
}

#[test]
fn truth_settles_every_answer() {
    let place = Place::new();
    place.stdout("simulate -o EventLog --truth truth --jobs 3000 --days 7 --seed 3");
    let tally = place.json("rehearse --log EventLog --truth truth --models 4 --json");
    let answers = tally["answers"].as_u64().expect("a count");
    assert!(answers > 50, "{tally}");
    assert_eq!(tally["advice"]["kind_right"]["of"], answers);
    let kept = |name: &str| tally[name]["kept"]["of"].as_u64().expect("a count");
    let wasted = |name: &str| tally[name]["wasted"]["of"].as_u64().expect("a count");
    assert_eq!(kept("advice") + wasted("advice"), answers);
    assert_eq!(tally["release_all"]["kept"]["count"], kept("advice"));

    let refused = place.run("rehearse --log EventLog --truth EventLog");
    assert_eq!(refused.code, Some(2), "{refused}");

    // A file of the first version knows the chances at the hold and at the release only.
    let mut truth = fs_err::read(place.path("truth")).expect("read");
    let version = br#"format_version\":2"#;
    let at = (truth.windows(version.len())).position(|part| part == version);
    truth[at.expect("a version") + version.len() - 1] = b'1';
    fs_err::write(place.path("first"), truth).expect("written");
    let refused = place.run("rehearse --log EventLog --truth first");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("while it was held")
            && refused.stderr.contains("without `--truth`"),
        "{refused}"
    );
}

#[test]
fn rehearsal_in_a_directory_goes_on() {
    let place = Place::with_log();
    let rehearse = "rehearse --log EventLog.xz --learn-every 10m --ask-every 4m -o out";
    let printed = place.stdout(rehearse);
    let files = place.files("out");
    let models = files.keys().filter(|name| name.starts_with("models/"));
    assert_eq!(models.count(), 3);

    fs_err::remove_file(place.path("out/models/0003.jsonl")).expect("removed");
    fs_err::remove_file(place.path("out/rehearsal.json")).expect("removed");
    let outcome = place.run(rehearse);
    assert_eq!(outcome.stdout, printed);
    assert!(
        outcome
            .stderr
            .contains("the answers of 2 of 3 models are kept"),
        "{outcome}"
    );
    assert_eq!(place.files("out"), files);

    let other = "rehearse --log EventLog.xz --learn-every 10m -o out";
    let refused = place.run(other);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("or with other settings")
            && refused.stderr.contains("the flag that `--help` lists"),
        "{refused}"
    );
    place.stdout(&format!("{other} --overwrite"));
    // The test directory itself has other files.
    let refused = place.run("rehearse --log EventLog.xz --models 1 -o . --overwrite");
    assert_eq!(refused.code, Some(2), "{refused}");
}

#[test]
fn intervals_replace_the_number_of_models() {
    let place = Place::with_log();
    for wrong in [
        "--models 3 --learn-every 1h",
        "--ask-every 1h",
        "--learn-every nightly",
        "--learn-every 0s",
        "--overwrite",
    ] {
        let refused = place.run(&format!("rehearse --log EventLog.xz {wrong}"));
        assert_eq!(refused.code, Some(2), "{wrong}\n{refused}");
    }
    let refused = place.run("rehearse --log EventLog.xz --learn-every 1h --ask-every 1ms");
    assert!(refused.stderr.contains("name a longer time"), "{refused}");
}

#[test]
fn run_learns_answers_and_advise_asks_them() {
    let place = Place::with_log();
    let config = "logs: [EventLog.xz]\nout: out\nruns: 0\nwandb: {sweep: {metric: {name: validation_roc_auc, goal: maximize}}}\n\
                  preprocessing: {parameters: {j: 2, m: 4, timeframe_len: 20}}\n\
                  pipelines: {et: {method: random, runs: 1, parameters: {n_estimators: 10, min_samples_leaf: 10, max_features: 0.3}}}\n";
    place.write("run.yaml", config);
    place.stdout("run run.yaml");
    assert!(place.path("out/answers/manifest.json").is_file());
    let tally: Value = serde_json::from_slice(&place.files("out")["rehearsal.json"]).expect("JSON");
    assert!(tally["answers"].as_u64() > Some(10), "{tally}");
    let report: Value = serde_json::from_slice(&place.files("out")["report.json"]).expect("JSON");
    assert_eq!(report["rehearsal"], tally);
    let advice = place.json("advise out --log EventLog.xz --json");
    let jobs = advice["advice"].as_array().expect("jobs");
    let asked = jobs
        .iter()
        .filter(|job| !job["later_probability"].is_null());
    for job in asked.clone() {
        let now = job["probability"].as_f64().expect("a probability");
        let later = job["later_probability"].as_f64().expect("a probability");
        assert!((0.0..=1.0).contains(&now) && (0.0..=1.0).contains(&later));
        assert!(job["good_until_ms"].as_i64() > advice["asked_ms"].as_i64());
    }
    assert!(asked.count() > 0, "{advice}");

    // The log ended an hour ago.
    let page = place.stdout("advise out --log EventLog.xz");
    let is_over = "which is over: ask with `--queue now`";
    assert!(page.contains(is_over), "{page}");
    let page = place.stdout("advise out --log EventLog.xz --at 2026-11-21T02:20:00Z");
    assert!(!page.contains(is_over), "{page}");

    // The run has learned from later events than those known at an earlier time, so it does not
    // answer there.
    let at = "--log EventLog.xz --at 2026-11-21T02:14:59Z --json";
    let earlier = place.json(&format!("advise out {at}"));
    assert!(
        earlier["advice"]
            .as_array()
            .is_some_and(|jobs| !jobs.is_empty())
    );
    let seed = place.path("out/config.yaml");
    assert!(seed.is_file(), "the settings of the run");
    let alone = Place::with_log().json(&format!("advise {at}"));
    assert_eq!(earlier["advice"], alone["advice"]);

    let files = place.files("out/answers");
    place.stdout("run run.yaml");
    assert_eq!(
        place.files("out/answers"),
        files,
        "nothing is learned again"
    );

    place.write("out/answers/now/1/pipeline.json", "{");
    let refused = place.run("advise out --log EventLog.xz");
    assert_eq!(refused.code, Some(2), "{refused}");
}

#[test]
fn best_pipeline_of_a_sweep_answers() {
    let place = Place::with_log();
    let config = "logs: [EventLog.xz]\nout: out\nruns: 0\npreprocessing: {parameters: {j: 2, m: 4, timeframe_len: 20}}\n\
                  pipelines: {xgb: {parameters: {n_estimators: 20, max_depth: 3}}}\n\
                  advice: {rehearsed_models: 3, members: [best_of: out, ridge: {C: 0.01}]}\n";
    place.write("run.yaml", config);
    let early = place.run("learn run.yaml");
    assert_eq!(early.code, Some(2), "{early}");
    assert!(early.stderr.contains("has no best trial yet"), "{early}");

    let printed = place.stdout("run run.yaml");
    let table = "which models answer";
    assert!(printed.contains(table), "{printed}");
    let advice = place.json("advise out --log EventLog.xz --json");
    assert_eq!(advice["members"][0], "xgb", "{advice}");
    let page = place.stdout("advise out --log EventLog.xz");
    assert!(page.contains(", answered by xgb"), "{page}");
    let tally: Value = serde_json::from_slice(&place.files("out")["rehearsal.json"]).expect("JSON");
    let members = tally["members"].as_array().expect("members");
    assert_eq!(members.len(), 3, "{tally}");
    assert_eq!(members[2]["members"], serde_json::json!(["xgb", "ridge"]));
    assert_eq!(members[0]["answers"], true);

    // The order of the added members does not change what each one adds.
    place.write(
        "members.yaml",
        "advice: {members: [et: {n_estimators: 5}, xgb: {n_estimators: 5}, ridge: ]}",
    );
    place.write(
        "turned.yaml",
        "advice: {members: [et: {n_estimators: 5}, ridge: , xgb: {n_estimators: 5}]}",
    );
    let of_member = |file: &str, name: &str| {
        let tally = place.json(&format!(
            "rehearse --log EventLog.xz --models 3 -c {file} --json"
        ));
        let members = tally["members"].as_array().expect("members").clone();
        let is_named = |member: &&Value| member["members"] == serde_json::json!([name]);
        members.iter().find(is_named).expect("a member").clone()
    };
    let turned = of_member("turned.yaml", "ridge");
    assert_eq!(of_member("members.yaml", "ridge"), turned);

    place.write("wrong.yaml", "advice: {members: [et: {trees: 5}]}");
    let refused = place.run("rehearse --log EventLog.xz -c wrong.yaml");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("no hyper-parameter `trees`"),
        "{refused}"
    );
}

#[test]
fn best_network_of_a_sweep_answers() {
    let place = Place::with_log();
    let config = "logs: [EventLog.xz]\nout: out\nruns: 2\nepochs: 2\nwandb: {sweep: {method: grid}}\n\
                  preprocessing: {parameters: {j: 3, m: 2, timeframe_len: 20, context: related}}\n\
                  training: {parameters: {hidden_size: 4, model: {values: [lstm, gru]}}}\n\
                  advice: {rehearsed_models: 3, members: [best_of: out, outcomes: {hidden_size: 2}]}\n";
    place.write("run.yaml", config);
    let printed = place.stdout("run run.yaml");
    let best = place.json("sweep best out --json")["pipeline"].clone();
    let best = best.as_str().expect("a network");
    assert!(["lstm", "gru"].contains(&best), "{best}");
    assert!(printed.contains("which models answer"), "{printed}");
    let advice = place.json("advise out --log EventLog.xz --json");
    assert_eq!(advice["members"][0], best, "{advice}");
    let page = place.stdout("advise out --log EventLog.xz");
    assert!(page.contains(&format!(", answered by {best}")), "{page}");
    let tally: Value = serde_json::from_slice(&place.files("out")["rehearsal.json"]).expect("JSON");
    let all = &tally["members"].as_array().expect("members")[2];
    assert_eq!(all["members"], serde_json::json!([best, "outcomes"]));

    place.stdout("publish out -o model");
    let by_model = place.json("advise model --log EventLog.xz --json");
    assert_eq!(by_model["jobs"], advice["jobs"], "published networks");
    assert_eq!(by_model["members"], advice["members"]);

    place.write(
        "wrong.yaml",
        "advice: {members: [et: {}, lstm: {hidden_size: 0}]}",
    );
    let refused = place.run("rehearse --log EventLog.xz -c wrong.yaml");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("`hidden_size`"), "{refused}");
}
