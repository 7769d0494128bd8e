//! Opens any bytes as a table file: as metadata, and as new rows for a pipeline. Each result must be
//! a table or an error, but never a panic.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use poolcast_fuzz::{new_file, write};
use poolcast_tables::{MetadataTable, read_new_rows};
use tempfile::NamedTempFile;

/// Name of the column of the seeds that has the names of the rows.
const INDEX: &str = "run";

thread_local! {
    /// The file of the table, in memory if the system has `/dev/shm`.
    static FILE: RefCell<NamedTempFile> = RefCell::new(new_file());
}

fuzz_target!(init: keep_panics_quiet(), |bytes: &[u8]| {
    FILE.with_borrow_mut(|file| {
        let path = write(file, bytes);
        drop(MetadataTable::read(path, INDEX));
        let features = ["a".to_owned(), "b".to_owned()];
        if let Ok((names, table)) = read_new_rows(path, INDEX, &features) {
            assert_eq!(names.len(), table.row_count());
        }
    });
});

/// Lets the reader catch the decoder's panics, for which libFuzzer's hook would abort. A panic that
/// leaves the target still aborts.
fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|_| {}));
}
