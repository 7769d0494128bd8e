//! The commands for all jobs of a thing: one for each action, whatever the causes are.

use std::collections::BTreeMap;

use super::held_ids::{HeldCommand, HeldId};
use super::job_advice::JobAdvice;
use super::job_command::{RaisedRequest, RequestAttribute};
use poolcast_base::shared_text::SharedText;
use poolcast_holds::decision::{HoldAction, answer_rank};

/// The time for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandMoment {
    /// Now.
    Now,
    /// Once what failed is fixed.
    Fixed,
    /// Once what failed has passed.
    Later,
}

/// A command on jobs of a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThingCommand {
    /// The time for it.
    pub moment: CommandMoment,
    /// The answer about its jobs.
    pub action: HoldAction,
    /// Number of its jobs.
    pub jobs: usize,
    /// The command.
    pub command: HeldCommand,
}

/// The jobs of one command: the time and the action, the access point, and the step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CommandKey {
    moment: CommandMoment,
    /// Rank of the action.
    rank: u8,
    ap: SharedText,
    step: CommandStep,
}

/// A step of what is to be done, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CommandStep {
    /// Raises a request. The requests of one command differ by less than a factor of two.
    Raise {
        attribute: RequestAttribute,
        class: u32,
    },
    Release,
    Remove,
}

/// Returns the commands for `members`, the jobs of a thing, in the order in which they are typed.
pub fn thing_commands(members: &[&JobAdvice]) -> Vec<ThingCommand> {
    let mut by_key: BTreeMap<CommandKey, Vec<&JobAdvice>> = BTreeMap::new();
    for advice in members {
        for (moment, step) in steps_of(advice) {
            let key = CommandKey {
                moment,
                rank: answer_rank(advice.verdict.action, None),
                ap: advice.job.ap.clone(),
                step,
            };
            by_key.entry(key).or_default().push(advice);
        }
    }
    (by_key.iter())
        .filter_map(|(key, jobs)| command_of(key, jobs))
        .collect()
}

/// Returns what is typed for the job of `advice`.
fn steps_of(advice: &JobAdvice) -> Vec<(CommandMoment, CommandStep)> {
    let is_released = advice.verdict.then.is_some();
    let release = |moment| (moment, CommandStep::Release);
    match advice.verdict.action {
        HoldAction::Release | HoldAction::Probe if advice.verdict.command.is_some() => {
            vec![release(CommandMoment::Now)]
        }
        HoldAction::Remove if advice.verdict.command.is_some() => {
            vec![(CommandMoment::Now, CommandStep::Remove)]
        }
        HoldAction::Fix => match advice.verdict.raise {
            Some(raise) => [(CommandMoment::Now, raise_step(raise))]
                .into_iter()
                .chain(is_released.then(|| release(CommandMoment::Now)))
                .collect(),
            None => is_released
                .then(|| release(CommandMoment::Fixed))
                .into_iter()
                .collect(),
        },
        HoldAction::Later if is_released => vec![release(CommandMoment::Later)],
        _ => Vec::new(),
    }
}

fn raise_step(raise: RaisedRequest) -> CommandStep {
    CommandStep::Raise {
        attribute: raise.attribute,
        class: raise.number.next_power_of_two().trailing_zeros(),
    }
}

fn command_of(key: &CommandKey, jobs: &[&JobAdvice]) -> Option<ThingCommand> {
    let mut named: Vec<HeldId> = jobs.iter().map(|one| one.held_id()).collect();
    named.sort_by_key(|job| (job.cluster, job.proc));
    let raises = jobs.iter().filter_map(|one| one.verdict.raise);
    let highest = raises.max_by_key(|raise| raise.number);
    let command = match key.step {
        CommandStep::Raise { .. } => {
            HeldCommand::new("condor_qedit", &named, &highest?.arguments())
        }
        CommandStep::Release => HeldCommand::new("condor_release", &named, ""),
        CommandStep::Remove => HeldCommand::new("condor_rm", &named, ""),
    };
    Some(ThingCommand {
        moment: key.moment,
        action: jobs.first()?.verdict.action,
        jobs: jobs.len(),
        command: command?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::job_command::JobId;
    use super::super::job_queue::JobQueue;
    use super::super::test_queue::{QueuedTestJob, affected};
    use super::*;
    use serde_json::json;

    /// Returns the advice on `jobs`, each with its hold code, as the queue alone gives it.
    fn advice_on(jobs: &[(QueuedTestJob, (i32, i32))]) -> Vec<JobAdvice> {
        let ad = |(job, (code, subcode)): &(QueuedTestJob, (i32, i32))| {
            json!({"ClusterId": job.cluster, "ProcId": job.proc, "JobStatus": job.status, "Owner": job.owner,
                "EnteredCurrentStatus": job.since_s, "HoldReasonCode": code, "HoldReasonSubCode": subcode,
                "RequestMemory": 64, "MemoryUsage": 90 + 50 * job.proc})
        };
        let ads: Vec<_> = jobs.iter().map(ad).collect();
        let queue = JobQueue::read(json!(ads).to_string().as_bytes()).expect("a queue");
        queue.correct(Vec::new(), "ap", 300_000).0
    }

    #[test]
    fn requests_are_raised_before_the_release_of_all() {
        let job = |proc| {
            let queued = QueuedTestJob {
                cluster: 7,
                proc,
                owner: "ada",
                status: 5,
                since_s: 100,
            };
            (queued, (34, 102))
        };
        let advice = advice_on(&[job(0), job(1), job(9)]);
        let commands = thing_commands(&advice.iter().collect::<Vec<_>>());
        let texts: Vec<String> = commands.iter().map(|one| one.command.to_string()).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(
            texts[..2]
                .iter()
                .all(|text| text.starts_with("condor_qedit "))
        );
        assert!(texts[2].starts_with("condor_release "), "{texts:?}");
        assert_eq!(
            commands.iter().map(|one| one.jobs).collect::<Vec<_>>(),
            [2, 1, 3]
        );
        assert!(commands.iter().all(|one| one.moment == CommandMoment::Now));
    }

    proptest! {
        /// A page shows some of the jobs in a queue.
        #[test]
        fn commands_affect_each_shown_job_and_no_other(
            jobs in prop::collection::btree_map(
                (0..7, 0..7),
                (
                    prop::sample::select(vec!["ada", "bob", "eve"]),
                    1i64..20,
                    prop::sample::select(vec![(13, 2), (34, 102), (3, 0), (1, 0)]),
                    any::<bool>(),
                ),
                1..40,
            ),
        ) {
            let queue: Vec<(QueuedTestJob, (i32, i32))> = jobs
                .iter()
                .map(|(&(cluster, proc), &(owner, since_s, codes, _))| {
                    (QueuedTestJob { cluster, proc, owner, status: 5, since_s }, codes)
                })
                .collect();
            let whole: Vec<QueuedTestJob> = queue.iter().map(|(job, _)| *job).collect();
            let advice = advice_on(&queue);
            let shown: Vec<&JobAdvice> =
                advice.iter().filter(|one| jobs[&(one.job.id.cluster, one.job.id.proc)].3).collect();
            let mut released: BTreeMap<JobId, usize> = BTreeMap::new();
            for command in thing_commands(&shown) {
                let text = command.command.to_string();
                let named = affected(&text, &whole);
                prop_assert_eq!(named.len(), command.jobs);
                for (cluster, proc) in named {
                    let job = JobId { cluster, proc };
                    prop_assert!(shown.iter().any(|one| one.job.id == job), "{}", text);
                    *released.entry(job).or_default() += usize::from(text.starts_with("condor_release"));
                }
            }
            for one in &shown {
                let expected = usize::from(one.verdict.then.is_some() && one.verdict.action == HoldAction::Fix);
                prop_assert_eq!(released.get(&one.job.id).copied().unwrap_or(0), expected);
            }
        }
    }
}
