//! The modules of `src/eventlog/`, and the reader with blocks so small that an input has many.

use std::path::Path;

use anyhow::Result;
use reader::{Assembly, Sizes};

#[path = "../../../src/eventlog/classad.rs"]
mod classad;
#[path = "../../../src/eventlog/dump.rs"]
mod dump;
#[path = "../../../src/eventlog/event.rs"]
mod event;
#[path = "../../../src/eventlog/reader.rs"]
mod reader;
#[path = "../../../src/eventlog/record.rs"]
mod record;
#[path = "../../../src/eventlog/source.rs"]
mod source;
#[path = "../../../src/eventlog/stamp.rs"]
mod stamp;

pub use event::{AD_INFORMATION, Event, GENERIC};
pub use reader::{Log, Options, Resume, can_read_on, scan};

/// How a log is cut: into blocks of so many bytes, and these into pieces.
pub type Cut = (usize, usize);

fn sizes((block_bytes, piece_bytes): Cut) -> Sizes {
    Sizes { block_bytes, piece_bytes }
}

/// Reads the log at `path` as [`reader::read`] does; returns its events, too.
pub fn read(cut: Cut, path: &Path, options: &Options) -> Result<(Log, Vec<Event>)> {
    collect(cut, path, Assembly::new(options))
}

/// Reads the log at `path` on as [`reader::read_on`] does.
pub fn read_on(cut: Cut, path: &Path, resume: &Resume) -> Result<(Log, Vec<Event>)> {
    collect(cut, path, Assembly::resume(resume))
}

fn collect(cut: Cut, path: &Path, assembly: Assembly) -> Result<(Log, Vec<Event>)> {
    let mut events = Vec::new();
    let log = reader::read_in(sizes(cut), path, assembly, |_| {}, &mut |batch| {
        events.extend_from_slice(batch.events);
        Ok(())
    })?;
    Ok((log, events))
}

/// The lines of [`dump::dump`].
pub fn dump(cut: Cut, path: &Path, options: &Options) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    dump::dump_in(sizes(cut), path, options, &mut lines)?;
    Ok(lines)
}
