//! Samples, or tables of the user's own → one [`Table`] of numbers that any classical model learns from.

mod table;

pub use table::Table;
