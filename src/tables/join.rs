//! A table of features, a table of metadata and filters → samples: rows with a class, and the sides of each split.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::columns::{MetadataColumn, MetadataTable};
use super::expression::RowFilter;
use super::numbers::Numbers;
use super::table::FeatureTable;
use crate::config::{DataConfig, EVALUATE, WHOLE};
use crate::error::{HintedError, hinted};

/// How many names a message lists.
const LISTED: usize = 5;

/// The rows that some split names, joined by name, and which of them stand on which side.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinedTable {
    /// Features, classes and groups; without a column of groups each row is one of its own.
    pub table: FeatureTable,
    /// What each row is called, `[n]`.
    pub names: Vec<String>,
    /// When each row was, `[n]`, if a column says so.
    pub times: Option<Vec<f64>>,
    /// The splits by name.
    pub splits: BTreeMap<String, SplitRows>,
}

/// The rows of a split, ascending.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SplitRows {
    /// Learned from.
    pub train: Vec<usize>,
    /// Held out; empty where nothing is.
    pub validate: Vec<usize>,
    /// Further rows that models are scored on, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evaluate: BTreeMap<String, Vec<usize>>,
}

impl SplitRows {
    /// The rows of all sides; one of several sides more than once.
    pub fn all_rows(&self) -> impl Iterator<Item = usize> {
        self.train
            .iter()
            .chain(&self.validate)
            .chain(self.evaluate.values().flatten())
            .copied()
    }

    /// What no model learns from, by the name of its filter; `split` is that of the split.
    fn held_out<'a>(&'a self, split: &str) -> impl Iterator<Item = (String, &'a [usize])> {
        let validate = (format!("validate_{split}"), &self.validate[..]);
        let evaluate = self
            .evaluate
            .iter()
            .map(|(name, rows)| (format!("{EVALUATE}{name}"), &rows[..]));
        std::iter::once(validate).chain(evaluate)
    }
}

impl JoinedTable {
    /// Reads and joins what `data` names.
    ///
    /// # Errors
    /// Fails for a row of a split without features or class, for a split with one class, and for a row or a group that a
    /// split would learn from and validate on; the message names some.
    pub fn read(data: &DataConfig) -> Result<JoinedTable> {
        let given = |key: &Option<String>, name: &str| {
            key.clone()
                .with_context(|| format!("`data.{name}` is missing"))
        };
        let path = |key: &Option<std::path::PathBuf>| key.clone().context("`data` names no tables");
        let index = given(&data.index, "index")?;
        let metadata = path(&data.metadata)?;
        let columns = MetadataTable::read(&metadata, &index)?;
        let in_metadata = || format!("cannot use the table `{}`", metadata.display());
        let target = columns
            .column(&given(&data.target, "target")?)
            .with_context(in_metadata)?;
        let group = data
            .group
            .as_ref()
            .map(|name| columns.column(name))
            .transpose()
            .with_context(in_metadata)?;
        let time = data
            .time
            .as_ref()
            .map(|name| columns.column(name))
            .transpose()
            .with_context(in_metadata)?;
        let splits = sides(data, &columns)?;
        let rows: BTreeSet<usize> = splits.values().flat_map(SplitRows::all_rows).collect();
        let rows: Vec<usize> = rows.into_iter().collect();
        let names: Vec<String> = rows.iter().map(|row| columns.index[*row].clone()).collect();
        let (classes, y) = classes(target, &rows, &names).with_context(in_metadata)?;
        let groups = groups(group, &rows, &names).with_context(in_metadata)?;
        let times = time
            .map(|column| times(column, &rows, &names))
            .transpose()
            .with_context(in_metadata)?;
        let (features, x) = features(&path(&data.features)?, &index, &names)?;
        let table = FeatureTable {
            features,
            x,
            y,
            classes,
            groups,
        };
        let place: HashMap<usize, usize> = rows
            .iter()
            .enumerate()
            .map(|(at, row)| (*row, at))
            .collect();
        let placed = |rows: Vec<usize>| rows.iter().map(|row| place[row]).collect::<Vec<usize>>();
        let splits = splits.into_iter().map(|(name, sides)| {
            let evaluate = sides
                .evaluate
                .into_iter()
                .map(|(name, rows)| (name, placed(rows)))
                .collect();
            (
                name,
                SplitRows {
                    train: placed(sides.train),
                    validate: placed(sides.validate),
                    evaluate,
                },
            )
        });
        let samples = JoinedTable {
            table,
            names,
            times,
            splits: splits.collect(),
        };
        let group_names = group.map(|column| {
            rows.iter()
                .map(|row| column.name(*row).unwrap_or_default())
                .collect()
        });
        samples.check(group_names)?;
        Ok(samples)
    }

    fn check(&self, group_names: Option<Vec<String>>) -> Result<()> {
        for (name, sides) in &self.splits {
            if let Some(groups) = &group_names {
                let learned: BTreeSet<&str> = sides
                    .train
                    .iter()
                    .map(|row| groups[*row].as_str())
                    .collect();
                for (held_out, rows) in sides.held_out(name) {
                    let both = rows
                        .iter()
                        .map(|row| groups[*row].as_str())
                        .filter(|group| learned.contains(group));
                    let both: BTreeSet<&str> = both.collect();
                    let sides = match held_out.starts_with(EVALUATE) {
                        true => format!("the train side of the split `{name}` and `{held_out}`"),
                        false => format!("the two sides of the split `{name}`"),
                    };
                    ensure!(both.is_empty(), shared(&sides, "group", both.into_iter()));
                }
            }
            let classes = |rows: &[usize]| {
                rows.iter()
                    .map(|row| self.table.y[*row])
                    .collect::<BTreeSet<u32>>()
            };
            for (held_out, rows) in sides.held_out(name) {
                let unknown = classes(rows)
                    .difference(&classes(&sides.train))
                    .next()
                    .copied();
                let class = unknown.map_or("", |class| &self.table.classes[class as usize]);
                ensure!(
                    unknown.is_none(),
                    hinted(
                        format!(
                            "`{held_out}` has the class `{class}`, which the split `{name}` does not learn from"
                        ),
                        "change one of the two filters"
                    )
                );
            }
            for (side, rows) in [("train", &sides.train), ("validate", &sides.validate)] {
                let classes: BTreeSet<u32> = rows.iter().map(|row| self.table.y[*row]).collect();
                let only = classes
                    .first()
                    .map_or("none", |class| &self.table.classes[*class as usize]);
                ensure!(
                    classes.len() > 1 || rows.is_empty(),
                    hinted(
                        format!(
                            "the {side} side of the split `{name}` has one class: `{only}`, {}",
                            crate::output::counted(rows.len(), "row")
                        ),
                        "a model needs at least two; change the filter"
                    )
                );
            }
        }
        Ok(())
    }
}

/// Says that something would be learned from and validated on.
fn shared<'a>(
    sides: &str,
    what: &str,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> HintedError {
    let hint = "what is validated on must not be learned from; change one of the two filters";
    hinted(format!("{sides} share the {what} {}", list(names)), hint)
}

/// Some of `names`, each quoted.
pub(super) fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let mut text = names
        .take(LISTED)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if count > LISTED {
        text.push_str(&format!(
            " and {}",
            crate::output::counted(count - LISTED, "other")
        ));
    }
    text
}

/// The rows of the metadata that each chosen split names.
fn sides(data: &DataConfig, columns: &MetadataTable) -> Result<BTreeMap<String, SplitRows>> {
    if data.splits.is_empty() {
        let train = (0..columns.index.len()).collect();
        return Ok([(
            WHOLE.to_owned(),
            SplitRows {
                train,
                ..SplitRows::default()
            },
        )]
        .into());
    }
    let select = |name: &str| {
        let rows =
            RowFilter::parse(&data.splits[name]).and_then(|expression| expression.select(columns));
        let rows = rows.with_context(|| format!("cannot use `data.splits.{name}`"))?;
        let hint = "change the filter; rows where it is unknown are not selected";
        ensure!(
            !rows.is_empty(),
            hinted(format!("`data.splits.{name}` selects no row"), hint)
        );
        anyhow::Ok(rows)
    };
    let mut splits = BTreeMap::new();
    for name in data.chosen()? {
        let [train, validate] = ["train", "validate"].map(|side| format!("{side}_{name}"));
        let learned = select(if data.splits.contains_key(&train) {
            &train
        } else {
            &name
        })?;
        let mut sides = SplitRows {
            train: learned,
            ..SplitRows::default()
        };
        if data.splits.contains_key(&train) && data.splits.contains_key(&validate) {
            sides.validate = select(&validate)?;
        }
        let learned: BTreeSet<usize> = sides.train.iter().copied().collect();
        let both = sides
            .validate
            .iter()
            .filter(|row| learned.contains(row))
            .map(|row| columns.index[*row].as_str());
        let both: Vec<&str> = both.collect();
        ensure!(
            both.is_empty(),
            shared(
                &format!("`{train}` and `{validate}`"),
                "row",
                both.into_iter()
            )
        );
        if !data.validate {
            sides.train.append(&mut sides.validate);
            sides.train.sort_unstable();
        }
        for evaluated in data.evaluated(&name) {
            let key = format!("{EVALUATE}{evaluated}");
            let rows = select(&key)?;
            // What a trial is chosen by is no honest score of it either.
            let known: BTreeSet<usize> =
                sides.train.iter().chain(&sides.validate).copied().collect();
            let both: Vec<&str> = rows
                .iter()
                .filter(|row| known.contains(row))
                .map(|row| columns.index[*row].as_str())
                .collect();
            ensure!(
                both.is_empty(),
                shared(
                    &format!("the split `{name}` and `{key}`"),
                    "row",
                    both.into_iter()
                )
            );
            sides.evaluate.insert(evaluated.to_owned(), rows);
        }
        splits.insert(name, sides);
    }
    Ok(splits)
}

/// The names of the classes, numbers by size and texts by alphabet, and the class of each of `rows`.
fn classes(
    target: &MetadataColumn,
    rows: &[usize],
    names: &[String],
) -> Result<(Vec<String>, Vec<u32>)> {
    let found: Vec<Option<String>> = rows.iter().map(|row| target.name(*row)).collect();
    let missing: Vec<&str> = names
        .iter()
        .zip(&found)
        .filter(|(_, class)| class.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    ensure!(
        missing.is_empty(),
        hinted(
            format!("no class is known of the row {}", list(missing.into_iter())),
            "add `and TARGET is not missing` to the split, with the name of the target column; without splits, name one, such \
             as `all: \"TARGET is not missing\"`"
        )
    );
    let mut classes: Vec<String> = found
        .iter()
        .flatten()
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    if matches!(target, MetadataColumn::Numbers(_)) {
        let number = |name: &str| name.parse().unwrap_or(f64::NAN);
        classes.sort_by(|a, b| number(a).total_cmp(&number(b)));
    }
    ensure!(
        classes.len() <= 1000,
        "the target has {} classes: it is a number to predict, and no class",
        classes.len()
    );
    let place: HashMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
    let y = found
        .iter()
        .flatten()
        .map(|name| place[name.as_str()])
        .collect();
    Ok((classes, y))
}

fn groups(column: Option<&MetadataColumn>, rows: &[usize], names: &[String]) -> Result<Vec<u64>> {
    let Some(column) = column else {
        return Ok((0..rows.len() as u64).collect());
    };
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let found = rows.iter().zip(names).map(|(row, name)| {
        column.name(*row).with_context(|| {
            hinted(
                format!("the row `{name}` has no group"),
                "leave it out of the splits",
            )
        })
    });
    let found = found.collect::<Result<Vec<String>>>()?;
    numbers.extend(found.iter().map(|name| (name.clone(), 0)));
    numbers
        .values_mut()
        .zip(0..)
        .for_each(|(number, at)| *number = at);
    Ok(found.iter().map(|name| numbers[name]).collect())
}

/// Numbers as they are; texts as dates or moments, in seconds.
fn times(column: &MetadataColumn, rows: &[usize], names: &[String]) -> Result<Vec<f64>> {
    let time = |row: usize| match column {
        MetadataColumn::Numbers(values) => Some(values[row]).filter(|value| !value.is_nan()),
        MetadataColumn::Texts(values) => values[row].as_deref().and_then(moment),
        MetadataColumn::Bools(_) => None,
    };
    let found = rows.iter().zip(names).map(|(row, name)| {
        let hint =
            "times are numbers, dates such as 2026-01-31 or moments such as 2026-01-31T12:00:00";
        time(*row).with_context(|| {
            hinted(
                format!("the row `{name}` has no time that can be read"),
                hint,
            )
        })
    });
    found.collect()
}

fn moment(text: &str) -> Option<f64> {
    let seconds = |moment: jiff::Timestamp| moment.as_millisecond() as f64 / 1000.0;
    let civil = |at: jiff::civil::DateTime| at.to_zoned(jiff::tz::TimeZone::UTC).ok();
    let with_zone = text.parse::<jiff::Timestamp>().ok().map(seconds);
    with_zone.or_else(|| Some(seconds(civil(text.parse().ok()?)?.timestamp())))
}

/// The features of the rows called `names`, `[f, n]`: found by name, wherever they stand.
fn features(path: &Path, index: &str, names: &[String]) -> Result<(Vec<String>, Vec<f64>)> {
    let numbers = Numbers::read(path, index, |_| Ok(()))?;
    let place: HashMap<&str, usize> = numbers.index.iter().map(String::as_str).zip(0..).collect();
    let missing: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !place.contains_key(name))
        .collect();
    ensure!(
        missing.is_empty(),
        hinted(
            format!(
                "`{}` has no features of the row {}",
                path.display(),
                list(missing.into_iter())
            ),
            "add them, or leave these rows out of the splits"
        )
    );
    let places: Vec<usize> = names.iter().map(|name| place[name.as_str()]).collect();
    let x = numbers
        .columns
        .iter()
        .flat_map(|column| places.iter().map(|place| column[*place]))
        .collect();
    Ok((numbers.features, x))
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

    /// What comes of the tables when the configuration is this one with some replacements.
    fn read(replacements: &[(&str, &str)]) -> Result<JoinedTable> {
        let dir = tempfile::tempdir().expect("a directory");
        let replaced = |text: &str| {
            replacements
                .iter()
                .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
        };
        for (name, text) in [("features.csv", FEATURES), ("metadata.csv", METADATA)] {
            crate::files::write_atomic(&dir.path().join(name), replaced(text).as_bytes())
                .expect("written");
        }
        let data = serde_json::json!({
            "features": "features.csv", "metadata": "metadata.csv",
            "index": "run", "target": "condition", "group": null, "time": "seen", "split_names": [], "cv": 2,
            "folds": "stratified", "validate": true,
            "splits": {"train_A": "cohort == 'X'", "validate_A": "cohort == 'Y'"},
        });
        let mut data: DataConfig =
            serde_json::from_str(&replaced(&data.to_string())).expect("a configuration");

        // The directory has a random name, in which nothing may be replaced.
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
            (&samples.table.classes[..], &samples.table.y[..]),
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
    fn without_splits_all_rows_are_one() {
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
        let without_class = crate::error::render(&whole(&[]).expect_err("refused"));
        assert!(
            without_class.contains("no class is known of the row `r6`"),
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
    fn further_splits_are_scored_on() {
        let with = |more: &str| read(&[("\"train_A\"", &format!("{more},\"train_A\""))]);
        let samples = with("\"evaluate_W\":\"cohort == 'W'\",\"evaluate_A_late\":\"run == 'r5'\"")
            .expect("read");
        assert_eq!(samples.names, ["r1", "r2", "r3", "r4", "r5"]);
        assert_eq!(
            samples.splits["A"].evaluate,
            [("A_late".to_owned(), vec![4]), ("W".to_owned(), vec![4])].into()
        );
        let refusal = |more: &str| crate::error::render(&with(more).expect_err("refused"));
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
        let of_another =
            with("\"evaluate_B\":\"cohort == 'X'\",\"B\":\"cohort == 'W'\"").expect("read");
        assert!(
            of_another.splits["A"].evaluate.is_empty(),
            "that of another split is not its own"
        );
    }

    #[test]
    fn classes_are_numbers_or_words_in_order() {
        let numbered = read(&[("ill,", "10,"), ("well,", "9,")]).expect("read");
        assert_eq!(
            (&numbered.table.classes[..], &numbered.table.y[..]),
            (&["9".to_owned(), "10".to_owned()][..], &[1, 0, 1, 0][..])
        );
    }

    #[test]
    fn what_cannot_be_joined_is_named() {
        let refusal = |replacements: &[(&str, &str)]| {
            let text = crate::error::render(&read(replacements).expect_err("must be refused"));
            // The directory is another one each time.
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
            ]
            .join("\n")
        );
    }
}
