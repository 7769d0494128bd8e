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
    /// Submission time, epoch seconds.
    pub submit_s: i64,
    /// Start time, epoch seconds; of the last run, if the job was requeued.
    pub start_s: Option<i64>,
    /// End time, epoch seconds.
    pub end_s: Option<i64>,
    /// The outcome, if known.
    pub outcome: Option<JobOutcome>,
    /// Time limit, in seconds, if known.
    #[serde(default)]
    pub limit_s: Option<i64>,
    /// The wait, in seconds, that 90 % of the draws exceeded at submission. `None` for a link that
    /// was submitted without a forecast.
    #[serde(default)]
    pub expected_wait_s: Option<i64>,
    /// The listings that lacked the job since the last one that had it.
    #[serde(skip)]
    absence: Absence,
}

/// The consecutive listings that lacked a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Absence {
    listings: u32,
    /// The time of the first of them, in epoch seconds.
    since_s: i64,
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
    /// The number of the last link whose start was reported as far too early.
    #[serde(default)]
    pub told_early_start: u32,
    /// The number of the last link after which the chain has asked whether the work is done.
    #[serde(default)]
    pub asked_after: u32,
    /// The number of the link after which the work was done.
    #[serde(default)]
    pub done_after: Option<u32>,
    /// The number of the user whose jobs the links are.
    #[serde(default = "caller")]
    user_id: u32,
    #[serde(skip)]
    dir: PathBuf,
}

impl ChainLink {
    /// Creates a link that is about to be submitted.
    pub(super) fn intended(number: u32, submit_s: i64) -> ChainLink {
        ChainLink {
            number,
            job: None,
            is_released: false,
            submit_s,
            start_s: None,
            end_s: None,
            outcome: None,
            limit_s: None,
            expected_wait_s: None,
            absence: Absence::default(),
        }
    }

    /// Returns true if the last listing lacked the job, although it has not ended.
    pub(super) fn is_absent(&self) -> bool {
        self.absence.listings > 0 && self.end_s.is_none()
    }

    /// Notes that the job is alive, although the last listing lacked it.
    pub(super) fn forget_absence(&mut self) {
        self.absence = Absence::default();
    }

    /// Notes that a listing at `now_s` lacks the job. Several listings without it in a row mean that
    /// it has ended; a single one may just be incomplete.
    fn miss(&mut self, now_s: i64) -> Option<LinkEvent> {
        if self.absence.listings == 0 {
            self.absence.since_s = now_s;
        }
        self.absence.listings += 1;
        let lasts_s = now_s - self.absence.since_s;
        if self.absence.listings < MIN_ABSENT_LISTINGS || lasts_s < MIN_ABSENT_S {
            return None;
        }
        self.end_s = Some(now_s);
        Some(LinkEvent::Forgotten)
    }

    /// Returns true if the job started far earlier than forecast, so that the forecast was wrong.
    fn has_started_far_too_early(&self) -> bool {
        let (Some(expected_s), Some(start_s)) = (self.expected_wait_s, self.start_s) else {
            return false;
        };
        let wait_s = start_s - self.submit_s;
        wait_s < expected_s / 2 && expected_s - wait_s > MIN_EARLY_S
    }

    /// Returns true if the job would have ended long before `now_s`, as it had started and had a
    /// time limit.
    pub(super) fn has_outlived_limit(&self, now_s: i64) -> bool {
        let end_s = self.start_s.zip(self.limit_s);
        end_s.is_some_and(|(start_s, limit_s)| now_s > start_s + limit_s + MAX_OVERTIME_S)
    }

    /// Returns true if the job ended so shortly before its time limit that Slurm had probably sent
    /// it the signal of `sbatch --signal`.
    fn has_ended_at_its_limit(&self) -> bool {
        let (Some(start_s), Some(end_s), Some(limit_s)) = (self.start_s, self.end_s, self.limit_s)
        else {
            return false;
        };
        start_s + limit_s - end_s <= MAX_SIGNAL_LEAD_S.min(limit_s / 10)
    }
}

/// Returns the number of the user who runs this program.
fn caller() -> u32 {
    rustix::process::getuid().as_raw()
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
    /// Slurm no longer lists the link, which has ended.
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
            return ChainState::begin(dir);
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
        ensure!(
            state.user_id == caller(),
            hinted(
                format!(
                    "`{}` is the state of a chain of the user with the number {}",
                    path.display(),
                    state.user_id
                ),
                "run the command as that user, or start another chain with `--state DIR`"
            )
        );
        Ok(ChainState {
            dir: dir.to_owned(),
            ..state
        })
    }

    /// A chain without links in the directory `dir`.
    fn begin(dir: &Path) -> Result<ChainState> {
        Ok(ChainState {
            format: FORMAT.to_owned(),
            version: VERSION,
            chain: random_text::<8>()?,
            links: Vec::new(),
            told_failure: 0,
            told_early_start: 0,
            asked_after: 0,
            done_after: None,
            user_id: caller(),
            dir: dir.to_owned(),
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

    /// Returns the jobs in `listing` of the chain's user. Anybody can submit a job with the comment
    /// of a link.
    fn own_jobs<'a>(&self, listing: &'a QueueListing) -> impl Iterator<Item = &'a ListedJob> {
        let user_id = self.user_id;
        let jobs = listing.jobs.iter();
        jobs.filter(move |job| job.user_id == Some(user_id))
    }

    /// Finds the user's job with the number `id` in `listing`.
    pub fn own_job<'a>(&self, listing: &'a QueueListing, id: u64) -> Option<&'a ListedJob> {
        self.own_jobs(listing).find(|job| job.id == id)
    }

    /// Finds the job of link `number` in `listing`; the one with the lowest id if there are
    /// several.
    pub fn link_job<'a>(&self, listing: &'a QueueListing, number: u32) -> Option<&'a ListedJob> {
        let comment = self.comment_of(number);
        let jobs = self.own_jobs(listing);
        let jobs = jobs.filter(|job| job.comment == comment);
        jobs.min_by_key(|job| job.id)
    }

    /// Finds jobs of this chain that are not the job of any link. They come from submissions that
    /// seemed lost and were repeated. They are held, and never run.
    pub fn strays(&self, listing: &QueueListing) -> Vec<u64> {
        let begin = self.comment_prefix();
        let mut strays = Vec::new();
        for job in self.own_jobs(listing) {
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
        let id = self.links[place].job?;
        if self.links[place].end_s.is_some() {
            return None;
        }
        let job = self.own_job(listing, id);
        let link = &mut self.links[place];
        let Some(job) = job else {
            return link.miss(now_s);
        };
        link.forget_absence();
        link.limit_s = job.limit_s;
        match job.state {
            QueueState::Pending if link.start_s.is_some() => {
                link.start_s = None;
                Some(LinkEvent::Requeued)
            }
            // A job in an unknown state is alive.
            QueueState::Pending | QueueState::Unknown => None,
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

    /// Finds a link that started far earlier than forecast, and that was not reported yet.
    pub fn unreported_early_start(&self) -> Option<&ChainLink> {
        let reported = self.told_early_start;
        let mut links = self.links.iter().filter(|link| link.number > reported);
        links.find(|link| link.has_started_far_too_early())
    }

    /// Finds a link that failed without being asked to end, and that was not reported yet. A link
    /// that was cancelled counts only if no other one was submitted since.
    pub fn unreported_failure(&self) -> Option<&ChainLink> {
        let reported = self.told_failure;
        let mut links = self.links.iter().filter(|link| link.number > reported);
        links.find(|link| match link.outcome {
            Some(JobOutcome::Failed) => !self.was_asked_to_end(link),
            Some(JobOutcome::Cancelled) => link.number as usize == self.links.len(),
            _ => false,
        })
    }

    /// Returns true if the link with this number failed without being asked to end.
    pub(super) fn has_failed(&self, number: u32) -> bool {
        let link = self.links.iter().find(|link| link.number == number);
        link.is_some_and(|link| {
            link.outcome == Some(JobOutcome::Failed) && !self.was_asked_to_end(link)
        })
    }

    /// Returns true if `link` exited with code 0 without being asked to end.
    pub(super) fn has_succeeded(&self, link: &ChainLink) -> bool {
        link.outcome == Some(JobOutcome::Completed) && !self.was_asked_to_end(link)
    }

    /// Records whether the work is done after the link with this number.
    pub(super) fn note_work(&mut self, number: u32, is_done: bool) -> Result<()> {
        self.asked_after = number;
        self.done_after = is_done.then_some(number);
        self.save()
    }

    /// Adds `job`, which the chain has not submitted, as its next link. Failures before it count as reported.
    pub(super) fn adopt(&mut self, job: &ListedJob) {
        self.told_failure = self.links.len() as u32;
        let mut link = ChainLink::intended(self.told_failure + 1, job.submit_s);
        link.job = Some(job.id);
        link.is_released = true;
        link.limit_s = job.limit_s;
        link.start_s = job.start_s;
        self.links.push(link);
    }

    /// Begins another chain in the directory of this one, which is over.
    pub(super) fn begin_again(&mut self) -> Result<()> {
        *self = ChainState::begin(&self.dir)?;
        Ok(())
    }

    /// Returns the directory of the chain.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns true if `link` was asked to end: by its successor, which had started, or by Slurm
    /// shortly before the time limit.
    pub(super) fn was_asked_to_end(&self, link: &ChainLink) -> bool {
        let next_start_s = self
            .links
            .get(link.number as usize)
            .and_then(|next| next.start_s);
        let has_started = next_start_s
            .zip(link.end_s)
            .is_some_and(|(start_s, end_s)| start_s < end_s);
        has_started || link.has_ended_at_its_limit()
    }

    /// Returns the last link that has ended, unless the chain has asked after it whether the work is done.
    pub(super) fn last_unasked(&self) -> Option<&ChainLink> {
        let ended = self.links.iter().rfind(|link| link.end_s.is_some());
        ended.filter(|link| link.number > self.asked_after)
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

/// Minimum number of consecutive listings without a job after which it has ended.
const MIN_ABSENT_LISTINGS: u32 = 5;

/// Minimum time, in seconds, between the first and the last of these listings.
const MIN_ABSENT_S: i64 = 300;

/// Difference between the forecast start and the start, in seconds, above which the start is far
/// too early.
const MIN_EARLY_S: i64 = 300;

/// Maximum time, in seconds, that a job is expected to run beyond its time limit.
const MAX_OVERTIME_S: i64 = 3600;

/// Maximum time, in seconds, between Slurm's signal before the limit and the limit.
const MAX_SIGNAL_LEAD_S: i64 = 900;

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(jobs: &[(u64, &str, &str, i64, i64)], chain: &str) -> QueueListing {
        listing_of(jobs, chain, caller())
    }

    fn listing_of(jobs: &[(u64, &str, &str, i64, i64)], chain: &str, user_id: u32) -> QueueListing {
        let mut rows = Vec::new();
        for (id, state, link, start_s, end_s) in jobs {
            let nodes = if *start_s > 0 { "n1" } else { "" };
            rows.push(format!(
                r#"{{"job_id": {id}, "job_state": "{state}", "partition": "all", "node_count": 1, "time_limit": 1, "submit_time": 100,
                "start_time": {start_s}, "end_time": {end_s}, "nodes": "{nodes}", "user_id": {user_id}, "comment": "poolcast chain {chain} link {link}"}}"#
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
                job: *job,
                is_released: true,
                ..ChainLink::intended(place as u32 + 1, 100)
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

        state.links[1].start_s = Some(185);
        assert_eq!((state.gap_s(1), state.gap_s(0)), (Some(-5), None));
        assert!(state.is_done(2) && !state.is_done(3));
    }

    #[test]
    fn only_several_listings_over_minutes_without_a_link_are_its_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut state = state(dir.path(), &[Some(4)]);
        let present = listing(&[(4, "RUNNING", "1", 110, 0)], "c");
        let lacking = listing(&[], "c");
        for now_s in 200..210 {
            assert_eq!(state.observe(0, &lacking, now_s), None, "{now_s}");
            assert!(state.links[0].is_absent());
        }
        let seen = state.observe(0, &present, 1000);
        assert_eq!(seen, Some(LinkEvent::Started));
        assert!(!state.links[0].is_absent());

        let events = [1100, 1200, 1300, 1399, 1400].map(|now_s| state.observe(0, &lacking, now_s));
        let forgotten = Some(LinkEvent::Forgotten);
        assert_eq!(events, [None, None, None, None, forgotten]);
        assert_eq!(state.links[0].end_s, Some(1400));
    }

    #[test]
    fn links_in_unknown_states_are_alive() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut state = state(dir.path(), &[Some(4)]);
        let dreaming = listing(&[(4, "DREAMING", "1", 110, 170)], "c");
        for now_s in [200, 2000, 20_000] {
            assert_eq!(state.observe(0, &dreaming, now_s), None);
            assert!(state.links[0].end_s.is_none() && !state.links[0].is_absent());
        }
    }

    #[test]
    fn jobs_of_other_users_are_not_links() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut state = state(dir.path(), &[Some(4), None]);
        let mut listed = listing_of(&[(3, "PENDING", "2", 0, 0)], "c", caller() + 1);
        assert_eq!(state.link_job(&listed, 2), None);
        assert!(state.strays(&listed).is_empty());
        listed
            .jobs
            .extend(listing(&[(5, "PENDING", "2", 0, 0)], "c").jobs);
        assert_eq!(state.link_job(&listed, 2).map(|job| job.id), Some(5));

        let other = listing_of(&[(4, "COMPLETED", "1", 110, 170)], "c", caller() + 1);
        assert_eq!(state.observe(0, &other, 180), None);
        assert!(state.links[0].is_absent());

        state.user_id += 1;
        state.save().expect("written");
        let error = ChainState::open(dir.path()).expect_err("rejected");
        assert!(error.to_string().contains("of the user with"), "{error}");
    }

    #[test]
    fn only_unasked_failures_are_reported() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut state = state(dir.path(), &[Some(4), Some(5)]);
        let link = &mut state.links[0];
        (link.start_s, link.end_s) = (Some(1000), Some(5000));
        link.limit_s = Some(172_800);
        let failure = |state: &ChainState| state.unreported_failure().map(|link| link.number);
        state.links[0].outcome = Some(JobOutcome::Cancelled);
        assert_eq!(failure(&state), None, "the next link was submitted");
        state.links[0].outcome = Some(JobOutcome::Failed);
        assert_eq!(failure(&state), Some(1));
        // Slurm may start a link in the second in which the one that it depends on ends.
        for start_s in [5000, 5001] {
            state.links[1].start_s = Some(start_s);
            assert_eq!(failure(&state), Some(1), "{start_s}");
        }
        state.links[1].start_s = Some(4990);
        assert_eq!(failure(&state), None, "the next link asked it to end");
        state.links[1].start_s = None;
        state.links[0].end_s = Some(1000 + 172_800 - 100);
        assert_eq!(failure(&state), None, "Slurm asked it to end");
        state.links[0].end_s = Some(1000 + 172_800 - 1000);
        assert_eq!(failure(&state), Some(1));
        state.told_failure = 1;
        assert_eq!(failure(&state), None, "it was reported");
    }

    #[test]
    fn starts_far_earlier_than_forecast_are_reported() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut state = state(dir.path(), &[Some(4), Some(5)]);
        for (expected_wait_s, wait_s, is_early) in [
            (None, 0, false),
            (Some(172_000), 0, true),
            (Some(172_000), 80_000, true),
            (Some(172_000), 90_000, false),
            (Some(300), 0, false),
            (Some(301), 0, true),
        ] {
            let link = &mut state.links[1];
            link.expected_wait_s = expected_wait_s;
            link.start_s = Some(link.submit_s + wait_s);
            let found = state.unreported_early_start();
            assert_eq!(found.is_some(), is_early, "{expected_wait_s:?} {wait_s}");
        }
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
