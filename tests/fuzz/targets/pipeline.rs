//! Reads any bytes as the file of a fitted pipeline. The result must be a pipeline that predicts, or
//! an error, but never a panic.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use poolcast_pipelines::FittedPipeline;
use poolcast_tables::{FeatureTable, RowClasses, RowTargets};

/// Rows to predict.
const ROWS: usize = 2;

fuzz_target!(|bytes: &[u8]| {
    let Ok(pipeline) = FittedPipeline::from_bytes(bytes, Path::new("pipeline.json")) else {
        return;
    };
    pipeline.importances();
    pipeline.used_features();
    let predicted = pipeline.predict(&rows(&pipeline.features)).expect("sound");
    assert_eq!(predicted.len() % ROWS, 0);
});

/// Returns a table of missing values and ones.
fn rows(features: &[String]) -> FeatureTable {
    let one_column = [f64::NAN, 1.0];
    FeatureTable {
        features: features.to_vec(),
        x: one_column.repeat(features.len()),
        targets: RowTargets::Classes(RowClasses {
            names: vec!["unknown".to_owned()],
            y: vec![0; ROWS],
        }),
        groups: vec![0; ROWS],
    }
}
