//! Adds the new records of a live log and of its rotated generations to an archive.

use std::io::{Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Serialize;

use super::archive::{LogArchive, LostEvents, open_archive};
use super::live_log::{LiveGeneration, LiveLog};
use super::whole_records::copy_whole_records;
use poolcast_base::error::hinted;
use poolcast_base::files::{self, sync_directory};

/// Result of a collection.
#[derive(Debug, Clone, Serialize)]
pub struct CollectOutcome {
    /// Bytes added to the archive.
    pub new_bytes: u64,
    /// Gaps found by this run.
    pub newly_lost: Vec<LostEvents>,
    /// Full contents of the archive.
    #[serde(flatten)]
    pub archive: LogArchive,
}

/// Adds the new records of `logs` and of their rotated generations to the archive `dir`. If one
/// generation cannot be copied, the others still are.
///
/// # Errors
/// Fails for a log without the header of a global event log. If some of its rotated generations
/// have one, they are copied first. A log that is being rotated may be missing, empty or without a
/// whole record; then the error is transient. Also fails if the directory is not an archive, or if
/// another process is adding to it.
pub fn collect(logs: &[PathBuf], dir: &Path) -> Result<CollectOutcome> {
    // Open files stay the same, even if they are renamed from here on.
    let mut generations = Vec::new();
    let mut problem = None;
    for log in logs {
        let found = LiveLog::open(log)?;
        generations.extend(found.generations);
        problem = problem.or(found.problem);
    }

    let (_lock, mut archive) = open_archive(dir)?;
    let before = archive.clone();
    let mut outcome = Ok(());
    for live in &mut generations {
        let appended = append_generation(live, &mut archive, dir);
        if let Ok(true) = appended {
            archive.commit(dir)?;
        }
        outcome = outcome.and(appended.map(drop));
    }

    let live_files: Vec<&str> = generations.iter().map(|live| &*live.known.file).collect();
    archive.find_lost(&live_files);
    if archive != before {
        archive.commit(dir)?;
    }

    // The copied data counts, even if another generation failed.
    outcome?;
    if let Some(problem) = problem {
        return Err(problem);
    }
    let newly_lost = archive
        .lost
        .iter()
        .filter(|lost| !before.lost.contains(lost))
        .cloned()
        .collect();
    Ok(CollectOutcome {
        new_bytes: archive.bytes() - before.bytes(),
        newly_lost,
        archive,
    })
}

/// Appends the new records of `live` to its file in `dir`, up to the last whole record. Returns
/// true if there were any.
fn append_generation(
    live: &mut LiveGeneration,
    archive: &mut LogArchive,
    dir: &Path,
) -> Result<bool> {
    let index = archive.find_or_add(&live.known, dir)?;
    let entry = &mut archive.generations[index];
    let size = live.file.metadata()?.len();
    ensure!(
        size >= entry.bytes,
        hinted(
            format!(
                "`{}` is shorter than its collected part",
                live.file.path().display()
            ),
            "it was truncated or replaced: collect it into another directory; this archive is kept"
        )
    );
    if size == entry.bytes {
        return Ok(false);
    }

    let mut target = files::open_to_append(&dir.join(&entry.file))?;
    live.file.seek(SeekFrom::Start(entry.bytes))?;
    let copied = copy_whole_records(&mut live.file, &mut target)?;
    target.sync_all()?;
    sync_directory(dir)?;
    entry.bytes += copied;
    Ok(copied > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::whole_records_end;
    use poolcast_base::manifest;
    use proptest::prelude::*;
    use std::io::Write as _;

    /// A global event log that is written and rotated like HTCondor does it.
    struct Writer {
        log: PathBuf,
        rotations: usize,
        sequence: u64,
        offset: u64,
        /// Bytes written to each generation, by sequence. The header is the one from before the
        /// rotation.
        written: Vec<Vec<u8>>,
    }

    impl Writer {
        fn new(dir: &Path, rotations: usize) -> Writer {
            let log = dir.join("EventLog");
            let mut writer = Writer {
                log,
                rotations,
                sequence: 0,
                offset: 0,
                written: Vec::new(),
            };
            writer.begin();
            writer
        }

        fn header(&self, size: usize) -> Vec<u8> {
            let Writer {
                sequence, offset, ..
            } = self;
            let text = format!(
                "Global JobLog: ctime=1704067140 id=0.{sequence} sequence={sequence} size={size} events=0 offset={offset} \
                 event_off=0 max_rotation=2 creator_name=<ap@x>"
            );
            format!("008 (-01.-01.-01) 12/31 17:59:00 {text:<256}\n...\n").into_bytes()
        }

        fn begin(&mut self) {
            self.sequence += 1;
            let header = self.header(0);
            fs_err::write(&self.log, &header).expect("written");
            self.written.push(header);
        }

        fn write(&mut self, bytes: &[u8]) {
            let mut file = fs_err::OpenOptions::new()
                .append(true)
                .open(&self.log)
                .expect("opened");
            file.write_all(bytes).expect("written");
            self.written.last_mut().expect("begun").extend(bytes);
        }

        fn rotate(&mut self) {
            let size = self.written.last().expect("begun").len();
            let mut file = fs_err::OpenOptions::new()
                .write(true)
                .open(&self.log)
                .expect("opened");
            file.write_all(&self.header(size)).expect("written over");
            let name = |number: usize| match (number, self.rotations) {
                (0, _) => self.log.clone(),
                (_, 1) => self.log.with_extension("old"),
                (number, _) => self.log.with_extension(number.to_string()),
            };
            for number in (0..self.rotations)
                .rev()
                .filter(|number| name(*number).exists())
            {
                fs_err::rename(name(number), name(number + 1)).expect("renamed");
            }
            self.offset += size as u64;
            self.begin();
        }

        /// Returns true if the file of generation `sequence` still exists.
        fn is_there(&self, sequence: u64) -> bool {
            sequence + self.rotations as u64 >= self.sequence
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(Vec<u8>),
        Rotate,
        Collect,
        /// A collection that is killed before it writes the manifest. The number is the count of
        /// copied bytes on disk.
        Killed(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let record = "012 (1.0.0) 01/01 00:00:00 Job was held.\n\treason\n...\n";
        let torn = prop::sample::select(vec![
            "012 (1.0.0) 01/01 00:00:00 Job was held.\n\tre",
            "...\n",
            "\0\0\n",
            "000 (2.",
        ]);
        prop_oneof![
            4 => (1..5usize).prop_map(move |count| Step::Write(record.repeat(count).into_bytes())),
            1 => torn.prop_map(|text| Step::Write(text.as_bytes().to_vec())),
            2 => Just(Step::Rotate),
            3 => Just(Step::Collect),
            2 => (0..400u64).prop_map(Step::Killed),
        ]
    }

    /// Simulates a killed collection: the data is there up to `copied` new bytes per generation,
    /// and the manifest is the old one.
    fn killed(log: &Path, dir: &Path, copied: u64) {
        let known = open_archive(dir).expect("begun").1;
        let mut archive = collect(&[log.to_owned()], dir).expect("collected").archive;
        for one in &mut archive.generations {
            let file = fs_err::OpenOptions::new()
                .write(true)
                .open(dir.join(&one.file))
                .expect("opened");
            // The manifest lists a generation before its file exists.
            let earlier = known
                .generations
                .iter()
                .find(|known| known.file == one.file)
                .map_or(0, |known| known.bytes);
            file.file()
                .set_len(one.bytes.min(earlier + copied))
                .expect("cut");
            one.bytes = earlier;
        }
        LogArchive {
            lost: known.lost,
            ..archive
        }
        .commit(dir)
        .expect("written");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn archives_contain_the_whole_log(steps in prop::collection::vec(step(), 1..20), rotations in 1..4usize) {
            let place = tempfile::tempdir().expect("a directory");
            let dir = place.path().join("archive");
            let mut writer = Writer::new(place.path(), rotations);
            let logs = [writer.log.clone()];
            for step in steps {
                match step {
                    Step::Write(bytes) => writer.write(&bytes),
                    Step::Rotate => writer.rotate(),
                    Step::Collect => drop(collect(&logs, &dir).expect("collected")),
                    Step::Killed(copied) => killed(&writer.log, &dir, copied),
                }
            }
            let archive = collect(&logs, &dir).expect("collected").archive;
            prop_assert!(archive.generations.iter().any(|one| one.sequence == writer.sequence));
            let first = archive.generations[0].sequence;
            for (sequence, written) in (1..).zip(&writer.written).skip(first as usize - 1) {
                let known = archive.generations.iter().find(|one| one.sequence == sequence);
                let bytes = known.map_or(0, |known| known.bytes as usize);
                if let Some(known) = known {
                    let copied = fs_err::read(dir.join(&known.file)).expect("read");
                    prop_assert_eq!(copied.len(), bytes);
                    // The header may have either form: the one of a live file or the one of a
                    // rotated file.
                    prop_assert_eq!(&copied[294..], &written[294..bytes]);
                }
                let is_lost = archive.lost.iter().any(|lost| lost.after <= sequence && sequence < lost.before);
                if writer.is_there(sequence) {
                    prop_assert_eq!(bytes, whole_records_end(written));
                } else {
                    prop_assert!(bytes == written.len() || is_lost, "{} of {}", bytes, written.len());
                }
                prop_assert!(!is_lost || bytes < written.len() || !archive.generations.iter().any(|one| one.sequence == sequence + 1));
            }
            prop_assert_eq!(collect(&logs, &dir).expect("collected").new_bytes, 0);
        }
    }

    #[test]
    fn non_logs_and_non_archives_are_rejected() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name);
        fs_err::write(
            path("user.log"),
            "000 (1.0.0) 2024-01-01 00:00:00 Job submitted\n...\n",
        )
        .expect("written");
        let refusal = |log: &str, dir: &str| {
            let error = collect(&[path(log)], &path(dir)).expect_err("refused");
            (
                poolcast_base::error::render(&error)
                    .replace(&*place.path().to_string_lossy(), "PLACE"),
                poolcast_base::error::exit_code(&error),
            )
        };
        assert!(
            refusal("user.log", "a")
                .0
                .contains("does not begin like a global event log")
        );
        assert!(refusal("missing", "a").0.contains("cannot open the log"));
        let mut writer = Writer::new(place.path(), 1);
        fs_err::create_dir(path("mine")).expect("made");
        fs_err::write(path("mine/precious"), "x").expect("written");
        assert!(
            refusal("EventLog", "mine")
                .0
                .contains("`PLACE/mine` is not an archive")
        );
        let lock = open_archive(&path("b")).expect("begun");
        let (text, code) = refusal("EventLog", "b");
        assert!(
            text.contains("another process is writing to")
                && code == poolcast_base::error::EXIT_RETRY,
            "{text}"
        );
        drop(lock);
        writer.write(b"013 (1.0.0) 01/01 00:00:00 Job was released.\n...\n");
        collect(std::slice::from_ref(&writer.log), &path("b")).expect("collected");
        fs_err::write(&writer.log, writer.header(0)).expect("cut");
        assert!(
            refusal("EventLog", "b")
                .0
                .contains("is shorter than its collected part")
        );
        let (archived, manifest) = (
            path("b/EventLog.1704067140.1"),
            path("b").join(manifest::FILE),
        );
        let text = fs_err::read_to_string(&manifest).expect("read");
        fs_err::write(
            &manifest,
            text.replace("EventLog.17", "../mine/EventLog.17"),
        )
        .expect("written");
        assert!(refusal("EventLog", "b").0.contains("which is outside it"));
        fs_err::write(&manifest, text).expect("written");
        fs_err::write(&archived, "").expect("cut");
        assert!(
            refusal("EventLog", "b")
                .0
                .contains("`PLACE/b/EventLog.1704067140.1` is shorter than stated in its manifest")
        );
    }
}
