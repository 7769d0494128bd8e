//! A live, rotating global event log → an archive of it that only grows: a file for each generation, nothing lost or doubled.
//!
//! A generation is known by its header, as its name changes with each rotation. Each file of the archive is a beginning of its
//! generation, up to the last whole record. Bytes come first and the manifest, which says how many count, last: what a killed
//! run has left beyond that is cut off by the next. HTCondor's writers are never made to wait: no lock of theirs is taken.

use std::io::{ErrorKind, Read, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use memchr::{memmem, memrchr};
use serde::{Deserialize, Serialize};

use super::generations::{HEAD_BYTES, header_in, siblings};
use super::header::GlobalHeader;
use super::record::{Records, last_cut};
use super::source::{FIND, fill};
use crate::error::hinted;
use crate::files::{self, sync_directory};
use crate::manifest;
use crate::shard::ArtefactFormat;

/// What an archive's manifest says it is.
const ARCHIVE: ArtefactFormat = ArtefactFormat {
    name: "archive",
    version: 1,
    rebuild: "poolcast collect LOG -o ARCHIVE",
};

/// How much of a log is held in memory.
const BLOCK_BYTES: usize = 1 << 20;

/// One generation in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedGeneration {
    /// Its file in the archive.
    pub file: String,
    /// The access point, as the log's header names it.
    pub ap: String,
    /// What the header calls the generation.
    pub id: String,
    /// Grows by one with each rotation.
    pub sequence: u64,
    /// When it was created, epoch seconds.
    pub created_s: i64,
    /// The bytes of all generations before it, as the writer counted them.
    pub offset: u64,
    /// How much of it is in the archive.
    pub bytes: u64,
}

/// What was rotated away before it was collected, between two generations of one access point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEvents {
    /// The access point.
    pub ap: String,
    /// The generation that the archive has the beginning of.
    pub after: u64,
    /// The next one that it has.
    pub before: u64,
    /// How much is missing; 0 if that is not known.
    pub bytes: u64,
}

/// What an archive holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogArchive {
    /// Its generations, by access point and in the order they were written.
    pub generations: Vec<ArchivedGeneration>,
    /// What is missing between them.
    pub lost: Vec<LostEvents>,
}

/// What came of collecting.
#[derive(Debug, Clone, Serialize)]
pub struct CollectOutcome {
    /// Bytes that are new in the archive.
    pub new_bytes: u64,
    /// What was found to be missing.
    pub newly_lost: Vec<LostEvents>,
    /// All that the archive holds.
    #[serde(flatten)]
    pub archive: LogArchive,
}

/// A file of the log; open, it stays the same whatever it is renamed to.
struct Live {
    file: fs_err::File,
    known: ArchivedGeneration,
}

/// What a log and its rotated generations are at one moment.
struct Found {
    /// Those with a header, in the order they were written.
    live: Vec<Live>,
    /// Why the log itself is not among them.
    problem: Option<anyhow::Error>,
}

/// Adds to the archive `dir` what is new in `logs` and in their rotated generations. What cannot be copied of one generation
/// keeps none of the others.
///
/// # Errors
/// Fails for a log without the header of a global event log, also after it has copied the rotated generations that have one:
/// as something that passes where the log is being rotated, so that it is missing, empty or without a whole record. Fails for
/// a directory that is no archive or that another process is adding to.
pub fn collect(logs: &[PathBuf], dir: &Path) -> Result<CollectOutcome> {
    let (mut live, mut problem) = (Vec::new(), None);
    for log in logs {
        let found = generations_of(log)?;
        live.extend(found.live);
        problem = problem.or(found.problem);
    }
    let (_lock, mut archive) = begin(dir)?;
    let before = archive.clone();
    let mut outcome = Ok(());
    for live in &mut live {
        let at = archive.place(&live.known, dir);
        let added = at.and_then(|at| append(live, &mut archive.generations[at], dir));
        if let Ok(true) = added {
            archive.commit(dir)?;
        }
        outcome = outcome.and(added.map(|_| ()));
    }
    archive.find_lost(
        &live
            .iter()
            .map(|live| &*live.known.file)
            .collect::<Vec<_>>(),
    );
    if archive != before {
        archive.commit(dir)?;
    }
    outcome?;
    problem.map_or(Ok(()), Err)?;
    let newly_lost = archive
        .lost
        .iter()
        .filter(|one| !before.lost.contains(one))
        .cloned()
        .collect();
    Ok(CollectOutcome {
        new_bytes: archive.bytes() - before.bytes(),
        newly_lost,
        archive,
    })
}

/// The log at `log` and its rotated generations.
///
/// # Errors
/// Fails where none of them has a header.
fn generations_of(log: &Path) -> Result<Found> {
    let name = log
        .file_name()
        .with_context(|| format!("`{}` is no file", log.display()))?
        .to_string_lossy();
    // From the newest name on: a rotation meanwhile shows a file twice, and hides none.
    let mut rotated = siblings(log);
    rotated.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    let (mut live, mut problem, mut is_readable): (Vec<Live>, _, bool) = (Vec::new(), None, true);
    for path in std::iter::once(log.to_owned()).chain(rotated) {
        let found = live_at(&path, &name);
        if path == log {
            (problem, is_readable) = (headerless(log, &found), found.is_ok());
        }
        let Ok(Some(found)) = found.map(|(found, _)| found) else {
            continue;
        };
        let is_other = live
            .iter()
            .any(|other| other.known.ap != found.known.ap || other.known.file == found.known.file);
        if !is_other {
            live.push(found);
        }
    }
    let place = log.display();
    if live.is_empty() {
        let message = match is_readable {
            true => format!("`{place}` does not begin as a global event log does"),
            false => format!("cannot open the log `{place}`"),
        };
        let why = problem.map_or_else(|| anyhow::anyhow!("it has no generation"), |(why, _)| why);
        return Err(why.context(hinted(message, FIND)));
    }
    let message = format!("`{place}` is not collected, but its rotated generations are");
    let problem = problem.map(|(why, hint)| why.context(hinted(message, hint)));
    live.sort_by_key(|live| live.known.order());
    Ok(Found { live, problem })
}

/// The file at `path`, of the log called `name`, if it has a header; beside it, its first bytes.
fn live_at(path: &Path, name: &str) -> std::io::Result<(Option<Live>, Vec<u8>)> {
    let mut file = files::open_artefact(path, u64::MAX)?;
    let mut head = vec![0; HEAD_BYTES];
    let filled = fill(&mut file, &mut head)?;
    head.truncate(filled);
    let known = header_in(&head).map(|header| ArchivedGeneration::of(name, header));
    Ok((known.map(|known| Live { file, known }), head))
}

/// Why the log itself, of which this was found, cannot be collected, and what to do where its rotated generations can be.
fn headerless(
    log: &Path,
    found: &std::io::Result<(Option<Live>, Vec<u8>)>,
) -> Option<(anyhow::Error, &'static str)> {
    const AGAIN: &str = "run the same command again";
    let passes = |why: &str| {
        Some((
            anyhow::Error::from(std::io::Error::other(why.to_owned())),
            AGAIN,
        ))
    };
    match found {
        Ok((Some(_), _)) => None,
        Ok((None, head)) if head.is_empty() => {
            passes("it is empty: it was made just now, or is being rotated")
        }
        Ok((None, head))
            if head.len() < HEAD_BYTES && whole_end(head) == 0 && begins_as_header(head) =>
        {
            passes("its first record is not whole: it is being rotated")
        }
        Ok((None, _)) => Some((
            anyhow::anyhow!(
                "it begins with something else than a header, as after logrotate's `copytruncate`"
            ),
            "let HTCondor rotate it (EVENT_LOG_MAX_SIZE), and copy what it holds now by hand",
        )),
        Err(error) if error.kind() == ErrorKind::NotFound && !siblings(log).is_empty() => {
            passes("it is not there: it is being rotated")
        }
        Err(error) => Some((
            std::io::Error::new(error.kind(), error.to_string()).into(),
            FIND,
        )),
    }
}

/// Whether `head` can be the beginning of a header that is being written.
fn begins_as_header(head: &[u8]) -> bool {
    let start = &head[..head.len().min(5)];
    b"008 (".starts_with(start) || matches!(start.first(), Some(b'<' | b'{'))
}

/// Locks the archive `dir`, and reads what it holds; an empty or missing directory becomes one.
fn begin(dir: &Path) -> Result<(fs_err::File, LogArchive)> {
    fs_err::create_dir_all(dir)?;
    let lock = files::lock_directory(dir)?;
    if dir.join(manifest::FILE).exists() {
        let mut archive = manifest::read::<LogArchive>(dir, ARCHIVE)?.body;
        archive
            .generations
            .iter()
            .try_for_each(|one| manifest::listed_path(dir, &one.file).map(drop))?;
        archive.restore(dir)?;
        return Ok((lock, archive));
    }
    for entry in fs_err::read_dir(dir)? {
        let is_hidden = entry?.file_name().as_encoded_bytes().starts_with(b".");
        ensure!(
            is_hidden,
            hinted(
                format!("`{}` is no archive", dir.display()),
                "name an empty or a new directory"
            )
        );
    }
    let archive = LogArchive::default();
    archive.commit(dir)?;
    Ok((lock, archive))
}

/// Copies what is new in `live` to its file in `dir`, up to the last whole record; whether that was anything.
fn append(live: &mut Live, entry: &mut ArchivedGeneration, dir: &Path) -> Result<bool> {
    let size = live.file.metadata()?.len();
    let shorter = || {
        format!(
            "`{}` is shorter than what was collected of it",
            live.file.path().display()
        )
    };
    ensure!(
        size >= entry.bytes,
        hinted(
            shorter(),
            "it was cut or replaced; what was collected stays"
        )
    );
    if size == entry.bytes {
        return Ok(false);
    }
    let mut target = files::open_to_append(&dir.join(&entry.file))?;
    live.file.seek(SeekFrom::Start(entry.bytes))?;
    let copied = copy(&mut live.file, &mut target)?;
    target.sync_all()?;
    sync_directory(dir)?;
    entry.bytes += copied;
    Ok(copied > 0)
}

/// Copies whole records, and returns how many bytes they are.
fn copy(from: &mut impl Read, to: &mut impl Write) -> Result<u64> {
    let (mut block, mut filled, mut copied) = (vec![0; BLOCK_BYTES], 0, 0);
    loop {
        filled += fill(from, &mut block[filled..])?;
        let at_end = filled < block.len();
        let whole = if at_end {
            whole_end(&block[..filled])
        } else {
            last_cut(&block).unwrap_or(filled)
        };
        to.write_all(&block[..whole])?;
        copied += whole as u64;
        if at_end {
            return Ok(copied);
        }
        block.copy_within(whole..filled, 0);
        filled -= whole;
    }
}

/// Where the last whole record in `text` ends.
fn whole_end(text: &[u8]) -> usize {
    let lines = memrchr(b'\n', text).map_or(0, |at| at + 1);
    let mut records = Records::new(&text[..lines], true);
    records.each(|_| ());
    // The text may begin within what looked whole before: then its end stands alone.
    let alone = if text.starts_with(b"...\n") { 4 } else { 0 };
    let terminator = memmem::rfind(&text[..lines], b"\n...\n").map_or(alone, |at| at + 5);
    records.whole_end.unwrap_or(0).max(terminator)
}

impl ArchivedGeneration {
    fn of(log: &str, header: GlobalHeader) -> ArchivedGeneration {
        let GlobalHeader {
            created_s,
            creator,
            id,
            sequence,
            offset,
            ..
        } = header;
        let (file, ap) = (
            format!("{log}.{created_s}.{sequence}"),
            creator.unwrap_or_default(),
        );
        ArchivedGeneration {
            file,
            ap,
            id,
            sequence,
            created_s,
            offset,
            bytes: 0,
        }
    }

    fn order(&self) -> (String, i64, u64) {
        (self.ap.clone(), self.created_s, self.sequence)
    }
}

impl LogArchive {
    fn bytes(&self) -> u64 {
        self.generations.iter().map(|one| one.bytes).sum()
    }

    /// Takes back what a killed run has left beyond what counts.
    fn restore(&mut self, dir: &Path) -> Result<()> {
        let path = |one: &ArchivedGeneration| dir.join(&one.file);
        files::remove_all(
            self.generations
                .extract_if(.., |one| one.bytes == 0)
                .map(|one| path(&one)),
        )?;
        for one in &self.generations {
            files::open_artefact(&path(one), u64::MAX)?;
            let file = fs_err::OpenOptions::new().write(true).open(path(one))?;
            let size = file.metadata()?.len();
            let shorter = || {
                format!(
                    "`{}` is shorter than its manifest says",
                    path(one).display()
                )
            };
            ensure!(
                size >= one.bytes,
                hinted(shorter(), "restore it, or collect into another directory")
            );
            if size > one.bytes {
                file.file()
                    .set_len(one.bytes)
                    .with_context(|| format!("cannot cut `{}`", path(one).display()))?;
            }
        }
        Ok(())
    }

    /// The place of a generation. A new one is added, and known before its file is there.
    fn place(&mut self, known: &ArchivedGeneration, dir: &Path) -> Result<usize> {
        if let Some(at) = self
            .generations
            .iter()
            .position(|one| one.file == known.file)
        {
            let same = self.generations[at].id == known.id;
            let message = || format!("the archive has another log as `{}`", known.file);
            ensure!(same, hinted(message(), "collect it into another directory"));
            return Ok(at);
        }
        let at = self
            .generations
            .partition_point(|one| one.order() < known.order());
        self.generations.insert(at, known.clone());
        self.commit(dir)?;
        Ok(at)
    }

    /// Finds what is missing: generations that nobody has seen, and the ends of those whose files are no longer there.
    fn find_lost(&mut self, live: &[&str]) {
        let pairs = self.generations.iter().zip(self.generations.iter().skip(1));
        let lost = pairs
            .filter(|(one, next)| one.ap == next.ap)
            .filter_map(|(one, next)| {
                let bytes = next.offset.saturating_sub(one.offset + one.bytes);
                let ends_early =
                    bytes > 0 && next.sequence == one.sequence + 1 && !live.contains(&&*one.file);
                let (ap, after, before) = (one.ap.clone(), one.sequence, next.sequence);
                (before > after + 1 || ends_early).then_some(LostEvents {
                    ap,
                    after,
                    before,
                    bytes,
                })
            });
        self.lost = lost.collect();
    }

    /// Makes what was copied count.
    fn commit(&self, dir: &Path) -> Result<()> {
        manifest::write(dir, ARCHIVE, &manifest::key(self)?, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A global event log as HTCondor writes and rotates it.
    struct Writer {
        log: PathBuf,
        rotations: usize,
        sequence: u64,
        offset: u64,
        /// What was written of each generation, by sequence: the header as it was at first, and the rest.
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

        /// The generations whose files are there.
        fn is_there(&self, sequence: u64) -> bool {
            sequence + self.rotations as u64 >= self.sequence
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(Vec<u8>),
        Rotate,
        Collect,
        /// Killed before the manifest, with so many bytes of what was copied on disk.
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

    /// Collects as if killed on the way: the data is there up to some byte, and the manifest as it was.
    fn killed(log: &Path, dir: &Path, copied: u64) {
        let known = begin(dir).expect("begun").1;
        let mut archive = collect(&[log.to_owned()], dir).expect("collected").archive;
        for one in &mut archive.generations {
            let file = fs_err::OpenOptions::new()
                .write(true)
                .open(dir.join(&one.file))
                .expect("opened");
            // A generation is known before its file is there.
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
        fn an_archive_is_the_whole_log(steps in prop::collection::vec(step(), 1..20), rotations in 1..4usize) {
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
                    // Of a header either form counts: that of a live file, or that of a rotated one.
                    prop_assert_eq!(&copied[294..], &written[294..bytes]);
                }
                let is_lost = archive.lost.iter().any(|lost| lost.after <= sequence && sequence < lost.before);
                if writer.is_there(sequence) {
                    prop_assert_eq!(bytes, whole_end(written));
                } else {
                    prop_assert!(bytes == written.len() || is_lost, "{} of {}", bytes, written.len());
                }
                prop_assert!(!is_lost || bytes < written.len() || !archive.generations.iter().any(|one| one.sequence == sequence + 1));
            }
            prop_assert_eq!(collect(&logs, &dir).expect("collected").new_bytes, 0);
        }
    }

    #[test]
    fn what_is_no_global_event_log_or_no_archive_is_refused() {
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
                crate::error::render(&error).replace(&*place.path().to_string_lossy(), "PLACE"),
                crate::error::exit_code(&error),
            )
        };
        assert!(
            refusal("user.log", "a")
                .0
                .contains("does not begin as a global event log does")
        );
        assert!(refusal("missing", "a").0.contains("cannot open the log"));
        let mut writer = Writer::new(place.path(), 1);
        fs_err::create_dir(path("mine")).expect("made");
        fs_err::write(path("mine/precious"), "x").expect("written");
        assert!(
            refusal("EventLog", "mine")
                .0
                .contains("`PLACE/mine` is no archive")
        );
        let lock = begin(&path("b")).expect("begun");
        let (text, code) = refusal("EventLog", "b");
        assert!(
            text.contains("another process adds to") && code == crate::error::EXIT_RETRY,
            "{text}"
        );
        drop(lock);
        writer.write(b"013 (1.0.0) 01/01 00:00:00 Job was released.\n...\n");
        collect(std::slice::from_ref(&writer.log), &path("b")).expect("collected");
        fs_err::write(&writer.log, writer.header(0)).expect("cut");
        assert!(
            refusal("EventLog", "b")
                .0
                .contains("is shorter than what was collected of it")
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
                .contains("`PLACE/b/EventLog.1704067140.1` is shorter than its manifest says")
        );
    }
}
