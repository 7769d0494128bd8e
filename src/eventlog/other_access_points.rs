//! Which events are of which access point, in a log that several of them share.

use std::collections::HashMap;

use super::event::JobEvent;
use super::event_number::SUBMIT;
use super::job_ad::JobAd;

/// Jobs that were submitted to other access points than that of their log, which has no header to
/// say whose it is: users' logs may be shared, and logs put together. Equal ids are told apart by
/// the host in their last event 000.
#[derive(Default)]
pub(super) struct OtherAccessPoints {
    /// The host that the first job was submitted from.
    pub(super) first_host: Option<String>,
    /// The other hosts.
    pub(super) hosts: Vec<HostEvents>,
    /// The index in `hosts` of the last host that was named; `None` for the first.
    pub(super) last_host: Option<usize>,
    /// The index in `hosts` for each job that was submitted from one.
    host_of_job: HashMap<(i32, i32), usize>,
}

/// What was read of one host, and not yet handed over.
pub(super) struct HostEvents {
    pub(super) name: String,
    pub(super) events: Vec<JobEvent>,
    pub(super) ads: Vec<JobAd>,
}

impl OtherAccessPoints {
    /// Jobs come from `host` from now on.
    pub(super) fn enter_host(&mut self, host: &str) {
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

    /// The host that `event` belongs to; `None` for the first. An event 000 is of the last host
    /// that was named.
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

    /// The host that `job` was submitted from; `None` for the first.
    pub(super) fn host_of(&mut self, job: (i32, i32)) -> Option<&mut HostEvents> {
        let host = self.host_of_job.get(&job)?;
        Some(&mut self.hosts[*host])
    }

    /// Forgets which job was submitted from where: another log begins.
    pub(super) fn begin_log(&mut self) {
        self.first_host = None;
        self.last_host = None;
        self.host_of_job.clear();
    }
}
