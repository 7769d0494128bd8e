//! Looks at the files that idle jobs will read, asks servers for others, and finds the jobs that will be
//! held for them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use poolcast_base::output;
use serde::Serialize;

use super::job_look::{JobPath, LookState};
use super::look_process::{LookAnswer, LookProcess, UserPath};
use super::look_user::LookUser;
use super::looks::{LookPlan, look_at, open_files_caveat};
use super::named_path::PathUse;
use super::path_sight::Sight;
use super::url_looks::{NamedUrl, UrlAnswer, UrlAnswers, UrlQuestion, is_askable};
use crate::addresses::without_secrets;
use crate::idle_batch::{IdleBatch, IdleBatchKey, batch_key, commands_for};
use crate::unheld_job::UnheldJob;
use crate::unheld_jobs::UnheldJobs;
use poolcast_base::shared_text::SharedText;

/// Idle jobs of one batch that need a file which they cannot get, or each a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultyInput {
    /// The jobs.
    #[serde(flatten)]
    pub members: IdleBatch,
    /// The file that most of them need: a path or a URL.
    pub path: SharedText,
    /// Number of such files.
    pub files: usize,
    /// State of the files: `missing`, `no_directory` if not even their directory exists, or
    /// `not_allowed` if their owner may not read them.
    pub state: LookState,
    /// The commands that hold the jobs until the files are there; empty if it is unknown since when
    /// they are idle.
    pub commands: Vec<String>,
}

/// Result of a look at the files that idle jobs will read.
#[derive(Debug, Clone, Default)]
pub struct InputLooks {
    /// The jobs that will be held, by file, the file of most jobs first.
    pub faults: Vec<FaultyInput>,
    /// Number of the files that were looked at.
    pub looked_files: usize,
    /// Number of the idle jobs without a known fault that need a file which this user could not look at.
    pub unseen_jobs: usize,
    /// The reasons why not all files were looked at, in sentences.
    pub caveats: Vec<String>,
}

/// The common facts of one finding: batch, state of the file, and the place of the file, unless only
/// one job needs it.
type FaultKey<'a> = (IdleBatchKey<'a>, LookState, Option<usize>);

impl InputLooks {
    /// The result if no file of `jobs` was looked at.
    pub fn none_of(jobs: &UnheldJobs) -> InputLooks {
        let needs_files = |job: &&UnheldJob| !job.inputs.is_empty();
        InputLooks {
            unseen_jobs: jobs.jobs.iter().filter(needs_files).count(),
            ..InputLooks::default()
        }
    }
}

impl LookPlan {
    /// Lets `process` look at the files on this machine that the idle ones of `jobs` will read, and
    /// `ask` ask servers for the files that jobs of this user get from them, as in
    /// [`LookPlan::look_at_urls`]. The files that most jobs need come first.
    ///
    /// # Errors
    /// Fails if the process cannot be started.
    pub fn look_at_inputs(
        &self,
        process: LookProcess,
        jobs: &UnheldJobs,
        ask: impl FnOnce(&[UrlQuestion]) -> Vec<UrlAnswer>,
    ) -> Result<InputLooks> {
        let needed = NeededInputs::new(self, jobs);
        let (local, urls) = needed.files.split_at(needed.first_url);
        let answers = if local.is_empty() {
            Vec::new()
        } else {
            look_at(&process, local)?
        };
        let named = urls.iter().map(|url| NamedUrl {
            url: &url.path,
            is_of_queue: self.is_of_queue(),
        });
        let url_answers = UrlAnswers::get(&named.collect::<Vec<_>>(), ask);

        let is_seen = |answer: &&LookAnswer| **answer != LookAnswer::NotTried && !is_denied(answer);
        let (faults, unseen_jobs) = self.input_faults(jobs, &needed, &answers, &url_answers);
        Ok(InputLooks {
            faults,
            looked_files: answers.iter().filter(is_seen).count() + url_answers.count(),
            unseen_jobs,
            caveats: [
                self.elsewhere_caveat(jobs),
                open_files_caveat("that idle jobs need", local, &answers),
                denied_files_caveat(local, &answers),
                hanging_files_caveat(local, &answers),
                silent_servers_caveat(urls, &url_answers),
            ]
            .into_iter()
            .flatten()
            .collect(),
        })
    }

    /// Returns the faults of the `needed` files of `jobs`, which follow from the answers about the
    /// paths and about the URLs, and the number of other idle jobs whose files are not all known. The
    /// faults of most jobs come first.
    fn input_faults(
        &self,
        jobs: &UnheldJobs,
        needed: &NeededInputs,
        answers: &[LookAnswer],
        url_answers: &UrlAnswers<'_>,
    ) -> (Vec<FaultyInput>, usize) {
        let files = &needed.files;
        let mut unseen_jobs = 0;
        let places: HashMap<&UserPath, usize> = files.iter().zip(0..).collect();
        // The state also depends on whether the jobs are of this user.
        let mut states: HashMap<(usize, bool), LookState> = HashMap::new();
        let mut faulty: BTreeMap<FaultKey<'_>, Vec<(&UnheldJob, usize)>> = BTreeMap::new();
        for job in &jobs.jobs {
            let is_own = self.is_own(job.owner.as_deref());
            let mut state_at = |at: usize| {
                let UserPath { path, user } = &files[at];
                let is_own = is_own || *user != LookUser::This;
                let state = states.entry((at, is_own));
                *state.or_insert_with(|| match answers.get(at) {
                    Some(answer) => self.input_state(path, is_own, *answer),
                    None => url_state(url_answers.of(path)),
                })
            };
            let needed_here = self.inputs_to_look_at(job).map(|file| places[&file]);
            let mut looked: Vec<(usize, LookState)> =
                needed_here.map(|at| (at, state_at(at))).collect();
            looked.sort_unstable();
            if let Some((at, state)) = looked.iter().copied().find(|(_, state)| is_fault(*state)) {
                let shared = (needed.jobs[&files[at]] > 1).then_some(at);
                let key = (batch_key(job), state, shared);
                faulty.entry(key).or_default().push((job, at));
            } else {
                let is_unseen = |(_, state): &(usize, LookState)| !is_known(*state);
                let is_all_seen = looked.len() == job.inputs.len() && !looked.iter().any(is_unseen);
                unseen_jobs += usize::from(!is_all_seen);
            }
        }

        let mut faults: Vec<FaultyInput> = faulty
            .into_iter()
            .map(|((_, state, _), members)| FaultyInput::new(&members, state, files))
            .collect();
        faults.sort_by_key(|fault| Reverse(fault.members.jobs.len()));
        (faults, unseen_jobs)
    }

    /// Returns the inputs of `job` that may be looked at, each with the user who looks: files on this
    /// machine, and URLs of a job of this user.
    fn inputs_to_look_at(&self, job: &UnheldJob) -> impl Iterator<Item = UserPath> {
        let is_own = self.is_own(job.owner.as_deref());
        let owner = LookUser::for_owner(job.owner.as_ref());
        let user = move |path: &SharedText| {
            if is_askable(path) {
                is_own.then_some(LookUser::This)
            } else {
                owner.clone()
            }
        };
        let inputs = job.inputs.iter().filter(|_| self.has_files_of(&job.ap));
        inputs.filter_map(move |path| {
            Some(UserPath {
                user: user(path)?,
                path: path.clone(),
            })
        })
    }

    /// Returns a caveat on the `jobs` whose files are not on this machine.
    fn elsewhere_caveat(&self, jobs: &UnheldJobs) -> Option<String> {
        let is_elsewhere = |job: &&UnheldJob| {
            !self.has_files_of(&job.ap) && job.inputs.iter().any(|path| !is_askable(path))
        };
        let elsewhere = jobs.jobs.iter().filter(is_elsewhere).count();
        (elsewhere > 0).then(|| {
            format!(
                "the files of {} may be of another machine: --look looks at them here",
                output::counted(elsewhere, "idle job")
            )
        })
    }

    /// Returns the state of an input for jobs of this user, or of others.
    fn input_state(&self, path: &SharedText, is_own: bool, answer: LookAnswer) -> LookState {
        let input = JobPath {
            path: path.clone(),
            use_of_path: PathUse::Read,
            error: None,
            is_only_failure: true,
            is_first_hold: true,
            is_exact: true,
            is_own,
            failed_ms: i64::MAX,
            needed_bytes: 0,
            waiting_jobs: 1,
        };
        let look = input.look(answer, self.now_ms());
        look.map_or(LookState::Unknown, |look| look.state)
    }
}

/// The files that jobs need and that may be looked at.
struct NeededInputs {
    /// Paths on this machine, and then URLs. Of each, the files that most jobs need come first.
    files: Vec<UserPath>,
    /// Index of the first URL.
    first_url: usize,
    /// Number of the jobs that need each file.
    jobs: HashMap<UserPath, usize>,
}

impl NeededInputs {
    fn new(plan: &LookPlan, jobs: &UnheldJobs) -> NeededInputs {
        let mut needed: HashMap<UserPath, usize> = HashMap::new();
        for file in jobs.jobs.iter().flat_map(|job| plan.inputs_to_look_at(job)) {
            *needed.entry(file).or_default() += 1;
        }

        let (mut urls, mut paths): (Vec<&UserPath>, Vec<&UserPath>) =
            needed.keys().partition(|file| is_askable(&file.path));
        for files in [&mut paths, &mut urls] {
            files.sort_by_key(|file| (Reverse(needed[*file]), *file));
        }
        NeededInputs {
            first_url: paths.len(),
            files: paths.into_iter().chain(urls).cloned().collect(),
            jobs: needed,
        }
    }
}

/// Returns true if a job that needs a file in `state` will be held for it.
fn is_fault(state: LookState) -> bool {
    matches!(
        state,
        LookState::Missing | LookState::NoDirectory | LookState::NotAllowed
    )
}

/// Returns true if it is known whether a file in `state` can be read.
fn is_known(state: LookState) -> bool {
    !matches!(state, LookState::Unknown | LookState::NoAnswer)
}

fn url_state(answer: UrlAnswer) -> LookState {
    match answer {
        UrlAnswer::Found => LookState::Reachable,
        UrlAnswer::NotFound => LookState::Missing,
        UrlAnswer::NoAnswer => LookState::NoAnswer,
        UrlAnswer::Unknown => LookState::Unknown,
    }
}

impl FaultyInput {
    /// Describes `members`, which are not empty: jobs, each with the place of its file among `paths`,
    /// in which the files that most jobs need come first.
    fn new(members: &[(&UnheldJob, usize)], state: LookState, paths: &[UserPath]) -> FaultyInput {
        let jobs: Vec<&UnheldJob> = members.iter().map(|(job, _)| *job).collect();
        let files: BTreeSet<usize> = members.iter().map(|(_, at)| *at).collect();
        FaultyInput {
            members: IdleBatch::of_members(&jobs),
            path: files
                .first()
                .map_or_else(|| "".into(), |at| paths[*at].path.clone()),
            files: files.len(),
            state,
            commands: commands_for("condor_hold", &jobs, ""),
        }
    }
}

/// Returns a caveat on files that this user may not look at.
fn denied_files_caveat(paths: &[UserPath], answers: &[LookAnswer]) -> Option<String> {
    let count = answers.iter().filter(|answer| is_denied(answer)).count();
    let first = &paths[answers.iter().position(is_denied)?].path;
    Some(format!(
        "this user may not look at {} that idle jobs need, such as {first}",
        output::counted(count, "file")
    ))
}

fn is_denied(answer: &LookAnswer) -> bool {
    matches!(answer, LookAnswer::Seen(sight) if sight.target == Sight::Denied)
}

/// Returns a caveat on files whose file system does not answer.
fn hanging_files_caveat(paths: &[UserPath], answers: &[LookAnswer]) -> Option<String> {
    let is_hanging = |answer: &LookAnswer| *answer == LookAnswer::Hangs;
    let count = answers.iter().filter(|answer| is_hanging(answer)).count();
    let first = &paths[answers.iter().position(is_hanging)?].path;
    Some(format!(
        "the file system of {} that idle jobs need does not answer, such as that of {first}",
        output::counted(count, "file")
    ))
}

/// Returns a caveat on URLs whose servers do not answer.
fn silent_servers_caveat(urls: &[UserPath], answers: &UrlAnswers<'_>) -> Option<String> {
    let is_silent = |url: &&UserPath| answers.of(&url.path) == UrlAnswer::NoAnswer;
    let count = urls.iter().filter(is_silent).count();
    let first = &urls.iter().find(is_silent)?.path;
    Some(format!(
        "the servers of {} that idle jobs need do not answer, such as that of {}",
        output::counted(count, "file"),
        without_secrets(first)
    ))
}
