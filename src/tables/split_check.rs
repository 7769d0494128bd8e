//! Checks if a model may be fitted and validated on a split of joined rows.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use super::feature_table::FeatureTable;
use super::row_targets::RowTargets;
use super::split_rows::{HeldOutRows, SplitRows, shared_names};
use crate::EVALUATE;
use poolcast_base::error::hinted;
use poolcast_base::output::counted;

/// A split to check, with the table of its rows.
pub(super) struct SplitCheck<'a> {
    pub(super) name: &'a str,
    pub(super) split: &'a SplitRows,
    pub(super) table: &'a FeatureTable,
    /// Name of each row's group, `[n]`, if there is a column of groups.
    pub(super) group_names: Option<&'a [String]>,
}

impl SplitCheck<'_> {
    /// Rejects a split that shares a group with the rows it holds out, or that holds out a class
    /// which it does not learn. Rejects a training or validation split with only one class, and a
    /// training split with only one number.
    pub(super) fn check(&self) -> Result<()> {
        let held_out = self.split.held_out(self.name);
        if let Some(groups) = self.group_names {
            for held_out in &held_out {
                self.check_groups(groups, held_out)?;
            }
        }
        if let RowTargets::Numbers(numbers) = &self.table.targets {
            return self.check_several_numbers(&numbers.y);
        }
        for held_out in &held_out {
            self.check_known_classes(held_out)?;
        }
        self.check_several_classes("training", &self.split.train)?;
        self.check_several_classes("validation", &self.split.validate)
    }

    /// Rejects a class that one row alone has, or one group: a fold that holds it out has none to learn from.
    pub(super) fn check_classes_of_folds(&self) -> Result<()> {
        if matches!(self.table.targets, RowTargets::Numbers(_)) {
            return Ok(());
        }
        let classes = self.table.targets.classes();
        let mut groups: BTreeMap<u32, BTreeSet<_>> = BTreeMap::new();
        for &row in &self.split.train {
            let of_class = groups.entry(classes[row]).or_default();
            of_class.insert(self.table.groups[row]);
        }
        let Some((class, _)) = groups.iter().find(|(_, groups)| groups.len() == 1) else {
            return Ok(());
        };
        anyhow::bail!(hinted(
            format!(
                "the split `{}` has the class `{}` in one row or group alone, so that a fold has none to learn from",
                self.name,
                self.table.targets.class_names()[*class as usize]
            ),
            "leave the class out by a filter in `data.splits`, or add rows of it"
        ))
    }

    fn check_groups(&self, groups: &[String], held_out: &HeldOutRows<'_>) -> Result<()> {
        let group_set = |rows: &[usize]| -> BTreeSet<&str> {
            rows.iter().map(|row| groups[*row].as_str()).collect()
        };
        let learned = group_set(&self.split.train);
        let mut both = group_set(held_out.rows);
        both.retain(|group| learned.contains(group));

        let name = self.name;
        let parts = if held_out.filter.starts_with(EVALUATE) {
            format!(
                "the training rows of the split `{name}` and `{}`",
                held_out.filter
            )
        } else {
            format!("the training and validation rows of the split `{name}`")
        };
        ensure!(
            both.is_empty(),
            shared_names(&parts, "group", both.into_iter())
        );
        Ok(())
    }

    fn check_known_classes(&self, held_out: &HeldOutRows<'_>) -> Result<()> {
        let learned = self.classes_of(&self.split.train);
        let unknown = self
            .classes_of(held_out.rows)
            .into_iter()
            .find(|class| !learned.contains(class));
        if let Some(class) = unknown {
            anyhow::bail!(hinted(
                format!(
                    "`{}` has the class `{}`, which the training rows of the split `{}` lack",
                    held_out.filter,
                    self.table.targets.class_names()[class as usize],
                    self.name
                ),
                "change one of the two filters"
            ));
        }
        Ok(())
    }

    fn check_several_classes(&self, rows_name: &str, rows: &[usize]) -> Result<()> {
        let classes = self.classes_of(rows);
        let only = classes.first().map_or("none", |class| {
            &self.table.targets.class_names()[*class as usize]
        });
        ensure!(
            classes.len() > 1 || rows.is_empty(),
            hinted(
                format!(
                    "the {rows_name} rows of the split `{}` have one class: `{only}`, {}",
                    self.name,
                    counted(rows.len(), "row")
                ),
                "a model needs at least two; change the filter"
            )
        );
        Ok(())
    }

    /// Fails if all training rows have the same number.
    fn check_several_numbers(&self, numbers: &[f64]) -> Result<()> {
        let learned = self.split.train.iter().map(|row| numbers[*row]);
        let distinct: BTreeSet<u64> = learned.map(f64::to_bits).collect();
        ensure!(
            distinct.len() > 1,
            hinted(
                format!(
                    "the training rows of the split `{}` have one number to predict, in {}",
                    self.name,
                    counted(self.split.train.len(), "row")
                ),
                "a model needs at least two; change the filter"
            )
        );
        Ok(())
    }

    fn classes_of(&self, rows: &[usize]) -> BTreeSet<u32> {
        let classes = self.table.targets.classes();
        rows.iter().map(|row| classes[*row]).collect()
    }
}
