//! A sweep → a DAG of HTCondor jobs; what DAGMan says of it → how far it is; what its jobs left → rows, and a tidy directory.
//!
//! The only place that writes submit files and DAGs, or runs HTCondor's programs. The text of all files is a pure function of
//! a [`Plan`].

mod cleanup;
mod dag;
mod nodes;
mod parts;
mod place;
mod plan;
mod results;
mod shared;
mod site;
mod submit;
mod tools;
mod words;

pub use cleanup::{Tidy, tidy};
pub use nodes::{Counts, Nodes};
pub use parts::{Measured, Part, numbers};
pub use place::{DAG_FILE, check_place, is_dag, is_untidied, measured, results, write};
pub use plan::{Plan, Source};
pub use results::{all_rows, rows, sweep};
pub use tools::{runs_images, start};
