//! `poolcast config`, and what every verb says of a configuration it cannot use.

use crate::place::Place;

#[test]
fn the_defaults_are_printed_as_they_are_documented() {
    assert_eq!(Place::new().stdout("config"), include_str!("../../config/default.yaml"));
}

#[test]
fn layers_are_merged_and_the_environment_wins_over_the_file() {
    let place = Place::new();
    place.write("c.yaml", "seed: 5\ntraining: {parameters: {hidden_size: 16}}\n");
    let mut command = place.command("config c.yaml");
    let output = command.env("POOLCAST_TRAINING__PARAMETERS__HIDDEN_SIZE", "64").output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("text");
    for line in ["seed: 5", "    hidden_size: 64", "    lstm_layers: 1"] {
        assert!(text.lines().any(|found| found.trim_end_matches(".0") == line), "{line} is missing in\n{text}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let place = Place::new();
    let refused = |text: &str| {
        place.write("c.yaml", text);
        place.run("config c.yaml").to_string()
    };
    insta::assert_snapshot!(refused("preprocessing: {parameters: {timeframes_len: 5}}"), @"
    exit 2
    error: `c.yaml` has an unknown key `preprocessing.parameters.timeframes_len`

    hint: did you mean `timeframe_len`? `poolcast config` prints every key
    ");
    insta::assert_snapshot!(refused("epochs: 0"), @"
    exit 2
    error: cannot use `c.yaml`
      caused by: `epochs` must be between 1 and 1000000, got 0

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(refused("training: {parameters: {hidden_size: wide}}"), @r#"
    exit 2
    error: `c.yaml`: `training.parameters.hidden_size`: invalid type: string "wide", expected a number; or a distribution such as `{values: [...]}`

    hint: `poolcast config` explains every key
    "#);
    insta::assert_snapshot!(refused("preprocessing: {window: future}"), @"
    exit 2
    error: `c.yaml`: `preprocessing.window` must be `hold` or `life`, got `future`

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(refused("preprocessing: {fractions: [0.9, 0.2, 0.2]}"), @"
    exit 2
    error: cannot use `c.yaml`
      caused by: `preprocessing.fractions` must sum to 1, got 1.3
    ");
    insta::assert_snapshot!(refused("wandb:\n  api_key: abc\n"), @"
    exit 2
    error: cannot use `c.yaml`
      caused by: line 2 holds a secret; configurations are copied beside artefacts and travel with jobs

    hint: remove it, and set the environment variable `WANDB_API_KEY` or use netrc
    ");
    insta::assert_snapshot!(refused("seed: [1\n"), @"
    exit 2
    error: `c.yaml`: did not find expected ',' or ']' at line 2 column 1, while parsing a flow sequence at line 1 column 7

    hint: `poolcast config` prints every key
    ");
    insta::assert_snapshot!(place.run("config nowhere.yaml"), @"
    exit 2
    error: cannot read the configuration `nowhere.yaml`
      caused by: failed to open file `nowhere.yaml`: No such file or directory (os error 2)

    hint: `poolcast config > FILE` writes one to start from
    ");
}
