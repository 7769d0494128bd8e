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
                rank: answer_rank(advice.action, None),
                ap: advice.ap.clone(),
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
    let is_released = advice.then.is_some();
    let release = |moment| (moment, CommandStep::Release);
    match advice.action {
        HoldAction::Release | HoldAction::Probe if advice.command.is_some() => {
            vec![release(CommandMoment::Now)]
        }
        HoldAction::Remove if advice.command.is_some() => {
            vec![(CommandMoment::Now, CommandStep::Remove)]
        }
        HoldAction::Fix => match advice.raise {
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
    let raises = jobs.iter().filter_map(|one| one.raise);
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
        action: jobs.first()?.action,
        jobs: jobs.len(),
        command: command?,
    })
}
