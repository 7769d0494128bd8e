//! What each verb of `poolcast` does with the libraries of the workspace. ARCHITECTURE.md is the map
//! of these.

pub mod cmd;
