//! Filters of table rows, such as `cohort in ['USA', 'China'] and age >= 18 and not antibiotics`.
//!
//! Logic has three values, as in SQL. A comparison with a missing value is unknown, and `not`
//! unknown is unknown. A filter selects a row only if the whole filter is true. `is missing` and
//! `is not missing` are never unknown.

mod bind;
mod parse;
mod tokens;

use anyhow::{Context as _, Result};

use super::metadata::MetadataTable;
use parse::FilterNode;

/// A filter over the columns of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct RowFilter {
    root: FilterNode,
}

impl RowFilter {
    /// Parses `text`.
    ///
    /// # Errors
    /// Fails at the first character that does not fit; the message has its number and the expected
    /// tokens.
    pub fn parse(text: &str) -> Result<RowFilter> {
        let root = parse::parse_filter(text).with_context(|| format!("cannot read `{text}`"))?;
        Ok(RowFilter { root })
    }

    /// Returns the rows of `metadata` for which the filter is true, ascending.
    ///
    /// # Errors
    /// Fails if a column does not exist; the message has the nearest name. Fails if a number is
    /// compared with a text.
    pub fn select(&self, metadata: &MetadataTable) -> Result<Vec<usize>> {
        let bound = bind::bind_filter(&self.root, metadata)?;
        Ok((0..metadata.index.len())
            .filter(|row| bound.truth_at(*row) == Some(true))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "\
run,cohort,age,antibiotics,since,my column
a,USA,17,false,2020-01-05,1
b,China,18,true,2021-03-01,2
c,Ireland,40,false,2022-07-09,
d,USA,,,,4
e,'quoted',65,TRUE,2019-12-31,5
";

    fn columns() -> MetadataTable {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("t.csv");
        poolcast_base::files::write_atomic(&path, TABLE.as_bytes()).expect("written");
        MetadataTable::read(&path, "run").expect("read")
    }

    fn selected(text: &str) -> Result<String> {
        let columns = columns();
        let rows = RowFilter::parse(text)?.select(&columns)?;
        Ok(rows
            .iter()
            .map(|row| columns.index[*row].as_str())
            .collect())
    }

    #[test]
    fn rows_are_selected() {
        for (text, rows) in [
            (
                "cohort in ['USA', 'China'] and age >= 18 and not antibiotics",
                "",
            ),
            ("cohort in ['USA', \"China\"] and age >= 17", "ab"),
            ("cohort not in ['USA', 'China']", "ce"),
            ("not antibiotics", "ac"),
            ("antibiotics == true or `my column` < 2", "abe"),
            ("not (age < 18 or age > 60)", "bc"),
            ("age is missing", "d"),
            ("age is not missing and not age == 40", "abe"),
            ("age != 40", "abe"),
            ("age < 18 or cohort == 'USA'", "ad"),
            ("since >= '2020-01-05' and since < '2022-01-01'", "ab"),
            ("run in ['a', 'e']", "ae"),
            ("18 <= age", "bce"),
            ("age in [17, 65.0]", "ae"),
            ("cohort == \"'quoted'\"", "e"),
            ("`my column` * 2 > 3", "!"),
            ("not not true", "abcde"),
            ("age > -1.5e1", "abce"),
            ("cohort < 'D'", "be"),
        ] {
            match rows {
                "!" => assert!(selected(text).is_err(), "{text}"),
                rows => assert_eq!(selected(text).expect(text), rows, "{text}"),
            }
        }
    }

    #[test]
    fn errors_name_their_position() {
        let refusal = |text: &str| poolcast_base::error::render(&selected(text).expect_err(text));
        let texts = [
            "",
            "age >",
            "age = 18",
            "(age > 18",
            "age > 18 18 < age",
            "cohort == 'USA",
            "age & 2",
            "agee > 18",
            "age == 'x'",
            "not age",
            "cohort in []",
            "cohort in ['a', 5]",
            "antibiotics > true",
            "cohort and age > 1",
            "18 <= age < 65",
            "cohort is lost",
            "age in cohort",
            "since > 5",
        ];
        insta::assert_snapshot!(texts.map(refusal).join("\n"));
        let deep = "(".repeat(100_000) + "age > 1";
        assert!(refusal(&deep).contains("nested deeper"));
        assert!(refusal(&("not ".repeat(100_000) + "true")).contains("nested deeper"));
    }

    /// Generates an expression, and its truth value for each row of the table. `age` may be
    /// missing.
    fn any_expression() -> impl Strategy<Value = (String, Vec<Option<bool>>)> {
        let ages = [Some(17.0), Some(18.0), Some(40.0), None, Some(65.0)];
        let leaf = (15..70i32, 0..7usize).prop_map(move |(bound, at)| {
            let op = ["==", "!=", "<", "<=", ">", ">=", "is missing"][at];
            let other = f64::from(bound);
            let of = |age: Option<f64>| match (age, at) {
                (age, 6) => Some(age.is_none()),
                (None, _) => None,
                (Some(age), 0) => Some(age == other),
                (Some(age), 1) => Some(age != other),
                (Some(age), 2) => Some(age < other),
                (Some(age), 3) => Some(age <= other),
                (Some(age), 4) => Some(age > other),
                (Some(age), _) => Some(age >= other),
            };
            let text = if at == 6 {
                format!("age {op}")
            } else {
                format!("age {op} {bound}")
            };
            (text, ages.map(of).to_vec())
        });
        leaf.prop_recursive(4, 24, 2, |inner| {
            prop_oneof![
                inner.clone().prop_map(|(text, all)| {
                    (
                        format!("not ({text})"),
                        all.into_iter()
                            .map(|value| value.map(|value| !value))
                            .collect(),
                    )
                }),
                (inner.clone(), inner.clone(), any::<bool>()).prop_map(
                    |((a, left), (b, right), is_and)| {
                        let both = left
                            .into_iter()
                            .zip(right)
                            .map(|pair| match (pair, is_and) {
                                ((Some(false), _) | (_, Some(false)), true) => Some(false),
                                ((Some(true), _) | (_, Some(true)), false) => Some(true),
                                ((Some(_), Some(_)), is_and) => Some(is_and),
                                _ => None,
                            });
                        (
                            format!("({a}) {} ({b})", if is_and { "and" } else { "or" }),
                            both.collect(),
                        )
                    }
                ),
            ]
        })
    }

    proptest! {
        #[test]
        fn logic_has_three_values((text, truth) in any_expression()) {
            let columns = columns();
            let rows = RowFilter::parse(&text).expect("read").select(&columns).expect("selected");
            let wanted: Vec<usize> = (0..5).filter(|row| truth[*row] == Some(true)).collect();
            prop_assert_eq!(rows, wanted, "{}", text);
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,40}|([a-z(\\[ ',]|and |or |not |in |is |age|[0-9.<>=!-]){0,30}") {
            let _ = RowFilter::parse(&text).and_then(|expression| expression.select(&columns()));
        }
    }
}
