//! Tests of the reader and of the table, on reasons in the forms that HTCondor, plug-ins and sites write.

use proptest::prelude::*;

use super::rules::Action::{self, Fix, Later, Leave, TryOne};
use super::rules::Party;
use super::{
    Amount, Direction, Outcome, ReasonFacts, ReasonKind, Side, Speaker, Thing, explain,
    kind_of_code, read_reason,
};

/// Heads of transfers, as in the catalogue of hold reasons.
const HEADS: &[(&str, &str)] = &[
    (
        "IN@AP ",
        "Transfer input files failure at access point ap9 while sending files to execution point slot1_3@w17.lab.example. Details: ",
    ),
    (
        "IN@EP ",
        "Transfer input files failure at execution point slot1_3@w17.lab.example while receiving files from access point ap9. Details: ",
    ),
    (
        "OUT@EP ",
        "Transfer output files failure at execution point slot1_3@w17.lab.example while sending files to access point ap9. Details: ",
    ),
    (
        "OUT@AP ",
        "Transfer output files failure at access point ap9 while receiving files from execution point slot1_3@w17.lab.example. Details: ",
    ),
    (
        "URL@IN ",
        "Transfer input files failure at execution point slot1_3@w17.lab.example using protocol osdf. Details: ",
    ),
    (
        "URL@OUT ",
        "Transfer output files failure at execution point slot1_3@w17.lab.example using protocol osdf. Details: ",
    ),
    ("EF ", "Error from slot1_3@w17.lab.example: "),
];

fn written(short: &str) -> String {
    let mut text = short.to_owned();
    for (name, head) in HEADS {
        text = text.replace(name, head);
    }
    text
}

type Row = (
    i32,
    i32,
    &'static str,
    Thing,
    Outcome,
    Option<Action>,
    &'static str,
);

/// Code, subcode, reason, and what is read: the thing, the outcome, what to do, and words of the explanation.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    // Limits that no request changes.
    (21, 0, "EF Memory of 6G as per the rules of the experiment exceeded", Thing::Memory, Outcome::TooLarge, Some(Fix), "the same for all jobs"),
    (26, 0, "memory usage is more than 38 GB on this worker node", Thing::Memory, Outcome::TooLarge, Some(Fix), "38912 MB"),
    (3, 0, "The job attribute PeriodicHold expression 'MemoryUsage > 4000' evaluated to TRUE", Thing::Memory, Outcome::TooLarge, Some(Fix), "own rule"),
    (3, 0, "The job attribute PeriodicHold expression 'MemoryUsage > 2 * RequestMemory' evaluated to TRUE", Thing::Memory, Outcome::Exceeded, Some(Fix), "RequestMemory"),
    (26, 0, "EF Disk of 70G as per the rules of the site exceeded", Thing::Disk, Outcome::TooLarge, Some(Fix), "71680 MB"),
    (3, 0, "held by the submit file: disk usage above 20 GB", Thing::Disk, Outcome::TooLarge, Some(Fix), "own rule"),
    // Words that say less, or something else, than they seem to.
    (12, 256, "EF FILETRANSFER:1:non-zero exit (1) from /usr/libexec/condor/curl_plugin. Error: The requested URL returned error: 403 Forbidden using http_proxy=http://squid.lab.example:3128 (http://files.lab.example/anna/in.dat)", Thing::Object, Outcome::Denied, Some(Fix), "http://files.lab.example/anna/in.dat"),
    (3, 34, "Exit code (137) > 128, treated as if the job were over its memory limit", Thing::Memory, Outcome::Exceeded, Some(Fix), "exit code 137"),
    (5, 0, "Cannot expand $$ expression (CUDADriver).", Thing::Request, Outcome::Undefined, Some(Fix), "attribute CUDADriver"),
    (2, 0, "CREAM error: BLAH error: submission command failed (exit code = 1) (stdout:) (stderr:qsub: Unauthorized Request  MSG=group ACL is not satisfied: user anna@ce.lab.example, queue short-) N/A (jobId = CREAM12)", Thing::RemoteRequest, Outcome::Denied, Some(Fix), "queue short"),
    (35, 0, "EF ", Thing::Image, Outcome::Unknown, Some(TryOne), "does not say"),
    (35, 0, "EF Cannot start container: invalid image name: registry.lab.example/anna/tool:v1", Thing::Image, Outcome::Invalid, Some(Fix), "registry.lab.example/anna/tool:v1"),
    (12, 2, "OUT@AP EF STARTER at 192.0.2.8 failed to send file(s) to <192.0.2.40:9618>; failed to read from file /srv/fit.h5: (errno 2) No such file or directory", Thing::SandboxFile, Outcome::Absent, Some(TryOne), "fit.h5"),
    (0, 0, "Service Unavailable", Thing::RemoteSystem, Outcome::Unavailable, Some(Later), "answers again"),
    (0, 0, "Unauthorized.", Thing::RemoteSystem, Outcome::Denied, Some(Fix), "renew the credential"),
    (0, 0, "Job not found", Thing::RemoteSystem, Outcome::Absent, Some(TryOne), "submit it again"),
    (2, 25, "Globus error 25: the job manager detected an invalid script status", Thing::RemoteSystem, Outcome::Invalid, Some(TryOne), "administrators"),
    (2, 124, "Globus error 124: old job manager is still alive", Thing::RemoteSystem, Outcome::Busy, Some(Later), "release it"),
    (26, 0, "HTCondor-CE held job due to invalid job universe.", Thing::RemoteRequest, Outcome::Invalid, Some(Fix), "universe = grid"),
    (13, 2, "IN@AP reading from file /var/spool/condor/4/0/cluster4.proc0.subproc0/python3: (errno 2) No such file or directory", Thing::File, Outcome::Absent, Some(Fix), "transfer_executable"),
    (14, 13, "Cannot access initial working directory /home/lin/run: Permission denied", Thing::WorkingDirectory, Outcome::Denied, Some(Fix), "accessible"),
    (13, 256, "URL@IN FILETRANSFER:1:non-zero exit (1) from stash_plugin. |Error: failed to get namespace information for remote URL osdf:///Lab/lin/a.h5: 404: No namespace found for path ( URL file = osdf:///Lab/lin/a.h5 )|", Thing::Object, Outcome::Absent, Some(Fix), "upper and lower case"),
    (2, 75, "Globus error 75: the cache file could not be opened in order to relocate the user proxy", Thing::RemoteSystem, Outcome::Unknown, Some(TryOne), "cache file"),
    (6, 2, "File '/shared/conda/bin/condor_dagman' is missing or not executable", Thing::Program, Outcome::Absent, Some(Fix), "correct its path"),
    (6, 13, "File '/shared/conda/bin/condor_dagman' is missing or not executable", Thing::Program, Outcome::Denied, Some(Fix), "chmod +x"),
    (3, 0, "generator hangs: cpu>3600s", Thing::ProgramEnd, Outcome::Failed, Some(Fix), "program failed"),
    (26, 0, "killed: memory use exceeds 2 * RequestMemory", Thing::Memory, Outcome::Exceeded, Some(Fix), "RequestMemory"),
    (3, 0, "The job attribute PeriodicHold expression 'time() > CampaignEnd' evaluated to TRUE", Thing::Time, Outcome::Expired, Some(Fix), "fixed time"),
    (3, 0, "The job attribute OnExitHold expression '(ExitCode != 0) || (MemoryUsage > RequestMemory)' evaluated to UNDEFINED", Thing::Expression, Outcome::Undefined, Some(Fix), "(ExitCode != 0) || (MemoryUsage"),
    (3, 1, "the job is over its resource limits", Thing::Resource, Outcome::Exceeded, Some(Fix), "request"),
    // Other systems.
    (0, 0, "ARC job failed: LRMS error: (265) SLURM reported OUT_OF_MEMORY", Thing::Memory, Outcome::Exceeded, Some(Fix), "RequestMemory"),
    (2, 7, "Globus error 7: an authorization operation failed", Thing::Credential, Outcome::Denied, Some(Fix), "credential"),
    (2, 0, "submission command failed (exit code = 1) (stdout:) (stderr:qsub: submit error (Maximum number of jobs already in queue short)-)", Thing::RemoteSystem, Outcome::Busy, Some(Later), "queue short"),
    (2, 0, "submission command failed (exit code = 255) (stdout:) (stderr:Request aborted by esub. Job not submitted.-)", Thing::RemoteRequest, Outcome::Unknown, Some(Fix), "esub"),
    (0, 0, "Required 'compute.instances.create' permission for 'projects/lab/zones/z1/instances/c1'", Thing::RemoteSystem, Outcome::Denied, Some(Fix), "ask for the right"),
    (0, 0, "InvalidAMIID.NotFound: The image id '[ami-0abc]' does not exist", Thing::RemoteRequest, Outcome::Absent, Some(Fix), "ami-0abc"),
    (0, 0, "EF FATAL:    executable file not found in $PATH", Thing::Program, Outcome::Absent, Some(Fix), "not in the container"),
    (0, 0, "EF Singularity test failed: FATAL:   could not open image /var/lib/condor/execute/dir_1/tf.sif: image format not recognized", Thing::Image, Outcome::Corrupt, Some(Fix), "build it again"),
    // Plug-ins whose words say more than their number.
    (12, 256, "Transfer output files failure at execution point slot1@e using protocol gdrive. Details: userRateLimitExceeded ( URL file = gdrive://results/out.tar )|", Thing::Object, Outcome::Busy, Some(Later), "gdrive://results/out.tar"),
    (13, 256, "Transfer input files failure at execution point slot1@e using protocol root. Details: [ERROR] Server responded with an error: [3011] No servers are available to read the file. ( URL file = root://se.lab.example//a/in.root )|", Thing::Object, Outcome::Absent, Some(Fix), "root://se.lab.example//a/in.root"),
    (12, 256, "Transfer output files failure at execution point slot1@e using protocol davs. Details: (Destination) Redirect limit has been reached ( URL file = davs://se.lab.example/a/out.root )|", Thing::Object, Outcome::Unavailable, Some(Later), "davs://se.lab.example/a/out.root"),
    // Plug-ins and services whose words come alone, or after the name of their own program.
    (13, 256, "Transfer input files failure at execution point slot1@e using protocol lab. Details: Error from labcp: unauthorized: the token has expired", Thing::Credential, Outcome::Denied, Some(Fix), "token"),
    (13, 0, "labfetch: NoSuchKey: The specified key does not exist (s3://lab-bucket/deck.tar)", Thing::Object, Outcome::Absent, Some(Fix), "s3://lab-bucket/deck.tar"),
    (13, 0, "HTTP 404 for https://data.lab.example/deck.tgz", Thing::Object, Outcome::Absent, Some(Fix), "https://data.lab.example/deck.tgz"),
    (13, 0, "xrdcp: [ERROR] Server responded with an error: [3010] Unable to open; permission denied root://se.lab.example//a/in.root", Thing::Object, Outcome::Denied, Some(Fix), "root://se.lab.example//a/in.root"),
    (12, 0, "upload of results: SlowDown: Please reduce your request rate", Thing::Unknown, Outcome::Busy, Some(Later), "later"),
    (0, 0, "HTTP/1.1 502 Bad Gateway from the compute element ce7.lab.example", Thing::Unknown, Outcome::Unavailable, Some(Later), "later"),
    (0, 0, "the request to info.lab.example timed out", Thing::Unknown, Outcome::TimedOut, Some(Later), "later"),
    (35, 0, "EF starting container process caused: exec: \"./fit.sh\": permission denied: unknown", Thing::Program, Outcome::Denied, Some(Fix), "./fit.sh"),
    // Windows.
    (0, 0, "EF Failed to initialize user_priv as \"(null)\\anna\".  Make sure this account's password is securely stored with condor_store_cred.", Thing::Account, Outcome::Absent, Some(Fix), "condor_store_cred"),
    (6, 8, "EF Failed to execute 'C:\\condor\\execute\\dir_1\\scratch\\run.py': Bad exe type. err=193 (errno=8: 'Exec format error')", Thing::Program, Outcome::WrongFormat, Some(Fix), "python.exe"),
    (3, 7, "too slow", Thing::Unknown, Outcome::Unknown, Some(Fix), "policy"),
    // Transfers by HTCondor, in the new form and in the old one.
    (13, 2, "IN@AP 2 total failures: first failure: reading from file /data/lin/deck.in: (errno 2) No such file or directory", Thing::File, Outcome::Absent, Some(Fix), "/data/lin/deck.in"),
    (13, 13, "IN@AP reading from file /afs/lab.example/u/lin/deck.in: (errno 13) Permission denied", Thing::File, Outcome::Denied, Some(Fix), "readable"),
    (13, 116, "IN@AP reading from file /nfs/lin/timeout.dat: (errno 116) Stale file handle", Thing::File, Outcome::MountLost, Some(Later), "file system"),
    (13, 28, "IN@EP writing to file /scratch/condor/execute/dir_88/deck.in: (errno 28) No space left on device", Thing::SandboxFile, Outcome::Full, Some(TryOne), "slot1_3@w17.lab.example"),
    (12, 2, "OUT@EP 1 total failures: first failure: reading from file /scratch/condor/execute/dir_88/fit.h5: (errno 2) No such file or directory", Thing::SandboxFile, Outcome::Absent, Some(TryOne), "did not write"),
    (12, 21, "OUT@EP reading from file /scratch/condor/execute/dir_88/plots: (errno 21) Is a directory", Thing::SandboxFile, Outcome::WrongKind, Some(Fix), "plain"),
    (12, 2, "OUT@AP writing to file /data/lin/new/fit.h5: (errno 2) No such file or directory", Thing::File, Outcome::Absent, Some(Fix), "create the directory"),
    (12, 122, "OUT@AP writing to file /data/lin/fit.h5: (errno 122) Disk quota exceeded", Thing::File, Outcome::Quota, Some(Fix), "quota"),
    (12, 28, "OUT@AP writing to file /data/lin/fit.h5: (errno 28) No space left on device", Thing::File, Outcome::Full, Some(Later), "room"),
    (13, 2, "EF STARTER at 192.0.2.7 failed to send file(s) to <192.0.2.9:9618>: error reading from /scratch/execute/dir_88/fit.h5: (errno 2) No such file or directory; SHADOW failed to receive file(s) from <192.0.2.7:9618>", Thing::SandboxFile, Outcome::Absent, Some(TryOne), "fit.h5"),
    (13, 2, "EF SHADOW at 192.0.2.9 failed to send file(s) to <192.0.2.7:9618>: error reading from /data/lin/deck.in: (errno 2) No such file or directory; STARTER failed to receive file(s) from <192.0.2.9:9618>", Thing::File, Outcome::Absent, Some(Fix), "/data/lin/deck.in"),
    (12, 13, "EF STARTER at 192.0.2.7 failed to send file(s) to <192.0.2.9:9618>; SHADOW at 192.0.2.9 failed to write to file /data/lin/out/fit.h5: (errno 13) Permission denied", Thing::File, Outcome::Denied, Some(Fix), "writable"),
    (12, 122, "EF STARTER at 192.0.2.7 failed to write to file /scratch/execute/dir_88/deck.in: (errno 122) Disk quota exceeded", Thing::SandboxFile, Outcome::Quota, Some(TryOne), "another machine"),
    (13, 2, r"EF STARTER at 192.0.2.7 failed to send file(s) to <192.0.2.9:9618>: error reading from C:\condor\execute\dir_604\fit.h5: (errno 2) No such file or directory; SHADOW failed to receive file(s) from <192.0.2.7:9618>", Thing::SandboxFile, Outcome::Absent, Some(TryOne), "did not write"),
    (12, 1, "OUT@AP EF STARTER at 192.0.2.7 failed to send file(s) to <192.0.2.9:9618>; remaps resulted in a cycle: fit.h5", Thing::OutputName, Outcome::Invalid, Some(Fix), "fit.h5"),
    (13, 2, "IN@AP reading from file /tmp/x509up_u507: (errno 2) No such file or directory", Thing::Credential, Outcome::Absent, Some(Fix), "proxy"),

    // Transfer plug-ins.
    (12, 0, "EF STARTER at 192.0.2.7 failed to receive file /x/dir_1/a: FILETRANSFER:1:non-zero exit (1) from /usr/libexec/condor/curl_plugin. Error: The requested URL returned error: 404 Not Found (http://fs.lab.example/a)|FILETRANSFER:1:Failed to execute /opt/old_plugin, ignoring", Thing::Object, Outcome::Absent, Some(Fix), "404"),
    (12, 0, "EF STARTER at 192.0.2.7 failed to receive file /x/dir_1/a: FILETRANSFER:1:non-zero exit(28) from /usr/libexec/condor/curl_plugin", Thing::Object, Outcome::TimedOut, Some(Later), "network"),
    (13, 256, "URL@IN The requested URL returned error: 502 Bad Gateway ( URL file = https://fs.lab.example/denied/a.dat )|", Thing::Object, Outcome::Unavailable, Some(Later), "https://fs.lab.example/denied/a.dat"),
    (13, 256, "URL@IN Could not resolve host: fs.lab.exmaple ( URL file = https://fs.lab.exmaple/a.dat )|", Thing::Object, Outcome::Unresolved, Some(TryOne), "fs.lab.exmaple"),
    (13, 256, "URL@IN could not open local file /scratch/execute/dir_9/a.dat, error 28 (No space left on device) ( URL file = https://fs.lab.example/a.dat )|", Thing::SandboxFile, Outcome::Full, Some(TryOne), "room"),
    (12, 256, "URL@OUT Pelican Client Error: local file \"/scratch/execute/dir_9/b.root\" does not exist (Version: 7.1; Site: s) ( URL file = osdf:///lab/b.root )|", Thing::SandboxFile, Outcome::Absent, Some(TryOne), "did not write"),
    (13, 2, "URL@IN exit by signal 2 from /usr/libexec/condor/stash_plugin. |Error: File transfer plugin /usr/libexec/condor/stash_plugin exited unexpectedly without producing an error message ( URL file = osdf:///lab/b )|", Thing::Plugin, Outcome::Died, Some(TryOne), "signal 2"),
    (13, 2816, "URL@IN Pelican Client Error: something new (Version: 7.1; Site: s) ( URL file = osdf:///lab/b )|", Thing::Object, Outcome::Unavailable, Some(Later), "osdf:///lab/b"),
    (13, 256, "URL@IN Pelican Client Error: something new (Version: 7.1; Site: s) ( URL file = osdf:///lab/b )|", Thing::Object, Outcome::Unknown, None, "osdf:///lab/b"),
    (12, 256, "URL@OUT Pelican Client Error: remote object already exists, upload aborted (Version: 7.1; Site: s) ( URL file = osdf:///lab/b )|", Thing::Object, Outcome::Exists, Some(Fix), "osdf:///lab/b"),
    (13, 256, "URL@IN Pelican Client Error: Attempt #2: from c2: request failed (HTTP status 404) (1s elapsed); Attempt #1: from c1: cache timed out waiting on origin (4s since start) ( URL file = osdf:///lab/b )|", Thing::Object, Outcome::TimedOut, Some(Later), "osdf:///lab/b"),
    (13, 256, "URL@IN Pelican Client Error: failed to get token for transfer: credential is required for osdf:///lab/b but was not discovered ( URL file = osdf:///lab/b )|", Thing::Credential, Outcome::Absent, Some(Fix), "token"),
    (13, 256, "URL@IN HTTPError: 401 Client Error: Unauthorized for url: https://box.example/a ( URL file = box://a )|", Thing::Object, Outcome::Denied, Some(Fix), "401"),
    (13, 256, "URL@IN FILETRANSFER: plugin for type gridftpx not found! ( URL file = gridftpx://a/b )|", Thing::Plugin, Outcome::Absent, Some(TryOne), "gridftpx"),
    (12, 0, "EF STARTER at 192.0.2.7 failed to receive file /x/dir_1/a: FILETRANSFER:1:non-zero exit(7168) from /usr/libexec/condor/curl_plugin", Thing::Object, Outcome::TimedOut, Some(Later), "network"),
    (13, 13312, "URL@IN non-zero exit (52) from /usr/libexec/condor/curl_plugin. | ( URL file = https://fs.lab.example/a )|", Thing::Object, Outcome::Disconnected, Some(Later), "network"),

    // The program and its files.
    (6, 2, "EF Failed to execute '/scratch/condor/execute/dir_88/condor_exec.exe' with arguments --no timed out: (errno=2: 'No such file or directory')", Thing::Program, Outcome::Absent, Some(Fix), "dos2unix"),
    (6, 2, "EF Failed to execute '/sw/lab/bin/fit': invalid interpreter (/usr/bin/pyhton3) specified on first line of script (errno=2: 'No such file or directory')", Thing::Interpreter, Outcome::Absent, Some(Fix), "/usr/bin/pyhton3"),
    (6, 2, "EF Failed to execute '/cvmfs/lab.example/fit': (errno=2: 'No such file or directory')", Thing::InstalledProgram, Outcome::Absent, Some(TryOne), "/cvmfs/lab.example/fit"),
    (6, 8, "EF Failed to execute '/scratch/condor/execute/dir_88/fit': (errno=8: 'Exec format error')", Thing::Program, Outcome::WrongFormat, Some(Fix), "architecture"),
    (6, 7, "EF Failed to execute '/scratch/condor/execute/dir_88/fit' with arguments a b: (errno=7: 'Argument list too long')", Thing::Program, Outcome::TooLarge, Some(Fix), "shorten"),
    (6, 12, "EF Failed to execute '/scratch/condor/execute/dir_88/fit': (errno=12: 'Cannot allocate memory')", Thing::Program, Outcome::NoMemory, Some(TryOne), "another one"),
    (6, 666_670, "EF Job was OOM killed by cgroup memory limit before it could start. Consider requesting more memory.", Thing::Memory, Outcome::Exceeded, Some(Fix), "RequestMemory"),
    (6, 0, "EF Failed to execute '/scratch/condor/execute/dir_88/fit' with arguments 1:  glexec call exited with status 203", Thing::OwnSoftware, Outcome::Failed, Some(TryOne), "another run"),
    (7, 116, "EF Failed to open '/nfs/lin/out.txt' as standard output: Stale file handle (errno 116)", Thing::StandardOutput, Outcome::MountLost, Some(TryOne), "/nfs/lin/out.txt"),
    (8, 2, "EF Failed to open 'in/deck.txt' as standard input: No such file or directory (errno 2)", Thing::StandardInput, Outcome::Absent, Some(Fix), "in/deck.txt"),
    (14, 0, "Cannot access initial working directory /data/lin/run9: No such file or directory", Thing::WorkingDirectory, Outcome::Absent, Some(Fix), "/data/lin/run9"),
    (14, 116, "Cannot access initial working directory /data/lin/run9: Stale file handle", Thing::WorkingDirectory, Outcome::MountLost, Some(Later), "/data/lin/run9"),
    (22, 0, "Failed to initialize user log to /data/lin/logs/a.log", Thing::UserLog, Outcome::Unknown, Some(Fix), "/data/lin/logs/a.log"),

    // Containers.
    (35, 0, "EF Cannot pull image lin/timeout:2 Error response from daemon: manifest for lin/timeout:2 not found: manifest unknown: manifest unknown", Thing::Image, Outcome::Absent, Some(Fix), "lin/timeout:2"),
    (35, 0, "EF Cannot pull image lin/fit:2 Error response from daemon: toomanyrequests: You have reached your pull rate limit.", Thing::Image, Outcome::Busy, Some(Later), "registry"),
    (35, 0, "EF Cannot pull image lin/fit:2 Cannot connect to the Docker daemon at unix:///run/docker.sock. Is the docker daemon running?", Thing::ContainerSoftware, Outcome::Disconnected, Some(TryOne), "another machine"),
    (35, 0, "EF Error response from daemon: Requested CPUs are not available - requested 4-7, available: 0-3.", Thing::ContainerSoftware, Outcome::Busy, Some(TryOne), "another machine"),
    (6, 0, "EF Error running docker job: error gathering device information while adding custom device '/dev/dri0': no such file or directory", Thing::ContainerSoftware, Outcome::Absent, Some(TryOne), "another machine"),
    (35, 0, "EF DockerProc::StartJob(): Image Architecture arm64 not compatible with this machine.", Thing::Image, Outcome::WrongFormat, Some(Fix), "amd64"),
    (6, 0, "EF Error running docker job: OCI runtime create failed: runc create failed: unable to start container process: exec: \"./fit\": stat ./fit: no such file or directory: unknown", Thing::Program, Outcome::Absent, Some(Fix), "./fit"),

    // Limits, under any code.
    (34, 0, "EF Job has gone over memory limit of 3000 megabytes. Peak usage: 3000 megabytes.", Thing::Memory, Outcome::Exceeded, Some(Fix), "limit 3000 MB"),
    (26, 0, "Job in status 2 put on hold by SYSTEM_PERIODIC_HOLD due to memory usage 7340032.", Thing::Memory, Outcome::Exceeded, Some(Fix), "use 7168 MB"),
    (26, 0, "Job Is Wasting Memory using less than 10 percent of requested Memory", Thing::Memory, Outcome::Wasted, Some(Fix), "lower the request"),
    (21, 102, "disk usage exceeded request_disk", Thing::Disk, Outcome::Exceeded, Some(Fix), "RequestDisk"),
    (21, 103, "runtime exceeded maximum (7200 seconds)", Thing::Time, Outcome::Exceeded, Some(Fix), "limit 2 h"),
    (21, 0, "Job failed to complete in 36 hrs", Thing::Time, Outcome::Exceeded, Some(Fix), "limit 36 h"),
    (26, 8, "SYSTEM_PERIODIC_HOLD Run Time Limit", Thing::Time, Outcome::Exceeded, Some(Fix), "remove it"),
    (46, 0, "The job exceeded allowed job duration of 1+00:00:00", Thing::Time, Outcome::Exceeded, Some(Fix), "limit 24 h"),
    (32, 0, "IN@AP sending file /data/lin/big.tar: max total upload bytes exceeded (max=500 MB, this file=900 MB)", Thing::TransferSize, Outcome::Exceeded, Some(Fix), "use 900 MB"),
    (3, 34, "Job raised a signal 9. Handling signal as if job has gone over memory limit.", Thing::Memory, Outcome::Exceeded, Some(Fix), "RequestMemory"),

    // Policies and people.
    (1, 0, "via condor_hold (by user noor)", Thing::Decision, Outcome::Intended, Some(Leave), "noor"),
    (1, 0, "disk full, memory exceeded, timed out (by user admin)", Thing::Decision, Outcome::Intended, Some(Leave), "admin"),
    (16, 0, "Spooling input data files", Thing::Spool, Outcome::Intended, Some(Leave), "arrived"),
    (3, 0, "The job attribute PeriodicHold expression '(NumJobStarts > 9) && JobStatus == 1' evaluated to TRUE", Thing::Starts, Outcome::Exceeded, Some(Fix), "submit it again"),
    (3, 0, "The job attribute OnExitHold expression '(ExitCode =!= 0)' evaluated to TRUE", Thing::ProgramEnd, Outcome::Failed, Some(Fix), "standard error"),
    (3, 0, "held because of exit code 66.", Thing::ProgramEnd, Outcome::Failed, Some(Fix), "exit code 66"),
    (3, 0, "checkpointed, will resume", Thing::Checkpoint, Outcome::Intended, Some(Leave), "releases it"),
    (26, 5, "The system macro SYSTEM_PERIODIC_HOLD expression '(NumShadowExceptions > 7)' evaluated to TRUE", Thing::Starts, Outcome::Exceeded, Some(Fix), "NumShadowExceptions > 7"),
    (27, 0, "The system macro SYSTEM_PERIODIC_HOLD expression 'Odd > 1' evaluated to UNDEFINED", Thing::Expression, Outcome::Undefined, Some(Fix), "administrators"),
    (21, 7, "The startd put this job on hold.  (At preemption time, WANT_HOLD evaluated to true: WANT_HOLD = (DiskUsage > Disk))", Thing::Disk, Outcome::Exceeded, Some(Fix), "RequestDisk"),

    (3, 0, "too slow on this node, will retry elsewhere", Thing::Checkpoint, Outcome::Intended, Some(Leave), "releases it"),
    (3, 0, "watchdog: job hung for 3 h at 0 % CPU", Thing::ProgramEnd, Outcome::TimedOut, Some(TryOne), "watchdog"),
    (26, 0, "a second start of this payload is refused", Thing::Starts, Outcome::Exceeded, Some(Fix), "submit it again"),

    // Credentials, hooks, other systems, HTCondor itself.
    (4, 0, "EF Proxy about to expire", Thing::Credential, Outcome::Expired, Some(Fix), "renew"),
    (0, 0, "Failed to get expiration time of proxy: unable to read proxy file", Thing::Credential, Outcome::Absent, Some(Fix), "renew"),
    (19, 3, "EF HOOK_PREPARE_JOB (prepare.sh) failed (exited with status 3): no scratch", Thing::Hook, Outcome::Failed, Some(TryOne), "no scratch"),
    (43, 0, "EF Pre script failed.", Thing::Script, Outcome::Failed, Some(Fix), "script of the job"),
    (0, 0, "submission command failed (exit code = 1) (stdout:) (stderr:sbatch: error: Batch job submission failed: Socket timed out on send/recv operation-)", Thing::RemoteSystem, Outcome::TimedOut, Some(Later), "other system"),
    (0, 0, "submission command failed (exit code = 1) (stdout:) (stderr:sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified-)", Thing::RemoteRequest, Outcome::Invalid, Some(Fix), "correct it"),
    (0, 0, "BLAH error: no reply, operation timed out", Thing::RemoteSystem, Outcome::TimedOut, Some(Later), "other system"),
    (0, 0, "Job submission disabled by the site", Thing::RemoteSystem, Outcome::Unavailable, Some(Later), "other system"),
    (0, 0, "sbatch: error: too many jobs of the account, job submission refused", Thing::RemoteSystem, Outcome::Busy, Some(Later), "other system"),
    (11, 0, "Download acknowledgment missing attribute: Result", Thing::OwnSoftware, Outcome::Failed, Some(TryOne), "another run"),
    (20, 0, "Job missed deferred execution time", Thing::Schedule, Outcome::Invalid, Some(Fix), "deferral"),
    // Limits, requests, devices, people and accounts, in the words of sites.
    (26, 0, "resident memory of 9.5 GB is above the 8 GB that this queue allows", Thing::Memory, Outcome::TooLarge, Some(Fix), "limit 8192 MB, use 9728 MB"),
    (26, 0, "memory use 6291456 > 4194304", Thing::Memory, Outcome::Exceeded, Some(Fix), "limit 4096 MB"),
    (26, 0, "scratch disk larger than 20 GB", Thing::Disk, Outcome::TooLarge, Some(Fix), "limit 20480 MB"),
    (26, 0, "running 50 h, wall time over the 48-hour maximum", Thing::Time, Outcome::Exceeded, Some(Fix), "limit 48 h, use 50 h"),
    (26, 0, "restarted more than 12 times", Thing::Starts, Outcome::Exceeded, Some(Fix), "12 times"),
    (26, 0, "the requested 900 GB of memory cannot be met by any machine", Thing::Request, Outcome::Absent, Some(Fix), "900 GB"),
    (26, 0, "GPU 3 has fallen off the bus", Thing::Device, Outcome::Absent, Some(TryOne), "GPU 3"),
    (26, 0, "more GPU memory used than there is", Thing::Device, Outcome::NoMemory, Some(Fix), "gpus_minimum_memory"),
    (26, 0, "held for the maintenance of the file servers", Thing::Decision, Outcome::Intended, Some(Leave), "file servers"),
    (26, 0, "account lin is locked: ask the help desk", Thing::Account, Outcome::Denied, Some(Fix), "help desk"),
    (45, 0, "EF Apptainer test failed: FATAL: this kernel lacks overlayfs", Thing::ContainerSoftware, Outcome::Unknown, Some(TryOne), "container software"),
    (45, 0, "EF Singularity test failed: WARNING: no squashfuse on this machine", Thing::ContainerSoftware, Outcome::Unknown, Some(TryOne), "container software"),
    (13, 256, "URL@IN download quota exceeded, come back tomorrow ( URL file = gdrive://x/deck.tar )|", Thing::Object, Outcome::Quota, Some(Later), "deck.tar"),
    (6, 0, "EF FATAL:   image targets 'riscv64', cannot run on 'amd64'", Thing::Image, Outcome::WrongFormat, Some(Fix), "architecture"),
    (0, 0, "submission command failed (exit code = 1) (stderr:sbatch: error: QOSMaxWallDurationPerJobLimit-sbatch: error: Batch job submission failed: Job violates accounting/QOS policy)", Thing::RemoteRequest, Outcome::Unknown, Some(Fix), "does not take such a request"),
    (0, 0, "submission command failed (exit code = 1) (stderr:sbatch: error: AssocMaxSubmitJobLimit-sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit))", Thing::RemoteSystem, Outcome::Busy, Some(Later), "no more of such jobs"),
    (26, 0, "asked for 32 GB of memory but used only 900 MB", Thing::Memory, Outcome::Wasted, Some(Fix), "lower the request"),
    (26, 0, "do not release before the audit", Thing::Decision, Outcome::Intended, Some(Leave), "audit"),
    (3, 0, "no solver licence was free on lic2", Thing::Unknown, Outcome::Busy, Some(TryOne), "concurrency_limits"),
    (3, 0, "FlexLM checkout of the mesher denied: all seats taken", Thing::Unknown, Outcome::Busy, Some(TryOne), "mesher"),
    (3, 0, "squid refused the connection", Thing::Unknown, Outcome::Disconnected, Some(TryOne), "squid"),
    (3, 0, "the http proxy of the site is unreachable", Thing::Unknown, Outcome::Disconnected, Some(TryOne), "http proxy"),
    (21, 0, "EF claim was in use for more than 30 h", Thing::Time, Outcome::Exceeded, Some(Fix), "30 h"),
    (3, 0, "the licence of this program is invalid, exit code 4", Thing::ProgramEnd, Outcome::Failed, Some(Fix), "exit code 4"),
    (3, 0, "transient trouble on the worker, give it another go", Thing::Unknown, Outcome::Busy, Some(TryOne), "may pass: transient trouble"),
    (3, 0, "catalogue server refuses: connection reset by peer", Thing::Unknown, Outcome::Disconnected, Some(TryOne), "catalogue server"),
    (3, 0, "the fit timed out after 4 h", Thing::Unknown, Outcome::Unknown, Some(Fix), "own policy"),
    (3, 0, "download of the model timed out", Thing::Unknown, Outcome::TimedOut, Some(TryOne), "download"),
    (3, 71, "setup from /cvmfs/lab.example failed (exit code 71)", Thing::Unknown, Outcome::MountLost, Some(TryOne), "/cvmfs/lab.example"),
    (26, 0, "arrays of this user are throttled", Thing::Unknown, Outcome::Busy, Some(TryOne), "throttled"),
    (21, 0, "EF node is draining, reboot tonight", Thing::Unknown, Outcome::Unavailable, Some(TryOne), "reboot tonight"),
    (21, 0, "EF /var is full", Thing::Unknown, Outcome::Full, Some(TryOne), "/var is full"),
    (26, 0, "the filesystem of your home is full", Thing::Unknown, Outcome::Unknown, Some(Fix), "ask them"),
    (26, 0, "your transfers leave the file server unresponsive", Thing::Unknown, Outcome::Unknown, Some(Fix), "ask them"),
    (26, 0, "health check of the worker failed", Thing::Unknown, Outcome::Unavailable, Some(TryOne), "health check"),
    (26, 0, "schedd is being upgraded", Thing::Decision, Outcome::Intended, Some(Leave), "upgraded"),
    (26, 0, "Access suspended until the course is done", Thing::Account, Outcome::Denied, Some(Fix), "course"),
    (26, 0, "the job was suspended for 30 hours", Thing::ProgramEnd, Outcome::TimedOut, Some(TryOne), "30 hours"),
    (26, 0, "preempted too often", Thing::Starts, Outcome::Exceeded, Some(Fix), "too often"),
    (21, 0, "EF takes a GPU that it did not request", Thing::Request, Outcome::Invalid, Some(Fix), "did not request"),
    (21, 0, "EF 18 GB of swap in use, that is too much", Thing::Memory, Outcome::Exceeded, Some(Fix), "RequestMemory"),
    (13, 0, "IN@EP fetch.sh could not resolve host: mirror.lab.example", Thing::Unknown, Outcome::Unresolved, Some(TryOne), "from mirror.lab.example"),
    (3, 0, "payload ended with exit code 139", Thing::ProgramEnd, Outcome::Failed, Some(Fix), "SIGSEGV"),
    (3, 0, "the fit exited non-zero, look at its log", Thing::ProgramEnd, Outcome::Failed, Some(Fix), "look at its log"),
    (34, 0, "used it all up", Thing::Resource, Outcome::Exceeded, Some(Fix), "used it all up"),

    // Other systems.
    (0, 0, "LRMS: job killed, memory limit of 3 GB exceeded", Thing::Memory, Outcome::Exceeded, Some(Fix), "limit 3072 MB"),
    (0, 0, "File stage-in failed: https://d.lab.example/in.tgz: Forbidden", Thing::Object, Outcome::Denied, Some(Fix), "in.tgz"),
    (2, 0, "the gatekeeper is shutting down", Thing::RemoteSystem, Outcome::Unavailable, Some(Later), "gatekeeper"),
    (40, 17, "no word of it", Thing::RemoteSystem, Outcome::Unavailable, Some(Later), "no word of it"),
    (42, 16, "cannot end i-0123", Thing::RemoteSystem, Outcome::Unknown, Some(Fix), "cost money"),
    (39, 6, "AZURE_GAHP not defined", Thing::OwnSoftware, Outcome::Absent, Some(Fix), "AZURE_GAHP"),
    (12, 0, "Error from shadow: SHADOW at 192.0.2.9 failed to receive file(s) from <192.0.2.7:1>", Thing::Unknown, Outcome::Unknown, Some(TryOne), "broke off"),
    (0, 0, "Job 7.0 held, reason: EF Job has gone over memory limit of 64 megabytes.", Thing::Memory, Outcome::Exceeded, Some(Fix), "limit 64 MB"),

    // Settings that the job lacks, or that nobody takes.
    (0, 0, "Missing attribute AzureSize", Thing::Request, Outcome::Absent, Some(Fix), "set AzureSize"),
    (6, 0, "EF JobVMMemory cannot be found in job classAd.", Thing::Request, Outcome::Absent, Some(Fix), "vm_memory"),
    (6, 4, "EF VMGAHP_ERR_JOBCLASSAD_KVM_NO_DISK_PARAM", Thing::Request, Outcome::Absent, Some(Fix), "vm_disk"),
    (6, 0, "EF VMGAHP_ERR_CRITICAL", Thing::OwnSoftware, Outcome::Failed, Some(TryOne), "another run"),
    (0, 0, "Failed to read job arguments: a quotation mark is open", Thing::Request, Outcome::Absent, Some(Fix), "set arguments"),
    (0, 0, "Iwd not defined", Thing::Request, Outcome::Absent, Some(Fix), "set Iwd"),
    (38, 3, "GridResource not of type gce", Thing::RemoteRequest, Outcome::Unknown, Some(Fix), "grid_resource"),
    (37, 4, "GridResource missing the service URL", Thing::RemoteRequest, Outcome::Unknown, Some(Fix), "grid_resource"),
    (0, 0, "the gridmanager knows no such grid type", Thing::RemoteRequest, Outcome::Absent, Some(Fix), "grid_resource"),
    (0, 0, "InvalidKeyPair.NotFound: no key pair 'lin'", Thing::RemoteRequest, Outcome::Absent, Some(Fix), "ec2_keypair"),
    (0, 0, "The resource 'projects/lab/zones/z1/machineTypes/huge' was not found", Thing::RemoteRequest, Outcome::Absent, Some(Fix), "gce_image"),
    (0, 0, "QUOTA_EXCEEDED: Quota 'CPUS' exceeded. Limit: 8.0 in region r1.", Thing::RemoteSystem, Outcome::Busy, Some(Later), "region r1"),
    (0, 0, "VolumeLimitExceeded: no more volumes", Thing::RemoteSystem, Outcome::Busy, Some(Later), "no more volumes"),

    // Keys, tokens and proxies.
    (37, 2, "Private key file not defined", Thing::Credential, Outcome::Absent, Some(Fix), "ec2_secret_access_key"),
    (37, 10, "Failed to authenticate https://ec2.lab.example/.", Thing::Credential, Outcome::Denied, Some(Fix), "ec2_access_key_id"),
    (0, 0, "Failed to authenticate https://compute.lab.example/v1.", Thing::Credential, Outcome::Denied, Some(Fix), "gce_auth_file"),
    (4, 0, "EF OAuth credentials of service box are missing", Thing::Credential, Outcome::Absent, Some(Fix), "use_oauth_services"),
    (4, 0, "no answer from the credmon for the credential of lin", Thing::Credential, Outcome::Absent, Some(Fix), "credmon"),
    (13, 256, "URL@IN SignatureDoesNotMatch: the signature of the request is another one ( URL file = s3://s3.lab.example/lin/in.tar )|", Thing::Credential, Outcome::Denied, Some(Fix), "aws_access_key_id_file"),
    (12, 256, "URL@OUT Pelican Client Error: token lacks the scope storage.create:/lin ( URL file = osdf:///lin/b )|", Thing::Credential, Outcome::Denied, Some(Fix), "use_oauth_services"),
    (13, 256, "URL@IN error: globus_ftp_client: the server responded with an error 530 Login incorrect. : globus_gss_assist ( URL file = gsiftp://se.lab.example/a )|", Thing::Object, Outcome::Denied, Some(Fix), "voms-proxy-init"),

    // Accounts, and parts of HTCondor that are not there.
    (23, 0, "Bad or missing credential for user: lin", Thing::Account, Outcome::Absent, Some(Fix), "condor_store_cred"),
    (23, 0, "Unable to switch to user: lin", Thing::Account, Outcome::Denied, Some(Fix), "getent"),
    (0, 0, "init_user_ids() failed for user lin", Thing::Account, Outcome::Denied, Some(Fix), "administrators"),
    (23, 0, "", Thing::Account, Outcome::Denied, Some(Fix), "administrators"),
    (24, 0, "", Thing::OwnSoftware, Outcome::Absent, Some(Fix), "administrators"),
    (17, 0, "", Thing::OwnSoftware, Outcome::WrongFormat, Some(Fix), "condor_compile"),
    (17, 0, "The standard universe needs a shadow of version 6.6, and this one has 7.0", Thing::OwnSoftware, Outcome::WrongFormat, Some(Fix), "vanilla universe"),
    (0, 0, "CONDOR_GAHP not defined", Thing::OwnSoftware, Outcome::Absent, Some(Fix), "administrators"),
    (0, 0, "Error allocating memory", Thing::OwnSoftware, Outcome::Failed, Some(TryOne), "logs of the access point"),
    (27, 0, "", Thing::Expression, Outcome::Undefined, Some(Fix), "administrators"),
    (26, 9, "see rule nine", Thing::Unknown, Outcome::Unknown, Some(Fix), "SYSTEM_PERIODIC_HOLD"),
    (0, 0, "Job put on hold by remote host.", Thing::Unknown, Outcome::Unknown, Some(TryOne), "StarterLog"),

    // Other systems: programs that they lack, and jobs that they ended.
    (2, 72, "Globus error 72: executable file permissions do not allow execution", Thing::Program, Outcome::Unknown, Some(Fix), "transfer_executable"),
    (2, 11, "Globus error 11: the stdin file does not exist", Thing::StandardInput, Outcome::Absent, Some(Fix), "its path"),
    (2, 38, "Globus error 38: the provided RSL 'project' parameter is invalid", Thing::RemoteRequest, Outcome::Invalid, Some(Fix), "batch_project"),
    (2, 9, "Globus error 9: the system cancelled the job", Thing::RemoteSystem, Outcome::Died, Some(TryOne), "wall time"),
    (0, 0, "CREAM error: reason=265", Thing::RemoteSystem, Outcome::Died, Some(TryOne), "signal 9"),
    (0, 0, "ARC job failed: LRMS error: (143) ended", Thing::RemoteSystem, Outcome::Died, Some(TryOne), "signal 15"),
    (0, 0, "Job was killed by the batch system", Thing::RemoteSystem, Outcome::Died, Some(TryOne), "look there"),
    (0, 0, "ARC job failed: LRMS error: (-1) SYSTEM_PERIODIC_REMOVE evaluated to TRUE", Thing::Resource, Outcome::Exceeded, Some(Fix), "wall time"),
    (0, 0, "ARC job failed: LRMS error: (-1) The job attribute PeriodicRemove expression 'MemoryUsage > 2 * RequestMemory' evaluated to TRUE", Thing::Memory, Outcome::Exceeded, Some(Fix), "RequestMemory"),
    (0, 0, "Job exit information has an invalid format", Thing::RemoteSystem, Outcome::Failed, Some(TryOne), "administrators"),

    // Names of several files, and names that no shell has replaced.
    (13, 2, "IN@AP reading from file /data/lin/deck.in mesh.dat: (errno 2) No such file or directory", Thing::File, Outcome::Invalid, Some(Fix), "by commas"),
    (13, 2, "IN@AP reading from file /data/lin/*.dat: (errno 2) No such file or directory", Thing::File, Outcome::Invalid, Some(Fix), "in full"),
    (13, 2, "IN@AP reading from file /data/lin/~/deck.in: (errno 2) No such file or directory", Thing::File, Outcome::Invalid, Some(Fix), "in full"),
    (13, 2, "IN@AP reading from file /data/lin/My runs/deck.in: (errno 2) No such file or directory", Thing::File, Outcome::Absent, Some(Fix), "put the input"),
    (12, 2, "OUT@EP reading from file /scratch/execute/dir_88/fit.h5 log.txt: (errno 2) No such file or directory", Thing::SandboxFile, Outcome::Invalid, Some(Fix), "transfer_output_files"),

    // Directories where files are sent.
    (12, 256, "URL@OUT Pelican Client Error: '/scratch/execute/dir_88/plots' is a directory, but a file is expected ( URL file = osdf:///lin/plots )|", Thing::Object, Outcome::WrongKind, Some(Fix), "tar"),
    (13, 256, "URL@IN Pelican Client Error: remote path /lin/deck is a collection ( URL file = osdf:///lin/deck )|", Thing::Object, Outcome::WrongKind, Some(Fix), "recursive"),
    (12, 256, "URL@OUT Pelican Client Error: no write permission for /lin/b ( URL file = osdf:///lin/b )|", Thing::Object, Outcome::Denied, Some(Fix), "ask for access"),

    // Registries, in the words of the programs that pull images.
    (35, 0, "EF Error response from daemon: toomanyrequests: You have reached your pull rate limit.", Thing::Image, Outcome::Busy, Some(Later), "docker login"),
    (35, 0, "EF Error response from daemon: manifest for lin/fit:9 not found: manifest unknown", Thing::Image, Outcome::Absent, Some(Fix), "tag of the image lin/fit:9"),
    (35, 0, "EF docker: Error response from daemon: pull access denied for lin/fit, repository does not exist or may require 'docker login'", Thing::Image, Outcome::Denied, Some(Fix), "lin/fit"),
    (35, 0, "EF Error response from daemon: Head \"https://reg.lab.example/v2/lin/fit/manifests/1\": denied: denied", Thing::Image, Outcome::Denied, Some(Fix), "login"),
    (35, 0, "EF Error response from daemon: received unexpected HTTP status: 503 Service Unavailable", Thing::Image, Outcome::Unavailable, Some(Later), "registry"),
    (35, 0, "EF Error response from daemon: no matching manifest for linux/arm64/v8 in the manifest list entries", Thing::Image, Outcome::WrongFormat, Some(Fix), "architecture"),
    (35, 0, "EF FATAL: conveyor failed to get: initializing source docker://lin/fit:2: requested access to the resource is denied", Thing::Image, Outcome::Denied, Some(Fix), "lin/fit:2"),
    (35, 0, "EF failed to register layer: write /usr/lib/a: no space left on device", Thing::ContainerSoftware, Outcome::Full, Some(TryOne), "another machine"),

    // Scripts, checkpoints and sizes.
    (44, 0, "EF Post script failed.", Thing::Script, Outcome::Failed, Some(Fix), "PostCmd"),
    (36, 9, "EF Job did not exit as promised when sent its checkpoint signal.  Promised exit was with exit code 77, actual exit status was on signal 9.", Thing::Checkpoint, Outcome::Failed, Some(Fix), "checkpoint_exit_code"),
    (33, 0, "OUT@EP sending file /scratch/execute/dir_88/fit.h5: max total download bytes exceeded (max=100 MB, this file=300 MB)", Thing::TransferSize, Outcome::Exceeded, Some(Fix), "max_transfer_output_mb"),

    (47, 0, "The job exceeded allowed execute duration of 0+02:00:00", Thing::Time, Outcome::Exceeded, Some(Fix), "allowed_execute_duration"),
    (13, 40, "IN@AP reading from file /data/lin/latest: (errno 40) Too many levels of symbolic links- Transfer of symlinks to directories is not supported.", Thing::File, Outcome::WrongKind, Some(Fix), "real directory"),

    (3, 0, "The job attribute PeriodicHold expression '(JobStatus == 2) || (MemoryUsage > 9)' evaluated to UNDEFINED", Thing::Expression, Outcome::Undefined, Some(Fix), "ifThenElse(MemoryUsage"),
    (6, 2, "EF Failed to execute '/home/lin/envs/fit/bin/run': invalid interpreter (/home/lin/envs/fit/bin/python3) specified on first line of script (errno=2: 'No such file or directory')", Thing::Interpreter, Outcome::Absent, Some(Fix), "packed environment"),

    (43, 0, "EF PreCmd exited with status 3", Thing::Script, Outcome::Failed, Some(Fix), "PreExitCode"),
    (36, -1, "EF Failed to upload checkpoint to osdf:///lin/c: 403 Forbidden", Thing::Checkpoint, Outcome::Denied, Some(Fix), "checkpoint_destination"),
    (36, -1, "EF Failed to upload checkpoint: the disk of the server has no space left", Thing::Checkpoint, Outcome::Full, Some(Later), "checkpoint_destination"),
    (6, 0, "EF LogonUser failed: the password is incorrect", Thing::Account, Outcome::Absent, Some(Fix), "condor_store_cred"),

    (4, 0, "No Kerberos ticket of lin on the access point", Thing::Credential, Outcome::Absent, Some(Fix), "kinit"),
    (12, 256, "URL@OUT Pelican Client Error: the server returned HTTP 507 ( URL file = osdf:///lin/b )|", Thing::Object, Outcome::Full, Some(Fix), "osdf:///lin/b"),
    (13, 256, "URL@IN Pelican Client Error: could not parse URL 'osdf//lin/b' ( URL file = osdf//lin/b )|", Thing::Object, Outcome::Invalid, Some(Fix), "osdf//lin/b"),
    (26, 0, "low CPU efficiency", Thing::Cpus, Outcome::Wasted, Some(Fix), "fewer CPUs"),
    (26, 0, "the job exceeded its limits", Thing::Resource, Outcome::Exceeded, Some(Fix), "request_memory"),

    // More words of batch systems and services.
    (0, 0, "submission command failed (exit code = 188) (stdout:) (stderr:qsub: Job exceeds queue resource limits MSG=wall time-)", Thing::RemoteRequest, Outcome::Unknown, Some(Fix), "batch_queue"),
    (0, 0, "submission command failed (exit code = 1) (stdout:) (stderr:sbatch: error: Requested time limit is invalid (missing or exceeds some limit)-)", Thing::RemoteRequest, Outcome::Invalid, Some(Fix), "batch_queue"),
    (0, 0, "submission command failed (exit code = 127) (stdout:) (stderr:slurm_submit.sh: line 9: sbatch: command not found-)", Thing::OwnSoftware, Outcome::Absent, Some(Fix), "administrators"),
    (0, 0, "submission command failed (exit code = 159) (stdout:) (stderr:qsub: Bad UID for job execution-)", Thing::RemoteSystem, Outcome::Denied, Some(Fix), "right"),
    (0, 0, "ssh: connect to host ce.lab.example port 22: Connection timed out", Thing::RemoteSystem, Outcome::TimedOut, Some(Later), "network"),
    (0, 0, "ZONE_RESOURCE_POOL_EXHAUSTED: zone z1 has no room", Thing::RemoteSystem, Outcome::Unavailable, Some(Later), "z1"),
    (0, 0, "Invalid value for field 'resource.machineType': 'huge'", Thing::RemoteRequest, Outcome::Invalid, Some(Fix), "machineType"),
    (0, 0, "ARC job failed: Job is canceled by external request", Thing::RemoteSystem, Outcome::Died, Some(TryOne), "administrators"),

    // Reasons of few words.
    (26, 0, "t 2:00:00", Thing::Time, Outcome::Exceeded, Some(Fix), "use 2 h"),
    (26, 0, "t 7200", Thing::Time, Outcome::Exceeded, Some(Fix), "use 2 h"),
    (26, 0, "m 9000", Thing::Memory, Outcome::Exceeded, Some(Fix), "use 9000 MB"),
    (26, 0, "mem: 12GB", Thing::Memory, Outcome::Exceeded, Some(Fix), "use 12288 MB"),
    (26, 0, "d 70 GB", Thing::Disk, Outcome::Exceeded, Some(Fix), "use 71680 MB"),
    (26, 0, "walltime", Thing::Time, Outcome::Exceeded, Some(Fix), "ask for more time"),
    (26, 0, "restarts 12", Thing::Starts, Outcome::Exceeded, Some(Fix), "submit it again"),
    (3, 0, "runtime", Thing::Time, Outcome::Exceeded, Some(Fix), "ask for more time"),
    (21, 0, "EF look at ticket 12", Thing::Unknown, Outcome::Unknown, None, "ticket 12"),

    // People, and programs that hold jobs for a fault of the job.
    (1, 0, "unknown group 'fit' on host ap2.lab.example, held by the poller", Thing::Request, Outcome::Invalid, Some(Fix), "the group"),
    (1, 0, "please set an accounting group (by user root)", Thing::Request, Outcome::Invalid, Some(Fix), "do what the reason asks for"),
    (1, 0, "Wrong project (by user root)", Thing::Request, Outcome::Invalid, Some(Fix), "ask who holds the job"),
    (1, 0, "the job ran for 90 hours, the limit is 72 hours (by user root)", Thing::Time, Outcome::Exceeded, Some(Fix), "limit 72 h, use 90 h"),
    (1, 0, "using 20 GB of memory, allowed are 8 GB (by user root)", Thing::Memory, Outcome::TooLarge, Some(Fix), "limit 8192 MB"),
    (1, 0, "the licence is taken (by user lin)", Thing::Decision, Outcome::Intended, Some(Leave), "licence"),
    (1, 0, "invalid mounts, held until the maintenance is over (by user root)", Thing::Decision, Outcome::Intended, Some(Leave), "maintenance"),
    (15, 0, "submitted on hold at user's request: please set it free", Thing::Decision, Outcome::Intended, Some(Leave), "on purpose"),

    (0, 0, "Reason unspecified", Thing::Unknown, Outcome::Unknown, None, "says nothing"),
];

#[test]
fn reasons_of_the_catalogue_are_read_and_answered() {
    for (code, subcode, short, thing, outcome, action, words) in ROWS {
        let reason = written(short);
        let facts = read_reason(&reason, Some((*code, *subcode)));
        assert_eq!(
            (facts.kind.thing, facts.kind.outcome),
            (*thing, *outcome),
            "{reason}: {facts:?}"
        );
        let explained = explain(&facts);
        assert_eq!(explained.action, *action, "{reason}: {facts:?}");
        let said = format!(
            "{} {}",
            explained.meaning,
            explained.mend.unwrap_or_default()
        );
        assert!(said.contains(words), "{reason}: {said}");
        assert!(!said.contains('{'), "{reason}: {said}");
    }
}

#[test]
fn the_direction_is_that_of_the_words_and_not_of_the_code() {
    let read = |reason: &str| {
        let facts = read_reason(&written(reason), Some((13, 2)));
        (facts.kind.direction, facts.kind.side)
    };
    let sent = "EF STARTER at 192.0.2.7 failed to send file(s) to <192.0.2.9:1>: error reading from /a: (errno 2) No such file or directory; SHADOW failed to receive file(s) from <192.0.2.7:1>";
    assert_eq!(read(sent), (Some(Direction::Output), Side::ExecutionPoint));
    let received =
        "EF STARTER at 192.0.2.7 failed to write to file /a: (errno 28) No space left on device";
    assert_eq!(
        read(received),
        (Some(Direction::Input), Side::ExecutionPoint)
    );
}

#[test]
fn plain_words_state_the_direction_of_a_transfer() {
    let direction = |reason: &str| read_reason(reason, None).kind.direction;
    let (input, output) = (Some(Direction::Input), Some(Direction::Output));
    assert_eq!(direction("Failed to transfer input files"), input);
    assert_eq!(
        direction("Transfer of output files was not possible"),
        output
    );
    assert_eq!(direction("the input is odd"), None);

    let explained = explain(&read_reason("Failed to transfer input files", None));
    assert_eq!(explained.action, None);
    assert_eq!(
        explained.meaning,
        "input files did not arrive, and it is not clear why: Failed to transfer input files"
    );
}

#[test]
fn codes_fill_in_what_a_transfer_does_not_say_and_no_more() {
    let read = |reason: &str, codes| {
        let kind = read_reason(&written(reason), Some(codes)).kind;
        (kind.direction, kind.is_plugin_transfer())
    };
    let (input, output) = (Some(Direction::Input), Some(Direction::Output));
    // A daemon repeats what a plug-in said, without a word of its own.
    assert_eq!(read("EF it did not work", (13, 256)), (input, true));
    assert_eq!(read("EF it did not work", (12, 1)), (output, false));
    let file = "EF reading from file /a: (errno 2) No such file or directory";
    assert_eq!(read(file, (13, 256)), (input, false));
    let upload =
        "URL@OUT The requested URL returned error: 403 ( URL file = http://fs.lab.example/a )|";
    assert_eq!(read(upload, (13, 1)), (output, true));
    // Up to version 9.11, 12 is for a starter that receives input.
    let old = "EF FILETRANSFER:1:non-zero exit (1) from /usr/libexec/condor/curl_plugin. Error: The requested URL returned error: 404 Not Found (http://fs.lab.example/a)";
    assert_eq!(read(old, (12, 256)), (input, true));
    assert_eq!(read(old, (13, 256)), (input, true));
    let program = "EF Failed to execute '/home/lin/a': (errno=2: 'No such file or directory')";
    assert_eq!(read(program, (13, 2)), (None, false));
    assert_eq!(kind_of_code(12, 2816).direction, output);
    assert!(kind_of_code(12, 2816).is_plugin_transfer());
}

#[test]
fn start_of_a_program_fails_under_any_code() {
    let is_start = |reason: &str, codes| {
        let kind = read_reason(&written(reason), Some(codes)).kind;
        kind.is_program_start()
    };
    let program = "EF Failed to execute '/home/lin/a': (errno=2: 'No such file or directory')";
    let directory = "EF Failed to execute '/home/lin/a': Cannot access initial working directory \"/scr\" (errno=2: 'No such file or directory')";
    let container = "EF Error running docker job: OCI runtime create failed: exec: \"run\": executable file not found in $PATH";
    let glexec = "EF Failed to execute '/x/condor_exec.exe': glexec call exited with status 203";
    for reason in [program, directory, container, glexec] {
        for codes in [(6, 2), (13, 2), (34, 0)] {
            assert!(is_start(reason, codes), "{reason}");
        }
    }
    assert!(is_start("EF words that nobody knows", (6, 0)));
    assert!(is_start("EF words that nobody knows", (6, 8)));

    let memory = "EF Job was OOM killed by cgroup memory limit before it could start.";
    let setting = "EF JobVMType cannot be found in job classAd.";
    let read = "IN@AP reading from file /a: (errno 2) No such file or directory";
    for reason in [memory, setting, read] {
        assert!(!is_start(reason, (6, 2)), "{reason}");
    }
    assert!(
        !kind_of_code(39, 0).is_program_start(),
        "of the access point"
    );
    assert!(!kind_of_code(48, 1).is_program_start(), "a hook");
}

#[test]
fn numbers_and_speakers_are_read() {
    let facts = read_reason(
        "EF Job has gone over cgroup memory limit of 4000 megabytes. Last measured usage: 5300 megabytes.",
        Some((34, 0)),
    );
    assert_eq!(
        (facts.limit, facts.used),
        (Some(Amount::Mib(4000)), Some(Amount::Mib(5300)))
    );
    let policy = read_reason("Run Time Limit", Some((26, 8)));
    assert_eq!(policy.kind.speaker, Speaker::SitePolicy);
    let alone = read_reason("via condor_hold (by user noor)", None);
    assert_eq!(
        (alone.kind.speaker, alone.name.as_deref()),
        (Speaker::Person, Some("noor"))
    );
    let machine = read_reason(&written("EF Proxy about to expire"), None).machine;
    assert_eq!(machine.as_deref(), Some("slot1_3@w17.lab.example"));
}

/// Without the codes the text says nearly the same. Only the code shows that a policy speaks.
#[test]
fn texts_alone_name_the_same_things() {
    let rows = || ROWS.iter().filter(|row| !matches!(row.0, 3 | 21 | 26));
    let is_other = |row: &&Row| read_reason(&written(row.2), None).kind.thing != row.3;
    let (others, all) = (rows().filter(is_other).count(), rows().count());
    assert!(others * 12 < all, "{others} of {all}");
}

/// Returns true if `facts` put the blame on the user.
fn blames_user(facts: &ReasonFacts) -> bool {
    explain(facts).fault == Some(Party::User)
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,300}", code in 0..60i32, subcode in -2000..70_000i32) {
        explain(&read_reason(&text, Some((code, subcode))));
        explain(&read_reason(&text, None));
    }

    #[test]
    fn parts_of_reasons_are_read_without_a_panic(row in 0..ROWS.len(), other in 0..ROWS.len(), cut in 0..400usize, from in 0..400usize) {
        let (code, subcode, short, ..) = ROWS[row];
        let text = written(short);
        let head: String = text.chars().take(cut).collect();
        let tail: String = written(ROWS[other].2).chars().skip(from).collect();
        explain(&read_reason(&head, Some((code, subcode))));
        explain(&read_reason(&(head + &tail), Some((code, subcode))));
    }

    /// The words in names of files, programs, images and hosts mean nothing.
    #[test]
    fn names_do_not_change_what_is_read(name in "(timeout|denied|expired|404|memory_limit|proxy|checksum|busy|token)[a-z0-9_]{0,6}") {
        for (code, subcode, before, after) in [
            (13, 2, "IN@AP reading from file /data/", ": (errno 2) No such file or directory"),
            (12, 13, "OUT@AP writing to file /data/", "/f: (errno 13) Permission denied"),
            (6, 2, "EF Failed to execute '/sw/", "' with arguments 1: (errno=2: 'No such file or directory')"),
            (13, 256, "URL@IN The requested URL returned error: 503 Service Unavailable ( URL file = https://h.example/", " )|"),
        ] {
            let read = |name: &str| {
                let facts = read_reason(&written(&format!("{before}{name}{after}")), Some((code, subcode)));
                (facts.kind.thing, facts.kind.operation, facts.kind.outcome, facts.kind.side)
            };
            prop_assert_eq!(read(&name), read("plain"), "{}", before);
        }
    }

    /// A machine whose file system or disk fails is never said to be a fault of the user.
    #[test]
    fn faults_of_machines_blame_no_user(errno in prop::sample::select(vec![5, 28, 30, 107, 116, 121]), path in "/[a-z]{1,8}/execute/dir_[0-9]{1,6}/[a-z.]{1,12}") {
        for text in [
            format!("IN@EP writing to file {path}: (errno {errno}) words"),
            format!("EF STARTER at 192.0.2.7 failed to write to file {path}: (errno {errno}) words"),
        ] {
            let facts = read_reason(&written(&text), Some((13, errno)));
            prop_assert!(!blames_user(&facts), "{:?}", facts);
        }
    }
}

/// Returns true if no user is at fault for what `row` states.
fn is_of_others(row: &Row) -> bool {
    let facts = read_reason(&written(row.2), Some((row.0, row.1)));
    matches!(
        explain(&facts).fault,
        Some(Party::Machine | Party::Server | Party::Site)
    )
}

/// A part of a reason, or one with a word that nobody knows, says less, but blames nobody else. Where a list of
/// attempts ends early, the fault that passes may be in what is left out.
#[test]
fn reasons_that_lack_words_blame_no_user() {
    for row in ROWS.iter().filter(|row| is_of_others(row)) {
        let text = written(row.2);
        if text.contains("Attempt #") {
            continue;
        }
        let words: Vec<&str> = text.split(' ').collect();
        for at in 0..words.len() {
            let mut unknown = words.clone();
            // Where a file lies says whose it is.
            if !words[at].contains(['/', '\\']) {
                unknown[at] = "zorbs";
            }
            for part in [unknown.join(" "), words[..at].join(" ")] {
                let facts = read_reason(&part, None);
                // A file on the access point, and an image, is the user's until the reason says how it ended.
                let ReasonKind { thing, side, .. } = facts.kind;
                let is_own = side == Side::AccessPoint || thing == Thing::Image;
                assert!(is_own || !blames_user(&facts), "{part}: {facts:?}");
            }
        }
    }
}

#[test]
fn limits_of_time_are_read_in_many_forms() {
    for (code, subcode, reason) in [
        (21, 0, "Job failed to complete in 72 hrs"),
        (21, 103, "runtime exceeded maximum (86400 seconds)"),
        (3, 42, "Job ran for more than two hours"),
        (3, 0, "it has been running for longer than 3 days"),
        (26, 0, "Maximum wallclock time exceeded"),
        (26, 8, "SYSTEM_PERIODIC_HOLD Run Time Limit"),
        (
            34,
            102,
            "The job exceeded its allowed wall time of 1+00:00:00",
        ),
    ] {
        let facts = read_reason(reason, Some((code, subcode)));
        assert_eq!(facts.kind.thing, Thing::Time, "{reason}: {facts:?}");
    }
    for (code, subcode, reason) in [
        (26, 0, "memory limit exceeded for 2 hours"),
        (
            13,
            62,
            "File transfer plugin osdf timed out after 72000 seconds, more than allowed",
        ),
        (1, 0, "via condor_hold (by user ada): wall time limit"),
    ] {
        let facts = read_reason(reason, Some((code, subcode)));
        assert_ne!(facts.kind.thing, Thing::Time, "{reason}: {facts:?}");
    }
}
