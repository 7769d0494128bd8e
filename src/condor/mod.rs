//! A sweep → a DAG of HTCondor jobs; what DAGMan says of it → how far it is; its runs → the best one, and a tidy directory.
//!
//! The only place that writes submit files and DAGs, or runs HTCondor's programs. The text of all files is a pure function of
//! a [`Plan`].

mod cleanup;
mod dag;
mod nodes;
mod place;
mod plan;
mod results;
mod submit;
mod tools;
mod words;

pub use cleanup::{Tidy, tidy};
pub use nodes::{Counts, Nodes};
pub use place::{DAG_FILE, is_dag, results, write};
pub use plan::{Plan, Trial};
pub use results::{choose, trials};
pub use tools::{runs_images, start};
