//! The table of rules over facts: what to do about a held job, by what its reason states.
//!
//! The first rule that fits the facts answers, so that a rule for a special case stands above the general
//! one. An empty list fits anything. A rule with words is for a message that has one of them: below it stands
//! one without words, for holds whose message is not known. To add a rule, add a row, and a reason to the test in
//! `catalogue.rs` that it is for. `{name}` stands for what the reason names.

use serde::Serialize;

use self::Action::{Fix, Later, Leave, TryOne};
use self::Party::{Machine, Nobody, Server, Site, User, UserOrMachine};
use super::facts::Operation::{CreateDirectory, Pull, Read, Receive, Send, Write};
use super::facts::Outcome::{
    Absent, BadCertificate, Busy, Corrupt, Denied, Died, Disconnected, Exceeded, Exists, Expired,
    Failed, Full, Intended, Invalid, MountLost, NoMemory, Quota, ReadOnly, TimedOut, TooLarge,
    Unavailable, Undefined, Unresolved, Wasted, WrongFormat, WrongKind,
};
use super::facts::{Operation, Outcome, ReasonFacts, ReasonKind, Side, Speaker, Thing};
use super::policies::LICENCE_WORDS;

/// Advice on a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Repair something, then release.
    Fix,
    /// Release later: nothing has to be repaired.
    Later,
    /// Release one of the jobs, since another machine or another moment may do.
    TryOne,
    /// Leave it held.
    Leave,
}

/// The party at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Party {
    User,
    Machine,
    Site,
    Server,
    /// The user, unless it is the machine: a run on another one shows which.
    UserOrMachine,
    Nobody,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The speaker.
    pub speaker: &'static [Speaker],
    /// The thing that failed.
    pub thing: &'static [Thing],
    /// The operation that failed.
    pub operation: &'static [Operation],
    /// The side that failed.
    pub side: &'static [Side],
    /// The outcome.
    pub outcome: &'static [Outcome],
    /// Words in lower case. The message has at least one.
    pub words: &'static [&'static str],
    /// The advice.
    pub action: Action,
    /// The party at fault.
    pub fault: Party,
    /// The attributes of the job that may have the wrong value, the likeliest first.
    pub attribute: &'static [&'static str],
    /// The repair, as the end of a sentence.
    pub mend: &'static str,
    /// The checks that a look can make; empty if nothing.
    pub look: &'static str,
}

impl Rule {
    /// Returns true if the rule is for facts of `kind` with this `message`, which is in lower case.
    fn fits(&self, kind: &ReasonKind, message: &str) -> bool {
        fn has<T: PartialEq>(list: &[T], value: &T) -> bool {
            list.is_empty() || list.contains(value)
        }
        has(self.speaker, &kind.speaker)
            && has(self.thing, &kind.thing)
            && has(self.operation, &kind.operation)
            && has(self.side, &kind.side)
            && has(self.outcome, &kind.outcome)
            && (self.words.is_empty() || self.words.iter().any(|words| message.contains(words)))
    }
}

/// Returns the rule for facts of `kind` whose message is not known; `None` if they say too little.
pub fn rule_for(kind: ReasonKind) -> Option<&'static Rule> {
    rule_with(kind, "")
}

/// Returns the rule for facts of `kind` with this `message`; `None` if they say too little.
pub fn rule_with(kind: ReasonKind, message: &str) -> Option<&'static Rule> {
    let message = message.to_ascii_lowercase();
    RULES.iter().find(|rule| rule.fits(&kind, &message))
}

/// Attributes that the words of a reason about a thing point to, before the attributes of its rule. No words: any.
const ATTRIBUTES: &[(Thing, &str, &str)] = &[
    (Thing::Time, "execute duration", "AllowedExecuteDuration"),
    (Thing::Time, "job duration", "AllowedJobDuration"),
    (Thing::Time, "maxruntime", "MaxRuntime"),
    (Thing::TransferSize, "download", "MaxTransferOutputMB"),
    (Thing::Expression, "memoryusage", "MemoryUsage"),
    (Thing::Expression, "residentsetsize", "ResidentSetSize"),
    (Thing::Expression, "servertime", "ServerTime"),
    (
        Thing::Expression,
        "jobcurrentstartdate",
        "JobCurrentStartDate",
    ),
    (Thing::Credential, "docker", "DockerSendCredentials"),
    (Thing::Credential, "aws access key", "AWSAccessKeyIdFile"),
    (Thing::Credential, "access key", "EC2AccessKeyId"),
    (Thing::Credential, "public key", "EC2AccessKeyId"),
    (Thing::Credential, "private key", "EC2SecretAccessKey"),
    (Thing::Credential, "secret key", "EC2SecretAccessKey"),
    (Thing::Credential, "gahp with token", "ScitokensFile"),
    (Thing::Credential, "scitoken", "ScitokensFile"),
    (Thing::Credential, "proxy", "x509userproxy"),
    (Thing::Credential, "x509", "x509userproxy"),
    (Thing::Credential, "arc job", "x509userproxy"),
    (Thing::Credential, "kerberos", "SendCredential"),
    (Thing::Credential, "", "OAuthServicesNeeded"),
    (Thing::Image, "", "ContainerImage"),
    (Thing::File, "manifest", "DataReuseManifestSHA256"),
    (Thing::File, "output directory", "OutputDirectory"),
    (Thing::RemoteRequest, "universe", "JobUniverse"),
    (Thing::RemoteRequest, "gridresource", "GridResource"),
    (Thing::RemoteRequest, "account", "BatchProject"),
    (Thing::Schedule, "hour", "CronHour"),
    (Thing::Schedule, "minute", "CronMinute"),
    (Thing::Request, "accounting", "AcctGroup"),
    (Thing::Request, "maxruntime", "MaxRuntime"),
    (Thing::Request, "gpu", "RequestGPUs"),
    (Thing::Request, "memory", "RequestMemory"),
    (Thing::Request, "disk", "RequestDisk"),
    (Thing::Request, "cpu", "RequestCpus"),
    (Thing::Request, "core", "RequestCpus"),
    (Thing::Disk, "", "RequestDisk"),
    (Thing::Cpus, "", "RequestCpus"),
];

/// Attributes of a job's own policy.
const OWN_POLICY: &[&str] = &["PeriodicHold", "OnExitHold"];

/// Returns the attributes of the job that may have the wrong value, the likeliest first.
pub(super) fn attributes_for(rule: &Rule, facts: &ReasonFacts) -> Vec<&'static str> {
    let message = facts.message.to_ascii_lowercase();
    let is_named =
        |row: &&(Thing, &str, &str)| row.0 == facts.kind.thing && message.contains(row.1);
    let named = ATTRIBUTES
        .iter()
        .find(is_named)
        .filter(|_| !rule.attribute.is_empty());
    let first = named.map(|row| row.2);
    let others = rule.attribute.iter().copied();
    let is_of_job = |attribute: &&str| {
        facts.kind.speaker == Speaker::JobPolicy || !OWN_POLICY.contains(attribute)
    };
    let others = others.filter(|attribute| Some(*attribute) != first);
    first.into_iter().chain(others).filter(is_of_job).collect()
}

const ANY: Rule = Rule {
    speaker: &[],
    thing: &[],
    operation: &[],
    side: &[],
    outcome: &[],
    words: &[],
    action: TryOne,
    fault: Nobody,
    attribute: &[],
    mend: "",
    look: "",
};

/// Outcomes that pass by themselves, on a server or a network.
const PASSING: &[Outcome] = &[
    TimedOut,
    Disconnected,
    Unresolved,
    Busy,
    Unavailable,
    Corrupt,
    MountLost,
    Full,
    ReadOnly,
];

/// Outcomes of a machine whose disk or file system fails.
const DISK: &[Outcome] = &[Full, ReadOnly, MountLost, Quota, TimedOut, Busy, NoMemory];

/// Attributes that name where output goes.
const OUTPUT: &[&str] = &["Out", "Err", "TransferOutputRemaps", "Iwd"];

const POLICIES: &[Speaker] = &[Speaker::JobPolicy, Speaker::SitePolicy];

const AP: &[Side] = &[Side::AccessPoint];
const EP: &[Side] = &[Side::ExecutionPoint];
const SERVER: &[Side] = &[Side::Server];

/// Words of virtual machines, and of the attributes of jobs that are for them.
const VIRTUAL_MACHINE: &[&str] = &["jobvm", "vmparam", "vm_", "vmware", "vmgahp"];

/// Words of keys by which services know their users.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "key file", "access key", "accesskey", "secret key", "signature", "auth file", "authfailure", "access credentials",
];

/// The repair of such keys.
const KEYS_MEND: &str = "the service does not accept the keys, or the job names no file with them: correct ec2_access_key_id and ec2_secret_access_key (gce_auth_file, azure_auth_file for these services)";

/// Words of services that rent machines, about what a job asks of them.
const CLOUD: &[&str] = &[
    "invalidami",
    "invalidkeypair",
    "invalidgroup",
    "invalidsubnet",
    "invalidparameter",
    "keypair",
    "projects/",
];

/// Words of the resource of another system that the job names.
const GRID_RESOURCE: &[&str] = &[
    "gridresource",
    "grid_resource",
    "job type",
    "grid type",
    "service url",
];

/// The rules.
#[rustfmt::skip]
const RULES: &[Rule] = &[
    // On purpose.
    Rule { thing: &[Thing::Spool], action: Leave, fault: Nobody,
        mend: "wait: HTCondor releases it by itself when its files have arrived; if the client that sends them died, remove it and submit again", ..ANY },
    Rule { thing: &[Thing::Checkpoint], outcome: &[Intended], action: Leave, fault: Nobody,
        mend: "the policy that holds it releases it", look: "PeriodicRelease of the job", ..ANY },
    Rule { outcome: &[Intended], action: Leave, fault: Nobody, mend: "release it once that reason is gone", ..ANY },

    // Memory, disk, CPUs, time and starts.
    Rule { thing: &[Thing::Cpus], outcome: &[Wasted], action: Fix, fault: User, attribute: &["RequestCpus"],
        mend: "find out what the program waits for, or request fewer CPUs", look: "Out and Err of the job", ..ANY },
    Rule { thing: &[Thing::Memory, Thing::Disk], outcome: &[Wasted], action: Fix, fault: User, attribute: &["RequestMemory"],
        mend: "lower the request to what it uses; do not raise it", look: "its usage and its request", ..ANY },
    Rule { speaker: &[Speaker::JobPolicy], thing: &[Thing::Memory, Thing::Disk], outcome: &[TooLarge], action: Fix, fault: User, attribute: &["PeriodicHold"],
        mend: "the limit is one of the job's own rule, whatever it requests: use less, or change the rule and the request", look: "its usage and PeriodicHold", ..ANY },
    Rule { thing: &[Thing::Memory], outcome: &[TooLarge], action: Fix, fault: User, attribute: &["RequestMemory", "Requirements"],
        mend: "the limit seems to be the same for all jobs there: use less, or ask for machines that allow more; if it follows from RequestMemory, raise that above the use", look: "MemoryUsage and RequestMemory", ..ANY },
    Rule { thing: &[Thing::Disk], outcome: &[TooLarge], action: Fix, fault: User, attribute: &["RequestDisk", "Requirements"],
        mend: "the limit seems to be the same for all jobs there: use less, or ask for machines that allow more; if it follows from RequestDisk, raise that above the use", look: "DiskUsage and RequestDisk", ..ANY },
    Rule { thing: &[Thing::Memory], action: Fix, fault: User, attribute: &["RequestMemory"],
        mend: "raise RequestMemory above the larger of limit and use", look: "MemoryUsage and RequestMemory", ..ANY },
    Rule { thing: &[Thing::Disk], action: Fix, fault: User, attribute: &["RequestDisk"],
        mend: "raise RequestDisk", look: "DiskUsage and RequestDisk", ..ANY },
    Rule { thing: &[Thing::Resource], action: Fix, fault: User, attribute: &["RequestMemory", "RequestDisk", "RequestCpus"],
        mend: "raise the request for what it used up (request_memory, request_disk, request_cpus), or the wall time", look: "its usage and its requests", ..ANY },
    Rule { thing: &[Thing::Request], operation: &[Operation::Submit], outcome: &[Absent], words: VIRTUAL_MACHINE, action: Fix, fault: User, attribute: &["JobVMType"],
        mend: "set what the virtual machine needs in the submit file (vm_type, vm_memory, vm_disk; xen_kernel or vmware_dir for these types), and submit it again", ..ANY },
    Rule { thing: &[Thing::Request], operation: &[Operation::Submit], outcome: &[Absent], action: Fix, fault: User,
        mend: "set {name} in the submit file, or correct it there, and submit it again", ..ANY },
    Rule { speaker: &[Speaker::Person], thing: &[Thing::Request], action: Fix, fault: User,
        mend: "do what the reason asks for, or correct the account, the group or the setting that it names; ask who holds the job, or the administrators, if that is unclear; then release", ..ANY },
    Rule { thing: &[Thing::Request], outcome: &[Invalid], action: Fix, fault: User, attribute: &["Requirements"],
        mend: "a rule of the site asks for another setting: do what it says, then release", ..ANY },
    Rule { thing: &[Thing::Request], outcome: &[Undefined], action: Fix, fault: User, attribute: &["Requirements"],
        mend: "the machine has no attribute {name}, which $$ in the submission names: require machines that define it, or correct the name", look: "the attributes of the machines", ..ANY },
    Rule { thing: &[Thing::Request], action: Fix, fault: User, attribute: &["Requirements"],
        mend: "lower the request or correct the requirements, so that a machine meets them (condor_q -better-analyze)", look: "its requests and the machines", ..ANY },
    Rule { thing: &[Thing::Device], outcome: &[NoMemory], action: Fix, fault: User, attribute: &["RequireGPUs", "RequestGPUs"],
        mend: "ask for a GPU with more memory (gpus_minimum_memory), or use less of it", ..ANY },
    Rule { thing: &[Thing::Device], action: TryOne, fault: Machine, attribute: &["Requirements"],
        mend: "another machine may work: keep off this one", ..ANY },
    Rule { thing: &[Thing::Cpus], action: Fix, fault: User, attribute: &["RequestCpus"],
        mend: "raise RequestCpus, or limit its threads", look: "CpusUsage and RequestCpus", ..ANY },
    Rule { thing: &[Thing::Time], outcome: &[Wasted], action: TryOne, fault: Site,
        mend: "it ended sooner than its site allows: try one, and ask the site", ..ANY },
    Rule { thing: &[Thing::Time], outcome: &[Expired], action: Fix, fault: User, attribute: &["PeriodicHold"],
        mend: "a fixed time in the job's rule has passed, and no release changes that: remove the job, or change the rule", look: "the times in the rule", ..ANY },
    Rule { thing: &[Thing::Time], words: &["allowed job duration", "allowed execute duration"], action: Fix, fault: User,
        mend: "released unchanged it reaches the limit again: raise allowed_job_duration or allowed_execute_duration, which the job has set itself, split the work or checkpoint it; remove it if none of these is possible",
        look: "the time it has run, and its limit", ..ANY },
    Rule { thing: &[Thing::Time], action: Fix, fault: User, attribute: &["PeriodicHold"],
        mend: "released unchanged it reaches the limit again: split the work, checkpoint it or ask for more time; remove it if none of these is possible",
        look: "the time it has run, and its limit", ..ANY },
    Rule { thing: &[Thing::Starts], action: Fix, fault: User, attribute: &["PeriodicHold"],
        mend: "no release resets the count: find why it ended before, then remove it and submit it again", look: "NumJobStarts, NumShadowStarts and the events before", ..ANY },
    Rule { thing: &[Thing::TransferSize], action: Fix, fault: User, attribute: &["MaxTransferInputMB", "MaxTransferOutputMB", "TransferInput"],
        mend: "its files are larger than the limit: transfer fewer or smaller ones (transfer_input_files, transfer_output_files), move large files another way, or raise the limit if the site allows it (max_transfer_input_mb, max_transfer_output_mb)", look: "the sizes of its files", ..ANY },

    // Credentials.
    Rule { thing: &[Thing::Credential], operation: &[Pull], action: Fix, fault: Site, attribute: &["DockerSendCredentials"],
        mend: "the access point cannot send the credential for the image: ask its administrators, or do without it", ..ANY },
    Rule { thing: &[Thing::Credential], operation: &[Read], outcome: &[MountLost, TimedOut], action: Later, fault: Site,
        mend: "release it once the file system answers again", look: "whether {name} can be read", ..ANY },
    Rule { thing: &[Thing::Credential], outcome: &[TimedOut, Disconnected, Unavailable, Busy], action: Later, fault: Server,
        mend: "release it once the service answers again", ..ANY },
    Rule { thing: &[Thing::Credential], words: &["kerberos", "krb5", "kinit"], action: Fix, fault: User, attribute: &["SendCredential"],
        mend: "renew the Kerberos ticket (kinit), and have HTCondor keep it (condor_store_cred, MY.SendCredential = true), then release", look: "whether it is there, and until when it is good", ..ANY },
    Rule { thing: &[Thing::Credential], words: &["credentials are not available", "oauth", "credmon", "vault"], action: Fix, fault: User, attribute: &["OAuthServicesNeeded"],
        mend: "the access point has no token for the job: store it (condor_store_cred add-oauth, or condor_vault_storer) for each service in use_oauth_services, or take that line out if no service is needed; ask the administrators if the access point has no credmon",
        look: "OAuthServicesNeeded of the job", ..ANY },
    Rule { speaker: &[Speaker::Plugin], thing: &[Thing::Credential], words: KEYS, action: Fix, fault: User, attribute: &["AWSAccessKeyIdFile", "AWSSecretAccessKeyFile"],
        mend: "the store does not accept the keys: correct the files that aws_access_key_id_file and aws_secret_access_key_file name", ..ANY },
    Rule { speaker: &[Speaker::Plugin], thing: &[Thing::Credential], words: &["token"], action: Fix, fault: User, attribute: &["OAuthServicesNeeded"],
        mend: "the plug-in has no token that the server accepts: add its service to use_oauth_services, or renew the token and its rights, then release", ..ANY },
    Rule { thing: &[Thing::Credential], side: SERVER, action: Fix, fault: User, attribute: &["EC2AccessKeyId", "EC2SecretAccessKey"],
        mend: KEYS_MEND, ..ANY },
    Rule { thing: &[Thing::Credential], words: KEYS, action: Fix, fault: User, attribute: &["EC2AccessKeyId", "EC2SecretAccessKey"],
        mend: KEYS_MEND, ..ANY },
    Rule { thing: &[Thing::Credential], action: Fix, fault: User, attribute: &["x509userproxy", "OAuthServicesNeeded"],
        mend: "renew the credential (the proxy or the token), in a directory that the access point sees, then release", look: "whether it is there, and until when it is good", ..ANY },

    // Files that a daemon reads or writes.
    Rule { thing: &[Thing::OutputName], action: Fix, fault: User, attribute: &["TransferOutputRemaps", "TransferInput", "TransferOutput"],
        mend: "correct the name {name} in transfer_output_remaps, transfer_output_files or transfer_input_files: it must lie in the job's directory", ..ANY },
    Rule { thing: &[Thing::SandboxFile], operation: &[Read], outcome: &[Absent], action: TryOne, fault: UserOrMachine, attribute: &["TransferOutput"],
        mend: "the program did not write this output file, or its directory on the machine is gone: read its standard output and error, and correct transfer_output_files if another run lacks it, too",
        look: "Out and Err of the job", ..ANY },
    Rule { thing: &[Thing::SandboxFile], operation: &[Read], outcome: &[Invalid], action: Fix, fault: User, attribute: &["TransferOutput"],
        mend: "HTCondor takes {name} for the name of one file: part the names in transfer_output_files by commas, without quotation marks, and write each in full (no *, ~ or $)", ..ANY },
    Rule { thing: &[Thing::SandboxFile], operation: &[Read], outcome: &[Denied, WrongKind], action: Fix, fault: User, attribute: &["TransferOutput"],
        mend: "the program left an output file that cannot be sent back: make it a plain readable file with the right permission (pack a directory by tar)", look: "Out and Err of the job", ..ANY },
    Rule { thing: &[Thing::SandboxFile], operation: &[Write, CreateDirectory], outcome: &[Full, Quota], action: TryOne, fault: Machine, attribute: &["RequestDisk"],
        mend: "another machine may have room; raise RequestDisk if its files are larger than it requests", look: "the size of its input", ..ANY },
    Rule { thing: &[Thing::SandboxFile], action: TryOne, fault: Machine, attribute: &["Requirements"],
        mend: "the machine lost the job's directory or cannot use it: another one may work", ..ANY },
    Rule { thing: &[Thing::File, Thing::Image], operation: &[Read], side: AP, outcome: &[Invalid], action: Fix, fault: User, attribute: &["TransferInput"],
        mend: "HTCondor takes {name} for the name of one file: part the names in transfer_input_files by commas, without quotation marks, and write each in full (no *, ~ or $)", look: "whether {name} is there", ..ANY },
    Rule { thing: &[Thing::File], operation: &[Read], side: AP, outcome: &[WrongKind], action: Fix, fault: User, attribute: &["TransferInput"],
        mend: "{name} is a directory, or a link that leads to one or nowhere: name a file or a real directory in transfer_input_files", look: "whether {name} is there", ..ANY },
    Rule { thing: &[Thing::File, Thing::Image], operation: &[Read], side: AP, outcome: &[Absent], words: &[".subproc"], action: Fix, fault: User, attribute: &["Cmd", "TransferExecutable", "TransferInput"],
        mend: "the spool of the access point has no such file: submit the job again with it; if it is a program of the machines, set transfer_executable = false", ..ANY },
    Rule { thing: &[Thing::File, Thing::Image], operation: &[Read], side: AP, outcome: &[Absent, WrongKind, Exists], action: Fix, fault: User,
        attribute: &["TransferInput", "Cmd", "In", "ContainerImage"], mend: "put the input file {name} back on the access point, or correct its path", look: "whether {name} is there", ..ANY },
    Rule { thing: &[Thing::File, Thing::Image], operation: &[Read], side: AP, outcome: &[Denied, Expired], action: Fix, fault: User,
        attribute: &["TransferInput"], mend: "make {name} readable for its owner (permission, or the token of /afs)", look: "whether its owner may read {name}", ..ANY },
    Rule { thing: &[Thing::File], operation: &[Write, CreateDirectory], side: AP, outcome: &[Absent, WrongKind, Exists, Invalid], action: Fix, fault: User, attribute: OUTPUT,
        mend: "its output cannot be written: create the directory of {name}, or correct the path; where the access point does not mount that file system, send it there by output_destination", look: "the directory of {name}", ..ANY },
    Rule { thing: &[Thing::File], operation: &[Write, CreateDirectory], side: AP, outcome: &[Denied, Expired], action: Fix, fault: User, attribute: OUTPUT,
        mend: "its output cannot be written: make the directory of {name} writable for its owner (permission, or the token of /afs)", look: "whether its owner may write {name}", ..ANY },
    Rule { thing: &[Thing::File], operation: &[Write, CreateDirectory], side: AP, outcome: &[Quota, TooLarge], action: Fix, fault: User, attribute: OUTPUT,
        mend: "the disk quota is used up where {name} goes: remove files or ask for a larger quota", ..ANY },
    Rule { thing: &[Thing::File, Thing::Image], side: AP, outcome: PASSING, action: Later, fault: Site,
        mend: "release it once the file system of the access point works and has room", look: "whether {name} answers", ..ANY },

    // Transfer plug-ins.
    Rule { thing: &[Thing::Plugin], outcome: &[Absent], action: TryOne, fault: UserOrMachine, attribute: &["TransferInput", "Requirements"],
        mend: "the machine has no plug-in for {name}: correct the address if it is mistyped, or require machines that have it", ..ANY },
    Rule { thing: &[Thing::Plugin], outcome: &[Denied], action: Fix, fault: User, attribute: &["TransferPlugins"],
        mend: "the site does not allow a plug-in of the job: use one of its own", ..ANY },
    Rule { thing: &[Thing::Plugin], action: TryOne, fault: Machine, mend: "the plug-in of this machine failed: another machine may work", ..ANY },
    Rule { thing: &[Thing::Object], outcome: &[TimedOut, Disconnected, Busy, Unavailable, Corrupt, MountLost], action: Later, fault: Server,
        mend: "the server or the network failed, which passes without a repair: release it once it works again", look: "whether the server answers", ..ANY },
    Rule { thing: &[Thing::Object, Thing::Unknown], outcome: &[Unresolved], action: TryOne, fault: UserOrMachine, attribute: &["TransferInput"],
        mend: "the machine does not know the host {name}: correct it if it is mistyped, or try another machine", look: "whether the host is known here", ..ANY },
    Rule { thing: &[Thing::Object], outcome: &[BadCertificate], action: TryOne, fault: Server,
        mend: "the certificate of the server was not accepted: another machine may know its authority; if it has expired, the administrators of the server must renew it", ..ANY },
    Rule { thing: &[Thing::Object], operation: &[Send], outcome: &[Exists], action: Fix, fault: User, attribute: &["OutputDestination", "TransferOutputRemaps"],
        mend: "an object of this name exists already: choose another name (transfer_output_remaps, output_destination), or remove it after a look at its size", look: "whether the object is complete", ..ANY },
    Rule { thing: &[Thing::Object, Thing::SandboxFile], operation: &[Send], outcome: &[WrongKind], action: Fix, fault: User, attribute: &["TransferOutput"],
        mend: "it is a directory, and a plug-in sends files: pack it into one file (tar), or name each file", ..ANY },
    Rule { thing: &[Thing::Object], operation: &[Receive], outcome: &[WrongKind], action: Fix, fault: User, attribute: &["TransferInput"],
        mend: "it is a directory: name its files in transfer_input_files, pack it into one file, or add ?recursive to the address", ..ANY },
    Rule { thing: &[Thing::Object], operation: &[Send], outcome: &[Absent, Invalid, TooLarge, Full], action: Fix, fault: User, attribute: &["OutputDestination", "TransferOutputRemaps"],
        mend: "the server does not take output at this address: correct it", ..ANY },
    Rule { thing: &[Thing::Object], outcome: &[Absent], words: &["no namespace"], action: Fix, fault: User, attribute: &["TransferInput"],
        mend: "no server of the federation has a path that begins so: correct the address, where upper and lower case differ", look: "what the server says of it", ..ANY },
    Rule { thing: &[Thing::Object], outcome: &[Absent, Invalid, WrongKind, Exists, TooLarge], action: Fix, fault: User, attribute: &["TransferInput"],
        mend: "the server does not have what the address names: correct it or upload the file", look: "what the server says of it", ..ANY },
    Rule { thing: &[Thing::Object], outcome: &[Denied, Expired], words: &["gss", "gsi", "gridftp", "voms", "login incorrect"], action: Fix, fault: User, attribute: &["x509userproxy"],
        mend: "the store refuses the proxy: renew it with the attributes of the group (voms-proxy-init -voms), and ask the store's administrators whether its subject (DN) is known there", ..ANY },
    Rule { thing: &[Thing::Object], outcome: &[Denied, Expired], action: Fix, fault: User, attribute: &["TransferInput", "OAuthServicesNeeded"],
        mend: "the server refuses it: renew the credential or ask for access", look: "what the server says of it", ..ANY },
    Rule { thing: &[Thing::Object], operation: &[Send], side: AP, action: TryOne, fault: Server, attribute: &["OutputDestination"],
        mend: "an upload by a plug-in failed, and the reason does not say why: read the starter's log or try one", ..ANY },
    Rule { thing: &[Thing::Object], outcome: &[Full], action: Later, fault: Server, mend: "the server has no room: release it later", ..ANY },
    Rule { thing: &[Thing::Object], operation: &[Receive], outcome: &[Quota], action: Later, fault: Server,
        mend: "the server sends no more for now: release it later, and have fewer jobs read it at a time", ..ANY },

    // The program and what it is started with.
    Rule { thing: &[Thing::Program, Thing::SharedProgram, Thing::StandardInput, Thing::WorkingDirectory, Thing::UserLog], outcome: &[Quota], action: Fix, fault: User,
        mend: "a disk quota is used up: remove files or ask for a larger quota", ..ANY },
    Rule { thing: &[Thing::InstalledProgram, Thing::SharedProgram, Thing::Interpreter, Thing::Program, Thing::WorkingDirectory], operation: &[Operation::Execute],
        outcome: &[MountLost, TimedOut, Busy, NoMemory, Full, ReadOnly, Died], action: TryOne, fault: Machine, attribute: &["Requirements"],
        mend: "the machine could not start it: another one may", ..ANY },
    Rule { thing: &[Thing::WorkingDirectory], operation: &[Operation::Execute], action: TryOne, fault: UserOrMachine, attribute: &["Iwd", "ShouldTransferFiles"],
        mend: "the machine does not see the directory {name}: another one may, or let HTCondor transfer the files", ..ANY },
    Rule { thing: &[Thing::SharedProgram], outcome: &[Absent, WrongKind], action: TryOne, fault: UserOrMachine, attribute: &["Cmd", "Requirements"],
        mend: "the machine does not see {name}: another one may; correct the path if none does, or let HTCondor transfer the program", look: "whether {name} is there", ..ANY },
    Rule { thing: &[Thing::InstalledProgram], outcome: &[Absent, WrongKind], action: TryOne, fault: Machine, attribute: &["Cmd", "Requirements"],
        mend: "{name} is not on this machine: another machine may have it, or see its file system; correct the path if none does", ..ANY },
    Rule { thing: &[Thing::Interpreter], words: &["interpreter (/home", "/envs/", "conda", "venv"], action: Fix, fault: User, attribute: &["Cmd"],
        mend: "the machine does not have {name}, which the first line of the script names: bring the environment along (a container, or a packed environment as input), or name an interpreter that machines have, such as /usr/bin/env", look: "the first line of the script", ..ANY },
    Rule { thing: &[Thing::Interpreter], action: Fix, fault: User, attribute: &["Cmd"],
        mend: "the first line of the script names the interpreter {name}, which is not there: remove DOS line ends (dos2unix), use /usr/bin/env, or bring an environment of your own along (a container, a packed environment), where machines do not mount it", look: "the first line of the script", ..ANY },
    Rule { thing: &[Thing::Program], side: SERVER, action: Fix, fault: User, attribute: &["Cmd", "TransferExecutable"],
        mend: "the program must exist on the other system: correct its path there, or let it be sent (transfer_executable = true)", ..ANY },
    Rule { thing: &[Thing::Program], operation: &[Operation::Execute], outcome: &[Absent, WrongKind], action: Fix, fault: User, attribute: &["Cmd", "TransferExecutable"],
        mend: "{name} cannot be started: correct its path; if it is a script, its first line must name an interpreter (#!) and have no DOS line end (dos2unix)", look: "the program and its first line", ..ANY },
    Rule { thing: &[Thing::Program], outcome: &[WrongFormat], words: &[":\\"], action: Fix, fault: User, attribute: &["Cmd", "Args"],
        mend: "it is no program for Windows: name the interpreter, such as python.exe, as the executable and the script as its argument", look: "the kind of the file", ..ANY },
    Rule { thing: &[Thing::Program, Thing::SharedProgram, Thing::InstalledProgram], outcome: &[WrongFormat], action: Fix, fault: User, attribute: &["Cmd", "Requirements"],
        mend: "{name} is no program for this machine: add a first line (#!) with the interpreter, or build it for this architecture", look: "the kind of the file", ..ANY },
    Rule { thing: &[Thing::Program, Thing::SharedProgram, Thing::InstalledProgram], outcome: &[Denied], action: Fix, fault: User, attribute: &["Cmd"],
        mend: "make {name} executable (chmod +x)", look: "the mode of the file", ..ANY },
    Rule { thing: &[Thing::Program, Thing::SharedProgram, Thing::InstalledProgram], outcome: &[TooLarge], action: Fix, fault: User, attribute: &["Args", "Environment"],
        mend: "its arguments or its environment are too long: shorten them (arguments, environment), or put them into a file", ..ANY },
    Rule { thing: &[Thing::InstalledProgram, Thing::SharedProgram], action: TryOne, fault: Machine, attribute: &["Cmd", "Requirements"],
        mend: "{name} is not started on this machine: another one may", ..ANY },
    Rule { thing: &[Thing::Program], operation: &[Operation::Execute], outcome: &[Outcome::Unknown, Failed], action: TryOne, fault: UserOrMachine, attribute: &["Cmd"],
        mend: "the reason does not say why {name} could not be started: another machine may do; correct its path, its mode or its architecture if none does",
        look: "the program and its first line", ..ANY },
    Rule { thing: &[Thing::Program], operation: &[Operation::Execute], action: Fix, fault: User, attribute: &["Cmd"],
        mend: "{name} cannot be started anywhere until its path, its mode and its architecture are right", look: "the program and its first line", ..ANY },
    Rule { thing: &[Thing::Program], operation: &[Operation::Start], action: Fix, fault: User, attribute: &["Cmd", "ContainerImage"],
        mend: "the program {name} is not in the container: correct its path or the image", look: "the image", ..ANY },
    Rule { thing: &[Thing::StandardInput], outcome: &[MountLost, TimedOut], action: TryOne, fault: Machine, mend: "the machine does not reach {name}: another one may", ..ANY },
    Rule { thing: &[Thing::StandardInput], action: Fix, fault: User, attribute: &["In"],
        mend: "put the input {name} back, or correct its path", look: "whether {name} is there", ..ANY },
    Rule { thing: &[Thing::StandardOutput], side: EP, outcome: &[MountLost, TimedOut, Full, ReadOnly], action: TryOne, fault: Machine, attribute: &["Out", "Err"],
        mend: "the machine cannot write {name}: another one may", ..ANY },
    Rule { thing: &[Thing::StandardOutput], side: EP, outcome: &[Absent, WrongKind, Outcome::Unknown, Failed], action: TryOne, fault: UserOrMachine, attribute: &["Out", "Err"],
        mend: "the machine does not see the directory of {name}: another one may; if none does, create it or correct the path", look: "the directory of {name}", ..ANY },
    Rule { thing: &[Thing::StandardOutput], outcome: PASSING, action: Later, fault: Site,
        mend: "release it once the file system of its output works and has room", ..ANY },
    Rule { thing: &[Thing::StandardOutput], outcome: &[Quota], action: Fix, fault: User, attribute: &["Out", "Err"],
        mend: "the disk quota is used up where {name} goes: remove files or ask for a larger quota", ..ANY },
    Rule { thing: &[Thing::StandardOutput], action: Fix, fault: User, attribute: &["Out", "Err"],
        mend: "its output {name} cannot be written: create its directory, correct the path, or renew the token that its file system needs", look: "the directory of {name}", ..ANY },
    Rule { thing: &[Thing::WorkingDirectory], outcome: PASSING, action: Later, fault: Site, attribute: &["Iwd"],
        mend: "release it once the file system of {name} answers again", look: "whether {name} answers", ..ANY },
    Rule { thing: &[Thing::WorkingDirectory], outcome: &[Denied, Expired], action: Fix, fault: User, attribute: &["Iwd"],
        mend: "make {name} accessible for the account that the job runs as (permission, or the token of /afs), or correct initialdir; if that is not the owner's account, ask the administrators (UID_DOMAIN)", look: "whether its owner may enter {name}", ..ANY },
    Rule { thing: &[Thing::WorkingDirectory], action: Fix, fault: User, attribute: &["Iwd"],
        mend: "create the directory {name}, or correct initialdir", look: "whether {name} is there", ..ANY },
    Rule { thing: &[Thing::UserLog], outcome: PASSING, action: Later, fault: Site, mend: "release it once the file system of the log works", ..ANY },
    Rule { thing: &[Thing::UserLog], action: Fix, fault: User, attribute: &["UserLog", "DAGManNodesLog"],
        mend: "the job's log cannot be written: create its directory, or correct the path (log in the submit file)", look: "the directory of UserLog", ..ANY },

    // Containers.
    Rule { thing: &[Thing::ContainerSoftware], action: TryOne, fault: Machine, attribute: &["Requirements"],
        mend: "the container software of this machine failed: another machine may work", ..ANY },
    Rule { thing: &[Thing::Image], operation: &[Pull], outcome: &[TimedOut, Disconnected, Busy, Unavailable, BadCertificate, Unresolved], action: Later, fault: Server,
        mend: "the registry did not answer or limits its pulls: release it later; a login (docker login), another registry or an image file of your own (.sif) avoids the limit", look: "whether the registry answers", ..ANY },
    Rule { thing: &[Thing::Image], outcome: &[MountLost, Disconnected, TimedOut, Busy, NoMemory, Unavailable, Unresolved, BadCertificate], action: TryOne, fault: UserOrMachine, attribute: &["ContainerImage"],
        mend: "the machine cannot read the image {name}: another one may; correct the image if none can", ..ANY },
    Rule { thing: &[Thing::Image], outcome: &[Corrupt], action: Fix, fault: User, attribute: &["ContainerImage"],
        mend: "the file is no image, or was cut off: copy or build it again", look: "the size of the image", ..ANY },
    Rule { thing: &[Thing::Image], outcome: &[WrongFormat], action: Fix, fault: User, attribute: &["ContainerImage", "DockerImage", "Requirements"],
        mend: "the image is for other machines: build it for their architecture, such as linux/amd64", ..ANY },
    Rule { thing: &[Thing::Image], operation: &[Operation::Unknown], outcome: &[Outcome::Unknown], action: TryOne, fault: UserOrMachine, attribute: &["ContainerImage", "DockerImage"],
        mend: "the reason does not say what failed: another machine may do; correct the image if none does", look: "whether the registry has it", ..ANY },
    Rule { thing: &[Thing::Image], outcome: &[Denied], action: Fix, fault: User, attribute: &["ContainerImage", "DockerImage", "DockerSendCredentials"],
        mend: "the registry has no such image, or wants a login: correct the name or the tag of the image {name} (container_image, docker_image), make it public, or use an image file of your own (.sif)", look: "whether the registry has it", ..ANY },
    Rule { thing: &[Thing::Image], action: Fix, fault: User, attribute: &["ContainerImage", "DockerImage"],
        mend: "correct the name or the tag of the image {name} (container_image, docker_image), or build it for these machines (linux/amd64)", look: "whether the registry has it", ..ANY },

    // Scripts, checkpoints, times, accounts.
    Rule { thing: &[Thing::Hook], side: AP, action: Fix, fault: Site,
        mend: "a check of the access point refuses the job: do what it says, or ask its administrators", ..ANY },
    Rule { thing: &[Thing::Hook], action: TryOne, fault: Machine, mend: "a script that prepares the machine failed: another machine may work", ..ANY },
    Rule { thing: &[Thing::Script], action: Fix, fault: User, attribute: &["PreCmd", "PostCmd"], mend: "correct PreCmd or PostCmd of the submit file, or the exit code that it must end with (PreExitCode, PostExitCode)", look: "PreExitCode and PostExitCode", ..ANY },
    Rule { thing: &[Thing::Checkpoint], operation: &[Send], outcome: &[Absent, Denied, Expired, Invalid, Exists, Quota], action: Fix, fault: User, attribute: &["CheckpointDestination"],
        mend: "its checkpoint cannot be stored there: correct checkpoint_destination, make room, or renew the credential for it", ..ANY },
    Rule { thing: &[Thing::Checkpoint], operation: &[Send], action: Later, fault: Server, attribute: &["CheckpointDestination"],
        mend: "its checkpoint could not be stored: release it once the place works, or correct checkpoint_destination", ..ANY },
    Rule { thing: &[Thing::Checkpoint], action: Fix, fault: User, attribute: &["SuccessCheckpointExitCode"],
        mend: "the program must catch the checkpoint signal and end with the exit code that it promises: correct it, or checkpoint_exit_code", ..ANY },
    Rule { thing: &[Thing::Schedule], action: Fix, fault: User, attribute: &["DeferralTime", "CronMinute"],
        mend: "its start times cannot be met as set: correct the cron_ or deferral settings", ..ANY },
    Rule { thing: &[Thing::Account], outcome: &[Denied], action: Fix, fault: Site,
        mend: "the account is not known here or may not be used (getent passwd): the administrators must mend that, then release", ..ANY },
    Rule { thing: &[Thing::Account], outcome: &[Absent], action: Fix, fault: User, attribute: &["RunAsOwner"],
        mend: "store the password of {name} (condor_store_cred add); if the account has no domain, the administrators must set one UID_DOMAIN everywhere", ..ANY },
    Rule { thing: &[Thing::Account], action: Fix, fault: User, attribute: &["PrimaryUnixGroup"], mend: "correct the group that the job asks for (primary_unix_group)", ..ANY },

    // Policies.
    Rule { speaker: &[Speaker::SitePolicy], thing: &[Thing::Expression], outcome: &[Undefined], action: Fix, fault: Site,
        mend: "an expression of the administrators has no value for this job: they must mend it in the configuration of the access point, then release", ..ANY },
    Rule { thing: &[Thing::Expression], outcome: &[Undefined], words: &["memoryusage", "residentsetsize", "proportionalsetsize"], action: Fix, fault: User, attribute: &["PeriodicHold"],
        mend: "an attribute of the memory in use, such as MemoryUsage, is undefined until the job has run: write ifThenElse(MemoryUsage =?= undefined, 0, MemoryUsage) in its place", look: "the value of each part", ..ANY },
    Rule { thing: &[Thing::Expression], outcome: &[Undefined], action: Fix, fault: User, attribute: &["PeriodicHold"],
        mend: "the expression names an attribute that the job lacks, or has only once it runs: write ifThenElse(NAME =?= undefined, 0, NAME) in the place of its NAME, or correct the name", look: "the value of each part", ..ANY },
    Rule { thing: &[Thing::Expression], outcome: &[Exceeded], action: Fix, fault: User, attribute: &["PeriodicHold"],
        mend: "the rule that held it is true again after a release: find which part of it is true for the job, and change that", look: "the value of each part", ..ANY },
    Rule { thing: &[Thing::ProgramEnd], outcome: &[TimedOut], action: TryOne, fault: UserOrMachine, attribute: &["PeriodicHold", "PeriodicRelease"],
        mend: "another machine may do, if the job's own policy does not release it: correct the program if it stands still there, too", look: "PeriodicRelease of the job", ..ANY },
    Rule { speaker: &[Speaker::JobPolicy], thing: &[Thing::ProgramEnd], outcome: &[Died], action: Fix, fault: User, attribute: &["OnExitHold"],
        mend: "the program was killed by a signal, which the job's own rule holds for: read its standard error (Err), correct it, then release", look: "Out and Err of the job", ..ANY },
    Rule { thing: &[Thing::ProgramEnd], outcome: &[Failed, Died], action: Fix, fault: User, attribute: &["OnExitHold"],
        mend: "the program failed, which a rule holds for: read its standard error (Err), correct it, then release", look: "Out and Err of the job", ..ANY },

    Rule { speaker: POLICIES, thing: &[Thing::Unknown], outcome: &[Busy], words: LICENCE_WORDS, action: TryOne, fault: Server,
        mend: "try one, which shows whether a licence is free; with concurrency_limits in the submit file no more jobs run than there are licences", look: "how many licences are free", ..ANY },
    Rule { speaker: POLICIES, thing: &[Thing::Unknown], side: &[Side::Unknown], outcome: PASSING, action: TryOne, fault: UserOrMachine,
        mend: "its policy names a fault that may pass, or that another machine does not have: try one, and read its output if it is held again", look: "Out and Err of the job", ..ANY },
    Rule { speaker: &[Speaker::JobPolicy], thing: &[Thing::Unknown], action: Fix, fault: User, attribute: &["PeriodicHold", "OnExitHold"],
        mend: "the job's own policy (periodic_hold, on_exit_hold) holds it, and does so again after a release: find why, and change the job or the policy", look: "Out and Err of the job", ..ANY },

    Rule { speaker: &[Speaker::SitePolicy], thing: &[Thing::Unknown], side: &[Side::Unknown], action: Fix, fault: Site,
        mend: "a policy of the administrators (such as SYSTEM_PERIODIC_HOLD) holds it, and does so again after a release: ask them what it wants, and change the job", ..ANY },

    // Other systems, and HTCondor itself.
    Rule { thing: &[Thing::RemoteSystem], operation: &[Operation::Cancel], action: Fix, fault: Server, attribute: &["EC2InstanceName"],
        mend: "look there whether the instance still runs, and end it, since it may cost money; then remove the job", ..ANY },
    Rule { thing: &[Thing::RemoteRequest], words: &["job universe"], action: Fix, fault: User, attribute: &["JobUniverse"],
        mend: "the other system takes no job of this universe: set universe = vanilla there, or universe = grid with a grid_resource elsewhere, and submit it again", ..ANY },
    Rule { thing: &[Thing::RemoteRequest], words: GRID_RESOURCE, action: Fix, fault: User, attribute: &["GridResource"],
        mend: "correct grid_resource (a type that this version knows, and what it needs, such as batch slurm or ec2 https://...), and submit it again", ..ANY },
    Rule { thing: &[Thing::RemoteRequest], words: CLOUD, action: Fix, fault: User, attribute: &["EC2AmiID", "EC2InstanceType", "EC2KeyPair"],
        mend: "the service does not have what the job names, or does not take it: correct that in the submit file (such as ec2_ami_id, ec2_instance_type, ec2_keypair or gce_image)", ..ANY },
    Rule { thing: &[Thing::RemoteRequest], action: Fix, fault: User, attribute: &["BatchQueue", "BatchProject", "GridResource"],
        mend: "the other system does not take such a request: correct it (batch_queue, batch_project, grid_resource)", ..ANY },
    Rule { thing: &[Thing::RemoteSystem], outcome: &[Busy], action: Later, fault: Server,
        mend: "the other system takes no more of such jobs for now: release it once some have ended there, or once its limit on jobs is raised", ..ANY },
    Rule { thing: &[Thing::RemoteSystem], outcome: &[TimedOut, Disconnected, Unavailable], action: Later, fault: Server, mend: "release it once the other system answers again; if it never does, ask the administrators about the network between (firewall, ports)", ..ANY },
    Rule { thing: &[Thing::RemoteSystem], outcome: &[Denied, Expired], action: Fix, fault: User, attribute: &["x509userproxy", "ScitokensFile"],
        mend: "the other system refuses: renew the credential, or ask for the right that it lacks", ..ANY },
    Rule { thing: &[Thing::RemoteSystem], outcome: &[Absent], action: TryOne, fault: Site, attribute: &["GridJobId"],
        mend: "the other system does not know the job: try one, or remove it and submit it again; if it happens again, ask its administrators", look: "the job in the other system", ..ANY },
    Rule { thing: &[Thing::RemoteSystem], outcome: &[Died], action: TryOne, fault: UserOrMachine, attribute: &["GridJobId"],
        mend: "the batch system ended it, as it does at a limit of wall time or memory: look there for its use and its limits, and raise the request if it reached one; else ask its administrators, and try one", look: "the job in the other system", ..ANY },
    Rule { thing: &[Thing::RemoteSystem], action: TryOne, fault: Site, attribute: &["GridResource", "GridJobId"],
        mend: "the other system lost or refused the job: look there, check grid_resource, try one, and ask its administrators", look: "the job in the other system", ..ANY },
    Rule { thing: &[Thing::OwnSoftware], outcome: &[WrongFormat], action: Fix, fault: User, attribute: &["JobUniverse"],
        mend: "the standard universe needs a program and a shadow of one version: link it again by condor_compile, or use the vanilla universe, and submit it again; the administrators may install the other shadow", ..ANY },
    Rule { thing: &[Thing::OwnSoftware], outcome: &[Absent], action: Fix, fault: Site,
        mend: "a part of HTCondor, or a program that it needs, is not installed or not configured on the access point: the administrators must mend that, then release", ..ANY },
    Rule { thing: &[Thing::OwnSoftware], side: EP, action: TryOne, fault: Machine, attribute: &["Requirements"],
        mend: "the software of HTCondor failed on this machine: another run may work; if none does, ask the administrators to read the log of the starter", ..ANY },
    Rule { thing: &[Thing::OwnSoftware], action: TryOne, fault: Machine,
        mend: "the software of HTCondor failed: release one, since another run may work; if it is held again, submit it again, or ask the administrators to read the logs of the access point", ..ANY },

    // What is known if only the direction and the side were read.
    Rule { thing: &[Thing::Unknown], operation: &[Operation::Hold], outcome: &[Outcome::Unknown], action: TryOne, fault: UserOrMachine,
        mend: "the machine held it, and the reason does not say why: try one, and ask the administrators what StarterLog and ShadowLog say of it", look: "the events before the hold", ..ANY },
    Rule { thing: &[Thing::Unknown], side: EP, outcome: &[Unavailable], action: TryOne, fault: Machine, mend: "that machine does not work now: another one may", ..ANY },
    Rule { thing: &[Thing::Unknown], side: EP, outcome: DISK, action: TryOne, fault: Machine, mend: "the machine failed: another one may work", ..ANY },
    Rule { thing: &[Thing::Unknown], outcome: &[TimedOut, Disconnected, Unavailable, Busy, MountLost, Corrupt], action: Later, fault: Server,
        mend: "this passes without a repair: release it later", ..ANY },
    Rule { thing: &[Thing::Unknown], operation: &[Send, Receive], side: AP, outcome: &[Outcome::Unknown], action: TryOne, fault: UserOrMachine,
        mend: "the transfer broke off, and the reason does not say why: try one", look: "the events before the hold", ..ANY },
];
