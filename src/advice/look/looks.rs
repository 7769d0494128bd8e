//! Looks at the files of all held jobs, and gives jobs the answer that follows.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use poolcast_base::output;
use rustix::process::geteuid;

use super::job_look::{JobLook, JobPath};
use super::look_process::{LookAnswer, LookProcess, UserPath};
use super::look_user::{LookUser, SUPER_USER};
use super::named_path::{NamedPath, PathUse};
use crate::job_advice::{AdviceGround, JobAdvice};
use crate::job_command::{CommandTask, JobCommand};
use crate::queue_facts::absolute_path;
use crate::remedy::action_commands;
use crate::same_host::is_same_host;
use poolcast_base::shared_text::SharedText;
use poolcast_holds::answers::ThingKind;
use poolcast_holds::decision::{AnswerFirmness, HoldAction};

/// Maximum number of paths that are looked at.
const MAX_PATHS: usize = 2000;

/// Time for which an answer by a look is good, ms.
const LOOK_GOOD_FOR_MS: i64 = 10 * 60_000;

/// Room that a job needs if its disk usage is unknown, in bytes.
const UNKNOWN_USAGE_BYTES: u64 = 1 << 30;

/// The held jobs whose files are on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookScope {
    /// All held jobs, because the queue of this access point has them.
    Queue,
    /// All held jobs, because the user says so.
    All,
    /// The held jobs of the access point with this host name.
    OfHost(String),
}

/// The settings of a look.
#[derive(Debug, Clone)]
pub struct LookPlan {
    /// The held jobs whose files are on this machine.
    scope: LookScope,
    /// The name of the user whose rights this process has, if it is known.
    pub(super) user: Option<String>,
    /// Time of the look, epoch ms.
    pub(super) now_ms: i64,
}

/// A path that a job names, by its index among the paths to look at.
struct AskedPath {
    job: usize,
    at: usize,
    path: JobPath,
}

impl LookPlan {
    /// Creates a plan for a look at `now_ms`, by the user with the name `user`.
    pub fn new(scope: LookScope, user: Option<String>, now_ms: i64) -> LookPlan {
        // The environment may still have the name of the user who became root.
        let has_own_rights = |user: &String| !geteuid().is_root() || user == SUPER_USER;
        LookPlan {
            scope,
            user: user.filter(has_own_rights),
            now_ms,
        }
    }

    /// Lets `process` look at the files that held jobs name, and gives those jobs the answer that
    /// follows. Returns a caveat if not all files could be looked at.
    ///
    /// # Errors
    /// Fails if the process cannot be started.
    pub fn look(&self, process: LookProcess, advice: &mut [JobAdvice]) -> Result<Option<String>> {
        let (paths, mut asked) = self.asked_paths(advice);
        if asked.is_empty() {
            return Ok(None);
        }
        let answers = look_at(&process, &paths)?;
        add_last_failures(&mut asked);
        add_waiting_jobs(&mut asked, &answers);
        let looks = asked.iter().filter_map(|AskedPath { job, at, path }| {
            Some((*job, path.look(answers[*at], self.now_ms)?))
        });
        add_looks(advice, looks);
        Ok(open_files_caveat("that holds name", &paths, &answers))
    }

    /// Returns true if the files of `access_point` are on this machine.
    pub(super) fn has_files_of(&self, access_point: &str) -> bool {
        self.scope.has(access_point)
    }

    /// Returns true if the queue of this access point names the jobs.
    pub(super) fn is_of_queue(&self) -> bool {
        self.scope == LookScope::Queue
    }

    /// Returns true if `owner` is this user.
    pub(super) fn is_own(&self, owner: Option<&str>) -> bool {
        let user = self.user.as_deref();
        user.is_some() && user == owner
    }

    /// Time of the look, epoch ms.
    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Returns the paths to look at, and the jobs that name them.
    fn asked_paths(&self, advice: &[JobAdvice]) -> (Vec<UserPath>, Vec<AskedPath>) {
        let mut numbers: HashMap<UserPath, usize> = HashMap::new();
        let (mut paths, mut asked) = (Vec::<UserPath>::new(), Vec::new());
        for (job, one) in advice.iter().enumerate() {
            let user = LookUser::for_owner(one.job.owner.as_ref());
            let (Some(mut path), Some(user)) = (self.path_of(one), user) else {
                continue;
            };
            path.is_own |= user != LookUser::This;
            let key = UserPath {
                path: path.path.clone(),
                user,
            };
            let at = *numbers.entry(key).or_insert_with_key(|key| {
                paths.push(key.clone());
                paths.len() - 1
            });
            path.path = paths[at].path.clone();
            asked.push(AskedPath { job, at, path });
        }
        (paths, asked)
    }

    /// Returns the path that the hold of a job is about; `None` if it names none on this machine, or
    /// if a person has to decide anyway.
    fn path_of(&self, one: &JobAdvice) -> Option<JobPath> {
        if one.verdict.action == HoldAction::Leave {
            return None;
        }
        let reason = one.hold.reason.as_ref().map(ToString::to_string);
        let named = reason
            .as_deref()
            .and_then(|reason| NamedPath::in_reason(one.hold.code, reason));
        let access_point = named.as_ref().and_then(|named| named.access_point);
        if !self.scope.has(access_point.unwrap_or(&one.job.ap)) {
            return None;
        }
        let files = one.job.queue.as_deref().map(|facts| &facts.files);
        let path = match &named {
            Some(named) => {
                let directory = files.and_then(|files| files.initial_directory.as_deref());
                absolute_path(named.path, directory)?.into()
            }
            None => files?.sent(one.hold.code)?.clone(),
        };
        let usage_kib = files.and_then(|files| files.disk_usage_kib);
        Some(JobPath {
            path,
            use_of_path: named
                .as_ref()
                .map_or(PathUse::Send, |named| named.use_of_path),
            error: named.as_ref().and_then(|named| named.error),
            is_only_failure: named.as_ref().is_none_or(|named| named.is_only_failure),
            is_first_hold: one.hold.holds <= 1,
            is_exact: named.is_none(),
            is_own: self.is_own(one.job.owner.as_deref()),
            failed_ms: last_failure_ms(one),
            needed_bytes: usage_kib.map_or(UNKNOWN_USAGE_BYTES, |kib| kib.saturating_mul(1024)),
            waiting_jobs: 1,
        })
    }
}

/// Lets `process` look at the first [`MAX_PATHS`] of `paths`; returns an answer for each of `paths`.
///
/// # Errors
/// Fails if the process cannot be started.
pub(super) fn look_at(process: &LookProcess, paths: &[UserPath]) -> Result<Vec<LookAnswer>> {
    let mut answers = process.look(&paths[..paths.len().min(MAX_PATHS)])?;
    answers.resize(paths.len(), LookAnswer::NotTried);
    Ok(answers)
}

/// Returns a caveat if not all files could be looked at. `which` says what names them.
pub(super) fn open_files_caveat(
    which: &str,
    paths: &[UserPath],
    answers: &[LookAnswer],
) -> Option<String> {
    let is_open = |answer: &&LookAnswer| **answer == LookAnswer::NotTried;
    let open = answers.iter().filter(is_open).count();
    let is_of_owner = paths.iter().any(|path| path.user != LookUser::This);
    let why = if is_of_owner {
        ", or not with the rights of their owners"
    } else {
        ""
    };
    (open > 0).then(|| {
        format!(
            "{} of {} {which} could not be checked in time{why}",
            output::with_commas(open as u64),
            output::counted(answers.len(), "file")
        )
    })
}

impl LookScope {
    /// Returns true if files of `access_point` are on this machine.
    fn has(&self, access_point: &str) -> bool {
        match self {
            LookScope::Queue | LookScope::All => true,
            LookScope::OfHost(host) => is_same_host(host, access_point),
        }
    }
}

/// Returns the time of the last known failure for the file that `one` is held for, epoch ms.
fn last_failure_ms(one: &JobAdvice) -> i64 {
    let state = one.forecast.state.as_deref();
    let of_file = state.filter(|state| state.kind == ThingKind::File);
    let last_ms = of_file.map(|state| state.last_failure_ms);
    let is_known = one.hold.since_ms > 0;
    // Nothing is known to have changed after a hold whose time is unknown.
    let held_ms = if is_known {
        one.hold.since_ms
    } else {
        i64::MAX
    };
    last_ms.map_or(held_ms, |last_ms| last_ms.max(held_ms))
}

/// Sets the time of the last failure of each path to the time of the last hold for it.
fn add_last_failures(asked: &mut [AskedPath]) {
    let mut last_ms: HashMap<usize, i64> = HashMap::new();
    for one in &*asked {
        let last = last_ms.entry(one.at).or_insert(i64::MIN);
        *last = one.path.failed_ms.max(*last);
    }
    for one in asked {
        one.path.failed_ms = last_ms[&one.at];
    }
}

/// Counts the jobs that wait for room on each file system.
fn add_waiting_jobs(asked: &mut [AskedPath], answers: &[LookAnswer]) {
    let device = |one: &AskedPath| match answers[one.at] {
        LookAnswer::Seen(sight) if one.path.lacks_room() => sight.room.map(|room| room.device),
        _ => None,
    };
    let mut waiting: HashMap<u64, u64> = HashMap::new();
    for device in asked.iter().filter_map(device) {
        *waiting.entry(device).or_default() += 1;
    }
    for one in asked {
        if let Some(device) = device(one) {
            one.path.waiting_jobs = waiting[&device];
        }
    }
}

/// Adds looks to the advice on jobs, which are named by their index, and the answers that follow. If all jobs to
/// try of a cause get other answers, another job is to be tried.
pub(super) fn add_looks(
    advice: &mut [JobAdvice],
    looks: impl IntoIterator<Item = (usize, JobLook)>,
) {
    let mut answered = HashSet::new();
    for (job, look) in looks {
        let one = &mut advice[job];
        let tried = one.tried_cause();
        add_look(one, look);
        answered.extend(tried.filter(|_| one.tried_cause().is_none()));
    }

    for cause in advice.iter().filter_map(JobAdvice::tried_cause) {
        answered.remove(&cause);
    }
    for cause in answered {
        let others = advice.iter_mut();
        let others = others.filter(|one| one.probe_key().as_ref() == Some(&cause));
        let odds = |one: &&mut JobAdvice| -(1e6 * one.forecast.probability.unwrap_or(0.0)) as i64;
        if let Some(best) = others.min_by_key(odds) {
            best.verdict.command = JobCommand::new(CommandTask::Release, &best.held_id());
        }
    }
}

/// Adds a look to the advice on a job, and the answer that follows.
fn add_look(advice: &mut JobAdvice, look: JobLook) {
    let words = SharedText::from(look.words(&look.path));
    let verdict = &mut advice.verdict;
    let decided = look.decides(verdict.action, verdict.firmness);
    let keeps_reasons = decided
        .is_none_or(|(action, _)| action == verdict.action && verdict.ground == AdviceGround::Rule);
    let earlier = verdict.reasons.iter().filter(|_| keeps_reasons).cloned();
    verdict.reasons = if decided.is_some() {
        std::iter::once(words).chain(earlier).collect()
    } else {
        earlier.chain([words]).collect()
    };
    let looked_ms = look.looked_ms;
    verdict.look = Some(look.into());
    if let Some((action, firmness)) = decided {
        decide(advice, action, firmness);
        advice.forecast.good_until_ms = Some(looked_ms + LOOK_GOOD_FOR_MS);
    }
}

/// Gives a job the answer `action`. Odds do not count beside what was seen.
fn decide(advice: &mut JobAdvice, action: HoldAction, firmness: AnswerFirmness) {
    let job = advice.held_id();
    let verdict = &mut advice.verdict;
    (verdict.command, verdict.then) = action_commands(action, &job);
    verdict.action = action;
    verdict.ground = AdviceGround::Look;
    verdict.because = "a_look_decides";
    verdict.firmness = Some(firmness);
    verdict.evidence = None;
    verdict.raise = None;
    verdict.probe_cause = None;
    advice.forget_odds();
}
