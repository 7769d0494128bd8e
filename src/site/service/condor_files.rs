//! The files of HTCondor: the configuration of its event log, and the jobs that the schedd starts
//! itself.

use super::commands::{
    ADVISE_LIMITS, COLLECT_LIMITS, LEARN_LIMITS, PartLimits, advise_arguments, collect_arguments,
    learn_commands,
};
use super::service_paths::ServicePaths;
use super::site_file::SiteFile;
use super::unit_files::{STATE_DIR, tmpfiles};

/// Path of the script that the schedd starts.
const CRON_SCRIPT: &str = "/usr/local/libexec/poolcast-cron";

/// Directory of the last output of each part.
const LOG_DIR: &str = "/var/log/poolcast";

/// A part of the service that the schedd starts.
struct CronJob {
    /// The first argument of the script.
    name: &'static str,
    /// Time between two starts, in HTCondor's form.
    period: &'static str,
    /// The load that HTCondor assumes. It starts no job with which the sum over those that run would
    /// exceed `SCHEDD_CRON_MAX_JOB_LOAD`, which is 0.1 by default.
    load: &'static str,
}

const CRON_JOBS: [CronJob; 3] = [
    CronJob {
        name: "collect",
        period: "2m",
        load: "0.01",
    },
    CronJob {
        name: "advise",
        period: "1m",
        load: "0.01",
    },
    // The script learns at once, and then in the first call of each night: a period of a day would
    // begin with the schedd.
    CronJob {
        name: "learn",
        period: "2m",
        load: "0.02",
    },
];

/// Attributes of jobs in the event log that answers use.
const JOB_ATTRIBUTES: &str = "GlobalJobId, Owner, JobBatchName, RequestCpus, RequestGPUs, RequestMemory, RequestDisk, TransferInput, Iwd";

/// The configuration of HTCondor that writes an event log to `log`.
pub(super) fn event_log_file(log: &str) -> SiteFile {
    SiteFile::new(
        "/etc/condor/config.d/60-poolcast-event-log.conf",
        format!(
            "# One log of the events of all jobs, of at most 200 MB: poolcast learns from it.\n\
             EVENT_LOG = {log}\n\
             EVENT_LOG_MAX_SIZE = 20000000\n\
             EVENT_LOG_MAX_ROTATIONS = 9\n\
             # Owners, requests and input files stand in it with each event.\n\
             EVENT_LOG_JOB_AD_INFORMATION_ATTRS = {JOB_ATTRIBUTES}\n"
        ),
    )
}

/// The files of a service that the schedd starts. It runs as HTCondor's own user.
pub(super) fn cron_files(paths: &ServicePaths) -> Vec<SiteFile> {
    vec![
        tmpfiles("condor", Some(LOG_DIR)),
        SiteFile {
            mode: 0o755,
            ..SiteFile::new(CRON_SCRIPT, cron_script(paths))
        },
        SiteFile::new(
            "/etc/condor/config.d/61-poolcast-cron.conf",
            cron_configuration(),
        ),
    ]
}

fn cron_configuration() -> String {
    let mut text =
        "# The schedd starts these, as the user of HTCondor. Their output is not used.\n\
                    SCHEDD_CRON_JOBLIST = $(SCHEDD_CRON_JOBLIST)"
            .to_owned();
    for CronJob { name, .. } in CRON_JOBS {
        text.push_str(&format!(" POOLCAST_{}", name.to_uppercase()));
    }
    text.push('\n');
    for CronJob { name, period, load } in CRON_JOBS {
        let job = format!("SCHEDD_CRON_POOLCAST_{}", name.to_uppercase());
        text.push_str(&format!(
            "{job}_EXECUTABLE = {CRON_SCRIPT}\n\
             {job}_ARGS = {name}\n\
             {job}_MODE = Periodic\n\
             {job}_PERIOD = {period}\n\
             {job}_JOB_LOAD = {load}\n"
        ));
    }
    text
}

/// The script that the schedd starts. The schedd would take its output as attributes.
fn cron_script(paths: &ServicePaths) -> String {
    let ServicePaths { program, log } = paths;
    let [collect, learn, advise] = [COLLECT_LIMITS, LEARN_LIMITS, ADVISE_LIMITS].map(limit_command);
    format!(
        "#!/bin/sh\n\
         # A part of the service of poolcast, started by the schedd.\n\
         cd {STATE_DIR} || exit 1\n\
         export HOME={STATE_DIR} POOLCAST_FILE_MODE=shared\n\
         umask 027\n\
         part() {{\n\
         \x20   case $1 in\n\
         \x20   collect) {collect} && nice -n 19 timeout 10m {program} -q {} ;;\n\
         \x20   learn) {learn} && nice -n 19 timeout 4h sh -c '{}' ;;\n\
         \x20   advise) {advise} && nice -n 19 timeout 5m {program} -q {} ;;\n\
         \x20   esac\n\
         }}\n\
         case $1 in\n\
         learn)\n\
         \x20   [ -e archive/manifest.json ] || exit 0\n\
         \x20   # The first call of all learns, and then the first after 02:10 of each day. A stopped run\n\
         \x20   # continues in the next night.\n\
         \x20   night=$(date -d '130 minutes ago' +%F)\n\
         \x20   [ \"$night\" != \"$(cat learned-in 2>/dev/null)\" ] || exit 0\n\
         \x20   echo \"$night\" >learned-in\n\
         \x20   ;;\n\
         advise) [ -e model/manifest.json ] || exit 0 ;;\n\
         esac\n\
         part \"$1\" >{LOG_DIR}/\"$1\".log 2>&1\n",
        collect_arguments(log),
        learn_commands(program),
        advise_arguments(log),
    )
}

/// The shell's command that limits the memory of a part. Files that are mapped do not count.
fn limit_command(limits: PartLimits) -> String {
    format!("ulimit -d {}", u64::from(limits.memory_mib) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_jobs_of_the_schedd_may_run_at_once() {
        let loads = CRON_JOBS.map(|job| job.load.parse::<f64>().expect("a number"));
        assert!(loads.iter().sum::<f64>() <= 0.1, "{loads:?}");
    }
}
