//! The advice on one job: what to do, why, and what is known of its hold.

use serde::Serialize;

use super::action::{AnswerFirmness, HoldAction};
use super::queue_facts::QueueFacts;
use super::remedy::RaisedRequest;
use crate::training::AnswerThreshold;

/// What an action rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdviceGround {
    /// The hold code.
    Rule,
    /// What became of like holds, as the model was not shown to be good enough.
    Record,
    /// The model's probability.
    Model,
    /// Nothing: no advice.
    Nothing,
}

/// What like holds have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LikeHoldKind {
    /// The hold reason, without what varies from job to job.
    Reason,
    /// The hold code and subcode.
    Code,
}

/// Earlier holds like one, whose outcome was decided by the moment of asking.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LikeHolds {
    /// What they have in common.
    pub kind: LikeHoldKind,
    /// How many.
    pub holds: usize,
    /// How many were followed by success.
    pub successes: usize,
    /// The share of successes.
    pub rate: f64,
    /// How many of the last ten, or of all if there are fewer, were followed by success.
    pub last_10_successes: usize,
}

/// The advice on one job.
#[derive(Debug, Clone, Serialize)]
pub struct JobAdvice {
    /// `cluster.proc`.
    pub job: String,
    /// The access point.
    pub ap: String,
    /// The first number of the id.
    #[serde(skip)]
    pub cluster: i32,
    /// The second.
    #[serde(skip)]
    pub proc: i32,
    /// Whose it is, where the log or the queue says it.
    pub owner: Option<String>,
    /// What to do.
    pub action: HoldAction,
    /// What that rests on.
    pub ground: AdviceGround,
    /// How sure it is; absent where a rule decides, and without advice.
    pub firmness: Option<AnswerFirmness>,
    /// What answers like it were worth on holds that came after what was learned.
    pub evidence: Option<AnswerThreshold>,
    /// Why, in sentences.
    pub reasons: Vec<String>,
    /// What to type now; nothing where there is no advice.
    pub command: Option<String>,
    /// What the job should ask for, where it used more than it asked for.
    pub raise: Option<RaisedRequest>,
    /// What to type once the fault is fixed or has passed, or the reason to hold it is gone.
    pub then: Option<String>,
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// What they mean.
    pub meaning: String,
    /// Why it is held, in the words of the log or the queue.
    pub reason: Option<String>,
    /// Tells the words of this hold from those of others.
    #[serde(skip)]
    pub hold_text_hash: u32,
    /// When it was submitted, epoch ms.
    pub submitted_ms: i64,
    /// Since when it is held, epoch ms.
    pub held_since_ms: i64,
    /// For how long, up to the moment of asking, ms.
    pub held_for_ms: i64,
    /// Its holds so far, this one included.
    pub holds: u32,
    /// Those with this code and subcode, this one included.
    pub holds_for_this_reason: usize,
    /// Other jobs of its cluster that are held for the same reason now.
    pub siblings_held: usize,
    /// The model's probability of success if released unchanged; absent where a rule decides.
    pub probability: Option<f64>,
    /// What had become of such holds; absent where a rule decides, and if none was decided.
    pub like_cases: Option<LikeHolds>,
    /// What the queue says of it, if it was asked.
    pub queue: Option<QueueFacts>,
}
