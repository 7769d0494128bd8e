//! Support for every other crate of poolcast: errors with hints, output, files that are written
//! whole or not at all, shards and their manifests, named random streams, statistics.
//!
//! Each module imports only modules above it.

pub mod escape;
pub mod error;
pub mod shared_text;
mod closed_stdout;
pub mod output;
pub mod finding;
pub mod live_screen;
pub mod process;
pub mod temporary;
pub mod files;
pub mod archive;
pub mod program;
pub mod pager;
pub mod moment;
pub mod parallel;
pub mod seed;
pub mod shard;
pub mod column_table;
pub mod manifest;
pub mod user_directories;
pub mod salt;
pub mod stats;
