//! Columns of numbers with the class and the group of each row.

/// What a classical model learns from: `x` `[f, n]`, column by column, and `y` `[n]`.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureTable {
    /// The name of each column, `[f]`.
    pub features: Vec<String>,
    /// The numbers, `[f, n]`; what is missing is NaN.
    pub x: Vec<f64>,
    /// The class of each row, `[n]`: a place in `classes`.
    pub y: Vec<u32>,
    /// The names of the classes; of two the second is the positive one.
    pub classes: Vec<String>,
    /// The group of each row, `[n]`, such as a cluster of jobs, a patient or a cohort. Its rows
    /// must not stand on two sides of a split.
    pub groups: Vec<u64>,
}

impl FeatureTable {
    /// How many rows there are: `n`.
    pub fn row_count(&self) -> usize {
        self.y.len()
    }

    /// How many columns there are: `f`.
    pub fn column_count(&self) -> usize {
        self.features.len()
    }

    /// One column, `[n]`.
    pub fn column(&self, place: usize) -> &[f64] {
        &self.x[place * self.row_count()..][..self.row_count()]
    }

    /// The table of the rows at these places, in this order.
    pub fn select_rows(&self, places: &[usize]) -> FeatureTable {
        let mut x = Vec::with_capacity(self.column_count() * places.len());
        for column in (0..self.column_count()).map(|place| self.column(place)) {
            x.extend(places.iter().map(|place| column[*place]));
        }
        FeatureTable {
            features: self.features.clone(),
            x,
            y: places.iter().map(|place| self.y[*place]).collect(),
            classes: self.classes.clone(),
            groups: places.iter().map(|place| self.groups[*place]).collect(),
        }
    }

    /// The rows of `tables`, which have the same columns and classes, one table after another.
    ///
    /// # Panics
    /// Panics when there is no table.
    pub fn concat(tables: &[FeatureTable]) -> FeatureTable {
        let first = &tables[0];
        let rows = tables.iter().map(FeatureTable::row_count).sum::<usize>();
        let mut x = Vec::with_capacity(first.column_count() * rows);
        for place in 0..first.column_count() {
            for table in tables {
                x.extend_from_slice(table.column(place));
            }
        }
        let y = tables.iter().flat_map(|table| &table.y);
        let groups = tables.iter().flat_map(|table| &table.groups);
        FeatureTable {
            features: first.features.clone(),
            x,
            y: y.copied().collect(),
            classes: first.classes.clone(),
            groups: groups.copied().collect(),
        }
    }

    /// The same rows, of classes that have none left out.
    pub fn with_present_classes(self) -> FeatureTable {
        let mut present: Vec<u32> = self.y.clone();
        present.sort_unstable();
        present.dedup();

        let y = self
            .y
            .iter()
            .map(|class| present.partition_point(|known| known < class) as u32)
            .collect();
        let classes = present
            .iter()
            .map(|class| self.classes[*class as usize].clone())
            .collect();
        FeatureTable { y, classes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_in_the_order_asked_for() {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let x = vec![1.0, 2.0, 3.0, 10.0, 20.0, 30.0];
        let table = FeatureTable {
            features: names(["a", "b"]),
            x,
            y: vec![0, 1, 0],
            classes: names(["-", "+"]),
            groups: vec![7, 8, 9],
        };
        let rows = table.select_rows(&[2, 0]);
        assert_eq!(
            (rows.column(0), rows.column(1)),
            (&[3.0, 1.0][..], &[30.0, 10.0][..])
        );
        assert_eq!((&rows.y[..], &rows.groups[..]), (&[0, 0][..], &[9, 7][..]));
        let apart = [0, 1, 2].map(|row| table.select_rows(&[row]));
        assert_eq!(FeatureTable::concat(&apart), table);
        let ones = table.select_rows(&[1, 1]).with_present_classes();
        assert_eq!((ones.y, ones.classes), (vec![0, 0], vec!["+".to_owned()]));
    }
}
