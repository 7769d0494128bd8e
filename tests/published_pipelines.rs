//! The published trainer has the search spaces of `config/published-pipelines.yaml`.

use std::path::Path;

use poolcast_pipelines::PIPELINE_NAMES;
use poolcast_sweep::SweepTrials;
use poolcast_sweep::config::Config;
use serde_json::{Value, json};

/// Returns the published trainer's configuration with one split and these pipelines.
fn published_config(names: &[&str]) -> Config {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/published-pipelines.yaml");
    let flags = [("data.split_names", json!(["A1"]))].into();
    let mut config = Config::load(Some(&path), &flags).expect("a configuration");
    config
        .choose_pipelines(
            &names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>(),
        )
        .expect("known");
    config
}

#[test]
fn published_grids_have_49640_points_per_split() {
    let counts = [
        ("lasso", 2280),
        ("ridge", 2280),
        ("enet", 8208),
        ("svc", 4560),
        ("xgb", 6650),
        ("rf", 1470),
        ("nn", 24_192),
    ];
    // The published trainer had all these pipelines except `et`.
    let published: Vec<&str> = (PIPELINE_NAMES.into_iter())
        .filter(|name| *name != "et")
        .collect();
    assert_eq!(counts.map(|(name, _)| name)[..], published);
    for (name, count) in counts {
        let trials = SweepTrials::from_config(&published_config(&[name])).expect("counted");
        assert_eq!((trials.count(), trials.repeats()), (count, 0), "{name}");
        trials.draw(count).expect("drawn");
    }
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<usize>(), 49_640);
}

/// The grid is written as one space here. The values that only one selection uses then multiply all
/// other points, and most points are repeats.
#[test]
fn published_lasso_grid_as_one_space_has_the_same_distinct_points() {
    let mut config = published_config(&["lasso"]);
    let spaces = config.pipelines["lasso"].all();
    let mut merged: serde_json::Map<String, Value> = serde_json::Map::new();
    for (name, parameter) in spaces.iter().flat_map(|space| &space.parameters) {
        merged.insert(name.clone(), json!(parameter));
    }
    merged.insert(
        "selection".to_owned(),
        json!({"values": ["threshold", "forest", "lasso"]}),
    );
    let space = json!({"method": "grid", "parameters": merged});
    config.pipelines.insert(
        "lasso".to_owned(),
        serde_json::from_value(space).expect("a space"),
    );
    let trials = SweepTrials::from_config(&config).expect("counted");
    assert_eq!((trials.count(), trials.repeats()), (2280, 340_200 - 2280));
}
