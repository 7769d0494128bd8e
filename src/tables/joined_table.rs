//! Joins a table of features with a table of metadata, and selects the rows of each split.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::feature_table::FeatureTable;
use super::metadata::MetadataTable;
use super::name_list::list_names;
use super::numeric_table::NumericTable;
use super::row_labels::{LabelColumns, NamedRows};
use super::split_check::SplitCheck;
use super::split_rows::{SplitRows, select_splits};
use crate::{DataConfig, Folds};
use poolcast_base::error::hinted;

/// Rows that the splits select, joined by name, and the rows of each split.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinedTable {
    /// Features, targets and groups. Without a column of groups, each row is its own group.
    pub table: FeatureTable,
    /// Name of each row, `[n]`.
    pub names: Vec<String>,
    /// Time of each row, `[n]`, if there is a column of times.
    pub times: Option<Vec<f64>>,
    /// Splits by name.
    pub splits: BTreeMap<String, SplitRows>,
}

/// Features of some rows.
struct RowFeatures {
    /// Names of the features, `[f]`.
    features: Vec<String>,
    /// Values, `[f, n]`.
    x: Vec<f64>,
}

impl JoinedTable {
    /// Reads and joins the tables that `data` names.
    ///
    /// # Errors
    /// Fails for a row of a split without features or class, for a split with one class, and for a
    /// row or a group that a split would both learn from and validate on. The message names some of
    /// them.
    pub fn read(data: &DataConfig) -> Result<JoinedTable> {
        let index = required(&data.index, "index")?;
        let metadata_path = given_path(data.metadata.as_deref())?;
        let metadata = MetadataTable::read(metadata_path, index)?;
        let target = required(&data.target, "target")?;
        let in_metadata = || format!("cannot use the table `{}`", metadata_path.display());
        let columns = LabelColumns::find(data, target, &metadata).with_context(in_metadata)?;

        // The table only has the rows that a split selects.
        let splits = select_splits(data, &metadata)?;
        let places: BTreeSet<usize> = splits.values().flat_map(SplitRows::all_rows).collect();
        let places: Vec<usize> = places.into_iter().collect();
        let names: Vec<String> = places
            .iter()
            .map(|row| metadata.index[*row].clone())
            .collect();

        let rows = NamedRows {
            places: &places,
            names: &names,
        };
        let labels = columns.label_rows(rows).with_context(in_metadata)?;
        let features_path = given_path(data.features.as_deref())?;
        let labels_of_rows = [Some(target), data.group.as_deref()];
        let known = labels_of_rows.into_iter().flatten();
        let RowFeatures { features, x } =
            read_features(features_path, index, &names, &known.collect::<Vec<_>>())?;

        // Rows have new indices in the joined table, so the splits must use these.
        let new_places: HashMap<usize, usize> = places.iter().copied().zip(0..).collect();
        let splits = splits
            .into_iter()
            .map(|(name, split)| (name, split.moved(&new_places)))
            .collect();
        let joined = JoinedTable {
            table: FeatureTable {
                features,
                x,
                targets: labels.targets,
                groups: labels.groups,
            },
            names,
            times: labels.times,
            splits,
        };
        joined.check_splits(labels.group_names.as_deref(), data)?;
        Ok(joined)
    }

    fn check_splits(&self, group_names: Option<&[String]>, data: &DataConfig) -> Result<()> {
        let holds_out_groups = data.cv.is_some() && data.folds != Folds::Time;
        for (name, split) in &self.splits {
            let check = SplitCheck {
                name,
                split,
                table: &self.table,
                group_names,
            };
            check.check()?;
            if holds_out_groups {
                check.check_classes_of_folds()?;
            }
        }
        Ok(())
    }
}

/// Returns the value of the key `data.NAME`, or fails if it is missing.
fn required<'a>(value: &'a Option<String>, name: &str) -> Result<&'a str> {
    value
        .as_deref()
        .with_context(|| format!("`data.{name}` is missing"))
}

fn given_path(path: Option<&Path>) -> Result<&Path> {
    path.context("`data` names no tables")
}

/// Reads the features of the rows `names`, which may be in any order in the file. None of them may be one of
/// `labels`, the columns that tell the answer.
fn read_features(
    path: &Path,
    index: &str,
    names: &[String],
    labels: &[&str],
) -> Result<RowFeatures> {
    let found = NumericTable::read(path, index, |features| {
        let label = features.iter().find(|name| labels.contains(&name.as_str()));
        if let Some(label) = label {
            bail!(hinted(
                format!(
                    "it has `{label}`, the target or the group, among its features: a model would learn from the answer"
                ),
                "leave the column out of the file that `data.features` names"
            ));
        }
        Ok(())
    })?;
    let place_of_name: HashMap<&str, usize> =
        found.index.iter().map(String::as_str).zip(0..).collect();
    let missing: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !place_of_name.contains_key(name))
        .collect();
    let hint = match found.index.first() {
        Some(name) if missing.len() == names.len() => {
            format!("its first row is `{name}`: write the index in the same form in both tables")
        }
        _ => "add them, or exclude these rows from the splits".to_owned(),
    };
    ensure!(
        missing.is_empty(),
        hinted(
            format!(
                "`{}` has no features of the row {}",
                path.display(),
                list_names(missing.into_iter())
            ),
            hint
        )
    );

    let places: Vec<usize> = names
        .iter()
        .map(|name| place_of_name[name.as_str()])
        .collect();
    let mut x = Vec::with_capacity(found.columns.len() * places.len());
    for column in &found.columns {
        x.extend(places.iter().map(|place| column[*place]));
    }
    Ok(RowFeatures {
        features: found.features,
        x,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEATURES: &str = "run,a,b\nr3,3,30\nr1,1,10\nr2,2,\nr4,4,40\nr5,5,50\nr6,6,60\n";

    const METADATA: &str = "\
run,condition,patient,seen,cohort
r1,ill,p1,2020-01-01,X
r2,well,p2,2020-01-02T00:00:00,X
r3,ill,p3,2020-01-03,Y
r4,well,p4,2020-01-04,Y
r6,,p1,2020-01-05,Z
r7,ill,p7,2020-01-06,Z
r5,well,p5,2020-01-06,W
";

    /// Joins the tables after some replacements in their texts and in the text of the
    /// configuration.
    fn read(replacements: &[(&str, &str)]) -> Result<JoinedTable> {
        let dir = tempfile::tempdir().expect("a directory");
        let replaced = |text: &str| {
            replacements
                .iter()
                .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
        };
        for (name, text) in [("features.csv", FEATURES), ("metadata.csv", METADATA)] {
            poolcast_base::files::write_atomic(&dir.path().join(name), replaced(text).as_bytes())
                .expect("written");
        }
        let data = serde_json::json!({
            "features": "features.csv", "metadata": "metadata.csv",
            "index": "run", "target": "condition", "group": null, "time": "seen", "split_names": [], "cv": null,
            "folds": "stratified", "validate": true,
            "splits": {"train_A": "cohort == 'X'", "validate_A": "cohort == 'Y'"},
        });
        let mut data: DataConfig =
            serde_json::from_str(&replaced(&data.to_string())).expect("a configuration");

        // The directory has a random name, so the replacements must not apply to it.
        for table in [&mut data.features, &mut data.metadata]
            .into_iter()
            .flatten()
        {
            *table = dir.path().join(&*table);
        }
        JoinedTable::read(&data)
    }

    #[test]
    fn rows_are_joined_by_name() {
        let samples = read(&[]).expect("read");
        assert_eq!(samples.names, ["r1", "r2", "r3", "r4"]);
        assert_eq!(
            samples.table.column(0),
            [1.0, 2.0, 3.0, 4.0],
            "whatever the order of the features"
        );
        assert!(samples.table.column(1)[1].is_nan() && samples.table.column(1)[2] == 30.0);
        assert_eq!(
            (
                samples.table.targets.class_names(),
                samples.table.targets.classes()
            ),
            (
                &["ill".to_owned(), "well".to_owned()][..],
                &[0, 1, 0, 1][..]
            )
        );
        assert_eq!(
            samples.splits["A"],
            SplitRows {
                train: vec![0, 1],
                validate: vec![2, 3],
                ..SplitRows::default()
            }
        );
        let times = samples.times.expect("known");
        assert_eq!(
            times
                .iter()
                .map(|time| (time - times[0]) / 86400.0)
                .collect::<Vec<_>>(),
            [0.0, 1.0, 2.0, 3.0]
        );
        let together = read(&[("\"validate\":true", "\"validate\":false")]).expect("read");
        assert_eq!(
            together.splits["A"],
            SplitRows {
                train: vec![0, 1, 2, 3],
                ..SplitRows::default()
            }
        );
    }

    #[test]
    fn without_splits_all_rows_form_one_split() {
        let splits = "\"splits\":{\"train_A\":\"cohort == 'X'\",\"validate_A\":\"cohort == 'Y'\"}";
        let whole = |more: &[(&str, &str)]| {
            read(
                &[
                    &[
                        (splits, "\"splits\":{}"),
                        ("\"validate\":true", "\"validate\":false"),
                    ],
                    more,
                ]
                .concat(),
            )
        };
        let without_class = poolcast_base::error::render(&whole(&[]).expect_err("refused"));
        assert!(
            without_class.contains("no class is known for the row `r6`"),
            "{without_class}"
        );
        let known = [
            ("r6,,p1,2020-01-05,Z\n", ""),
            ("r7,ill,p7,2020-01-06,Z\n", ""),
        ];
        let samples = whole(&known).expect("read");
        assert_eq!(
            samples.splits,
            [(
                "all".to_owned(),
                SplitRows {
                    train: vec![0, 1, 2, 3, 4],
                    ..SplitRows::default()
                }
            )]
            .into()
        );
    }

    #[test]
    fn evaluation_rows_belong_to_their_split() {
        let with = |more: &str| read(&[("\"train_A\"", &format!("{more},\"train_A\""))]);
        let samples = with("\"evaluate_W\":\"cohort == 'W'\",\"evaluate_A_late\":\"run == 'r5'\"")
            .expect("read");
        assert_eq!(samples.names, ["r1", "r2", "r3", "r4", "r5"]);
        assert_eq!(
            samples.splits["A"].evaluate,
            [("A_late".to_owned(), vec![4]), ("W".to_owned(), vec![4])].into()
        );
        let refusal = |more: &str| poolcast_base::error::render(&with(more).expect_err("refused"));
        let learned = refusal("\"evaluate_W\":\"cohort in ['W', 'X']\"");
        assert!(
            learned.contains("the split `A` and `evaluate_W` share the row `r1`, `r2`"),
            "{learned}"
        );
        let chosen_by = refusal("\"evaluate_W\":\"cohort == 'Y'\"");
        assert!(
            chosen_by.contains("share the row `r3`, `r4`"),
            "{chosen_by}"
        );
        let unrelated_split =
            with("\"evaluate_B\":\"cohort == 'X'\",\"B\":\"cohort == 'W'\"").expect("read");
        assert!(
            unrelated_split.splits["A"].evaluate.is_empty(),
            "that of another split is not its own"
        );
    }

    #[test]
    fn classes_are_sorted_as_numbers_or_words() {
        let numbered = read(&[("ill,", "10,"), ("well,", "9,")]).expect("read");
        assert_eq!(
            (
                numbered.table.targets.class_names(),
                numbered.table.targets.classes()
            ),
            (&["9".to_owned(), "10".to_owned()][..], &[1, 0, 1, 0][..])
        );
    }

    #[test]
    fn tables_that_cannot_be_joined_are_rejected() {
        let refusal = |replacements: &[(&str, &str)]| {
            let text =
                poolcast_base::error::render(&read(replacements).expect_err("must be refused"));
            // The directory has a different name in each run.
            let words = text
                .split('`')
                .map(|word| word.rsplit('/').next().unwrap_or(word));
            words.collect::<Vec<_>>().join("`")
        };
        insta::assert_snapshot!(
            [
                refusal(&[(
                    "cohort == 'Y'",
                    "cohort == 'Z' and condition is not missing"
                )]),
                refusal(&[("cohort == 'Y'", "run in ['r3', 'r6']")]),
                refusal(&[("cohort == 'Y'", "condition == 'ill' and cohort == 'Y'")]),
                refusal(&[("cohort == 'Y'", "condition is not missing")]),
                refusal(&[
                    ("cohort == 'Y'", "cohort in ['Y', 'W']"),
                    ("\"group\":null", "\"group\":\"patient\""),
                    ("p5", "p2"),
                    ("p3", "p1")
                ]),
                refusal(&[("cohort == 'Y'", "cohrt == 'Y'")]),
                refusal(&[("cohort == 'Y'", "cohort == 'V'")]),
                refusal(&[("r4,4,40", "r4,4,many")]),
                refusal(&[("r4,4,40", "r4,4,inf")]),
                refusal(&[("r4,4,40", "r4,4")]),
                refusal(&[("r4,4,40", "r3,4,40")]),
                refusal(&[("r4,well", "r3,well")]),
                refusal(&[("\"target\":\"condition\"", "\"target\":\"conditions\"")]),
                refusal(&[("\"group\":null", "\"group\":\"paitent\"")]),
                refusal(&[("2020-01-03", "yesterday")]),
                refusal(&[("run,a,b", "run,a,a")]),
                refusal(&[("run,a,b", "id,a,b")]),
                refusal(&[("features.csv\"", "nowhere.csv\"")]),
                refusal(&[("run,a,b", "run,a,condition")]),
                refusal(&[("\"cv\":null", "\"cv\":2")]),
            ]
            .join("\n")
        );
    }
}
