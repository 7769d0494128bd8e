//! Advice on held jobs: says for each what to do and why, and prints the commands, but never runs
//! them. Also finds faults of jobs that are idle or running, and learns policies for automatic releases.

mod addresses;
mod advice_basis;
mod answer_check;
mod answer_ledger;
mod batch_memory;
mod cause_groups;
mod cause_words;
mod command_names;
mod common_place;
mod decide;
mod default_schedd;
mod failed_thing;
mod held_by_others;
mod held_ids;
mod held_jobs;
mod held_things;
mod id_ranges;
mod idle_batch;
mod idle_memory;
mod job_advice;
mod job_command;
mod job_queue;
mod judge;
mod kept_promises;
mod last_page;
mod ledger_file;
mod listed_jobs;
mod log_answers;
mod log_words;
mod logs_of_jobs;
mod look;
mod machine_needs;
mod memory_plan;
pub mod policy;
mod probe_result;
mod published_model;
mod queue_facts;
mod queued_job;
mod reason_list;
mod reason_rules;
mod rehearsed_actions;
mod remedy;
mod restart_loops;
mod same_host;
#[cfg(test)]
mod test_config;
#[cfg(test)]
mod test_queue;
mod tried_probes;
mod unheld_job;
mod unheld_jobs;
mod unmatched_jobs;
mod thing_commands;
mod thing_probes;
mod thing_words;
mod wording;

pub use advice_basis::{
    AdviceBasis, AdviceModel, ModelObjection, ModelOrigin, PublishedOrigin, RehearsedSkill,
};
pub use answer_check::{ActionTally, AnswerCheck, AnswerOutcomes, AnswerTally, CheckedAnswers};
pub use answer_ledger::{GivenAnswer, read_answers, record_answers};
pub use batch_memory::{MemoryPlans, add_memory_plans};
pub use cause_groups::{CauseGroup, cause_groups, cause_name, has_cause_name, shown_cause};
pub use cause_words::fitting_cause;
pub use common_place::CommonPlace;
pub use decide::{elsewhere_words, lack_words};
pub use default_schedd::DefaultSchedd;
pub use failed_thing::FailedThing;
pub use held_by_others::{HeldByOthers, OWNER_ATTRIBUTE};
pub use held_ids::HeldCommand;
pub use held_jobs::{EndedJob, JobEnd, JobSelection, check_selections, find_ends, query_words};
pub use held_things::{HeldGrouping, HeldThing, JobOwner, ThingAnswer, answer_name, held_things};
pub use idle_batch::IdleBatch;
pub use idle_memory::{UnfitRequest, unfit_requests};
pub use job_advice::{AdviceGround, JobAdvice, JobSite, SimilarHoldKind, SimilarHolds};
pub use job_command::{JobCommand, JobId, RaisedRequest, RequestAttribute};
pub use job_queue::{JobQueue, QUEUE_ATTRIBUTES, QueueAgreement};
pub use judge::{advise, exit_code};
pub use kept_promises::lower_broken_promises;
pub use last_page::{LastPage, ShownThing};
pub use listed_jobs::SkippedJobs;
pub use log_answers::answers_of_log;
pub use log_words::LogWords;
pub use logs_of_jobs::{LOG_ATTRIBUTES, logs_of_jobs};
pub use look::{
    FaultyInput, InputLooks, JobLook, LookPlan, LookProcess, LookScope, LookState, UrlAnswer,
    UrlQuestion, answer_looks, become_user, end_with_caller,
};
pub use memory_plan::MemoryPlan;
pub use probe_result::{ProbeResult, ProbeState};
pub use published_model::PublishedModel;
pub use queue_facts::QueueFacts;
pub use reason_list::{ListedReason, listed_reasons};
pub use reason_rules::apply_reason_rules;
pub use rehearsed_actions::RehearsedActions;
pub use restart_loops::{RestartLoop, RunEnd, restart_loops};
pub use thing_commands::{CommandMoment, ThingCommand, thing_commands};
pub use thing_probes::name_probes_of_things;
pub use thing_words::state_words;
pub use tried_probes::add_probe_results;
pub use unheld_job::UnheldJob;
pub use unheld_jobs::{UNHELD_ATTRIBUTES, UnheldJobs};
pub use unmatched_jobs::{ExcessRequest, PoolSlots, UnmatchedJobs, unmatched_jobs};
pub use wording::{advice_text, removal_words};
