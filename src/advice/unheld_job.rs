//! A job that is idle or running in the queue, and the files that HTCondor reads when it starts.

use std::sync::Arc;

use serde_json::Value;

use super::job_command::JobId;
use super::look::url_looks::is_askable;
use super::machine_needs::MachineNeeds;
use super::memory_plan::MAX_REQUEST_MB;
use super::queue_facts::{SENT_IMAGE, absolute_path};
use poolcast_base::escape::one_line;
use poolcast_base::shared_text::{SharedText, SharedTexts, SharedValues};
use poolcast_holds::job_ads::{ListedAd, MAX_STRING_BYTES, job_status};

/// Universes whose jobs run in slots, and get their files from the access point: vanilla, java and parallel.
const UNIVERSES_WITH_SLOTS: [i64; 3] = [5, 10, 11];

/// Maximum number of bytes of JSON for one byte of text.
const MAX_ESCAPE: usize = 6;

/// Marks what HTCondor replaces when a machine is found.
const MACHINE_MACRO: &str = "$$";

/// A job that is idle or running in the queue.
#[derive(Debug, Clone)]
pub struct UnheldJob {
    /// The job.
    pub job: JobId,
    /// Its access point; empty if it is unknown.
    pub ap: SharedText,
    /// The access point that commands must name; `None` if HTCondor's programs ask it anyway, or if
    /// its name is unknown.
    pub(super) schedd: Option<SharedText>,
    /// Its owner, if the queue names one.
    pub owner: Option<SharedText>,
    /// Its batch, if it has a name.
    pub(super) batch: Option<SharedText>,
    /// True if it waits for a machine, and false if it runs.
    pub is_idle: bool,
    /// Time since which it has been idle or running, epoch s; 0 if it is unknown.
    pub(super) since_s: i64,
    /// `RequestMemory`, MB; `None` if it is no number, or if HTCondor raises it by itself.
    pub(super) request_mb: Option<u64>,
    /// What it needs of a machine.
    pub(super) needs: Arc<MachineNeeds>,
    /// The files that the job gets when it starts: those that HTCondor reads on the access point, as
    /// absolute paths, and URLs that servers can be asked for.
    pub(super) inputs: Arc<Vec<SharedText>>,
}

/// Values that many jobs of a queue have in common.
#[derive(Debug)]
pub(super) struct CommonInputs {
    texts: SharedTexts,
    inputs: SharedValues<Vec<SharedText>>,
    needs: SharedValues<MachineNeeds>,
}

impl CommonInputs {
    pub(super) fn new() -> CommonInputs {
        CommonInputs {
            texts: SharedTexts::default(),
            inputs: SharedValues::default(),
            needs: SharedValues::default(),
        }
    }
}

impl UnheldJob {
    /// Reads the attributes of a job; `None` if it is neither idle nor running. A value of an
    /// unexpected type counts as missing.
    ///
    /// # Errors
    /// Fails if the job has no valid id; the error is the reason in words.
    pub(super) fn from_ad(
        ad: &ListedAd,
        common: &mut CommonInputs,
    ) -> Result<Option<UnheldJob>, &'static str> {
        let value = |name| ad.get(name).unwrap_or(&Value::Null);
        let is_idle = match value("JobStatus").as_i64() {
            Some(job_status::IDLE) => true,
            Some(job_status::RUNNING) => false,
            _ => return Ok(None),
        };
        let number = |name| value(name).as_i64().and_then(|id| i32::try_from(id).ok());
        let (Some(cluster @ 0..), Some(proc @ 0..)) = (number("ClusterId"), number("ProcId"))
        else {
            return Err("its ClusterId and ProcId are not a job id");
        };

        let global_id = value("GlobalJobId").as_str();
        let access_point = global_id.and_then(|id| id.split_once('#'));
        let (ap, _) = access_point.unwrap_or_default();
        let words = |name| value(name).as_str().map(one_line);
        Ok(Some(UnheldJob {
            job: JobId { cluster, proc },
            ap: common.texts.share(ap),
            schedd: None,
            owner: words("Owner").map(|owner| common.texts.share(&owner)),
            batch: words("JobBatchName").map(|batch| common.texts.share(&batch)),
            is_idle,
            since_s: value("EnteredCurrentStatus").as_i64().unwrap_or(0).max(0),
            request_mb: value("RequestMemory")
                .as_u64()
                .filter(|mb| *mb <= MAX_REQUEST_MB && value("RetryRequestMemory").is_null()),
            needs: {
                let needs = match has_slot(ad) {
                    true => MachineNeeds::from_ad(ad, &mut common.texts),
                    false => MachineNeeds::default(),
                };
                common.needs.share(needs)
            },
            inputs: {
                // A running job has read its files.
                let paths = if is_idle { inputs(ad) } else { Vec::new() };
                let shared = paths.iter().map(|path| common.texts.share(path));
                let shared = shared.collect();
                common.inputs.share(shared)
            },
        }))
    }
}

/// Returns true if the job runs in a slot of a machine.
fn has_slot(ad: &ListedAd) -> bool {
    let universe = ad.get("JobUniverse").and_then(Value::as_i64);
    universe.is_none_or(|number| UNIVERSES_WITH_SLOTS.contains(&number))
}

/// Returns the files that the job gets when it starts, each once: paths on the access point, and URLs.
fn inputs(ad: &ListedAd) -> Vec<String> {
    let text = |name: &str| ad.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| ad.get(name).and_then(Value::as_i64);
    let is = |name: &str, wanted: bool| ad.get(name).and_then(Value::as_bool) == Some(wanted);

    let is_transferred = has_slot(ad) && !text("ShouldTransferFiles").eq_ignore_ascii_case("no");
    // The files of a spooled job are in the spool, which its owner may not read.
    let is_spooled = number("StageInStart").is_some_and(|start_s| start_s > 0);
    if !is_transferred || is_spooled {
        return Vec::new();
    }

    let mut paths = listed(text("TransferInput"));
    if !is("TransferExecutable", false) && !is("CopyToSpool", true) {
        paths.push(text("Cmd"));
    }
    if !is("TransferIn", false) {
        paths.push(text("In"));
    }
    paths.push(text(SENT_IMAGE));

    let directory = Some(text("Iwd")).filter(|directory| directory.starts_with('/'));
    let mut found: Vec<String> = (paths.into_iter())
        .filter(|path| !is_expression(path))
        .filter_map(|path| match path {
            url if is_askable(url) => Some(url.to_owned()),
            path if is_local_path(path) => absolute_path(path, directory),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the entries of `list`, separated by commas. The last one is left out if the list may have
/// been cut.
fn listed(list: &str) -> Vec<&str> {
    let mut entries: Vec<&str> = list.split(',').map(str::trim).collect();
    if list.len() >= MAX_STRING_BYTES / MAX_ESCAPE {
        entries.pop();
    }
    entries
}

/// Returns true if HTCondor replaces `entry`.
fn is_expression(entry: &str) -> bool {
    entry.starts_with("/Expr(") || entry.contains(MACHINE_MACRO)
}

/// Returns true if `entry` is a path, and no URL.
fn is_local_path(entry: &str) -> bool {
    !entry.is_empty() && !entry.contains("://") && entry != "/dev/null"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the inputs of an idle job with `attributes` beside its id.
    fn inputs_of(attributes: Value) -> Vec<String> {
        let mut ad = json!({"ClusterId": 1, "ProcId": 0, "JobStatus": 1, "Iwd": "/home/ada"});
        let all = ad.as_object_mut().expect("an object");
        all.extend(attributes.as_object().expect("an object").clone());
        let job = UnheldJob::from_ad(all, &mut CommonInputs::new()).expect("an id");
        let inputs = job.expect("an idle job").inputs;
        inputs.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn inputs_are_urls_and_local_paths_below_the_directory_of_the_job() {
        let ad = json!({"Cmd": "run.sh", "In": "/dev/null", "ContainerImage": "image.sif",
            "ContainerImageFullPath": "images/image.sif",
            "TransferInput": "a.dat, /data/b.dat,osdf:///ospool/c,in/,a.dat,x.$$(OpSys),ftp://host/d,osdf:///x.$$(OpSys)"});
        let expected = [
            "/data/b.dat",
            "/home/ada/a.dat",
            "/home/ada/images/image.sif",
            "/home/ada/in/",
            "/home/ada/run.sh",
            "osdf:///ospool/c",
        ];
        assert_eq!(inputs_of(ad), expected);
    }

    #[test]
    fn what_is_not_sent_from_here_is_left_out() {
        let none: [Value; 7] = [
            json!({"Cmd": "/bin/true", "TransferExecutable": false}),
            json!({"ContainerImage": "/cvmfs/image"}),
            json!({"ContainerImage": "docker://image"}),
            // An image that HTCondor sends has its full path beside its name.
            json!({"ContainerImage": "image.sif", "TransferContainer": false}),
            json!({"TransferInput": "a.dat", "ShouldTransferFiles": "NO"}),
            json!({"TransferInput": "a.dat", "StageInStart": 100}),
            json!({"TransferInput": "/Expr(a)/", "Cmd": "a", "JobUniverse": 7}),
        ];
        for ad in none {
            assert_eq!(inputs_of(ad.clone()), [""; 0], "{ad}");
        }
        assert_eq!(inputs_of(json!({"TransferInput": "a", "Iwd": 7})), [""; 0]);
    }

    #[test]
    fn list_that_may_be_cut_loses_its_last_entry() {
        let list = "abc.dat,".repeat(5000) + "ab";
        assert_eq!(
            inputs_of(json!({"TransferInput": list})),
            ["/home/ada/abc.dat"]
        );
    }

    #[test]
    fn jobs_that_run_have_read_their_inputs() {
        let ad = json!({"ClusterId": 1, "ProcId": 0, "JobStatus": 2, "TransferInput": "/a"});
        let read = |ad: &Value| {
            let ad = ad.as_object().expect("an object");
            UnheldJob::from_ad(ad, &mut CommonInputs::new())
        };
        let job = read(&ad).expect("an id").expect("a job");
        assert!(job.inputs.is_empty() && !job.is_idle);
        assert!(read(&json!({"JobStatus": 5})).expect("no error").is_none());
        assert!(read(&json!({"JobStatus": 1, "ClusterId": -1})).is_err());
    }
}
