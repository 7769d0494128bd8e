//! Tests of sweeps whose trials run a program of the user, as a W&B sweep file describes it.

use std::process::Command;

use serde_json::{Value, json};

use crate::docs;
use crate::json_documents::{PrintedKeys, print_all};
use crate::place::Place;
use crate::sweep::{start, wait};

/// A program that reports its parameter `rate` as its loss, and prints its other arguments.
const TRAIN: &str = r#"
for argument; do
    case $argument in
        --rate=*) rate=${argument#*=} ;;
        *) echo "argument: $argument" ;;
    esac
done
echo "{\"epoch\": 1, \"val\": {\"loss\": 9}}"
echo "{\"epoch\": 2, \"val\": {\"loss\": $rate}}"
"#;

/// A sweep of the program, as W&B reads it.
const SWEEP: &str = r#"
program: train.sh
command: ["${env}", sh, "${program}", "${args}"]
method: random
metric: {name: val.loss, goal: minimize}
run_cap: 6
parameters:
  rate: {min: 0.25, max: 1.0}
  model:
    parameters:
      depth: {values: [1, 2, 3]}
      name: {value: small}
"#;

/// Metrics of a program that reports a cost, too.
const TWO_METRICS: &str = "[{name: val.loss, goal: minimize}, {name: cost, goal: minimize}]";

/// A test directory with the sweep `sweep.yaml` of the program `train.sh`.
fn place(sweep: &str, program: &str) -> Place {
    let place = Place::new();
    place.write("sweep.yaml", sweep);
    place.write("train.sh", program);
    place
}

fn rows(place: &Place) -> Vec<Value> {
    rows_in(place, "out")
}

fn rows_in(place: &Place, dir: &str) -> Vec<Value> {
    let path = place.path(&format!("{dir}/results.jsonl"));
    let text = fs_err::read_to_string(path).expect("read");
    let rows = text.lines().map(serde_json::from_str);
    rows.map(|row| row.expect("JSON")).collect()
}

fn output_of(place: &Place, trial: usize) -> String {
    let path = format!("out/trials/trial-{trial:04}/output.log");
    fs_err::read_to_string(place.path(&path)).expect("read")
}

/// The ids of the processes that the program has written to `pids`.
fn pids(place: &Place) -> Vec<u32> {
    let text = fs_err::read_to_string(place.path("pids")).unwrap_or_default();
    text.lines()
        .map(|pid| pid.parse().expect("a number"))
        .collect()
}

/// Returns true if the process runs. A zombie has ended.
fn runs(pid: u32) -> bool {
    let status = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit_once(") ")
        .map(|(_, rest)| rest.chars().next());
    state.flatten().is_some_and(|state| !"ZX".contains(state))
}

/// The documents of a sweep of programs: one fails, and the other one has a value.
pub(crate) fn program_documents() -> PrintedKeys {
    let program = r#"
if [ "$POOLCAST_TRIAL" = 1 ]; then echo last; exit 3; fi
echo '{"val": {"loss": 1}, "cost": 2}'
"#;
    let all_fail = place(SWEEP, "echo last; exit 3\n");
    all_fail.run("sweep run sweep.yaml -o out");
    let several = SWEEP
        .replace("run_cap: 6", "run_cap: 2")
        .replace("{name: val.loss, goal: minimize}", TWO_METRICS);
    let place = place(&several, program);
    place.stdout("sweep run sweep.yaml -o out");
    let mut printed = print_all(
        &place,
        &["sweep status out --json", "sweep best out --json"],
    );
    printed.extend(print_all(&all_fail, &["sweep status out --json"]));
    printed
}

#[test]
fn nested_parameters_and_reports_become_results() {
    let place = place(SWEEP, TRAIN);
    let printed = place.stdout("sweep run sweep.yaml -o out --threads 2");
    assert!(
        printed.starts_with("6 trials: 6 done, 0 failed"),
        "{printed}"
    );

    let rows = rows(&place);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        let parameters = &row["parameters"];
        assert_eq!(row["value"], parameters["rate"]);
        assert_eq!(row["values"], json!([9.0, parameters["rate"]]));
        assert_eq!(row["reported"]["last"]["epoch"], 2.0);
        let trial = row["trial"].as_u64().expect("a number") as usize;
        let depth = &parameters["model.depth"];
        let wanted = format!("argument: --model={{'depth': {depth}, 'name': 'small'}}\n");
        assert!(output_of(&place, trial).starts_with(&wanted), "{wanted}");
    }

    let best = place.stdout("sweep best out");
    assert!(
        best.contains("val.loss") && best.contains("model.depth"),
        "{best}"
    );
    let least = rows
        .iter()
        .filter_map(|row| row["value"].as_f64())
        .fold(9.0, f64::min);
    let found: Value = serde_json::from_str(&place.stdout("sweep best out --json")).expect("JSON");
    assert_eq!(found["value"], least);

    let listed = place.stdout("sweep list out");
    assert_eq!(listed.lines().count(), 7, "{listed}");
    assert!(listed.contains("model.name=small"), "{listed}");
    place.stdout("report out");
    let page = fs_err::read_to_string(place.path("out/report.html")).expect("read");
    assert!(page.contains("is the best of 6 trials, chosen by the val.loss"));

    let anonymous = place.stdout("report out --anonymous --json");
    assert!(!anonymous.contains("train.sh"), "{anonymous}");

    // The same command finds its work done.
    let again = place.run("sweep run sweep.yaml -o out");
    assert_eq!(
        (again.code, again.stdout),
        (Some(0), printed),
        "{}",
        again.stderr
    );
}

#[test]
fn hyperband_ends_programs_that_are_behind() {
    let sweep = SWEEP.replace(
        "run_cap: 6",
        "run_cap: 8\nearly_terminate: {type: hyperband, min_iter: 1}",
    );
    // The later trials are worse, and would never end. Each of them knows one that has ended.
    let program = r#"
if [ "$POOLCAST_TRIAL" -le 4 ]; then echo '{"val": {"loss": 1}}'; exit; fi
echo '{"val": {"loss": 5}}'
sleep 100000
"#;
    let place = place(&sweep, program);
    let printed = place.stdout("sweep run sweep.yaml -o out --threads 2");
    assert!(printed.starts_with("8 trials: 8 done"), "{printed}");
    for row in rows(&place) {
        let is_late = row["trial"].as_u64() > Some(4);
        assert_eq!(row["reported"]["is_terminated"], is_late, "{row}");
        assert_eq!(row["value"], if is_late { 5.0 } else { 1.0 });
    }
}

#[test]
fn failed_programs_keep_their_last_lines() {
    let program = r#"
if [ "$POOLCAST_TRIAL" = 1 ]; then
    echo '{"val": {"loss": 0}}'
    for line in $(seq 60); do printf 'line %s \033[31m\n' "$line"; done
    exit 3
fi
if [ "$POOLCAST_TRIAL" = 2 ]; then echo '{"loss": 1, "val": {"acc": 2}}'; exit; fi
if [ "$POOLCAST_TRIAL" = 3 ]; then echo '{"val": {"loss": NaN}}'; exit; fi
if [ "$POOLCAST_TRIAL" = 4 ]; then kill -9 $$; fi
echo '{"val": {"loss": 1}}'
"#;
    let place = place(SWEEP, program);
    let run = place.run("sweep run sweep.yaml -o out --threads 2");
    assert_eq!(run.code, Some(0), "{}", run.stderr);

    let rows = rows(&place);
    assert_eq!(
        (&rows[0]["value"], &rows[0]["values"]),
        (&Value::Null, &json!([0.0]))
    );
    let tail = rows[0]["reported"]["log_tail"].as_array().expect("lines");
    assert_eq!((tail.len(), &tail[0]), (50, &json!("line 11 \\u{1b}[31m")));
    let errors: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(row["error"].as_str()?.to_owned()))
        .collect();
    let endings: Vec<&Value> = rows.iter().map(|row| &row["ended"]).collect();
    insta::assert_snapshot!(errors.join("\n"));
    assert_eq!(
        json!(endings),
        json!(["error", "error", "non-finite", "error", "done", "done"])
    );
    for show in ["sweep list out", "sweep status out", "sweep list out --csv"] {
        let shown = place.stdout(show);
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}

#[test]
fn killed_sweep_ends_its_orphans_and_loses_no_trial() {
    let program = r#"
echo $$ >>pids
until [ -e go ]; do sleep 0.02; done
echo '{"val": {"loss": 1}}'
"#;
    let place = place(SWEEP, program);
    let command = "sweep run sweep.yaml -o out --threads 2";
    let mut killed = start(&place, command);
    wait(|| pids(&place).len() == 2);
    killed.kill().expect("killed");
    killed.wait().expect("it has ended");
    let orphans = pids(&place);
    assert!(orphans.iter().all(|pid| runs(*pid)));

    let mut resumed = start(&place, command);
    wait(|| pids(&place).len() == 4);
    wait(|| !orphans.iter().any(|pid| runs(*pid)));
    place.write("go", "");
    assert!(resumed.wait().expect("it has ended").success());
    let rows = rows(&place);
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row["ended"] == "done"), "{rows:?}");
}

#[test]
fn stopped_sweep_ends_its_programs() {
    let place = place(SWEEP, "echo $$ >>pids\nsleep 100000\n");
    let mut running = start(&place, "sweep run sweep.yaml -o out --threads 2");
    wait(|| pids(&place).len() == 2);
    let signal = Command::new("kill").arg(running.id().to_string()).status();
    assert!(signal.expect("kill runs").success());
    assert_eq!(running.wait().expect("it has ended").code(), Some(1));
    assert!(!pids(&place).into_iter().any(runs));
}

#[test]
fn time_limit_ends_a_program() {
    let place = place(
        &SWEEP.replace("run_cap: 6", "run_cap: 1"),
        "echo begun\nsleep 100000\n",
    );
    let run = place.run("sweep run sweep.yaml -o out --trial-timeout 1");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    let rows = rows(&place);
    assert_eq!(rows[0]["ended"], "time-limit");
    assert_eq!(rows[0]["reported"]["log_tail"], json!(["begun"]));
}

#[test]
fn workers_share_the_trials_of_a_folder() {
    let place = place(SWEEP, TRAIN);
    place.stdout("sweep init sweep.yaml -o out");
    let mut processes =
        ["sweep manage out", "sweep work out", "sweep work out"].map(|args| start(&place, args));
    for process in &mut processes {
        assert!(process.wait().expect("it has ended").success());
    }
    assert_eq!(rows(&place).len(), 6);
}

#[test]
fn program_that_exits_with_85_is_started_again() {
    let program = r#"
cd "$POOLCAST_TRIAL_DIR"
echo >>runs
echo "{\"val\": {\"loss\": $(grep -c '' runs)}}" >>"$POOLCAST_REPORT"
[ "$(grep -c '' runs)" = 3 ] || exit 85
"#;
    let place = place(&SWEEP.replace("run_cap: 6", "run_cap: 1"), program);
    place.stdout("sweep run sweep.yaml -o out");
    let rows = rows(&place);
    assert_eq!(rows[0]["values"], json!([1.0, 2.0, 3.0]));
    assert_eq!(rows[0]["reported"]["checkpoints"], 2);
}

#[test]
fn program_gets_its_values_in_files_and_variables() {
    let program = r#"
cat "$POOLCAST_PARAMETERS"; echo
cat "$WANDB_SWEEP_PARAM_PATH"
echo "$WANDB_MODE $WANDB_PROJECT $WANDB_NAME $POOLCAST_TRIAL"
[ "$WANDB_DIR" = "$POOLCAST_TRIAL_DIR" ] && pwd -P
echo '{"val": {"loss": 1}}'
"#;
    let sweep = SWEEP.replace("run_cap: 6", "run_cap: 1\nproject: mine");
    let place = place(
        &sweep.replace("min: 0.25, max: 1.0", "value: 1e-5"),
        program,
    );
    place.stdout("sweep run sweep.yaml -o out");
    let here = fs_err::canonicalize(place.path("")).expect("a path");
    let output = output_of(&place, 1).replace(&here.display().to_string(), "HERE");
    insta::assert_snapshot!(output);
}

/// Three trials at a time: the first one lasts until all others have ended.
#[test]
fn slow_trial_keeps_no_worker_waiting() {
    let sweep = SWEEP
        .replace("random", "bayes")
        .replace("run_cap: 6", "run_cap: 24");
    let program = r#"
if [ "$POOLCAST_TRIAL" = 1 ]; then
    while [ ! -e go_on ]; do sleep 0.05; done
fi
if [ "$POOLCAST_TRIAL" = 24 ]; then touch go_on; fi
echo '{"val": {"loss": 1}}'
"#;
    let place = place(&sweep, program);
    let printed = place.stdout("sweep run sweep.yaml -o out --threads 3");
    assert!(printed.starts_with("24 trials: 24 done"), "{printed}");
    for row in rows(&place) {
        let trial = row["trial"].as_u64().expect("a number");
        let unseen = row["unseen"].as_array().expect("numbers");
        let knows_first = !unseen.contains(&json!(1));
        assert_eq!(trial == 1, knows_first, "{row}");
        assert!(unseen.len() <= 6, "it knows what has ended: {row}");
    }
}

#[test]
fn bayes_learns_from_the_last_value() {
    let sweep = SWEEP
        .replace("random", "bayes\ndeterministic: true\ntrials_per_round: 6")
        .replace("run_cap: 6", "run_cap: 18");
    let place = place(&sweep, TRAIN);
    place.stdout("sweep run sweep.yaml -o out --threads 2");
    let draws = |place: &Place| -> Vec<Value> {
        rows(place)
            .into_iter()
            .map(|row| row["parameters"].clone())
            .collect()
    };
    let first = draws(&place);
    let again = self::place(&sweep, TRAIN);
    again.stdout("sweep run sweep.yaml -o out --threads 1");
    assert_eq!(first, draws(&again), "with any number of workers");
}

#[test]
fn failed_trials_run_again_and_others_keep_their_results() {
    let program = r#"
if [ "$POOLCAST_TRIAL" -gt 3 ] && [ ! -e mended ]; then exit 1; fi
echo "{\"val\": {\"loss\": $POOLCAST_TRIAL}}"
"#;
    for method in ["random", "bayes", "grid"] {
        let sweep = SWEEP
            .replace("random", method)
            .replace("{min: 0.25, max: 1.0}", "{values: [1, 2, 3]}");
        let place = place(&sweep, program);
        let early = place.run("sweep init sweep.yaml -o out");
        assert_eq!(early.code, Some(0), "{early}");
        let refused = place.run("sweep retry out");
        assert!(refused.stderr.contains("has not finished"), "{refused}");

        let printed = place.stdout("sweep run out --threads 2");
        assert!(
            printed.starts_with("6 trials: 3 done, 3 failed"),
            "{printed}"
        );
        let before = rows(&place);
        place.write("mended", "");
        let retried = place.run("sweep retry out");
        assert!(retried.stderr.contains("3 trials run again"), "{retried}");
        let printed = place.stdout("sweep run out --threads 2");
        assert!(
            printed.starts_with("6 trials: 6 done, 0 failed"),
            "{printed}"
        );
        let after = rows(&place);
        assert_eq!(before[..3], after[..3]);
        for (old, new) in before[3..].iter().zip(&after[3..]) {
            assert_eq!(new["value"], new["trial"].as_f64().expect("a number"));
            for same in ["parameters", "unseen", "budget"] {
                assert_eq!(old[same], new[same], "{same}");
            }
        }
        let none = place.run("sweep retry out");
        assert!(none.stderr.contains("no trial has failed"), "{none}");
        assert_eq!(rows(&place), after);
    }
}

#[test]
fn more_trials_extend_a_sweep() {
    for method in ["random", "bayes"] {
        let place = place(&SWEEP.replace("random", method), TRAIN);
        place.stdout("sweep run sweep.yaml -o out --threads 2");
        let before = rows(&place);
        // An interrupted extension is one of a sweep that has not finished.
        for cap in [8, 9] {
            let more = SWEEP.replace("run_cap: 6", &format!("run_cap: {cap}"));
            place.write("sweep.yaml", more.replace("random", method));
            let begun = place.run("sweep init sweep.yaml -o out");
            let kept = format!("trials: 6 of {cap} have ended, and keep their results");
            assert!(begun.stderr.contains(&kept), "{begun}");
        }
        let printed = place.stdout("sweep run sweep.yaml -o out --threads 2");
        assert!(printed.starts_with("9 trials: 9 done"), "{printed}");
        let after = rows(&place);
        assert_eq!((&before[..], after.len()), (&after[..6], 9));
        assert_eq!(output_of(&place, 9).lines().count(), 3);
        place.stdout("report out");
    }
}

#[test]
fn changed_trials_do_not_extend_a_sweep() {
    let place = place(SWEEP, TRAIN);
    place.stdout("sweep run sweep.yaml -o out --threads 2");
    let before = rows(&place);
    place.write("sweep.yaml", SWEEP.replace("minimize", "maximize"));
    insta::assert_snapshot!(place.run("sweep run sweep.yaml -o out"), @r#"
    exit 2
    error: `out` contains another sweep: `wandb.sweep.metric.goal` was `"minimize"`, and is now `"maximize"`

    hint: name another directory with `-o DIR`
    "#);
    place.write("sweep.yaml", SWEEP.replace("run_cap: 6", "run_cap: 5"));
    let fewer = place.run("sweep run sweep.yaml -o out");
    assert!(
        fewer.stderr.contains("its trial 6 (train.sh, model.depth "),
        "{fewer}"
    );
    assert_eq!(rows(&place), before);
}

#[test]
fn programs_get_the_parameters_that_their_trial_has() {
    let sweep = SWEEP.replace("random", "grid").replace(
        "{min: 0.25, max: 1.0}",
        "{values: [1, 2], when: {model.depth: [2, 3]}}",
    );
    let place = place(&sweep, "echo \"$@\"\necho '{\"val\": {\"loss\": 1}}'\n");
    let planned = place.stdout("sweep init sweep.yaml -o out");
    assert_eq!(planned, "5 trials are planned in out\n", "1 + 2 + 2");
    place.stdout("sweep run out");
    let arguments = |trial| {
        let output = output_of(&place, trial);
        output.lines().next().map(str::to_owned)
    };
    let model = |depth: usize| format!("--model={{'depth': {depth}, 'name': 'small'}}");
    assert_eq!(arguments(1), Some(model(1)));
    assert_eq!(arguments(5), Some(format!("{} --rate=2", model(3))));
    let rates: Vec<Value> = rows(&place)
        .iter()
        .map(|row| row["parameters"]["rate"].clone())
        .collect();
    assert_eq!(json!(rates), json!([null, 1, 2, 1, 2]));

    place.write("sweep.yaml", sweep.replace("model.depth", "depth"));
    let refused = place.run("sweep init sweep.yaml -o other");
    assert!(
        refused.stderr.contains("`when` of `rate` names `depth`"),
        "{refused}"
    );
}

#[test]
fn several_metrics_have_a_pareto_front() {
    let sweep = SWEEP
        .replace("{name: val.loss, goal: minimize}", TWO_METRICS)
        .replace("random", "grid")
        .replace("{min: 0.25, max: 1.0}", "{values: [1, 2, 4, 3]}")
        .replace("[1, 2, 3]", "[1]");
    let program = format!("{TRAIN}echo \"{{\\\"cost\\\": $(( rate > 3 ? 3 : 5 - rate ))}}\"\n");
    let place = place(&sweep, &program);
    place.stdout("sweep run sweep.yaml -o out");
    let best = place.stdout("sweep best out");
    let (_, front) = best.split_once("\nPareto").expect("a front");
    let lines: Vec<&str> = front.lines().collect();
    assert_eq!(
        lines,
        [
            " front, 3 trials that no other trial dominates:",
            "  trial  val.loss    cost",
            "  1        1.0000  4.0000",
            "  2        2.0000  3.0000",
            "  4        3.0000  2.0000",
        ]
    );
    assert_eq!(
        place.json("sweep best out --json")["front"],
        json!([{"trial": 1, "values": [1.0, 4.0]}, {"trial": 2, "values": [2.0, 3.0]}, {"trial": 4, "values": [3.0, 2.0]}])
    );
    assert!(place.stdout("report out --json").contains("Pareto front"));
    for (from, to) in [
        ("method: grid", "method: bayes"),
        (
            "run_cap: 6",
            "early_terminate: {type: hyperband, min_iter: 1}",
        ),
    ] {
        place.write("sweep.yaml", sweep.replace(from, to));
        let refused = place.run("sweep init sweep.yaml -o other");
        assert!(refused.stderr.contains("needs one metric"), "{refused}");
    }
}

#[test]
fn sweep_ends_at_the_target_of_its_metric() {
    let sweep = SWEEP
        .replace("minimize}", "minimize, target: 5, impute: best}")
        .replace("random", "grid")
        .replace("{min: 0.25, max: 1.0}", "{values: [5, 4, 3, 2, 1]}")
        .replace("[1, 2, 3]", "[1]");
    let place = place(&sweep, TRAIN);
    let run = place.run("sweep run sweep.yaml -o out --threads 1");
    assert!(run.stderr.contains("it is `worst`"), "{}", run.stderr);
    let stopped = "stopped at the target of the metric: 4 of them were not started";
    assert!(run.stdout.contains(stopped), "{}", run.stdout);
    assert_eq!(rows(&place).len(), 1);
}

#[test]
fn sweep_without_a_metric_runs_its_programs() {
    let sweep = SWEEP.replace("metric: {name: val.loss, goal: minimize}\n", "");
    let place = place(&sweep, "echo done\n");
    let printed = place.stdout("sweep run sweep.yaml -o out");
    assert!(printed.starts_with("6 trials: 6 done"), "{printed}");
    place.stdout("report out");
}

#[test]
fn other_verbs_name_the_verb_for_programs() {
    let place = place(SWEEP, TRAIN);
    place.stdout("sweep run sweep.yaml -o out");
    let refusals = [
        "dag sweep.yaml -o dag",
        "run sweep.yaml -o run",
        "sweep evaluate out",
    ];
    let messages = refusals.map(|args| place.run(args).stderr);
    insta::assert_snapshot!(messages.join("---\n"));
}

#[test]
fn wandb_files_are_read_as_wandb_reads_them() {
    let place = place("", TRAIN);
    let begin = |text: &str| {
        place.write("sweep.yaml", text);
        let _ = fs_err::remove_dir_all(place.path("out"));
        let run = place.run("sweep init sweep.yaml -o out");
        format!("{}{}{}", text.trim_start(), run.stdout, run.stderr)
    };
    let files = [
        "{program: train.sh, method: grid, parameters: {a: {value: 1}}, job: x, controller: {type: local}}\n",
        "{program: train.sh, method: random, parameters: {a: {distribution: log_uniform, min: -11, max: -2}, b: {values: [yes, 'no', 400_000, 1e-4]}}}\n",
        "{program: train.sh, method: random, run_cap: 2, parameters: {a: {distribution: q_log_uniform_values, min: 0.001, max: 0.1}}}\n",
        "{program: train.sh, method: random, run_cap: 2, metric: {name: a, target: 3}, early_terminate: {type: hyperband, min_iter: 3}, parameters: {a: {value: 1}}}\n",
        "{job: x, scheduler: {num_workers: 2}}\n",
        "{method: random, parameters: {a: {value: 1}}}\n",
        "{program: other.py, method: random, parameters: {a: {value: 1}}}\n",
        "{program: train.sh, method: custom, parameters: {a: {value: 1}}}\n",
        "{program: train.sh, method: bayes, parameters: {a: {min: 0, max: 1}}}\n",
        "{program: train.sh, method: random, early_terminate: {type: hyperband, min_iter: 3}, parameters: {a: {value: 1}}}\n",
        "{program: train.sh, method: random, metric: {name: a}, early_terminate: {type: asha, min_iter: 1}, parameters: {a: {value: 1}}}\n",
        "{program: train.sh, method: grid, parameters: {a: [1, 2]}}\n",
        "{program: train.sh, method: grid, parameters: {a: {parameters: {b: 3}}}}\n",
        "{program: train.sh, method: grid, parameters: {a: {min: 0.0, max: 1.0}}}\n",
        "{program: train.sh, method: random, parametres: {a: {value: 1}}}\n",
        "{program: train.sh, method: random}\n",
        "{program: train.sh, command: python train.py, method: random, parameters: {a: {value: 1}}}\n",
    ];
    let shown = files.map(begin).join("---\n");
    insta::assert_snapshot!(shown);
}

/// Runs the documented session, where there is Python.
#[test]
fn documented_example_prints_what_is_shown() {
    let document = docs::read("docs/sweeps.md");
    let session = docs::blocks(&document, "console")[0];
    let (command, shown) = session.split_once('\n').expect("a command and its output");
    let args = command
        .strip_prefix("$ poolcast ")
        .expect("a call of poolcast");
    if !Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|run| run.status.success())
    {
        return;
    }

    let place = docs::repository();
    let path = std::env::var("PATH").unwrap_or_default();
    let run = place
        .command(args)
        .env("PATH", path)
        .output()
        .expect("it starts");
    let printed = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(
        docs::is_shown(
            &printed.lines().collect::<Vec<_>>(),
            &shown.lines().collect::<Vec<_>>()
        ),
        "{printed}"
    );
    for row in rows_in(&place, "out/command") {
        assert!(
            row["value"].as_f64().is_some_and(|loss| loss < 5.0),
            "{row}"
        );
    }
}
