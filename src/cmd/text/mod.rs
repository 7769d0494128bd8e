//! The text output of the verbs: renders artefacts for people.

pub(super) mod advice;
pub(super) mod advice_jobs;
pub(super) mod advice_page;
pub(super) mod answer_check;
pub(super) mod chain;
pub(super) mod changes;
mod cluster_warnings;
pub(super) mod contribution;
pub(super) mod evaluation;
pub(super) mod events;
pub(super) mod findings;
pub(super) mod idle_jobs;
pub(super) mod mailed_page;
pub(super) mod policy;
pub(super) mod rehearsal;
pub(super) mod replay;
pub(super) mod restart_loops;
pub(super) mod samples;
pub(super) mod start;
pub(super) mod submission;
pub(super) mod tensors;
pub(super) mod things_page;
pub(super) mod trace;
pub(super) mod trials;
pub(super) mod validation;
pub(super) mod wait_model;
