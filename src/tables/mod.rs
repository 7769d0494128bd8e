//! Samples, or tables of the user's own → one [`Table`] of numbers that any classical model learns from.

mod features;
mod table;

pub use features::features;
pub use table::Table;
