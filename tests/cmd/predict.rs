//! Tests of `poolcast predict`: a fitted pipeline on new rows, and a network on the holds of a log.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use poolcast_sweep::TrialPredictions;
use poolcast_tables::JoinedTable;
use serde_json::Value;

use crate::place::Place;

const FEATURES: &str = "tests/data/table/features.csv";

/// A test directory with a finished sweep over the bundled tables, and their features in `new.csv`.
fn place(splits: &str) -> Place {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    symlink(root.join("tests"), place.path("tests")).expect("linked");
    let text = fs_err::read_to_string(root.join("config/table.yaml")).expect("read");
    place.write("table.yaml", text + "evaluation: {resamples: 50}\n");
    place.stdout(&format!(
        "sweep init table.yaml -o sweep --split-names {splits} --pipeline-names lasso"
    ));
    place.stdout("sweep run sweep");
    symlink(root.join(FEATURES), place.path("new.csv")).expect("linked");
    place
}

/// Splits a CSV table into its header and its rows.
fn cells(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let line = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<String>>();
    let mut lines = text.lines().map(line);
    (lines.next().expect("a head"), lines.collect())
}

fn table(head: &[String], rows: &[Vec<String>]) -> String {
    std::iter::once(&head.to_vec())
        .chain(rows)
        .map(|line| line.join(",") + "\n")
        .collect()
}

#[test]
fn predictions_match_those_of_the_fit() {
    let place = place("A1");
    let printed = place.stdout("predict sweep new.csv");
    let (head, rows) = cells(&printed);
    assert_eq!(
        head,
        ["run", "probability_healthy", "probability_ill"].map(str::to_owned),
        "{printed}"
    );
    let of: BTreeMap<&str, f32> = rows
        .iter()
        .map(|row| (&row[0][..], row[1].parse::<f64>().expect("a number") as f32))
        .collect();
    assert_eq!(
        of.len(),
        fs_err::read_to_string(place.path("new.csv"))
            .expect("read")
            .lines()
            .count()
            - 1
    );

    let trial = place.json("sweep best sweep --json")["choices"][0]["trial"]
        .as_u64()
        .expect("a trial");
    let dir = format!("sweep/trials/trial-{trial:04}");
    let samples = JoinedTable::open(&place.path("sweep/table")).expect("read");
    let kept = TrialPredictions::read(&place.path(&dir))
        .expect("read")
        .validation;
    let held_out = &samples.splits["A1"].validate;
    assert!(!held_out.is_empty() && kept.len() == 2 * held_out.len());
    for (row, kept) in held_out.iter().zip(kept.chunks_exact(2)) {
        assert_eq!(
            of[&samples.names[*row][..]],
            kept[0],
            "{}",
            samples.names[*row]
        );
    }
    assert_eq!(
        place.stdout(&format!("predict {dir} new.csv -o -")),
        printed,
        "a trial is a model, too"
    );

    // Columns are matched by name, in any order. The table has no classes.
    let (mut head, mut rows) = cells(&fs_err::read_to_string(place.path("new.csv")).expect("read"));
    std::iter::once(&mut head)
        .chain(&mut rows)
        .for_each(|line| line.reverse());
    rows.truncate(3);
    place.write("turned.csv", table(&head, &rows));
    let turned = place.stdout("predict sweep turned.csv");
    assert_eq!(
        turned.lines().collect::<Vec<_>>(),
        printed.lines().take(4).collect::<Vec<_>>()
    );
}

#[test]
fn csv_parquet_and_json_predictions_agree() {
    let place = place("A1");
    let printed = place.stdout("predict sweep new.csv");
    let rows = printed.lines().count() - 1;
    assert_eq!(
        place.stdout("predict sweep new.csv -o p.csv"),
        format!("{rows} rows in p.csv\n")
    );
    assert_eq!(
        fs_err::read_to_string(place.path("p.csv")).expect("read"),
        printed
    );
    let json = place.json("predict sweep new.csv --json")["rows"].take();
    let (_, first) = cells(&printed);
    assert_eq!(json.as_array().map(Vec::len), Some(rows));
    assert_eq!(
        json[0]["probability_healthy"].as_f64(),
        first[0][1].parse().ok()
    );
    place.stdout("predict sweep new.csv -o p.parquet");
    assert!(
        fs_err::read(place.path("p.parquet"))
            .expect("read")
            .starts_with(b"PAR1")
    );
    // Predictions are a table of numbers, too. `predict` reads it, and rejects its columns.
    let refused = place.run("predict sweep p.parquet");
    assert!(
        refused.code == Some(2)
            && refused
                .stderr
                .contains("`probability_healthy`, `probability_ill`"),
        "{refused}"
    );
    let parquet = place.stdout("predict sweep tests/data/table/features.parquet");
    assert_eq!(parquet, printed);

    let refused = place.run("predict sweep new.csv -o p.csv");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("`p.csv` exists already"),
        "{refused}"
    );
    place.stdout("predict sweep new.csv -o p.csv --overwrite");
}

#[test]
fn invalid_prediction_requests_are_rejected() {
    let place = place("A1,B2");
    let refused = |args: &str, words: &[&str]| {
        let refused = place.run(args);
        assert_eq!(refused.code, Some(2), "{args}: {refused}");
        assert!(
            words.iter().all(|word| refused.stderr.contains(word)),
            "{args}: {refused}"
        );
    };
    refused(
        "predict sweep new.csv",
        &[
            "for each of the splits A1, B2",
            "hint: choose with `--split A1`",
        ],
    );
    refused(
        "predict sweep new.csv --split C3",
        &["no split `C3`", "its splits are A1, B2"],
    );
    place.stdout("predict sweep new.csv --split B2");

    let (head, rows) = cells(&fs_err::read_to_string(place.path("new.csv")).expect("read"));
    let changed = |names: &[(&str, &str)]| {
        let renamed = |name: &String| {
            names
                .iter()
                .find(|(from, _)| from == name)
                .map_or(name.clone(), |(_, to)| (*to).to_owned())
        };
        place.write(
            "changed.csv",
            table(&head.iter().map(renamed).collect::<Vec<_>>(), &rows),
        );
    };
    changed(&[(&head[1], "condition")]);
    let missing = format!("it has no column `{}`", head[1]);
    let predict = "predict sweep changed.csv --split A1";
    refused(
        predict,
        &[
            &missing,
            "the pipeline does not know the column `condition`",
            "in any order",
        ],
    );
    changed(&[(&head[0], "id")]);
    refused(predict, &["there is no column `run`"]);
    place.write(
        "changed.csv",
        table(&head, &[vec!["many".to_owned(); head.len()]]),
    );
    refused(predict, &["`many` is not a number", "line 2"]);
    refused("predict sweep nowhere.csv --split A1", &["nowhere.csv"]);
    refused(
        "predict sweep --log EventLog --split A1",
        &["predicts the rows of a table, not the jobs of a log"],
    );
    refused("predict sweep", &["required"]);
    refused("predict nowhere new.csv", &["neither a run nor a sweep"]);
}

#[test]
fn a_network_predicts_every_hold() {
    let place = Place::with_run();
    let holds = |args: &str| -> Vec<Value> {
        place.json(&format!("predict run {args} --json"))["rows"]
            .as_array()
            .expect("rows")
            .clone()
    };
    let of_log = holds("--log EventLog.xz");
    assert_eq!(of_log, holds("events"), "a store says what its log does");
    let held = place.json("parse EventLog.xz -o again --json");
    let all = held["holds"].as_u64().or(held["kinds"]["hold"].as_u64());
    assert!(all.is_none_or(|all| all == of_log.len() as u64), "{held}");
    let key = |row: &Value| {
        (
            row["job"].to_string(),
            row["held_at"].to_string(),
            row["hold_code"].to_string(),
        )
    };
    let by_hold: BTreeMap<_, f64> = of_log
        .iter()
        .map(|row| (key(row), row["probability"].as_f64().expect("a number")))
        .collect();
    assert_eq!(by_hold.len(), of_log.len(), "a row a hold");

    let from_samples = holds("tensors");
    assert!(!from_samples.is_empty() && from_samples.len() < of_log.len());
    let sides: std::collections::BTreeSet<&str> = from_samples
        .iter()
        .filter_map(|row| row["side"].as_str())
        .collect();
    assert_eq!(
        sides.into_iter().collect::<Vec<_>>(),
        ["test", "train", "validate"]
    );
    for row in &from_samples {
        let (here, there) = (
            row["probability"].as_f64().expect("a number"),
            by_hold[&key(row)],
        );
        assert!((here - there).abs() < 1e-6, "{row}: {there}");
    }

    let refused = place.run("predict run tests");
    assert!(
        refused.code == Some(2)
            && refused
                .stderr
                .contains("contains neither events nor tensors"),
        "{refused}"
    );
    let refused = place.run("predict run events --split A1");
    assert!(
        refused.code == Some(2)
            && refused
                .stderr
                .contains("`--split` is for sweeps over tables"),
        "{refused}"
    );
}
