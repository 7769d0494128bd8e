//! Checks docs/json.md against the JSON documents of all verbs. Every printed key must be
//! documented with its type, and every documented key must be printed. `tests/source/json_page`
//! makes the page from the types.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use clap::CommandFactory as _;
use serde_json::Value;

use crate::collect::generation;
use crate::ensemble::FOUR_KINDS;
use crate::place::{Place, queue};
use crate::policy::planted_log;
use crate::run::SMALL;
use crate::{
    advise_probes, answer_check, command, dag, doctor, explain, file_looks, idle_jobs,
    memory_plans, nodes, own_logs, past_jobs, pipelines, pipelines_of_numbers, provision,
    provision_live, publish, site, sweep, track,
};

/// A row of a table in docs/json.md: the path of a key, and its type. `groups[].cause` is a key of
/// each of `groups`, and `counts.*` a value of the map `counts`.
struct DocumentedKey {
    path: String,
    kind: String,
    meaning: String,
}

/// The tables of docs/json.md.
#[derive(Default)]
struct Page {
    /// Documented keys, by heading.
    keys: BTreeMap<String, Vec<DocumentedKey>>,
    /// Values of a key that is one of several words, by heading.
    words: BTreeMap<String, BTreeSet<String>>,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json.md");
    let text = fs_err::read_to_string(path).expect("read");
    let mut page = Page::default();
    let mut heading = String::new();
    for line in text.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", key, kind, meaning, ""] = cells[..]
            && let Some(path) = key.strip_prefix('`')
        {
            let rows = page.keys.entry(heading.clone()).or_default();
            rows.push(DocumentedKey {
                path: path.trim_end_matches('`').to_owned(),
                kind: kind.to_owned(),
                meaning: meaning.to_owned(),
            });
        }
        if let ["", word, _, ""] = cells[..]
            && word.starts_with('`')
        {
            let words = page.words.entry(heading.clone()).or_default();
            words.insert(word.trim_matches('`').to_owned());
        }
    }
    page
});

/// Returns the anchor of a heading, as links use it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == ' ';
    let text: String = heading.chars().filter(kept).collect();
    text.to_lowercase().replace(' ', "-")
}

/// Returns the heading that the link `kind` refers to.
fn linked_heading(kind: &str) -> &'static str {
    let wanted = kind
        .split("](#")
        .nth(1)
        .and_then(|rest| rest.strip_suffix(')'));
    let mut headings = PAGE.keys.keys().chain(PAGE.words.keys());
    let found = headings.find(|heading| Some(anchor(heading).as_str()) == wanted);
    found.unwrap_or_else(|| panic!("docs/json.md has no type `{kind}`"))
}

/// Documented keys that were printed, as pairs of heading and path.
pub(crate) type PrintedKeys = BTreeSet<(String, String)>;

/// Result of the check of one document: its documented keys, and its differences from docs/json.md.
#[derive(Default)]
struct Findings {
    printed: PrintedKeys,
    problems: Vec<String>,
}

impl Findings {
    /// Returns true if `value`, at `path` of the table under `heading`, is of type `kind`.
    fn fits(&mut self, value: &Value, kind: &str, heading: &str, path: &str) -> bool {
        if let Some(rest) = kind.strip_prefix("null or ") {
            return value.is_null() || self.fits(value, rest, heading, path);
        }
        if let Some(of) = kind.strip_prefix("array of ") {
            let path = format!("{path}[]");
            return value
                .as_array()
                .is_some_and(|all| all.iter().all(|one| self.fits(one, of, heading, &path)));
        }
        if let Some(of) = kind.strip_prefix("map of ") {
            let path = format!("{path}.*");
            return value
                .as_object()
                .is_some_and(|all| all.values().all(|one| self.fits(one, of, heading, &path)));
        }
        if let Some((one, other)) = kind.split_once(" or ") {
            return self.fits(value, one, heading, path) || self.fits(value, other, heading, path);
        }

        match kind {
            "any" => true,
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "object" => {
                self.check_object(value, heading, path);
                value.is_object()
            }
            link => {
                let heading = linked_heading(link);
                if let Some(words) = PAGE.words.get(heading) {
                    return value.as_str().is_some_and(|word| words.contains(word));
                }
                self.check_object(value, heading, "");
                value.is_object()
            }
        }
    }

    /// Checks the keys of an object, at `path` of the table under `heading`.
    fn check_object(&mut self, value: &Value, heading: &str, path: &str) {
        let Some(object) = value.as_object() else {
            return;
        };
        for (key, value) in object {
            if !self.check_key(key, value, heading, path) {
                self.problems
                    .push(format!("`{heading}` has no `{}`", joined(path, key)));
            }
        }
        for known in known_keys(heading, path) {
            if !known.is_optional && !object.contains_key(known.name) {
                let path = &known.row.path;
                self.problems
                    .push(format!("`{path}` of `{}` is missing", known.heading));
            }
        }
    }

    /// Checks one key of an object. Returns true if the key is documented.
    fn check_key(&mut self, key: &str, value: &Value, heading: &str, path: &str) -> bool {
        let mut known = known_keys(heading, path).into_iter();
        let Some(KnownKey { heading, row, .. }) = known.find(|known| known.name == key) else {
            return false;
        };
        self.printed.insert((heading.to_owned(), row.path.clone()));
        let kind = row.kind.strip_prefix("optional ").unwrap_or(&row.kind);
        if !self.fits(value, kind, heading, &row.path) {
            self.problems.push(format!(
                "`{}` of `{heading}` is no {kind}: {value}",
                row.path
            ));
        }
        if key == "schema_version" && value.as_u64() != row.meaning.parse().ok() {
            self.problems.push(format!(
                "`{heading}` has version {}, not {value}",
                row.meaning
            ));
        }
        true
    }
}

/// A key that an object may have.
struct KnownKey {
    /// Heading of the table that documents the key.
    heading: &'static str,
    row: &'static DocumentedKey,
    name: &'static str,
    is_optional: bool,
}

/// Returns the documented keys of an object, at `path` of the table under `heading`, including
/// those that `...` stands for.
fn known_keys(heading: &str, path: &str) -> Vec<KnownKey> {
    let Some((heading, rows)) = PAGE.keys.get_key_value(heading) else {
        panic!("docs/json.md has no table under `{heading}`");
    };
    let mut known = Vec::new();
    for row in rows {
        let is_optional = row.kind.starts_with("optional ");
        if let Some(before) = row.path.strip_suffix("...") {
            if before == path {
                for key in known_keys(linked_heading(&row.kind), "") {
                    let is_optional = is_optional || key.is_optional;
                    known.push(KnownKey { is_optional, ..key });
                }
            }
            continue;
        }

        let (parent, name) = row.path.rsplit_once('.').unwrap_or(("", &row.path));
        if parent == path {
            known.push(KnownKey {
                heading,
                row,
                name,
                // A document within another document has no version of its own.
                is_optional: is_optional || name == "schema_version",
            });
        }
    }
    known
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Returns the beginning of the headings for the output of `poolcast` with `args`.
fn heading_prefix(args: &str) -> String {
    let words: Vec<&str> = args.split_ascii_whitespace().collect();
    let verb_words = if ["sweep", "provision", "site"].contains(&words[0]) {
        2
    } else {
        1
    };
    let mut begin = format!("`poolcast {}", words[..verb_words].join(" "));
    if words.contains(&"--check") {
        begin.push_str(" --check");
    }
    if words.contains(&"--idle") {
        begin.push_str(" --idle");
    }
    if words.contains(&"--diff") {
        begin.push_str(" --diff");
    }
    begin + " --json`"
}

/// Checks `document`, as printed by `poolcast` with `args`, against the table that fits best.
/// Returns its documented keys, by heading and path.
pub(crate) fn printed_keys(args: &str, document: &Value) -> PrintedKeys {
    let begin = heading_prefix(args);
    let mut best: Option<Findings> = None;
    for heading in PAGE
        .keys
        .keys()
        .filter(|heading| heading.starts_with(&begin))
    {
        let mut findings = Findings::default();
        findings.check_object(document, heading, "");
        if document["schema_version"].is_null() {
            findings.problems.push("there is no version".to_owned());
        }
        if best
            .as_ref()
            .is_none_or(|best| findings.problems.len() < best.problems.len())
        {
            best = Some(findings);
        }
    }

    let best = best.unwrap_or_else(|| panic!("docs/json.md has no heading {begin}"));
    assert!(
        best.problems.is_empty(),
        "poolcast {args}\nis not as docs/json.md says:\n{}",
        best.problems.join("\n")
    );
    best.printed
}

/// Runs `calls` in `place`, and returns the keys of the documents that they print.
pub(crate) fn print_all(place: &Place, calls: &[&str]) -> PrintedKeys {
    let mut printed = PrintedKeys::new();
    for call in calls {
        printed.extend(printed_keys(call, &place.json(call)));
    }
    printed
}

/// Returns the keys for logs: a log with a gap and damage, and a log of several hosts.
fn log_documents() -> PrintedKeys {
    let place = Place::new();
    let held =
        "012 (1.0.0) 11/21 01:12:00 Job was held.\n\tdisk quota\n\tCode 6 Subcode 122\n...\n";
    place.write("EventLog", generation(1, 0, held));
    place.stdout("collect EventLog -o archive");
    place.write(
        "EventLog",
        generation(4, 9000, &format!("\nwhat is no event\n{held}")),
    );
    let submitted = |cluster: u32, host: &str| {
        let address = format!("<10.0.0.1:9618?alias={host}>");
        format!("000 ({cluster}.0.0) 11/21 01:11:00 Job submitted from host: {address}\n...\n")
    };
    let of_hosts = submitted(1, "one.example") + &submitted(2, "two.example");
    place.write("hosts", generation(1, 0, &of_hosts));
    print_all(
        &place,
        &[
            "collect EventLog -o archive --json",
            "parse archive -o events --json",
            "parse hosts -o of-hosts --json",
        ],
    )
}

/// Returns the keys for artefacts that are made from a log, and for advice.
fn model_documents() -> PrintedKeys {
    let place = Place::with_run();
    place.copy("run", "mine");
    let mut jobs = queue();
    jobs[0]["HoldReasonCode"] = 34.into();
    jobs[0]["HoldReasonSubCode"] = 102.into();
    place.write("queue.json", serde_json::to_vec(&jobs).expect("JSON"));
    let damaged = r#"[{"ClusterId": -1, "ProcId": 7, "JobStatus": 5}]"#;
    place.write("damaged.json", damaged);
    place.write("outcomes.yaml", "preprocessing: {outcomes: true}");
    print_all(
        &place,
        &[
            "tensors events -o other --j 1 --m 4 --states 0,1,12,5 --audit --json",
            "tensors events -o related -c outcomes.yaml --j 1 --m 4 --json",
            "train tensors -o trained --hidden-size 4 --epochs 1 --json",
            "evaluate mine tensors --resamples 10 --json",
            "predict mine tensors --json",
            "predict mine events --json",
            "advise mine --log EventLog.xz --json",
            "advise mine --log EventLog.xz --queue queue.json --json",
            "advise mine --log EventLog.xz --queue damaged.json --json",
            "advise mine --log EventLog.xz --check --json",
        ],
    )
}

/// Returns the keys for a run whose kinds of model form an ensemble.
fn ensemble_documents() -> PrintedKeys {
    let place = Place::with_short_log();
    place.write("kinds.yaml", FOUR_KINDS);
    print_all(&place, &["run kinds.yaml --json"])
}

/// Returns the keys for a run that ranks pipelines and networks by their answers, where one network
/// fails, and for a later run that changes the answer for a job.
fn run_documents() -> PrintedKeys {
    let place = Place::with_run();
    let wild = SMALL.replace(
        "{distribution: uniform, min: 0.001, max: 0.02}",
        "10, weight_decay: {values: [0, 1000]}",
    );
    place.write(
        "wild.yaml",
        wild + "pipelines: {lasso: {runs: 1, parameters: {C: 0.1}}}\n\
            wandb: {sweep: {metric: {name: answers_log_loss, goal: minimize, target: 0}}}\n",
    );
    let mut printed = print_all(&place, &["run wild.yaml --json"]);

    let report = fs_err::read_to_string(place.path("out/report.json")).expect("read");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let mut earlier = report.clone();
    earlier["events"]["sources"][0]["bytes"] = 1.into();
    earlier["advice"]["advice"][0]["action"] = "release".into();
    earlier["advice"]["advice"][1]["job"] = "999999.0".into();
    earlier["advice"]["things"][0]["thing"] = "a disk".into();
    place.write("out/report.json", earlier.to_string());
    place.write("earlier.json", earlier.to_string());
    printed.extend(print_all(
        &place,
        &[
            "run wild.yaml --json",
            "sweep list out --json",
            "sweep best out --json",
            "report out --json",
            "report --diff earlier.json out --json",
            "report run --json",
        ],
    ));
    assert_eq!(
        printed_keys("run --json", &report)
            .difference(&printed)
            .next(),
        None,
        "report.json is such a document"
    );
    printed
}

/// Returns the keys for sweeps over tables.
fn table_documents() -> PrintedKeys {
    let more =
        "    evaluate_Spain: \"cohort == 'Spain' and severity is not missing\"\n    validate_A1:";
    let place = pipelines::place(
        &[("    validate_A1:", more)],
        "--split-names A1 --pipeline-names lasso --cv 2",
    );
    place.stdout("sweep run sweep");
    let mut printed = print_all(
        &place,
        &[
            "sweep status sweep --json",
            "sweep list sweep --json",
            "sweep best sweep --json",
            "predict sweep tests/data/table/features.csv --json",
        ],
    );

    let loss = "{name: validation_loss, goal: minimize}";
    let several = format!("[{loss}, {{name: r2, goal: maximize}}]");
    let place = pipelines_of_numbers::place(&[(loss, &several)]);
    place.stdout("sweep init numbers.yaml");
    place.stdout("sweep run sweep");
    let calls = [
        "sweep best sweep --json",
        "predict sweep features.csv --json",
    ];
    printed.extend(print_all(&place, &calls));
    printed
}

/// State file of a sender whose server does not answer.
const SILENT_TRACKER: &str = r#"{"format_version": 1, "tracker": "wandb", "server": "api.wandb.ai", "ended": 1, "running": 1,
    "answered": "2026-11-23T04:00:00Z", "silent_since": "2026-11-23T04:05:00Z", "why": "no route"}"#;

/// Returns the keys for a sweep with a running manager and worker.
fn running_documents() -> PrintedKeys {
    let place = Place::with_short_log();
    place.write(
        "long.yaml",
        SMALL.replace("epochs: 3", "epochs: 100000\nearlystop_threshold: 100000"),
    );
    place.stdout("sweep init long.yaml -o sweep");
    place.write("sweep/tracker-wandb.json", SILENT_TRACKER);
    let mut processes =
        ["sweep manage sweep", "sweep work sweep"].map(|call| sweep::start(&place, call));
    let mut status = Value::Null;
    sweep::wait(|| {
        status = place.json("sweep status sweep --json");
        status["manager"].is_object() && status["running"][0].is_object()
    });
    for process in &mut processes {
        process.kill().expect("killed");
        process.wait().expect("it ended");
    }
    printed_keys("sweep status sweep --json", &status)
}

/// Returns the keys for a DAG with a failed trial.
fn dag_documents() -> PrintedKeys {
    let place = Place::with_run();
    let one = SMALL
        .replace(
            "{distribution: uniform, min: 0.001, max: 0.02}",
            "10, weight_decay: {values: [1000, 0]}",
        )
        .replace("{values: [lstm, gru, mlp]}", "lstm")
        .replace("{values: [4, 8]}", "4")
        .replace("{values: [3, 5]}", "3");
    let grid = one + "wandb: {sweep: {method: grid}}\n";
    place.write("small.yaml", dag::small(&grid, ", cleanup: false"));
    place.stdout("dag small.yaml");
    assert_eq!(nodes::run(&place, "out"), 0);
    let dag = "[\n  Type = \"DagStatus\";\n  DagStatus = 3;\n  JobProcsHeld = 1;\n]\n";
    let node = "[\n  Type = \"NodeStatus\";\n  Node = \"trials-0001\";\n  NodeStatus = 6;\n  JobProcsHeld = 1;\n]\n";
    place.write("out/pipeline.status", format!("{dag}{node}"));
    place.write("out/tracker-wandb.json", SILENT_TRACKER);
    place.write("out/logs/trials-0001.err", "error: no space left\n");
    print_all(
        &place,
        &["sweep status out --json", "sweep best out --json"],
    )
}

/// Returns the keys for policies and for simulated logs.
fn policy_documents() -> PrintedKeys {
    let place = Place::with_answers();
    place.stdout("simulate -o SharedLog --truth shared-truth --jobs 3000 --days 7 --seed 3");
    place.stdout("parse SharedLog -o shared-events");
    place.write("planted", planted_log());
    place.write("pool.yaml", "out: run\n");
    place.write(
        "cost.yaml",
        "advice: {cost: {wasted_run: 1, lost_success: 9}}",
    );
    place.write(
        "members.yaml",
        "advice: {members: [et: {n_estimators: 5}, ridge: ]}",
    );
    print_all(
        &place,
        &[
            "policy --log planted --json",
            "policy --log EventLog.xz --config cost.yaml --json",
            "rehearse --log EventLog.xz --models 3 --config members.yaml --json",
            "share shared-events -o shared-rows --json",
            "simulate -o EventLog --truth truth --jobs 400 --days 7 --json",
        ],
    )
}

/// Returns the keys for earlier answers with an outcome.
fn checked_documents() -> PrintedKeys {
    let place = answer_check::place();
    place.stdout("advise mine --log EventLog");
    print_all(&place, &["advise mine --log EventLog.xz --check --json"])
}

/// Returns the keys for the trace of a real cluster, and for a broken export.
fn provision_documents() -> PrintedKeys {
    let place = provision::place_with_jobs();
    place.write(
        "broken",
        "JobID|Submit|Start|End|TimelimitRaw|NNodes\n1|5|6|7|60|1\nx|5|6|7|60|1\n",
    );
    print_all(
        &place,
        &[
            "provision trace jobs.txt.xz -o trace --tz UTC --stats --json",
            "provision trace broken -o broken-trace --json",
            "provision replay trace --json",
            "provision samples trace -o samples --start-time 2023-02-28 --end-time 2023-03-01 --json",
            // Windows this far apart count as separate blocks.
            "provision validate trace -o validation --start-time 2023-02-28 --end-time 2023-03-04 --interval 90 --draws 5 --json",
        ],
    )
}

/// Returns the keys for models of queue waits.
fn wait_model_documents() -> PrintedKeys {
    let place = provision::place_with_models();
    let validate = provision::VALIDATE_MODELS;
    let search = "runs: 1\nwandb: {sweep: {method: bayes, metric: {name: held_back_pinball, goal: minimize}}}\nprovision: {samples: samples}\n";
    place.write("waits.yaml", search);
    place.stdout("sweep init waits.yaml -o sweep");
    place.stdout("sweep run sweep");
    print_all(
        &place,
        &[
            "provision train samples -o again --json",
            "sweep best sweep --json",
            "provision train samples -o decider --model policy_gradient --base trees --json",
            &format!("{validate} --model trees -o validation --json"),
        ],
    )
}

/// Returns the keys for a queue that is given as files, and for a chain.
fn live_documents() -> PrintedKeys {
    let mut printed = provision_live::submission_documents();
    printed.extend(provision_live::start_documents());
    printed.extend(provision_live::score_documents());
    printed.extend(provision_live::check_documents());
    printed.extend(provision_live::chain_documents());
    printed
}

#[test]
fn every_documented_key_is_printed() {
    let makers = [
        log_documents,
        model_documents,
        run_documents,
        ensemble_documents,
        table_documents,
        running_documents,
        dag_documents,
        policy_documents,
        checked_documents,
        own_logs::own_log_documents,
        file_looks::look_documents,
        memory_plans::memory_documents,
        idle_jobs::idle_documents,
        advise_probes::probe_documents,
        provision_documents,
        live_documents,
        wait_model_documents,
        track::track_documents,
        publish::publish_documents,
        doctor::doctor_documents,
        explain::explain_documents,
        site::site_documents,
        past_jobs::history_documents,
        command::program_documents,
    ];
    let mut printed = PrintedKeys::new();
    std::thread::scope(|scope| {
        let threads = makers.map(|maker| scope.spawn(maker));
        for thread in threads {
            printed.extend(thread.join().expect("documents"));
        }
    });

    let mut missing = Vec::new();
    for (heading, rows) in &PAGE.keys {
        for row in rows.iter().filter(|row| !row.path.ends_with("...")) {
            // Only the rows of failed trials have these lines, and no verb prints such a row.
            if row.path == "reported.log_tail" {
                continue;
            }
            if !printed.contains(&(heading.clone(), row.path.clone())) {
                missing.push(format!("`{}` of {heading}", row.path));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "docs/json.md names what is never printed:\n{}",
        missing.join("\n")
    );
}

/// Collects the calls of all commands that have the flag `--json`.
fn calls_with_json(command: &clap::Command, call: &str, calls: &mut BTreeSet<String>) {
    if command.get_arguments().any(|arg| arg.get_id() == "json") {
        calls.insert(format!("{call} --json"));
    }
    for below in command.get_subcommands() {
        calls_with_json(below, &format!("{call} {}", below.get_name()), calls);
    }
}

#[test]
fn every_verb_with_json_is_documented() {
    let mut calls = BTreeSet::new();
    calls_with_json(&poolcast_cli::Cli::command(), "poolcast", &mut calls);
    // The document of `learn` is a part of the one of `run`.
    calls.remove("poolcast learn --json");
    calls.insert("poolcast advise --check --json".to_owned());
    calls.insert("poolcast advise --idle --json".to_owned());
    calls.insert("poolcast report --diff --json".to_owned());
    let documented: BTreeSet<String> = PAGE
        .keys
        .keys()
        .filter_map(|heading| Some(heading.strip_prefix('`')?.split('`').next()?.to_owned()))
        .collect();
    assert_eq!(documented, calls);
}
