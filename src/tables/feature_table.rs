//! A table of numeric features, with the target and the group of each row.

use super::row_targets::{RowClasses, RowTargets};

/// Input of a classical model: `x` `[f, n]`, column by column, and the `targets` `[n]`.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureTable {
    /// Name of each column, `[f]`.
    pub features: Vec<String>,
    /// Values, `[f, n]`. NaN marks a missing value.
    pub x: Vec<f64>,
    /// Target of each row, `[n]`.
    pub targets: RowTargets,
    /// Group of each row, `[n]`, such as a cluster of jobs, a patient or a cohort. All rows of a
    /// group must be in the same part of a split.
    pub groups: Vec<u64>,
}

impl FeatureTable {
    /// Number of rows, `n`.
    pub fn row_count(&self) -> usize {
        self.targets.row_count()
    }

    /// Number of columns, `f`.
    pub fn column_count(&self) -> usize {
        self.features.len()
    }

    /// Returns one column, `[n]`.
    pub fn column(&self, place: usize) -> &[f64] {
        &self.x[place * self.row_count()..][..self.row_count()]
    }

    /// Returns the table of the rows at the indices `places`, in this order.
    pub fn select_rows(&self, places: &[usize]) -> FeatureTable {
        let mut x = Vec::with_capacity(self.column_count() * places.len());
        for column in (0..self.column_count()).map(|place| self.column(place)) {
            x.extend(places.iter().map(|place| column[*place]));
        }
        FeatureTable {
            features: self.features.clone(),
            x,
            targets: self.targets.select_rows(places),
            groups: places.iter().map(|place| self.groups[*place]).collect(),
        }
    }

    /// Appends the rows of `tables` to each other. The tables must have the same columns and
    /// classes.
    ///
    /// # Panics
    /// Panics if `tables` is empty.
    pub fn concat_classes(tables: &[FeatureTable]) -> FeatureTable {
        let first = &tables[0];
        let rows = tables.iter().map(FeatureTable::row_count).sum::<usize>();
        let mut x = Vec::with_capacity(first.column_count() * rows);
        for place in 0..first.column_count() {
            for table in tables {
                x.extend_from_slice(table.column(place));
            }
        }
        let y = tables.iter().flat_map(|table| table.targets.classes());
        let groups = tables.iter().flat_map(|table| &table.groups);
        FeatureTable {
            features: first.features.clone(),
            x,
            targets: RowTargets::Classes(RowClasses {
                names: first.targets.class_names().to_vec(),
                y: y.copied().collect(),
            }),
            groups: groups.copied().collect(),
        }
    }

    /// Drops the classes that have no rows.
    pub fn with_present_classes(self) -> FeatureTable {
        FeatureTable {
            targets: self.targets.with_present_classes(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_selected_in_the_given_order() {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let x = vec![1.0, 2.0, 3.0, 10.0, 20.0, 30.0];
        let table = FeatureTable {
            features: names(["a", "b"]),
            x,
            targets: RowTargets::Classes(RowClasses {
                names: names(["-", "+"]),
                y: vec![0, 1, 0],
            }),
            groups: vec![7, 8, 9],
        };
        let rows = table.select_rows(&[2, 0]);
        assert_eq!(
            (rows.column(0), rows.column(1)),
            (&[3.0, 1.0][..], &[30.0, 10.0][..])
        );
        assert_eq!(
            (rows.targets.classes(), &rows.groups[..]),
            (&[0, 0][..], &[9, 7][..])
        );
        let apart = [0, 1, 2].map(|row| table.select_rows(&[row]));
        assert_eq!(FeatureTable::concat_classes(&apart), table);
        let ones = table.select_rows(&[1, 1]).with_present_classes();
        assert_eq!(
            ones.targets,
            RowTargets::Classes(RowClasses {
                names: vec!["+".to_owned()],
                y: vec![0, 0],
            })
        );
    }
}
