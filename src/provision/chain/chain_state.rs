//! State of a chain, in a file that is replaced atomically.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::live::{JobOutcome, ListedJob, QueueListing, QueueState};
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::salt::random_text;

/// The file name in the chain's directory.
const STATE_FILE: &str = "state.json";

/// The value of the field `format`.
const FORMAT: &str = "poolcast chain";

/// The version of the file, raised when its content changes.
const VERSION: u32 = 1;

/// Maximum file size, in bytes.
const MAX_BYTES: u64 = 1 << 26;

/// A job of a chain. Times are in epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// The number of the link, counted from 1.
    pub number: u32,
    /// The job id; `None` from just before the submission until the chain knows its result.
    pub job: Option<u64>,
    /// True if the job was released. Each job is submitted held.
    pub is_released: bool,
    /// Submission time.
    pub submit_s: i64,
    /// Start time; of the last run, if the job was requeued.
    pub start_s: Option<i64>,
    /// End time.
    pub end_s: Option<i64>,
    /// The outcome, if known.
    pub outcome: Option<JobOutcome>,
}

/// The state of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainState {
    format: String,
    version: u32,
    /// A random text that identifies the chain in the comments of its jobs.
    pub chain: String,
    /// The links, in order.
    pub links: Vec<ChainLink>,
    /// The number of the last failed link that was reported. The next call then continues.
    pub told_failure: u32,
    #[serde(skip)]
    dir: PathBuf,
}

/// A change of a link since the previous check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// The link started.
    Started,
    /// The link was requeued, and waits again.
    Requeued,
    /// The link ended.
    Ended,
    /// Slurm no longer lists the link, and its outcome is unknown.
    Forgotten,
}

impl ChainState {
    /// Opens the chain in the directory `dir`, or begins one if there is none.
    ///
    /// # Errors
    /// Fails for a file that is not the state of a chain, or has another version.
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
                format!("`{}` is not the state of a chain", path.display()),
                "name another directory with `--state DIR`",
            )
        };
        let text = files::read_regular(&path, MAX_BYTES)?;
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
                    "`{}` is the state of a chain in version {}, expected version {VERSION}",
                    path.display(),
                    head.version
                ),
                "continue with the version of poolcast that started the chain, or start another with `--state DIR`"
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

    /// Returns the comment that identifies the job of link `number`.
    pub fn comment_of(&self, number: u32) -> String {
        format!("{}{number}", self.comment_prefix())
    }

    fn comment_prefix(&self) -> String {
        format!("poolcast chain {} link ", self.chain)
    }

    /// Finds the job of link `number` in `listing`; the one with the lowest id if there are
    /// several.
    pub fn link_job<'a>(&self, listing: &'a QueueListing, number: u32) -> Option<&'a ListedJob> {
        let comment = self.comment_of(number);
        let jobs = listing.jobs.iter().filter(|job| job.comment == comment);
        jobs.min_by_key(|job| job.id)
    }

    /// Finds jobs of this chain that are not the job of any link. They come from submissions that
    /// seemed lost and were repeated. They are held, and never run.
    pub fn strays(&self, listing: &QueueListing) -> Vec<u64> {
        let begin = self.comment_prefix();
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
            // As long as the link has no known job, the first one found becomes its job.
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

    /// Updates the link at index `place` from `listing`, as of `now_s`. Returns the change, if any.
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
            // A job that was just submitted may not be listed yet.
            if now_s - link.submit_s < MAX_LISTING_DELAY_S {
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
                // A job that was cancelled while pending has no start.
                if !job.node_list.is_empty() {
                    link.start_s = job.start_s;
                }
                link.end_s = job.end_s.or(Some(now_s));
                link.outcome = job.outcome;
                Some(LinkEvent::Ended)
            }
        }
    }

    /// Returns the time from the end of the previous link to the start of the link at index
    /// `place`, in seconds. It is negative if the two overlap.
    pub fn gap_s(&self, place: usize) -> Option<i64> {
        let before = self.links.get(place.checked_sub(1)?)?;
        Some(self.links.get(place)?.start_s? - before.end_s?)
    }

    /// Returns true if all `links` were submitted, the last one has started or ended, and the
    /// others have ended.
    pub fn is_done(&self, links: u32) -> bool {
        let Some((last, others)) = self.links.split_last() else {
            return links == 0;
        };
        let has_run = last.start_s.is_some() || last.end_s.is_some();
        last.number >= links && has_run && others.iter().all(|link| link.end_s.is_some())
    }
}

/// Maximum delay, in seconds, between a submission and the listing of its job.
const MAX_LISTING_DELAY_S: i64 = 30;

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
    fn saved_states_are_reopened_and_others_rejected() {
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
            assert!(refusal(broken).contains("is not the state of a chain"));
        }
    }

    #[test]
    fn start_requeue_and_end_of_links_are_observed() {
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
    fn second_jobs_of_a_link_are_strays() {
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
        assert_eq!(state.link_job(&listed, 2).map(|job| job.id), Some(6));
        assert_eq!(state.strays(&listed), [8, 9]);
        state.links[1].job = Some(6);
        assert_eq!(state.strays(&listed), [7, 8, 9]);
        assert!(state.strays(&listing(&jobs, "another")).is_empty());
    }
}
