//! Tests of the bundled tables, as CSV and as Parquet.

use std::path::Path;

use poolcast_sweep::config::Config;
use poolcast_tables::JoinedTable;
use serde_json::{Value, json};

/// Reads the samples of `config/table.yaml` from the files of this kind.
fn read_bundled(kind: &str, changes: &[(&'static str, Value)]) -> anyhow::Result<JoinedTable> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let file = |name: &str| json!(root.join(format!("tests/data/table/{name}.{kind}")));
    let mut flags = std::collections::BTreeMap::from([
        ("data.features", file("features")),
        ("data.metadata", file("metadata")),
    ]);
    flags.extend(changes.iter().cloned());
    JoinedTable::read(&Config::load(Some(&root.join("config/table.yaml")), &flags)?.data)
}

#[test]
fn parquet_and_csv_give_the_same_samples() {
    let (csv, parquet) = (
        read_bundled("csv", &[]).expect("read"),
        read_bundled("parquet", &[]).expect("read"),
    );
    assert_eq!(csv.names, parquet.names);
    assert_eq!(
        (&csv.splits, &csv.times, csv.table.targets.classes()),
        (
            &parquet.splits,
            &parquet.times,
            parquet.table.targets.classes()
        )
    );
    assert_eq!(csv.table.features, parquet.table.features);
    // NaN is not equal to itself.
    let bits = |samples: &JoinedTable| {
        samples
            .table
            .x
            .iter()
            .map(|x| x.to_bits())
            .collect::<Vec<_>>()
    };
    assert_eq!(bits(&csv), bits(&parquet));
    assert!(
        csv.table.x.iter().any(|x| x.is_nan()) && csv.table.row_count() == 240,
        "{}",
        csv.table.row_count()
    );
    assert_eq!(csv.table.targets.class_names(), ["healthy", "ill"]);
    assert_eq!(csv.splits.keys().collect::<Vec<_>>(), ["A1", "B2"]);
}

#[test]
fn targets_may_have_several_classes() {
    let changes = [
        ("data.target", json!("severity")),
        ("data.split_names", json!(["B2"])),
    ];
    let samples = read_bundled("parquet", &changes).expect("read");
    assert_eq!(
        samples.table.targets.class_names(),
        ["mild", "none", "severe"]
    );
    assert_eq!(samples.splits.len(), 1);
}

#[test]
fn a_broken_parquet_file_is_an_error() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/table/metadata.parquet");
    let whole = fs_err::read(path).expect("read");
    let dir = tempfile::tempdir().expect("a directory");
    let broken = dir.path().join("broken.parquet");
    let read = |bytes: &[u8]| {
        fs_err::write(&broken, bytes).expect("written");
        poolcast_tables::MetadataTable::read(&broken, "run")
    };
    assert!(read(&whole).is_ok());
    for len in [4, 5, 12, 100, whole.len() / 2, whole.len() - 1] {
        let error = format!("{:#}", read(&whole[..len]).expect_err("refused"));
        assert!(error.contains("cannot use the table"), "{error}");
    }
    // Whichever bits are flipped, the reader must not panic.
    for at in (0..whole.len()).step_by(37) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        let _ = read(&bytes);
    }
}
