//! The queue and the history: whether they answer, and whether the user may act on the jobs of
//! others.

use std::time::{Duration, Instant};

use anyhow::Result;

use poolcast_advice::{JobQueue, QUEUE_ATTRIBUTES};
use poolcast_base::finding::Finding;
use poolcast_base::output::{self, counted};
use poolcast_holds::past_jobs::PastJobs;
use poolcast_sweep::condor;

/// Time within which the queue and the history must begin to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Time that a schedd may take to begin, as after `condor_restart`.
const BEGINS_WITHIN: Duration = Duration::from_secs(30);

/// Time between two questions to a schedd that begins.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Attribute that is requested of the latest job in the history.
const HISTORY_ATTRIBUTE: &str = "JobStatus";

/// Examines the queue and the history for the user called `user`.
pub(super) fn findings(user: Option<&str>) -> Vec<Finding> {
    vec![queue_finding(), history_finding(), rights_finding(user)]
}

fn queue_finding() -> Finding {
    const TODO: &str =
        "condor_q, which says more; without it, advise on logs: poolcast advise *.log";
    match ask_queue() {
        Ok(Some((queue, took))) => Finding::good(
            "queue",
            format!(
                "condor_q answers in {:.1} s and shows {}",
                took.as_secs_f64(),
                counted(queue.held_count(), "held job")
            ),
        ),
        Ok(None) => Finding::bad("queue", silent_words("condor_q"), TODO),
        Err(error) => Finding::bad("queue", format!("{error:#}"), TODO),
    }
}

/// Asks the queue for its held jobs; returns them and the time that the answer took. Asks again while a
/// schedd of this machine may only just begin.
fn ask_queue() -> Result<Option<(JobQueue, Duration)>> {
    let began = Instant::now();
    let mut waits = false;
    loop {
        let asked = Instant::now();
        let read = condor::ask_held_jobs(QUEUE_ATTRIBUTES, false, ANSWERS_WITHIN, |output| {
            JobQueue::read(output)
        });
        if read.is_ok() || began.elapsed() > BEGINS_WITHIN || !runs_schedd() {
            return Ok(read?.map(|queue| (queue, asked.elapsed())));
        }
        if !waits {
            waits = true;
            output::note(&format!(
                "condor_q fails: waiting up to {} s for a schedd that begins",
                BEGINS_WITHIN.as_secs()
            ));
        }
        std::thread::sleep(ASK_AGAIN_AFTER);
    }
}

/// Returns true if HTCondor runs a schedd on this machine.
fn runs_schedd() -> bool {
    let daemons = condor::configured_value("DAEMON_LIST").ok().flatten();
    let daemons = daemons.unwrap_or_default();
    let mut names = daemons.split([',', ' ']);
    names.any(|name| name.eq_ignore_ascii_case("SCHEDD")) && !condor::queue_is_elsewhere()
}

fn history_finding() -> Finding {
    const TODO: &str =
        "condor_history -limit 1, which says more; only --history and --log mine need it";
    let began = Instant::now();
    let read = condor::ask_latest_history(HISTORY_ATTRIBUTE, ANSWERS_WITHIN, |output| {
        PastJobs::default().read(output)
    });
    match read {
        Ok(Some(())) => Finding::good(
            "history",
            format!(
                "condor_history answers in {:.1} s",
                began.elapsed().as_secs_f64()
            ),
        ),
        Ok(None) => Finding::bad("history", silent_words("condor_history"), TODO),
        Err(error) => Finding::bad("history", format!("{error:#}"), TODO),
    }
}

fn silent_words(program: &str) -> String {
    format!(
        "{program} is missing, or does not answer within {} s",
        ANSWERS_WITHIN.as_secs()
    )
}

fn rights_finding(user: Option<&str>) -> Finding {
    const CHECK: &str = "others' jobs";
    let Some(super_users) = condor::queue_super_users() else {
        return Finding::fact(CHECK, "it is unknown who may release the jobs of others");
    };
    let is_super = user.is_some_and(|user| super_users.iter().any(|one| one == user));
    if is_super {
        return Finding::fact(CHECK, "you may release the jobs of all users");
    }
    Finding::fact(
        CHECK,
        format!(
            "you may release your own jobs only; those of all users: {}",
            super_users.join(", ")
        ),
    )
}
