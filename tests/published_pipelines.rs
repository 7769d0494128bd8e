//! The search spaces of `config/published-pipelines.yaml` are those of the published trainer.

use std::path::Path;

use poolcast_config::Config;
use poolcast_pipelines::PIPELINE_NAMES;
use poolcast_sweep::SweepTrials;
use serde_json::{Value, json};

/// The published trainer's configuration, of one split and these pipelines.
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
fn the_published_grids_have_49640_points_a_split() {
    let counts = [
        ("lasso", 2280),
        ("ridge", 2280),
        ("enet", 8208),
        ("svc", 4560),
        ("xgb", 6650),
        ("rf", 1470),
        ("nn", 24_192),
    ];
    // All that the published trainer knew; it had no `et`.
    let published: Vec<&str> = (PIPELINE_NAMES.into_iter())
        .filter(|name| *name != "et")
        .collect();
    assert_eq!(counts.map(|(name, _)| name)[..], published);
    for (name, count) in counts {
        let trials = SweepTrials::from_config(&published_config(&[name])).expect("counted");
        assert_eq!((trials.count(), trials.repeats()), (count, 0), "{name}");
        trials.draw(count, &[]).expect("drawn");
    }
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<usize>(), 49_640);
}

/// Written as one space, in which what one choice alone needs multiplies all others.
#[test]
fn the_published_lasso_as_one_product_has_as_many_distinct_points() {
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
