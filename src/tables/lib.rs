//! Tables for classical models: turns samples or the user's own tables into a [`FeatureTable`] of
//! numbers.

mod column_names;
mod data_config;
mod feature_table;
mod filter;
mod folds;
mod joined_table;
mod joined_table_store;
mod metadata;
mod name_list;
mod new_rows;
mod numeric_table;
mod output_table;
mod parquet_pages;
mod row_labels;
mod row_targets;
mod split_check;
mod split_rows;
mod table_file;
mod telling_features;

pub use data_config::{CrossValidation, DataConfig, EVALUATE, Folds, WHOLE};
pub use feature_table::FeatureTable;
pub use filter::RowFilter;
pub use folds::{CrossValidationFold, cross_validation_folds};
pub use joined_table::JoinedTable;
pub use joined_table_store::{TABLE, joined_table_key};
pub use metadata::{MetadataColumn, MetadataTable};
pub use new_rows::read_new_rows;
pub use output_table::{OutputCells, OutputTable};
pub use row_targets::{NumberLoss, RowClasses, RowNumbers, RowTargets};
pub use split_rows::SplitRows;
