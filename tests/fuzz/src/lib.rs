//! The modules of poolcast that read foreign files, without the rest. With a sanitizer, building
//! candle alone takes longer than fuzzing all of these modules.

#![deny(unsafe_code)] // as in poolcast; its one exception, in `shard`, applies here too

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
