//! The advice on one job: the action, the reasons for it, and the facts about the hold.

use std::sync::Arc;

use htcondor_holdreasons::{ReasonFacts, ReasonKind, read_reason};
use serde::{Serialize, Serializer};

use super::addresses::without_secrets;
use super::held_ids::HeldId;
use super::job_command::{CommandTask, JobCommand, JobId, RaisedRequest};
use super::look::job_look::JobLook;
use super::memory_plan::MemoryPlan;
use super::probe_result::ProbeResult;
#[cfg(test)]
use super::queue_facts::JobFiles;
use super::queue_facts::QueueFacts;
use super::remedy::remedy_command;
use poolcast_base::shared_text::{NumberedText, SharedText};
use poolcast_holds::answers::AnswerThreshold;
use poolcast_holds::answers::ThingState;
use poolcast_holds::decision::{AnswerFirmness, CODE_RULE, HoldAction, HoldRule, ProbeCause};

/// Name of the rule that decides where there is neither a rule for the reason nor an outcome of such holds.
pub(super) const NOTHING_WAS_LEARNED: &str = "nothing_was_learned";

/// The source of a recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdviceGround {
    /// A rule for the hold code.
    Rule,
    /// The model's probability.
    Model,
    /// A look at the file that the hold is about.
    Look,
    /// No source: there is no advice.
    Nothing,
}

/// The attribute that similar holds share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SimilarHoldKind {
    /// The hold reason, without the parts that differ between jobs.
    Reason,
    /// The hold code and subcode.
    Code,
}

/// Outcomes of earlier holds that are similar to one hold, as known at prediction time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SimilarHolds {
    /// The attribute that the holds share.
    pub kind: SimilarHoldKind,
    /// Number of similar holds with a known outcome.
    pub holds: usize,
    /// Number of these holds after which the job succeeded once released.
    pub successes: usize,
    /// Share of successes.
    pub rate: f64,
    /// Successes among the last ten holds, or among all if there are fewer.
    pub last_10_successes: usize,
}

/// The site of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobSite {
    /// The machine's attribute that names it: `GLIDEIN_ResourceName` or `GLIDEIN_Site`.
    pub attribute: &'static str,
    /// Its name.
    pub name: SharedText,
}

/// The advice on one job.
#[derive(Debug, Clone, Serialize)]
pub struct JobAdvice {
    /// The job.
    #[serde(flatten)]
    pub job: AdvisedJob,
    /// The hold that it is in.
    #[serde(flatten)]
    pub hold: AdvisedHold,
    /// What to do, and why.
    #[serde(flatten)]
    pub verdict: AdviceVerdict,
    /// What was learned from other holds.
    #[serde(flatten)]
    pub forecast: SuccessForecast,
}

/// The facts about a job that advice is on.
#[derive(Debug, Clone, Serialize)]
pub struct AdvisedJob {
    /// Job id, as `cluster.proc`.
    #[serde(rename = "job")]
    pub id: JobId,
    /// The job's access point.
    pub ap: SharedText,
    /// The access point that commands on the job must name; `None` if HTCondor's programs ask it
    /// anyway, or if its name is unknown.
    #[serde(skip)]
    pub(super) schedd: Option<SharedText>,
    /// The job's owner, if the log or the queue names one.
    pub owner: Option<SharedText>,
    /// The job's node of a DAG, if the log or the queue names one.
    pub dag_node: Option<SharedText>,
    /// The site of the job's last run, if the log names one.
    pub site: Option<JobSite>,
    /// Submission time of the job, epoch ms.
    pub submitted_ms: i64,
    /// Largest memory usage of the job in the log, MB; 0 if it is unknown.
    #[serde(skip)]
    pub used_memory_mb: u64,
    /// Memory that the job requested at its submission, MB; 0 if it is unknown.
    #[serde(skip)]
    pub(super) requested_memory_mb: u64,
    /// Local time minus UTC, in ms, where the log has local times that were taken as UTC.
    #[serde(skip)]
    pub(super) utc_offset_ms: i64,
    /// Facts from the queue; absent if the queue was not queried.
    #[serde(serialize_with = "serialize_shared")]
    pub queue: Option<Arc<QueueFacts>>,
}

/// The facts about the hold that advice is on.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AdvisedHold {
    /// The hold code.
    #[serde(rename = "hold_code")]
    pub code: i32,
    /// The hold subcode.
    #[serde(rename = "hold_subcode")]
    pub subcode: i32,
    /// Meaning of the hold code and subcode.
    pub meaning: SharedText,
    /// The hold reason, in the words of the log or the queue.
    pub reason: Option<NumberedText>,
    /// What the reason of the hold states, without names and numbers, or else its code.
    #[serde(skip)]
    pub(super) stated: ReasonKind,
    /// Hash of the hold event's text, which identifies the event among others of the job.
    #[serde(skip)]
    pub text_hash: u32,
    /// Start of the hold, epoch ms.
    #[serde(rename = "held_since_ms")]
    pub since_ms: i64,
    /// Duration of the hold up to the prediction time, ms.
    #[serde(rename = "held_for_ms")]
    pub for_ms: i64,
    /// Number of holds of the job so far, this one included.
    pub holds: u32,
    /// Number of holds with this code and subcode, this one included.
    pub holds_for_this_reason: usize,
    /// Number of other jobs in the cluster that are held now with this code and subcode.
    pub siblings_held: usize,
    /// Number of other jobs of its cluster that started since it is held, and succeeded.
    #[serde(skip)]
    pub(super) succeeded_since: usize,
    /// True if events are missing after the hold, so that the job may not be held any more.
    #[serde(skip)]
    pub(super) is_unknown: bool,
}

/// What to do about a held job, and why.
#[derive(Debug, Clone, Serialize)]
pub struct AdviceVerdict {
    /// The recommended action.
    pub action: HoldAction,
    /// The source of the recommendation.
    pub ground: AdviceGround,
    /// Name of the rule that decided: docs/stages.md lists them.
    pub because: &'static str,
    /// Certainty of the action; absent where a rule decides, and without advice.
    pub firmness: Option<AnswerFirmness>,
    /// Precision of such answers on holds after the training data; `None` if it is unknown.
    pub evidence: Option<Box<AnswerThreshold>>,
    /// The reasons for the action, in sentences.
    #[serde(serialize_with = "serialize_slice")]
    pub reasons: Arc<[SharedText]>,
    /// Command to type now; absent without advice, or if there is nothing to do now.
    pub command: Option<JobCommand>,
    /// Request that the job should have, if it used more than it requested.
    pub raise: Option<RaisedRequest>,
    /// Command to type once the fault is fixed or has passed, or once the reason for the hold is
    /// gone.
    pub then: Option<JobCommand>,
    /// The cause that a probe is for; absent for other answers.
    #[serde(skip)]
    pub(super) probe_cause: Option<ProbeCause>,
    /// The jobs whose release settles the answer, this one or others that are held for the same
    /// thing: `command` is theirs alone. Empty unless the answer is to try one.
    #[serde(serialize_with = "serialize_slice")]
    pub settled_by: Arc<[JobId]>,
    /// True if the answer would be a release or a probe if more outcomes were known.
    #[serde(skip)]
    pub lacks_outcomes: bool,
    /// True if what the reason states decides.
    #[serde(skip)]
    pub is_reason_read: bool,
    /// True if a release may not help even a repaired job: a queued job keeps its values and counters.
    #[serde(skip)]
    pub(super) may_need_new_submission: bool,
    /// The look at the file that the hold is about; absent if none was looked at.
    #[serde(serialize_with = "serialize_shared")]
    pub look: Option<Arc<JobLook>>,
    /// The memory that the next submission of its batch should request; absent unless it is held
    /// for memory, and if too little is known about the batch.
    #[serde(serialize_with = "serialize_shared")]
    pub memory_plan: Option<Arc<MemoryPlan>>,
}

/// What was learned from other holds about the success of a job.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SuccessForecast {
    /// The probability of success if released unchanged; absent where a rule decides, and, unless
    /// enough jobs got past its cause, for a hold that is older than all that the answers have
    /// learned from, or of a kind that nothing was learned about, here or elsewhere.
    pub probability: Option<f64>,
    /// The probability of success if released unchanged at a later time; absent where a rule decides, for a
    /// hold that is older than all that the answers have learned from or of a kind that nothing was learned about,
    /// and without an answer model.
    pub later_probability: Option<f64>,
    /// Time at which the answer expires, epoch ms, after a look 10 minutes later; absent where a
    /// rule decides, and without an answer model, unless a look decides.
    pub good_until_ms: Option<i64>,
    /// Released jobs among those that the last probe of its cause named since the job is held.
    #[serde(serialize_with = "serialize_slice")]
    pub probes: Arc<[ProbeResult]>,
    /// Latest outcomes of all jobs that were held for the same file, server or reason; absent if
    /// none is known, and without an answer model.
    #[serde(serialize_with = "serialize_shared")]
    pub state: Option<Arc<ThingState>>,
    /// True if the odds follow from outcomes at other access points: this log shows none for the
    /// hold code.
    pub is_known_from_elsewhere: bool,
    /// True if outcomes of this log, for the reason of the hold, are behind the answer.
    #[serde(skip)]
    pub(super) has_outcomes_here: bool,
    /// Outcomes of similar holds; absent where a rule decides, and if no outcome is known.
    pub like_cases: Option<Box<SimilarHolds>>,
}

impl AdvisedJob {
    /// Creates the facts about a job, if nothing else is known.
    pub(super) fn new(id: JobId, ap: SharedText, submitted_ms: i64) -> AdvisedJob {
        AdvisedJob {
            id,
            ap,
            schedd: None,
            owner: None,
            dag_node: None,
            site: None,
            submitted_ms,
            used_memory_mb: 0,
            requested_memory_mb: 0,
            utc_offset_ms: 0,
            queue: None,
        }
    }
}

impl AdviceVerdict {
    /// Creates the verdict of `rule` on `job`, whose request is to be raised to `raise`.
    pub(super) fn by_rule(
        rule: &HoldRule,
        job: &HeldId,
        raise: Option<RaisedRequest>,
        reasons: Arc<[SharedText]>,
    ) -> AdviceVerdict {
        let release = || JobCommand::new(CommandTask::Release, job);
        AdviceVerdict {
            command: remedy_command(rule.remedy, job, raise),
            raise,
            then: rule.is_released_by_hand.then(release).flatten(),
            ..AdviceVerdict::new(rule.action, AdviceGround::Rule, CODE_RULE, reasons)
        }
    }

    /// Creates the verdict that there is no advice.
    pub(super) fn none(because: &'static str, reasons: Arc<[SharedText]>) -> AdviceVerdict {
        AdviceVerdict::new(HoldAction::None, AdviceGround::Nothing, because, reasons)
    }

    /// Creates a verdict without commands, by the rule with the name `because`.
    pub(super) fn new(
        action: HoldAction,
        ground: AdviceGround,
        because: &'static str,
        reasons: Arc<[SharedText]>,
    ) -> AdviceVerdict {
        AdviceVerdict {
            action,
            ground,
            because,
            firmness: None,
            evidence: None,
            reasons,
            command: None,
            raise: None,
            then: None,
            probe_cause: None,
            settled_by: Arc::default(),
            lacks_outcomes: false,
            is_reason_read: false,
            may_need_new_submission: false,
            look: None,
            memory_plan: None,
        }
    }
}

impl JobAdvice {
    /// Reads the reason of the hold, or else what is stored of it.
    pub(super) fn reason_facts(&self) -> ReasonFacts {
        let Some(reason) = &self.hold.reason else {
            return self.hold.stated.into();
        };
        let codes = (self.hold.code, self.hold.subcode);
        read_reason(&without_secrets(&reason.to_string()), Some(codes))
    }

    /// Returns the job with the attributes of its hold, for commands.
    pub(super) fn held_id(&self) -> HeldId {
        HeldId {
            cluster: self.job.id.cluster,
            proc: self.job.id.proc,
            since_s: self.held_since_s(),
            owner: self.job.owner.clone(),
            schedd: self.job.schedd.clone(),
        }
    }

    /// Returns the start of the hold, epoch s, by the clock of the queue.
    pub(super) fn held_since_s(&self) -> i64 {
        (self.hold.since_ms - self.job.utc_offset_ms).div_euclid(1000)
    }

    /// Sets local time minus UTC, in ms, which the times of the advice have.
    pub fn set_utc_offset(&mut self, utc_offset_ms: i64) {
        self.job.utc_offset_ms = utc_offset_ms;
        self.renew_commands();
    }

    /// Returns the command that removes the job, if it may have to be submitted again.
    pub(super) fn removal(&self) -> Option<JobCommand> {
        let removal = || JobCommand::new(CommandTask::Remove, &self.held_id());
        self.verdict.may_need_new_submission.then(removal).flatten()
    }

    /// Returns true if there is a command that affects the job as long as it is in the same hold.
    pub fn has_command_on_hold(&self) -> bool {
        let mut commands = self.verdict.command.iter().chain(&self.verdict.then);
        self.verdict.may_need_new_submission || commands.any(JobCommand::changes_job)
    }

    /// Leaves out the odds, because something else decides.
    pub(super) fn forget_odds(&mut self) {
        self.forecast.probability = None;
        self.forecast.later_probability = None;
        self.forecast.like_cases = None;
        self.forecast.is_known_from_elsewhere = false;
        self.verdict.lacks_outcomes = false;
    }

    /// Sets the owner, whom the commands name.
    pub(super) fn set_owner(&mut self, owner: Option<SharedText>) {
        self.job.owner = owner;
        self.renew_commands();
    }

    /// Sets the access point that the commands must name.
    pub(super) fn set_schedd(&mut self, schedd: Option<SharedText>) {
        self.job.schedd = schedd;
        self.renew_commands();
    }

    fn renew_commands(&mut self) {
        let job = self.held_id();
        for command in [&mut self.verdict.command, &mut self.verdict.then] {
            *command = command.take().and_then(|command| command.of_job(&job));
        }
    }

    /// Returns the access point and the cause that a probe is for; `None` for other answers.
    pub(super) fn probe_key(&self) -> Option<(SharedText, ProbeCause)> {
        Some((self.job.ap.clone(), self.verdict.probe_cause?))
    }

    /// Returns the same if this job is to be released as the probe.
    pub(super) fn tried_cause(&self) -> Option<(SharedText, ProbeCause)> {
        self.probe_key().filter(|_| self.verdict.command.is_some())
    }
}

fn serialize_shared<T: Serialize, S: Serializer>(
    shared: &Option<Arc<T>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    shared.as_deref().serialize(serializer)
}

fn serialize_slice<T: Serialize, S: Serializer>(
    items: &Arc<[T]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    items[..].serialize(serializer)
}

#[cfg(test)]
impl JobAdvice {
    /// Returns the advice on a job that is held for the third time.
    pub(super) fn of_test_job() -> JobAdvice {
        let id = JobId {
            cluster: 12,
            proc: 0,
        };
        let job = HeldId {
            cluster: 12,
            proc: 0,
            since_s: 1_795_227_966,
            owner: Some("ada".into()),
            schedd: None,
        };
        JobAdvice {
            job: AdvisedJob {
                owner: Some("ada".into()),
                queue: Some(Arc::new(QueueFacts {
                    request_memory: Some("64".into()),
                    memory_usage_mb: None,
                    resident_set_kib: Some(4872),
                    job_starts: Some(3),
                    periodic_release: None,
                    program: None,
                    submit_file: None,
                    files: JobFiles::default(),
                })),
                ..AdvisedJob::new(id, "ap".into(), 0)
            },
            hold: AdvisedHold {
                code: 12,
                subcode: 2,
                meaning: poolcast_holds::decision::code_meaning(12, 2).into(),
                reason: Some("no file\u{1b}".into()),
                since_ms: 1_795_227_966_000,
                for_ms: 61_000,
                holds: 3,
                holds_for_this_reason: 1,
                siblings_held: 2,
                ..AdvisedHold::default()
            },
            verdict: AdviceVerdict {
                firmness: Some(AnswerFirmness::Probable),
                evidence: Some(Box::new(AnswerThreshold {
                    probability: 0.7,
                    answers: 1200,
                    right: 960,
                    clusters: 310,
                    coverage: 0.3,
                    lower: 0.752,
                })),
                command: JobCommand::new(CommandTask::Release, &job),
                ..AdviceVerdict::new(
                    HoldAction::Release,
                    AdviceGround::Model,
                    "odds_reach_the_limit",
                    ["so".into()].into(),
                )
            },
            forecast: SuccessForecast {
                probability: Some(0.731),
                like_cases: Some(Box::new(SimilarHolds {
                    kind: SimilarHoldKind::Reason,
                    holds: 40,
                    successes: 10,
                    rate: 0.25,
                    last_10_successes: 4,
                })),
                ..SuccessForecast::default()
            },
        }
    }

    /// Returns the advice with a `change`.
    pub(super) fn with(mut self, change: impl FnOnce(&mut JobAdvice)) -> JobAdvice {
        change(&mut self);
        self
    }
}
