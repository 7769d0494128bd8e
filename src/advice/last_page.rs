//! The numbers of the things on the page that a user saw last, kept between two calls. A number names the jobs of
//! that page alone: jobs that are held since have none.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::held_things::HeldThing;
use super::job_advice::{AdvisedJob, JobAdvice};
use poolcast_base::error::hinted;
use poolcast_base::{files, manifest, output};

/// Name of the file in the directory of a run or of a user.
const PAGE_FILE: &str = "last-page.json";

/// Version of the file.
const VERSION: u32 = 1;

/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The things of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPage {
    version: u32,
    /// Digest of the call that printed it.
    call: String,
    /// Time at which it was printed, epoch ms.
    shown_ms: i64,
    /// Time for which its answers were good, ms; `None` if they do not expire.
    good_for_ms: Option<i64>,
    /// Things by their numbers, from 1 on: hashes of the holds of each.
    things: Vec<HashSet<u64>>,
}

/// The jobs of one thing of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownThing {
    holds: HashSet<u64>,
}

impl LastPage {
    /// Creates the record of a page with `things`, which `call` printed at `now_ms`. Its answers are for `asked_ms`.
    pub fn new(things: &[HeldThing<'_>], call: &str, asked_ms: i64, now_ms: i64) -> LastPage {
        let members = things.iter().flat_map(|thing| &thing.members);
        let good_until_ms = members.filter_map(|one| one.forecast.good_until_ms).min();
        LastPage {
            version: VERSION,
            call: call_digest(call),
            shown_ms: now_ms,
            good_for_ms: good_until_ms.map(|until_ms| until_ms - asked_ms),
            things: (things.iter())
                .map(|thing| thing.members.iter().map(|one| hold_hash(one)).collect())
                .collect(),
        }
    }

    /// Keeps the page in `dir`, in place of the previous one.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn keep(&self, dir: &Path) -> Result<()> {
        fs_err::create_dir_all(dir)?;
        files::write_atomic(&dir.join(PAGE_FILE), &serde_json::to_vec(self)?)
    }

    /// Returns the thing with `number` on the last page of `call` that is kept in `dir`.
    ///
    /// # Errors
    /// Fails if no page is kept, if it is one of another call, if its answers have expired at `now_ms`, or if it has
    /// no such number.
    pub fn thing(dir: &Path, number: usize, call: &str, now_ms: i64) -> Result<ShownThing> {
        let again = || format!("`{call}` prints a page with numbers");
        let path = dir.join(PAGE_FILE);
        ensure!(
            path.exists(),
            hinted("no page with numbers is known", again())
        );
        let text = files::read_regular(&path, MAX_BYTES)?;
        let page: LastPage = serde_json::from_slice(&text)
            .ok()
            .filter(|page: &LastPage| page.version == VERSION)
            .with_context(|| {
                let what = format!("`{}` is not a page of this version", path.display());
                hinted(what, again())
            })?;
        ensure!(
            page.call == call_digest(call),
            hinted("the last page with numbers is one of another call", again())
        );
        let age_ms = now_ms.saturating_sub(page.shown_ms);
        let is_over = page.good_for_ms.is_some_and(|good_ms| age_ms > good_ms);
        ensure!(
            !is_over,
            hinted(
                format!(
                    "the page with this number is {} old, and its answers have expired",
                    output::time_span(age_ms)
                ),
                again()
            )
        );
        let count = page.things.len();
        let holds = number
            .checked_sub(1)
            .and_then(|at| page.things.into_iter().nth(at));
        let holds = holds.with_context(|| {
            hinted(
                format!("the last page has no number {number}"),
                format!("its numbers are 1 to {count}"),
            )
        })?;
        Ok(ShownThing { holds })
    }
}

impl ShownThing {
    /// Returns true if the page showed the hold of `advice` under this number.
    pub fn has(&self, advice: &JobAdvice) -> bool {
        self.holds.contains(&hold_hash(advice))
    }

    /// Number of jobs that the page showed.
    pub fn jobs(&self) -> usize {
        self.holds.len()
    }
}

/// A call means other files in another directory.
fn call_digest(call: &str) -> String {
    let dir = std::env::current_dir().unwrap_or_default();
    let text = format!("{}\0{call}", dir.display());
    format!("{:.16}", manifest::sha256(text.as_bytes()))
}

fn hold_hash(advice: &JobAdvice) -> u64 {
    let AdvisedJob {
        id,
        ap,
        submitted_ms,
        ..
    } = &advice.job;
    let since_ms = advice.hold.since_ms;
    let text = format!("{ap}\0{id}\0{submitted_ms}\0{since_ms}");
    twox_hash::XxHash3_64::oneshot(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::cause_groups::cause_groups;
    use super::super::held_things::{HeldGrouping, held_things};
    use super::super::job_command::JobId;
    use super::*;

    fn held(cluster: i32) -> JobAdvice {
        JobAdvice::of_test_job().with(|one| {
            one.job.id = JobId { cluster, proc: 0 };
            one.forecast.good_until_ms = Some(5_000);
        })
    }

    /// Keeps a page about `advice` that `advise` printed at 10,000 ms, for the prediction time 2,000 ms.
    fn keep(dir: &Path, advice: &[JobAdvice]) {
        let causes = cause_groups(&advice.iter().collect::<Vec<_>>());
        let page = LastPage::new(
            &held_things(&causes, HeldGrouping::Thing),
            "advise",
            2_000,
            10_000,
        );
        page.keep(dir).expect("written");
    }

    fn failure(dir: &Path, number: usize, call: &str, now_ms: i64) -> String {
        let found = LastPage::thing(dir, number, call, now_ms);
        found.expect_err("a failure").to_string()
    }

    #[test]
    fn number_names_the_jobs_of_the_page_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        keep(dir.path(), &[held(1), held(2)]);
        let shown = LastPage::thing(dir.path(), 1, "advise", 12_000).expect("known");
        assert_eq!(shown.jobs(), 2);
        assert!(shown.has(&held(1)) && !shown.has(&held(3)));
        let held_again = held(1).with(|one| one.hold.since_ms = 1_795_227_967_000);
        assert!(!shown.has(&held_again));
    }

    #[test]
    fn numbers_of_other_pages_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(failure(dir.path(), 1, "advise", 0).contains("no page"));
        keep(dir.path(), &[held(1)]);
        assert!(failure(dir.path(), 2, "advise", 12_000).contains("no number 2"));
        assert!(failure(dir.path(), 0, "advise", 12_000).contains("no number 0"));
        assert!(failure(dir.path(), 1, "advise other", 12_000).contains("another call"));
        assert!(failure(dir.path(), 1, "advise", 13_001).contains("expired"));
        fs_err::write(dir.path().join(PAGE_FILE), "{").expect("damaged");
        assert!(failure(dir.path(), 1, "advise", 12_000).contains("not a page"));
    }
}
