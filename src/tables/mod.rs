//! Samples, or tables of the user's own → one [`Table`] of numbers that any classical model learns from.

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

pub use columns::{Column, Columns};
pub use expression::Expression;
pub use features::features;
pub use folds::{Fold, folds};
pub use join::{Samples, Sides};
pub use new_rows::new_rows;
pub use sheet::{Cells, Sheet};
pub use store::{TABLE, key};
pub use table::Table;
