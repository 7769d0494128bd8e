//! The command line of `poolcast`: the arguments of each verb, and what a verb does with the
//! libraries of the workspace. ARCHITECTURE.md is the map of these.

pub mod cli;
pub mod cmd;
