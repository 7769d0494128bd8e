//! Tests of `poolcast sweep` over tables whose target is a number.

use serde_json::Value;

use crate::place::Place;

const CONFIG: &str = "\
out: sweep
wandb:
  sweep:
    metric: {name: validation_loss, goal: minimize}
data:
  features: features.csv
  metadata: metadata.csv
  index: run
  target: hours
  task: regression
  group: patient
  cv: 3
  validate: true
  splits:
    train_A: \"cohort == 'X'\"
    validate_A: \"cohort == 'Y'\"
    evaluate_late: \"cohort == 'Z'\"
pipelines:
  xgb:
    method: grid
    parameters: {n_estimators: {values: [2, 12]}, max_depth: 3, min_child_weight: 4}
  rf:
    method: grid
    parameters: {n_estimators: 10, min_samples_leaf: 4, max_features: 1.0, selection: {values: [none, lasso]}}
evaluation: {resamples: 100}
";

/// A test directory with tables of 180 rows, where the column `size` largely determines `hours`,
/// and with [`CONFIG`]. Each pair in `changes` replaces its first text with its second.
pub(crate) fn place(changes: &[(&str, &str)]) -> Place {
    let place = Place::new();
    let mut features = "run,size,other\n".to_owned();
    let mut metadata = "run,hours,patient,cohort,word\n".to_owned();
    for row in 0..180_u32 {
        let size = (row * 37 % 101) as f64 / 10.0;
        let other = row * 53 % 97;
        let hours = 2.0 * size + f64::from(row * 71 % 89) / 44.0;
        let cohort = ["X", "X", "X", "Y", "Z"][row as usize / 2 % 5];
        features.push_str(&format!("r{row},{size},{other}\n"));
        metadata.push_str(&format!("r{row},{hours},p{},{cohort},w{row}\n", row / 2));
    }
    place.write("features.csv", features);
    place.write("metadata.csv", metadata);
    let text = changes.iter().fold(CONFIG.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "`{from}` is not in the configuration");
        text.replace(from, to)
    });
    place.write("numbers.yaml", text);
    place
}

fn swept(changes: &[(&str, &str)]) -> Place {
    let place = place(changes);
    place.stdout("sweep init numbers.yaml");
    let printed = place.stdout("sweep run sweep --threads 2");
    assert!(
        printed.starts_with("4 trials: 4 done, 0 failed"),
        "{printed}"
    );
    place
}

fn text(place: &Place, name: &str) -> String {
    fs_err::read_to_string(place.path(name)).expect("read")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn number_targets_are_swept_chosen_and_predicted() {
    let place = swept(&[]);
    let best = place.json("sweep best sweep --json");
    let choice = &best["choices"][0];
    let fit = &choice["row"]["fit"];
    assert_eq!(fit["folds"].as_array().map(Vec::len), Some(3));
    for key in ["loss", "mae", "rmse", "r2"] {
        let folds = fit["folds"].as_array().expect("folds");
        let mean = folds.iter().map(|fold| number(&fold[key])).sum::<f64>() / 3.0;
        assert!((mean - number(&fit["mean"][key])).abs() < 1e-9, "{key}");
    }
    assert_eq!(
        choice["value"], fit["mean"]["loss"],
        "it is chosen by the folds"
    );
    let mse = number(&fit["validation"]["loss"]);
    assert!((mse.sqrt() - number(&fit["validation"]["rmse"])).abs() < 1e-9);

    // The best trial is far better than one number for all rows, and both scores have intervals.
    let [model, baseline] = ["validation", "baseline"].map(|of| &choice[of]);
    assert!(
        number(&model["high"]) < number(&baseline["low"]),
        "{choice}"
    );
    assert!(number(&model["low"]) < number(&model["value"]), "{choice}");
    assert!(choice["corrected"]["value"].is_number(), "{choice}");
    assert!(
        choice["evaluation"]["late"]["value"].is_number(),
        "{choice}"
    );
    assert_eq!(choice["importances"]["features"][0]["feature"], "size");
    let shown = place.stdout("sweep best sweep");
    assert!(shown.contains("one answer for all (95 %)"), "{shown}");

    let csv = text(&place, "sweep/results.csv");
    let head = csv.lines().next().expect("a header");
    assert!(
        head.contains(
            "validation_loss,validation_mae,validation_rmse,validation_r2,evaluation_late,"
        ),
        "{head}"
    );
    assert!(!head.contains("roc_auc"), "{head}");
    let listed = place.stdout("sweep list sweep");
    assert!(listed.contains("MAE") && listed.contains("R²"), "{listed}");
    let listed = place.json("sweep list sweep --json");
    assert!(listed["trials"][0]["metrics"]["r2"].is_number(), "{listed}");

    let predicted = place.stdout("predict sweep features.csv");
    assert!(
        predicted.starts_with("run,predicted_hours\nr0,"),
        "{predicted}"
    );
    assert_eq!(predicted.lines().count(), 181);
}

#[test]
fn predicted_quantile_is_above_its_share_of_numbers() {
    let place = swept(&[(
        "  task: regression\n",
        "  task: regression\n  quantile: 0.9\n",
    )]);
    let predicted = place.stdout("predict sweep features.csv");
    let metadata = text(&place, "metadata.csv");
    let second = |line: &str| -> f64 {
        let cell = line.split(',').nth(1).expect("a cell");
        cell.parse().expect("a number")
    };
    let pairs = predicted.lines().zip(metadata.lines()).skip(1);
    let below = pairs.filter(|(predicted, truth)| second(truth) <= second(predicted));
    let share = below.count() as f64 / 180.0;
    assert!((0.8..=0.99).contains(&share), "{share}");

    // The loss is the pinball loss, so the value of the baseline is not its squared error, which is
    // larger.
    let best = place.json("sweep best sweep --json");
    assert!(
        number(&best["choices"][0]["baseline"]["value"]) < 2.0,
        "{best}"
    );
}

#[test]
fn report_on_numbers_has_no_class_scores() {
    let place = swept(&[]);
    place.stdout("report sweep -o report.html");
    let page = text(&place, "report.html");
    assert!(page.contains("Numbers are predicted"), "the sentence");
    assert!(page.contains("one answer for all rows"), "the baseline");
    assert!(!page.contains("ROC"), "no ROC-AUC of numbers");
}

#[test]
fn what_predicts_no_numbers_is_refused_before_any_work() {
    let refusal =
        |changes: &[(&str, &str)]| place(changes).run("sweep init numbers.yaml").to_string();
    let metric = "{name: validation_loss, goal: minimize}";
    insta::assert_snapshot!(
        [
            refusal(&[("  rf:\n", "  svc: {}\n  rf:\n")]),
            refusal(&[
                ("task: regression", "task: regression\n  quantile: 0.9"),
                ("  rf:\n", "  lasso: {}\n  rf:\n")
            ]),
            refusal(&[(
                "  rf:\n",
                "  lasso: {parameters: {class_weight: balanced}}\n  rf:\n"
            )]),
            refusal(&[(metric, "{name: validation_roc_auc, goal: maximize}")]),
            refusal(&[(metric, "{name: val_mae, goal: maximize}")]),
            refusal(&[("task: regression", "quantile: 0.5")]),
            refusal(&[("task: regression", "task: regression\n  quantile: 1.5")]),
            refusal(&[("task: regression", "task: regressions")]),
            refusal(&[("target: hours", "target: word")]),
            refusal(&[
                ("  task: regression\n", ""),
                (metric, "{name: r2, goal: maximize}")
            ]),
            refusal(&[("cohort == 'X'", "cohort == 'X' and hours == 0")]),
        ]
        .join("\n")
    );
}
