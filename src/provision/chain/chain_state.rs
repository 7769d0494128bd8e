//! What is known of a chain, in a file that is whole at every moment.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::error::hinted;
use poolcast_base::files;
use crate::live::{JobOutcome, ListedJob, QueueListing, QueueState};
use poolcast_base::salt::random_text;

/// The name of the file in the chain's directory.
const STATE_FILE: &str = "state.json";

/// What the file says it is.
const FORMAT: &str = "poolcast chain";

/// Raised when what is stored changes.
const VERSION: u32 = 1;

/// The file has no more bytes.
const MOST_BYTES: u64 = 1 << 26;

/// A job of a chain. Moments are epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// Its number, from 1 on.
    pub number: u32,
    /// Its job; `None` from just before it is submitted until it is known that it was.
    pub job: Option<u64>,
    /// Whether it was let into the queue: it is submitted held.
    pub is_released: bool,
    /// When it was submitted.
    pub submit_s: i64,
    /// When it started, the last time if it was requeued.
    pub start_s: Option<i64>,
    /// When it ended.
    pub end_s: Option<i64>,
    /// How it ended, where that is known.
    pub outcome: Option<JobOutcome>,
}

/// What is known of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainState {
    format: String,
    version: u32,
    /// Random; the comments of its jobs have it.
    pub chain: String,
    /// Its links, the first one first.
    pub links: Vec<ChainLink>,
    /// The number of the last link of whose failure was told, so that the next call goes on.
    pub told_failure: u32,
    #[serde(skip)]
    dir: PathBuf,
}

/// What has become of a link since it was looked at before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// It started.
    Started,
    /// It waits again.
    Requeued,
    /// It ended.
    Ended,
    /// Slurm lists it no more, and how it ended is not known.
    Forgotten,
}

impl ChainState {
    /// The chain of the directory `dir`, which is begun if there is none.
    ///
    /// # Errors
    /// Fails for a file that is none of a chain, or of another version.
    pub fn open(dir: &Path) -> Result<ChainState> {
        let path = dir.join(STATE_FILE);
        if !path.try_exists()? {
            return Ok(ChainState {
                format: FORMAT.to_owned(),
                version: VERSION,
                chain: random_text::<8>()?,
                links: Vec::new(),
                told_failure: 0,
                dir: dir.to_owned(),
            });
        }
        let unusable = || {
            hinted(
                format!("`{}` is no state of a chain", path.display()),
                "name another directory with `--state DIR`",
            )
        };
        let text = files::read_regular(&path, MOST_BYTES)?;
        #[derive(Deserialize)]
        struct FormatOnly {
            format: String,
            version: u32,
        }
        let head: FormatOnly = serde_json::from_slice(&text).with_context(unusable)?;
        ensure!(head.format == FORMAT, unusable());
        ensure!(
            head.version == VERSION,
            hinted(
                format!(
                    "`{}` has version {} of the state of a chain, and this program reads version {VERSION}",
                    path.display(),
                    head.version
                ),
                "go on with the program that began it, or begin another with `--state DIR`"
            )
        );
        let state: ChainState = serde_json::from_slice(&text).with_context(unusable)?;
        let are_in_order = state
            .links
            .iter()
            .zip(1..)
            .all(|(link, number)| link.number == number);
        ensure!(are_in_order, unusable());
        Ok(ChainState {
            dir: dir.to_owned(),
            ..state
        })
    }

    /// Writes the file.
    pub fn save(&self) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        files::write_atomic(&self.dir.join(STATE_FILE), text.as_bytes())
    }

    /// The comment of the job of link `number`, by which it is found.
    pub fn comment_of(&self, number: u32) -> String {
        format!("{}{number}", self.comment_begin())
    }

    fn comment_begin(&self) -> String {
        format!("poolcast chain {} link ", self.chain)
    }

    /// The job that `listing` has for link `number`, whoever submitted it; the first if there are
    /// several.
    pub fn job_in<'a>(&self, listing: &'a QueueListing, number: u32) -> Option<&'a ListedJob> {
        let comment = self.comment_of(number);
        let jobs = listing.jobs.iter().filter(|job| job.comment == comment);
        jobs.min_by_key(|job| job.id)
    }

    /// Jobs of this chain that are none of its links: a submission that seemed lost and was made
    /// again. They are held, and never run.
    pub fn strays(&self, listing: &QueueListing) -> Vec<u64> {
        let begin = self.comment_begin();
        let mut strays = Vec::new();
        for job in &listing.jobs {
            let number = job
                .comment
                .strip_prefix(&begin)
                .and_then(|number| number.parse().ok());
            let Some(number) = number.filter(|_| job.state == QueueState::Pending) else {
                continue;
            };
            let number: u32 = number;
            let link = number
                .checked_sub(1)
                .and_then(|place| self.links.get(place as usize));
            // Where none is known yet, the first one found will be the link's.
            let is_stray = match link {
                Some(link) => link.job.is_some_and(|known| known != job.id),
                None => true,
            };
            if is_stray {
                strays.push(job.id);
            }
        }
        strays
    }

    /// Takes what `listing` says of the link at `place`, at the moment `now_s`. Returns what has
    /// changed.
    pub fn observe(
        &mut self,
        place: usize,
        listing: &QueueListing,
        now_s: i64,
    ) -> Option<LinkEvent> {
        let link = &mut self.links[place];
        let id = link.job?;
        if link.end_s.is_some() {
            return None;
        }
        let Some(job) = listing.jobs.iter().find(|job| job.id == id) else {
            // What was just submitted may not be listed yet.
            if now_s - link.submit_s < LISTED_AFTER_S {
                return None;
            }
            link.end_s = Some(now_s);
            return Some(LinkEvent::Forgotten);
        };
        match job.state {
            QueueState::Pending if link.start_s.is_some() => {
                link.start_s = None;
                Some(LinkEvent::Requeued)
            }
            QueueState::Pending => None,
            QueueState::Running | QueueState::Completing => {
                if link.start_s.is_some() && link.start_s == job.start_s {
                    return None;
                }
                link.start_s = job.start_s;
                link.start_s.map(|_| LinkEvent::Started)
            }
            QueueState::Ended => {
                // A job that was cancelled while it waited has none.
                if !job.node_list.is_empty() {
                    link.start_s = job.start_s;
                }
                link.end_s = job.end_s.or(Some(now_s));
                link.outcome = job.outcome;
                Some(LinkEvent::Ended)
            }
        }
    }

    /// By how much the link at `place` started after the end of the one before, seconds; below 0 for
    /// an overlap.
    pub fn gap_s(&self, place: usize) -> Option<i64> {
        let before = self.links.get(place.checked_sub(1)?)?;
        Some(self.links.get(place)?.start_s? - before.end_s?)
    }

    /// Whether all `links` have been submitted, the last one has started and the others have ended.
    pub fn is_done(&self, links: u32) -> bool {
        let Some((last, others)) = self.links.split_last() else {
            return links == 0;
        };
        let has_run = last.start_s.is_some() || last.end_s.is_some();
        last.number >= links && has_run && others.iter().all(|link| link.end_s.is_some())
    }
}

/// So long after a submission Slurm has surely listed a job, seconds.
const LISTED_AFTER_S: i64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(jobs: &[(u64, &str, &str, i64, i64)], chain: &str) -> QueueListing {
        let mut rows = Vec::new();
        for (id, state, link, start_s, end_s) in jobs {
            let nodes = if *start_s > 0 { "n1" } else { "" };
            rows.push(format!(
                r#"{{"job_id": {id}, "job_state": "{state}", "partition": "all", "node_count": 1, "time_limit": 1, "submit_time": 100,
                "start_time": {start_s}, "end_time": {end_s}, "nodes": "{nodes}", "comment": "poolcast chain {chain} link {link}"}}"#
            ));
        }
        let text = format!("{{\"jobs\": [{}]}}", rows.join(","));
        QueueListing::parse(text.as_bytes()).expect("read")
    }

    fn state(dir: &Path, jobs: &[Option<u64>]) -> ChainState {
        let mut state = ChainState::open(dir).expect("begun");
        state.chain = "c".to_owned();
        for (place, job) in jobs.iter().enumerate() {
            state.links.push(ChainLink {
                number: place as u32 + 1,
                job: *job,
                is_released: true,
                submit_s: 100,
                start_s: None,
                end_s: None,
                outcome: None,
            });
        }
        state
    }

    #[test]
    fn a_state_is_found_again_and_others_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let kept = state(dir.path(), &[Some(4), None]);
        kept.save().expect("written");
        assert_eq!(ChainState::open(dir.path()).expect("read"), kept);

        let path = dir.path().join(STATE_FILE);
        let text = fs_err::read_to_string(&path).expect("read");
        let refusal = |text: &str| {
            files::write_atomic(&path, text.as_bytes()).expect("written");
            poolcast_base::error::render(&ChainState::open(dir.path()).expect_err("refused"))
        };
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        assert!(refusal(&newer).contains("version 2"));
        for broken in [
            &text[..40],
            "{}",
            &text.replace("\"number\": 2", "\"number\": 7"),
        ] {
            assert!(refusal(broken).contains("is no state of a chain"));
        }
    }

    #[test]
    fn links_start_are_requeued_and_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut state = state(dir.path(), &[Some(4), Some(5)]);
        let mut see = |jobs: &[(u64, &str, &str, i64, i64)]| {
            let event = state.observe(0, &listing(jobs, "c"), 150);
            (event, state.links[0].start_s, state.links[0].end_s)
        };
        assert_eq!(see(&[(4, "PENDING", "1", 0, 0)]), (None, None, None));
        let running = see(&[(4, "RUNNING", "1", 110, 170)]);
        assert_eq!(running, (Some(LinkEvent::Started), Some(110), None));
        assert_eq!(see(&[(4, "RUNNING", "1", 110, 170)]).0, None);
        let again = see(&[(4, "PENDING", "1", 0, 0)]);
        assert_eq!(again, (Some(LinkEvent::Requeued), None, None));
        let ended = see(&[(4, "TIMEOUT", "1", 130, 190)]);
        assert_eq!(ended, (Some(LinkEvent::Ended), Some(130), Some(190)));

        let forgotten = state.observe(1, &listing(&[], "c"), 129);
        assert_eq!(forgotten, None, "it was just submitted");
        let forgotten = state.observe(1, &listing(&[], "c"), 130);
        assert_eq!(forgotten, Some(LinkEvent::Forgotten));
        state.links[1].start_s = Some(185);
        assert_eq!((state.gap_s(1), state.gap_s(0)), (Some(-5), None));
        assert!(state.is_done(2) && !state.is_done(3));
    }

    #[test]
    fn a_second_job_of_a_link_is_a_stray() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut state = state(dir.path(), &[Some(4), None]);
        let jobs = [
            (4, "RUNNING", "1", 110, 170),
            (7, "PENDING", "2", 0, 0),
            (6, "PENDING", "2", 0, 0),
            (8, "PENDING", "1", 0, 0),
            (9, "PENDING", "3", 0, 0),
        ];
        let listed = listing(&jobs, "c");
        assert_eq!(state.job_in(&listed, 2).map(|job| job.id), Some(6));
        assert_eq!(state.strays(&listed), [8, 9]);
        state.links[1].job = Some(6);
        assert_eq!(state.strays(&listed), [7, 8, 9]);
        assert!(state.strays(&listing(&jobs, "another")).is_empty());
    }
}
