//! Collects hold reasons, messages of lost runs, and names of owners, DAG nodes and sites from a log. They stay in memory while the log is read and are
//! then printed; no event store contains them.

use std::collections::{HashMap, VecDeque};

use super::addresses::without_secrets;
use super::job_advice::{JobAdvice, JobSite};
use super::restart_loops::RestartLoop;
use htcondor_eventlog::{
    ABORTED, DISCONNECTED, EVICTED, EXECUTE, EventBatch, EventText, EventTextKind, HELD, JobEvent,
    RECONNECT_FAILED, RELEASED, REMOTE_ERROR, SHADOW_EXCEPTION, SUBMIT, TERMINATED,
};
use htcondor_holdreasons::read_reason;
use poolcast_base::escape::one_line;
use poolcast_base::shared_text::SharedText;

/// A job: index of its access point in `access_points`, cluster and proc.
type JobKey = (u32, i32, i32);

/// Time before a hold within which the message of a lost run is its reason, if it has no other, ms.
const LOST_RUN_WITHIN_MS: i64 = 10_000;

/// The hold reasons of the held jobs, the nodes and places of all jobs that have not ended, and the owners of
/// all clusters.
#[derive(Debug, Default)]
pub struct LogWords {
    /// Cutoff, epoch ms: later events are ignored.
    until_ms: Option<i64>,
    access_points: Vec<String>,
    /// Reasons that wait for their hold events, by cluster, proc and the hash of their text.
    pending: HashMap<(i32, i32, u32), PendingReason>,
    held: HashMap<JobKey, HeldReason>,
    /// Names of DAG nodes that wait for their submissions, by cluster and proc.
    pending_nodes: HashMap<(i32, i32), SharedText>,
    nodes: HashMap<JobKey, SharedText>,
    /// Messages that wait for the losses of their runs, by cluster and proc.
    pending_losses: HashMap<(i32, i32), VecDeque<String>>,
    /// The last loss of a run of each job that has a message.
    losses: HashMap<JobKey, RunLoss>,
    /// The sites of machines, by the hash of the machine.
    sites: HashMap<u32, JobSite>,
    /// The machine of each job's last run, if its site is known.
    machines: HashMap<JobKey, u32>,
    owner_names: Vec<String>,
    /// The index in `owner_names` of each name.
    owner_numbers: HashMap<String, u32>,
    /// The index in `owner_names` of the owner, by access point and cluster.
    owners: HashMap<(u32, i32), u32>,
}

/// A hold reason that waits for its hold event.
#[derive(Debug)]
struct PendingReason {
    reason: String,
    is_used: bool,
}

/// The end of a run that was lost.
#[derive(Debug)]
struct RunLoss {
    time_ms: i64,
    message: String,
}

/// The reason of the hold that a job is in.
#[derive(Debug)]
struct HeldReason {
    /// Hash of the reason's text, which identifies the hold.
    text_hash: u32,
    reason: String,
    /// True if the hold has no reason of its own.
    is_of_lost_run: bool,
}

impl LogWords {
    /// Creates an empty collection that ignores events after `until_ms`, if there is a cutoff.
    pub fn until(until_ms: Option<i64>) -> LogWords {
        LogWords {
            until_ms,
            ..LogWords::default()
        }
    }

    /// Adds the next events of a log. The log must be read with its hold texts.
    pub fn add(&mut self, batch: &EventBatch<'_>) {
        let ap = self.access_point_number(batch.ap);
        for text in batch.texts {
            self.add_text(text);
        }
        for ad in batch.ads {
            if let Some(owner) = &ad.owner {
                let owner = self.owner_number(owner);
                self.owners.insert((ap, ad.cluster), owner);
            }
        }
        for event in batch.events {
            self.add_event(ap, event);
        }
        self.pending.retain(|_, reason| !reason.is_used);
        self.pending_losses.retain(|_, pending| !pending.is_empty());
    }

    fn add_text(&mut self, text: &EventText) {
        let EventText { cluster, proc, .. } = *text;
        match text.kind {
            EventTextKind::HoldReason { text_hash } => {
                let reason = PendingReason {
                    reason: text.text.clone(),
                    is_used: false,
                };
                self.pending.insert((cluster, proc, text_hash), reason);
            }
            EventTextKind::DagNode => {
                let node = one_line(&text.text).as_str().into();
                self.pending_nodes.insert((cluster, proc), node);
            }
            EventTextKind::LostRun => {
                let pending = self.pending_losses.entry((cluster, proc)).or_default();
                pending.push_back(text.text.clone());
            }
            EventTextKind::Site { host, attribute } => {
                let site = || JobSite {
                    attribute,
                    name: one_line(&text.text).as_str().into(),
                };
                self.sites.entry(host).or_insert_with(site);
            }
        }
    }

    fn add_event(&mut self, ap: u32, event: &JobEvent) {
        let JobEvent { cluster, proc, .. } = *event;
        let is_later = self.until_ms.is_some_and(|until| event.time_ms > until);
        let job = (ap, cluster, proc);
        match event.number {
            HELD => {
                let pending = self.pending.get_mut(&(cluster, proc, event.text_hash));
                if let Some(pending) = pending {
                    // Even a hold after the cutoff uses up its reason, which `add` then drops.
                    pending.is_used = true;
                    let reason = HeldReason::new(event, &pending.reason, self.losses.get(&job));
                    if !is_later {
                        self.held.insert(job, reason);
                    }
                }
            }
            SUBMIT => {
                if let Some(node) = self.pending_nodes.remove(&(cluster, proc)) {
                    self.nodes.insert(job, node);
                }
            }
            EXECUTE if !is_later => {
                let host = event.facts.execution_place(EXECUTE).host;
                match self.sites.contains_key(&host) {
                    true => self.machines.insert(job, host),
                    false => self.machines.remove(&job),
                };
            }
            EVICTED | SHADOW_EXCEPTION | REMOTE_ERROR | DISCONNECTED | RECONNECT_FAILED => {
                let pending = self.pending_losses.get_mut(&(cluster, proc));
                let message = pending.and_then(VecDeque::pop_front);
                if let Some(message) = message.filter(|text| !is_later && !text.is_empty()) {
                    let time_ms = event.time_ms;
                    self.losses.insert(job, RunLoss { time_ms, message });
                }
            }
            RELEASED if !is_later => {
                self.held.remove(&job);
            }
            ABORTED | TERMINATED if !is_later => {
                self.held.remove(&job);
                self.nodes.remove(&job);
                self.machines.remove(&job);
                self.losses.remove(&job);
            }
            _ => {}
        }
    }

    /// Sets the hold reason, the owner, the DAG node and the site in each piece of advice, if they are known.
    pub fn add_to(&self, advice: &mut [JobAdvice]) {
        for one in advice {
            let Some(ap) = self.known_access_point(&one.job.ap) else {
                continue;
            };
            let job = (ap, one.job.id.cluster, one.job.id.proc);
            one.job.dag_node = self.nodes.get(&job).cloned();
            let machine = self.machines.get(&job);
            one.job.site = machine.and_then(|machine| self.sites.get(machine).cloned());
            let held = self.held.get(&job);
            let held = held.filter(|held| held.text_hash == one.hold.text_hash);
            one.hold.reason = held.map(|held| one_line(&held.reason).as_str().into());
            if let Some(held) = held.filter(|held| held.is_of_lost_run) {
                let codes = (one.hold.code, one.hold.subcode);
                one.hold.stated = read_reason(&held.reason, Some(codes)).kind;
            }
            let owner = self.owners.get(&(ap, one.job.id.cluster));
            one.set_owner(owner.map(|&owner| self.owner_names[owner as usize].as_str().into()));
        }
    }

    /// Sets the message in each of `loops`, if one is known.
    pub fn add_to_loops(&self, loops: &mut [RestartLoop]) {
        for one in loops {
            let ap = self.known_access_point(&one.ap);
            let job = ap.map(|ap| (ap, one.cluster, one.jobs[0].proc));
            let lost = job.and_then(|job| self.losses.get(&job));
            one.message = lost.map(|lost| without_secrets(&one_line(&lost.message)));
        }
    }

    fn known_access_point(&self, name: &str) -> Option<u32> {
        let at = self.access_points.iter().position(|known| known == name)?;
        Some(at as u32)
    }

    fn access_point_number(&mut self, name: &str) -> u32 {
        self.known_access_point(name).unwrap_or_else(|| {
            self.access_points.push(name.to_owned());
            self.access_points.len() as u32 - 1
        })
    }

    fn owner_number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.owner_numbers.get(name) {
            return number;
        }
        let number = self.owner_names.len() as u32;
        self.owner_names.push(name.to_owned());
        self.owner_numbers.insert(name.to_owned(), number);
        number
    }
}

impl HeldReason {
    /// Creates the reason of the hold in `event`: its `text`, or if that says nothing the message of the
    /// run that was `lost` just before.
    fn new(event: &JobEvent, text: &str, lost: Option<&RunLoss>) -> HeldReason {
        let says_nothing = matches!(text.trim(), "" | "Reason unspecified");
        let is_just_before = |lost: &&RunLoss| event.time_ms - lost.time_ms <= LOST_RUN_WITHIN_MS;
        let lost = lost.filter(is_just_before).filter(|_| says_nothing);
        HeldReason {
            text_hash: event.text_hash,
            reason: lost.map_or(text, |lost| &lost.message).to_owned(),
            is_of_lost_run: lost.is_some(),
        }
    }
}
