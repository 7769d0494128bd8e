//! The modules of poolcast that read what others wrote, without the rest: with a sanitizer, candle
//! alone takes longer to build than all of these to be fuzzed.

#![deny(unsafe_code)] // as in poolcast, whose one exception in `shard` stands here too

#[path = "../../../src/escape.rs"]
pub mod escape;
#[path = "../../../src/error.rs"]
pub mod error;
#[path = "../../../src/output.rs"]
pub mod output;
#[path = "../../../src/process.rs"]
pub mod process;
#[path = "../../../src/temporary.rs"]
pub mod temporary;
#[path = "../../../src/files/mod.rs"]
pub mod files;
#[path = "../../../src/shard.rs"]
pub mod shard;
#[path = "../../../src/manifest.rs"]
pub mod manifest;
#[path = "../../../src/eventlog/mod.rs"]
pub mod eventlog;
