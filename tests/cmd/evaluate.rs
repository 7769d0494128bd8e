//! Tests of `poolcast evaluate`: the table of scores, and models that do not fit.

use std::collections::BTreeMap;

use crate::place::{Place, without_version};

#[test]
fn the_table_names_what_it_scores() {
    let place = Place::with_run();
    place.copy("run", "mine");
    // The last digits depend on the processor's vector width.
    insta::with_settings!({filters => vec![(r"\d\.\d{3}", "#.###")]}, {
        insta::assert_snapshot!(place.run("evaluate mine tensors --resamples 50"), @"
        exit 0
        322 samples of 93 clusters in the test split (by time), 37.6 % success; trained on 1,251 with 29.1 %
        not used, of 2,119 hold cycles: 8 still held, 396 removed while held, 3 removed after release, 106 hold code excluded (78.8 % success among 85), 33 decided too late (57.6 % success)
                                           lstm       always majority     rate by hold code
        accuracy           #.### [#.###, #.###]  #.### [#.###, #.###]  #.### [#.###, #.###]
        precision                             -                     -                     -
        recall             #.### [#.###, #.###]  #.### [#.###, #.###]  #.### [#.###, #.###]
        F-measure          #.### [#.###, #.###]  #.### [#.###, #.###]  #.### [#.###, #.###]
        ROC-AUC            #.### [#.###, #.###]  #.### [#.###, #.###]  #.### [#.###, #.###]
        average precision  #.### [#.###, #.###]  #.### [#.###, #.###]  #.### [#.###, #.###]
        Brier score        #.### [#.###, #.###]  #.### [#.###, #.###]  #.### [#.###, #.###]
        ECE                #.### [#.###, #.###]  #.### [#.###, #.###]  #.### [#.###, #.###]
        calibrated on the validation samples, temperature #.###: Brier score #.### before, #.### after; ECE #.### before, #.### after; success is predicted from #.###
        [95 % intervals: 50 bootstrap resamples of clusters]
        ");
    });
}

#[test]
fn baselines_have_the_expected_scores() {
    let place = Place::with_run();
    place.copy("run", "mine");
    let json = place.json("evaluate mine tensors --side validate --resamples 50 --json");
    let (samples, successes) = (
        json["samples"].as_f64().expect("n"),
        json["successes"].as_f64().expect("n"),
    );
    let score = |method: usize, name: &str| {
        let scores = json["methods"][method]["scores"]
            .as_array()
            .expect("scores");
        scores
            .iter()
            .find(|score| score["name"] == name)
            .expect("a score")["value"]
            .as_f64()
    };
    assert_eq!(json["methods"][1]["name"], "always majority");
    assert_eq!(
        score(1, "accuracy"),
        Some((samples - successes) / samples),
        "failure is the majority on train"
    );
    assert_eq!(
        (score(1, "roc_auc"), score(1, "precision")),
        (Some(0.5), None)
    );
    assert_eq!(
        without_version(&json),
        serde_json::from_slice::<serde_json::Value>(
            &place.files("mine")["evaluation-validate.json"]
        )
        .expect("JSON")
    );
    let again = place.json("evaluate mine tensors --side validate --resamples 50 --json");
    assert_eq!(again, json, "the intervals are seeded");
}

#[test]
fn other_tensors_of_the_same_sizes_are_scored_with_a_note() {
    let place = Place::with_run();
    place.copy("run", "mine");
    place.stdout("tensors events -o other --j 5 --m 6 --timeframe-len 10 --split random");
    let outcome = place.run("evaluate mine other --resamples 10");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(
        outcome
            .stderr
            .starts_with("note: the model was trained on other tensors"),
        "{outcome}"
    );
    assert!(outcome.stdout.contains("by random"), "{outcome}");
}

#[test]
fn what_does_not_fit_is_named() {
    let place = Place::with_run();
    place.stdout("tensors events -o wide --j 7 --m 6 --timeframe-len 10");
    insta::assert_snapshot!(place.run("evaluate run wide"), @"
    exit 2
    error: the model was trained on samples with j = 5, m = 6, timeframe_len = 10, context uniform, vocabulary events, release windows and next labels; the tensors have j = 7, m = 6, timeframe_len = 10, context uniform, vocabulary events, release windows and next labels

    hint: build matching tensors with `poolcast tensors EVENTS -o DIR --j 5 --m 6 --timeframe-len 10 --context uniform --vocabulary events --window release --label next`
    ");
    insta::assert_snapshot!(place.run("evaluate tensors tensors"), @"
    exit 2
    error: `tensors` holds tensors, not run

    hint: make it with `poolcast train TENSORS -o RUN`
    ");
    insta::assert_snapshot!(place.run("evaluate nowhere tensors"), @"
    exit 2
    error: `nowhere` is neither a run nor a sweep with a best trial

    hint: name the directory that `poolcast train` or `poolcast run` wrote
    ");
    insta::assert_snapshot!(place.run("evaluate run run"), @"
    exit 2
    error: `run` holds run, not tensors

    hint: make it with `poolcast tensors EVENTS -o DIR`
    ");
    place.copy("run", "corrupt");
    let model = place.path("corrupt/model.safetensors");
    let mut bytes = fs_err::read(&model).expect("read");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs_err::write(&model, &bytes).expect("written");
    insta::assert_snapshot!(place.run("evaluate corrupt tensors"), @"
    exit 2
    error: `corrupt/model.safetensors` does not match its manifest

    hint: train it again into another directory with `poolcast train TENSORS -o RUN`
    ");
    fs_err::write(&model, &bytes[..last]).expect("written");
    insta::assert_snapshot!(place.run("evaluate corrupt tensors"), @"
    exit 2
    error: `corrupt/model.safetensors` is not a usable model shard
      caused by: not a safetensors file
      caused by: incomplete metadata, file not fully covered

    hint: rebuild it with `poolcast train TENSORS -o RUN`
    ");
}

#[test]
fn what_validation_chose_is_what_scores() {
    let place = Place::with_run();
    place.write(
        "cost.yaml",
        "training: {time_cuts: 1, threshold: {cost: {wrong_release: 1, wrong_removal: 50}}}\nepochs: 2\n",
    );
    let trained = place.json("train tensors -o mine --config cost.yaml --hidden-size 8 --json");
    let calibration = &trained["calibration"];
    let evaluated = place.json("evaluate mine tensors --side validate --resamples 10 --json");
    for key in ["temperature", "threshold"] {
        assert_eq!(evaluated[key], calibration[key]);
    }
    let model: BTreeMap<&str, &serde_json::Value> = evaluated["methods"][0]["scores"]
        .as_array()
        .expect("scores")
        .iter()
        .map(|score| (score["name"].as_str().expect("a name"), &score["value"]))
        .collect();
    for (name, value) in model {
        assert_eq!(*value, calibration["validation"][name], "{name}");
    }
    assert_eq!(
        calibration["validation"]["recall"], 1.0,
        "no wrong removal at that price\n{calibration}"
    );
    let mut watched = trained["best"]["validation"].clone();
    // Training takes the F-measure at its best threshold. Before calibration there is no such
    // threshold.
    watched["f_measure"] = evaluated["uncalibrated"]["f_measure"].clone();
    assert_eq!(evaluated["uncalibrated"], watched);
    let metrics = place.path("mine/metrics.json");
    let text = fs_err::read_to_string(&metrics).expect("read");
    fs_err::write(
        &metrics,
        text.replace("\"temperature\"", "\"temperature\" "),
    )
    .expect("written");
    insta::assert_snapshot!(place.run("evaluate mine tensors"), @"
    exit 2
    error: `mine/metrics.json` does not match its manifest

    hint: train it again into another directory with `poolcast train TENSORS -o RUN`
    ");
}

/// A run belongs to the engine that trained it, but either engine can score it.
#[test]
fn candle_trains_and_scores_to_nearly_the_same_numbers() {
    let place = Place::with_run();
    place.copy("run", "fused");
    let train = "train tensors -c fused/config.yaml -o candle --engine candle --json";
    let by_candle = place.json(train);
    let by_fused: serde_json::Value =
        serde_json::from_slice(&fs_err::read(place.path("fused/metrics.json")).expect("read"))
            .expect("JSON");
    let loss = |metrics: &serde_json::Value| metrics["judged"]["loss"].as_f64().expect("a loss");
    let distance = (loss(&by_candle) - loss(&by_fused)).abs();
    assert!(distance > 0.0 && distance < 1e-3, "{by_candle} {by_fused}");

    let score = |flags: &str| -> Vec<f64> {
        let json = place.json(&format!("evaluate {flags} tensors --resamples 20 --json"));
        let scores = json["methods"][0]["scores"]
            .as_array()
            .expect("scores")
            .clone();
        scores
            .iter()
            .filter_map(|score| score["value"].as_f64())
            .collect()
    };
    let fused = score("fused --engine fused");
    for other in ["fused --engine candle", "candle --engine fused"] {
        let found = score(other);
        assert_eq!(found.len(), fused.len());
        for (found, fused) in found.iter().zip(&fused) {
            assert!((found - fused).abs() < 0.02, "{other}: {found} and {fused}");
        }
    }

    let refused = place.run("train tensors -o gru --model gru --engine fused");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused
            .stderr
            .contains("the fused engine does not support `gru`"),
        "{refused}"
    );
}
