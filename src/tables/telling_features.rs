//! Finds features that tell the target alone: they are often copies of it, which nobody knows in time.

use super::feature_table::FeatureTable;
use super::joined_table::JoinedTable;
use super::row_targets::RowTargets;
use poolcast_base::output::counted;
use poolcast_base::parallel::map_numbers;
use poolcast_base::stats::roc_auc;

/// ROC-AUC above this: the feature alone separates a class from the others.
const TELLS_FROM: f64 = 0.999;
/// Minimum number of rows of a class, and of the others. With fewer, one of many features separates them by chance.
const MIN_ROWS: usize = 20;
/// Maximum number of features that the note names.
const MOST_NAMED: usize = 3;

impl JoinedTable {
    /// Returns a note that names the features that tell a class from the others alone; `None` if there are none, or if
    /// the targets are numbers.
    pub fn note_on_telling_features(&self) -> Option<String> {
        let telling = telling_features(&self.table);
        let named: Vec<String> = telling
            .iter()
            .take(MOST_NAMED)
            .map(|name| format!("`{name}`"))
            .collect();
        let others = match telling.len() - named.len() {
            0 => String::new(),
            others => format!(" and {}", counted(others, "other feature")),
        };
        (!telling.is_empty()).then(|| {
            format!(
                "{}{others}: one feature alone tells the target (ROC-AUC above {TELLS_FROM}); remove what is not known when you predict",
                named.join(", ")
            )
        })
    }
}

/// Returns the names of the features of `table` that tell a class from the others alone.
fn telling_features(table: &FeatureTable) -> Vec<&str> {
    let RowTargets::Classes(classes) = &table.targets else {
        return Vec::new();
    };
    // Of two classes, each is as easy to tell as the other.
    let told = match classes.names.len() {
        0..=2 => 1..2,
        count => 0..count as u32,
    };
    let tells = map_numbers(table.column_count(), |place| {
        let column = table.column(place);
        told.clone()
            .any(|class| tells_class(column, &classes.y, class))
    });
    let named = table.features.iter().zip(tells);
    named
        .filter(|(_, tells)| *tells)
        .map(|(name, _)| name.as_str())
        .collect()
}

/// Returns true if the known values of `column` alone tell the rows of `class` from the others.
fn tells_class(column: &[f64], classes: &[u32], class: u32) -> bool {
    let rows = column.iter().zip(classes);
    let known = rows.filter(|(value, _)| !value.is_nan());
    let (scores, labels): (Vec<f64>, Vec<bool>) =
        known.map(|(value, of)| (*value, *of == class)).unzip();
    let of_class = labels.iter().filter(|label| **label).count();
    let fewest = of_class.min(labels.len() - of_class);
    fewest >= MIN_ROWS
        && roc_auc(&scores, &labels).is_some_and(|auc| auc.max(1.0 - auc) > TELLS_FROM)
}

#[cfg(test)]
mod tests {
    use super::super::row_targets::RowClasses;
    use super::*;

    /// A name, and the value of each row.
    type NamedColumn = (&'static str, fn(usize) -> f64);

    /// Returns a table of `n` rows of two classes by turns, with these columns.
    fn table(n: usize, columns: &[NamedColumn]) -> FeatureTable {
        FeatureTable {
            features: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            x: columns
                .iter()
                .flat_map(|(_, value)| (0..n).map(value))
                .collect(),
            targets: RowTargets::Classes(RowClasses {
                names: ["no", "yes"].map(str::to_owned).to_vec(),
                y: (0..n).map(|row| (row % 2) as u32).collect(),
            }),
            groups: vec![0; n],
        }
    }

    #[test]
    fn a_copy_of_the_target_is_named_in_either_direction() {
        let columns: [NamedColumn; 4] = [
            ("copy", |row| (row % 2) as f64),
            ("reverse", |row| -100.0 - 7.0 * (row % 2) as f64),
            ("partly known", |row| {
                if row < 50 { f64::NAN } else { (row % 2) as f64 }
            }),
            ("place", |row| row as f64),
        ];
        let telling = telling_features(&table(100, &columns)).join(", ");
        assert_eq!(telling, "copy, reverse, partly known");
        assert_eq!(telling_features(&table(38, &columns)).len(), 0, "by chance");
    }
}
