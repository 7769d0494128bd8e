//! Assigns events to access points, in a log that several access points share.

use std::collections::HashMap;

use super::event::JobEvent;
use super::event_number::SUBMIT;
use super::job_ad::JobAd;

/// Events of jobs that were submitted at other access points than the first one in their log. Such
/// a log has no header that names its access point: users may share a log, and logs may be
/// concatenated. Jobs with equal ids are distinguished by the host in their last event 000.
#[derive(Default)]
pub(super) struct OtherAccessPoints {
    /// Host from which the first job was submitted.
    pub(super) first_host: Option<String>,
    /// Other hosts, in the order in which they were first named.
    hosts: Vec<HostEvents>,
    /// Index in `hosts` by name.
    index_by_name: HashMap<String, usize>,
    /// Indices of the hosts whose events or ads were not emitted yet.
    pending: Vec<usize>,
    /// Index in `hosts` of the last named host; `None` for the first host.
    pub(super) last_host: Option<usize>,
    /// Index in `hosts` of each job that was submitted from one of them.
    host_of_job: HashMap<(i32, i32), usize>,
}

/// Events and ads of one host that were not emitted yet.
#[derive(Default)]
pub(super) struct HostEvents {
    pub(super) name: String,
    pub(super) events: Vec<JobEvent>,
    pub(super) ads: Vec<JobAd>,
}

impl OtherAccessPoints {
    /// Sets the host from which later jobs are submitted.
    pub(super) fn switch_host(&mut self, host: &str) {
        let first = self.first_host.get_or_insert_with(|| host.to_owned());
        if host == first {
            self.last_host = None;
            return;
        }

        let known = self.index_by_name.get(host).copied();
        self.last_host = Some(known.unwrap_or_else(|| self.add_host(host)));
    }

    /// Adds a host, and returns its index.
    fn add_host(&mut self, name: &str) -> usize {
        let index = self.hosts.len();
        self.hosts.push(HostEvents {
            name: name.to_owned(),
            ..HostEvents::default()
        });
        self.index_by_name.insert(name.to_owned(), index);
        index
    }

    /// Returns true if all jobs so far were submitted from the first host.
    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Returns the list to which `event` must be added; `None` for the first host. An event 000
    /// belongs to the last named host.
    pub(super) fn events_for(&mut self, event: &JobEvent) -> Option<&mut Vec<JobEvent>> {
        let job = (event.cluster, event.proc);
        if event.number == SUBMIT {
            match self.last_host {
                Some(host) => self.host_of_job.insert(job, host),
                None => self.host_of_job.remove(&job),
            };
        }
        self.pending_host(job).map(|host| &mut host.events)
    }

    /// Returns the list to which an ad of `job` must be added; `None` for the first host.
    pub(super) fn ads_for(&mut self, job: (i32, i32)) -> Option<&mut Vec<JobAd>> {
        self.pending_host(job).map(|host| &mut host.ads)
    }

    /// Returns the host from which `job` was submitted, as pending; `None` for the first host.
    fn pending_host(&mut self, job: (i32, i32)) -> Option<&mut HostEvents> {
        let index = *self.host_of_job.get(&job)?;
        let host = &mut self.hosts[index];
        if host.events.is_empty() && host.ads.is_empty() {
            self.pending.push(index);
        }
        Some(host)
    }

    /// Calls `emit` with each host that has events or ads, in the order in which they were first
    /// named, and clears these. A log of very many hosts is emitted in many steps, so no step
    /// visits all hosts.
    pub(super) fn emit_pending<E>(
        &mut self,
        mut emit: impl FnMut(&HostEvents) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pending.sort_unstable();
        for index in self.pending.drain(..) {
            let host = &mut self.hosts[index];
            emit(host)?;
            host.events.clear();
            host.ads.clear();
        }
        Ok(())
    }

    /// Forgets the hosts of all jobs, because another log begins.
    pub(super) fn begin_log(&mut self) {
        self.first_host = None;
        self.last_host = None;
        self.host_of_job.clear();
    }
}
