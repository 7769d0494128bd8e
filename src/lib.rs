//! poolcast learns from an HTCondor access point's event logs what happens to held jobs once they
//! are released, and says for each held job what to do.
//!
//! ```text
//! event log ──parse──▶ events ──tensors──▶ tensors ──train──▶ model ──evaluate──▶ metrics ──advise──▶ advice
//! ```
//!
//! Each stage reads one kind of artefact and writes the next; stages meet only on disk. The modules
//! below stand in that order, and each imports only from modules above it (`tests/layers.rs` holds
//! that line); [`cli`] and [`cmd`] stand outside and join the stages.

// Support: imports nothing of the stages.
pub mod escape;
pub mod error;
pub mod output;
pub mod live_screen;
pub mod process;
pub mod temporary;
pub mod files;
pub mod archive;
pub mod config;
pub mod pager;
pub mod program;
pub mod moment;
pub mod seed;
pub mod shard;
pub mod column_table;
pub mod manifest;
pub mod salt;

// The stages, in the order the data flows.
pub mod eventlog;
pub mod events;
pub mod tensors;
pub mod tables;
pub mod pipelines;
pub mod models;
pub mod training;
pub mod queue;
pub mod search;
pub mod provision;
pub mod sweep;
pub mod condor;
pub mod advice;
pub mod policy;
pub mod simulate;
pub mod report;
pub mod tracking;

// The command line.
pub mod cli;
pub mod cmd;
