//! Says which held jobs belong to other users: those that are not shown, and those that the user may
//! not release.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::BufRead;

use super::advice_sources::QUEUE_ANSWERS_WITHIN;
use super::own_logs::user_name;
use super::text::advice::flag_words;
use poolcast_advice::{HeldByOthers, JobAdvice, OWNER_ATTRIBUTE};
use poolcast_base::output;
use poolcast_sweep::condor;

/// Maximum number of owners that are named.
const MAX_NAMED_OWNERS: usize = 3;

/// Says that no job of this user is held, and how many jobs of others are. Returns `None` if no job is
/// held at all.
pub(super) fn none_of_own_words() -> Option<String> {
    let user = user_name().ok();
    let count = |list: &mut dyn BufRead| HeldByOthers::count(list, user.as_deref());
    let counted = condor::ask_held_jobs(OWNER_ATTRIBUTE, true, QUEUE_ANSWERS_WITHIN, count);
    let Ok(Some(others)) = counted else {
        return Some("none of your jobs is held".to_owned());
    };
    (others.jobs > 0).then(|| {
        let jobs = output::counted(others.jobs, "job");
        let owners = output::counted(others.owners, "other user");
        format!("none of your jobs is held, but {jobs} of {owners}: --all-users")
    })
}

/// Held jobs that the user may not release.
pub(super) struct OthersJobs {
    /// The number of the jobs, and the users who may release them.
    pub(super) words: String,
    /// The command that prints a page to send to the owner of most of them, after the owner's name;
    /// `None` if this page cannot be printed again.
    pub(super) page: Option<String>,
}

impl OthersJobs {
    /// Finds the jobs of other owners in `chosen`, which the command `call` prints. Returns `None` if
    /// there are none, if this user may release all jobs, or if the access point does not say who
    /// may.
    pub(super) fn find(chosen: &[&JobAdvice], call: Option<&str>) -> Option<OthersJobs> {
        let user = user_name().ok()?;
        let owners = other_owners(chosen, &user);
        let (most, _) = *owners.first()?;
        let super_users = condor::queue_super_users()?;
        if super_users.contains(&user) {
            return None;
        }

        let jobs = owners.iter().map(|(_, jobs)| jobs).sum();
        let words = format!(
            "you may not release {} of other users: their owners may ({}), and {}",
            output::counted(jobs, "job"),
            owners_words(&owners),
            super_users.join(", ")
        );
        let page =
            call.map(|call| format!("a page for {most}: {call}{}", flag_words("--owner", most)));
        Some(OthersJobs { words, page })
    }
}

/// The owners of `chosen` except `user`, and the number of their jobs; those with the most first.
fn other_owners<'a>(chosen: &[&'a JobAdvice], user: &str) -> Vec<(&'a str, usize)> {
    let mut jobs: BTreeMap<&str, usize> = BTreeMap::new();
    for owner in chosen.iter().filter_map(|one| one.job.owner.as_deref()) {
        if owner != user {
            *jobs.entry(owner).or_default() += 1;
        }
    }
    let mut owners: Vec<(&str, usize)> = jobs.into_iter().collect();
    owners.sort_by_key(|&(_, jobs)| Reverse(jobs));
    owners
}

fn owners_words(owners: &[(&str, usize)]) -> String {
    let named = owners.iter().take(MAX_NAMED_OWNERS);
    let mut words: Vec<String> = named
        .map(|(owner, jobs)| format!("{owner} {jobs}"))
        .collect();
    if owners.len() > MAX_NAMED_OWNERS {
        words.push(output::counted(owners.len() - MAX_NAMED_OWNERS, "other"));
    }
    words.join(", ")
}
