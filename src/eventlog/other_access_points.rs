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
    /// Other hosts.
    pub(super) hosts: Vec<HostEvents>,
    /// Index in `hosts` of the last named host; `None` for the first host.
    pub(super) last_host: Option<usize>,
    /// Index in `hosts` of each job that was submitted from one of them.
    host_of_job: HashMap<(i32, i32), usize>,
}

/// Events and ads of one host that were not emitted yet.
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

        let known = self.hosts.iter().position(|known| known.name == host);
        let index = known.unwrap_or(self.hosts.len());
        if known.is_none() {
            self.hosts.push(HostEvents {
                name: host.to_owned(),
                events: Vec::new(),
                ads: Vec::new(),
            });
        }
        self.last_host = Some(index);
    }

    /// Returns the host of `event`; `None` for the first host. An event 000 belongs to the last
    /// named host.
    pub(super) fn host_of_event(&mut self, event: &JobEvent) -> Option<&mut HostEvents> {
        let job = (event.cluster, event.proc);
        if event.number == SUBMIT {
            match self.last_host {
                Some(host) => self.host_of_job.insert(job, host),
                None => self.host_of_job.remove(&job),
            };
        }
        self.host_of(job)
    }

    /// Returns the host from which `job` was submitted; `None` for the first host.
    pub(super) fn host_of(&mut self, job: (i32, i32)) -> Option<&mut HostEvents> {
        let host = self.host_of_job.get(&job)?;
        Some(&mut self.hosts[*host])
    }

    /// Forgets the hosts of all jobs, because another log begins.
    pub(super) fn begin_log(&mut self) {
        self.first_host = None;
        self.last_host = None;
        self.host_of_job.clear();
    }
}
