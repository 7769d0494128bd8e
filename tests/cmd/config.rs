//! Tests of `poolcast config`, and of the errors for unusable configurations.

use crate::place::Place;

#[test]
fn printed_defaults_match_the_documented_file() {
    assert_eq!(
        Place::new().stdout("config"),
        include_str!("../../config/default.yaml")
    );
}

#[test]
fn layers_are_merged_and_the_environment_wins_over_the_file() {
    let place = Place::new();
    place.write(
        "c.yaml",
        "seed: 5\ntraining: {parameters: {hidden_size: 16}}\n",
    );
    let mut command = place.command("config c.yaml");
    let output = command
        .env("POOLCAST_TRAINING__PARAMETERS__HIDDEN_SIZE", "64")
        .output()
        .expect("it starts");
    let text = String::from_utf8(output.stdout).expect("text");
    for line in ["seed: 5", "    hidden_size: 64", "    lstm_layers: 1"] {
        assert!(
            text.lines()
                .any(|found| found.trim_end_matches(".0") == line),
            "{line} is missing in\n{text}"
        );
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
    error: `c.yaml`: `preprocessing.window` must be `release` or `hold` or `life`, got `future`

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
      caused by: `wandb.api_key` holds a secret; configurations are copied next to results and sent with jobs

    hint: remove it, and set the environment variable `WANDB_API_KEY` or use netrc
    ");
    insta::assert_snapshot!(refused("seed: [1\n"), @"
    exit 2
    error: cannot use `c.yaml`
      caused by: line 1, column 7: unclosed bracket '['

    hint: indent with blanks, and quote a text with special characters, such as `'a: b'`
    ");
    insta::assert_snapshot!(refused("seed: 1\nwandb:\n  project: a\n  enable: false\n  project: b\n"), @"
    exit 2
    error: cannot use `c.yaml`
      caused by: line 5, column 3: the key `project` occurs twice

    hint: remove one of the two
    ");
    insta::assert_snapshot!(refused(&"[".repeat(100_000)), @"
    exit 2
    error: cannot use `c.yaml`
      caused by: line 1, column 256: it is too deep or too large
    ");
    insta::assert_snapshot!(refused("[1]"), @"
    exit 2
    error: cannot use `c.yaml`
      caused by: invalid type: found sequence, expected a map
    ");
    insta::assert_snapshot!(refused("training: {parameters: {dropout: 0.5}}"), @"
    exit 2
    error: `c.yaml` has an unknown key `training.parameters.dropout`

    hint: `poolcast config` prints every key
    ");
    insta::assert_snapshot!(refused("training: {parameters: {epochs: {value: 25}}}"), @"
    exit 2
    error: `c.yaml` has an unknown key `training.parameters.epochs`

    hint: write the maximum number of epochs as `epochs: 25`, at the top level
    ");
    insta::assert_snapshot!(refused("preprocessing: {parameters_default: {m: 10, j: 10, timeframe_len: 60}}"), @"
    exit 2
    error: cannot use `c.yaml`
      caused by: `preprocessing.parameters_default` is a key of an older version of the published file

    hint: to try the search space, remove `parameters_default`, and write `runs: 50` and `epochs: 25` at the top; for one training with these values, write them as `preprocessing: {parameters: {...}}` in place of the distributions
    ");
    insta::assert_snapshot!(place.run("config nowhere.yaml"), @"
    exit 2
    error: cannot read the configuration `nowhere.yaml`
      caused by: failed to open file `nowhere.yaml`: No such file or directory (os error 2)

    hint: `poolcast config` prints one to start from
    ");
}

/// The published configuration, without its key and its owner.
const PUBLISHED: &str = "
runs: 100
epochs: 20
earlystop_threshold: 5
wandb:
  enable: True
  entity: someone
  project: distributed-ml
  sweep:
    name: a name
    method: random
    metric:
      name: f-measure
      goal: maximize
  sweep_id: None
  run_id: None
preprocessing:
  parameters:
    j: # number of jobs for context window
      distribution: int_uniform
      min: 10
      max: 100
    m: {distribution: int_uniform, min: 10, max: 100}
    timeframe_len: {distribution: int_uniform, min: 60, max: 400}
training:
  parameters:
    lstm_layers:
      values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    hidden_size:
      values: [16, 32, 64, 128]
    learning_rate:
      distribution: uniform
      min: 0.0
      max: 0.1
    batch_size: {distribution: q_log_uniform_values, q: 8, min: 32, max: 256}
";

#[test]
fn published_configuration_loads() {
    let place = Place::new();
    place.write("p.yaml", PUBLISHED);
    let loaded = place
        .command("config p.yaml")
        .env("POOLCAST_WANDB__ENABLE", "false")
        .output()
        .expect("it starts");
    assert_eq!(
        loaded.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&loaded.stderr)
    );
    let loaded = String::from_utf8(loaded.stdout).expect("text");

    // The bundled file differs only in the names of the owner, the project and the sweep.
    let bundled = include_str!("../../config/sweep.yaml").replace("name: sweep", "name: a name");
    place.write(
        "b.yaml",
        bundled
            .replace("entity: null", "entity: someone")
            .replace("project: poolcast", "project: distributed-ml"),
    );
    assert_eq!(place.stdout("config b.yaml"), loaded);
    for line in [
        "runs: 100",
        "epochs: 20",
        "      name: validation_f_measure",
        "      goal: maximize",
        "  sweep_id: null",
    ] {
        assert!(
            loaded.lines().any(|found| found == line),
            "{line} is missing in\n{loaded}"
        );
    }
}

#[test]
fn metric_aliases_are_accepted() {
    let place = Place::new();
    for (name, known) in [
        ("validate_loss", "validation_loss"),
        ("val_loss", "validation_loss"),
        ("val_f1", "validation_f_measure"),
    ] {
        place.write(
            "c.yaml",
            format!("wandb: {{sweep: {{metric: {{name: {name}, goal: minimize}}}}}}"),
        );
        assert!(
            place
                .stdout("config c.yaml")
                .contains(&format!("name: {known}\n")),
            "{name}"
        );
    }
}

#[test]
fn the_environment_is_seen_without_a_file_and_gives_no_secret_away() {
    let place = Place::new();
    let with = |name: &str, value: &str| {
        crate::place::Outcome::of(
            place
                .command("config")
                .env(name, value)
                .output()
                .expect("it starts"),
        )
    };
    let seen = with("POOLCAST_SEED", "77");
    assert!(
        seen.code == Some(0) && seen.stdout.contains("seed: 77\n"),
        "{seen}"
    );
    assert_eq!(
        with("POOLCAST_SEED", "1").stdout,
        include_str!("../../config/default.yaml")
    );
    for name in [
        "POOLCAST_WANDB__API_KEY",
        "POOLCAST_API_KEY",
        "POOLCAST_wandb__Api_Key",
        "POOLCAST_TOKEN",
    ] {
        let refused = with(name, "s3cr3t-value");
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused.stderr.contains(name) && refused.stderr.contains("WANDB_API_KEY"),
            "{refused}"
        );
        assert!(!refused.to_string().contains("s3cr3t"), "{refused}");
    }
    insta::assert_snapshot!(with("POOLCAST_WANDB__API_KEY", "s3cr3t-value"), @"
    exit 2
    error: the environment variable `POOLCAST_WANDB__API_KEY` holds a secret; configurations are copied next to results and sent with jobs

    hint: unset it, and set the environment variable `WANDB_API_KEY` or use netrc
    ");
}
