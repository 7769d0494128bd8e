//! Samples, or tables of the user's own → one [`FeatureTable`] of numbers that any classical model learns from.

mod columns;
mod expression;
mod features;
mod file;
mod folds;
mod join;
mod new_rows;
mod numbers;
mod sheet;
mod store;
mod table;

pub use columns::{MetadataColumn, MetadataTable};
pub use expression::RowFilter;
pub use features::sample_features;
pub use folds::{CrossValidationFold, cross_validation_folds};
pub use join::{JoinedTable, SplitRows};
pub use new_rows::read_new_rows;
pub use sheet::{OutputCells, OutputTable};
pub use store::{TABLE, joined_table_key};
pub use table::FeatureTable;
