//! The page of advice on idle and running jobs, and its JSON document.

use std::collections::BTreeSet;

use serde::Serialize;

use super::advice::skipped_jobs_words;
use super::restart_loops::{LoopLayout, loop_lines};
use poolcast_advice::{
    ExcessRequest, FaultyInput, IdleBatch, InputLooks, LookState, RequestAttribute, RestartLoop,
    SkippedJobs, UnfitRequest, UnheldJobs, UnmatchedJobs,
};
use poolcast_base::output::{self, LineColour, PageLine};

/// Version of the JSON document.
pub(in crate::cmd) const SCHEMA_VERSION: u32 = 1;

/// Maximum number of faults on a page, unless it shows all.
const MAX_FAULTS: usize = 10;

/// Maximum number of commands for a fault, unless the page shows all.
const MAX_COMMANDS: usize = 3;

/// Maximum number of clusters that are named.
const MAX_NAMED_CLUSTERS: usize = 4;

/// Maximum width of clauses of requirements, in characters.
const CLAUSES_WIDTH: usize = 200;

/// Maximum width of the name of a batch, in characters.
const BATCH_WIDTH: usize = 40;

/// Advice on idle and running jobs as one JSON document, described in docs/json.md.
#[derive(Debug, Serialize)]
pub(in crate::cmd) struct IdleDocument<'a> {
    /// Time of the call, epoch ms.
    asked_ms: i64,
    /// Time of the last event in the log, epoch ms; `None` if no log was read.
    log_end_ms: Option<i64>,
    /// Number of idle jobs.
    idle: usize,
    /// Number of running jobs.
    running: usize,
    /// Jobs in the output of `condor_q` that cannot be read; `None` if there are none.
    skipped: Option<SkippedJobs>,
    /// Number of files that were looked at, or that servers were asked for.
    looked_files: usize,
    /// Number of the idle jobs without a known fault that need a file which was not looked at, or
    /// which the caller may not see.
    unseen_jobs: usize,
    /// Warnings, in sentences.
    caveats: &'a [String],
    /// The jobs that need a file which they cannot get; each job once.
    inputs: &'a [FaultyInput],
    /// The jobs that no machine matches; absent if there are none, or if the pool was not asked.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unmatched: &'a [UnmatchedJobs],
    /// The jobs that request less memory than many jobs of their batch used, or far more than any
    /// did; empty without a log.
    memory: &'a [UnfitRequest],
    /// The jobs that start and are put back again; absent if there are none, and without a log.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    loops: &'a [RestartLoop],
}

/// The content of the page, and the settings of its layout.
pub(in crate::cmd) struct IdleView<'a> {
    pub(in crate::cmd) jobs: &'a UnheldJobs,
    pub(in crate::cmd) looks: &'a InputLooks,
    pub(in crate::cmd) unmatched: &'a [UnmatchedJobs],
    pub(in crate::cmd) memory: &'a [UnfitRequest],
    pub(in crate::cmd) loops: &'a [RestartLoop],
    /// Current time, epoch ms.
    pub(in crate::cmd) now_ms: i64,
    /// Time of the last event in the log, epoch ms; `None` if no log was read.
    pub(in crate::cmd) log_end_ms: Option<i64>,
    /// Line width in characters.
    pub(in crate::cmd) width: usize,
    /// True if the page shows all faults with all commands.
    pub(in crate::cmd) shows_all: bool,
}

impl IdleView<'_> {
    /// The JSON document.
    pub(in crate::cmd) fn document(&self) -> IdleDocument<'_> {
        let idle = self.jobs.idle_count();
        IdleDocument {
            asked_ms: self.now_ms,
            log_end_ms: self.log_end_ms,
            idle,
            running: self.jobs.jobs().len() - idle,
            skipped: self.jobs.skipped(),
            looked_files: self.looks.looked_files,
            unseen_jobs: self.looks.unseen_jobs,
            caveats: &self.looks.caveats,
            inputs: &self.looks.faults,
            unmatched: self.unmatched,
            memory: self.memory,
            loops: self.loops,
        }
    }

    /// The page.
    pub(in crate::cmd) fn page(&self) -> Vec<PageLine> {
        let mut lines = self.head();
        let parts = [
            self.input_lines(),
            self.unmatched_lines(),
            self.memory_lines("REQUEST MORE MEMORY", false),
            self.memory_lines("REQUEST LESS MEMORY", true),
            self.loop_lines(),
        ];
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            lines.push(PageLine::plain(""));
            lines.extend(part);
        }
        if self.log_end_ms.is_none() {
            let better =
                "for memory, and jobs that are put back again: poolcast advise --idle --log mine";
            lines.push(PageLine::plain(""));
            lines.extend(self.folded(LineColour::Dim, better));
        }
        lines
    }

    /// The lines at the top: the number of jobs, and what was looked at.
    fn head(&self) -> Vec<PageLine> {
        let idle = self.jobs.idle_count();
        let running = self.jobs.jobs().len() - idle;
        let counts = format!(
            "{}, {} running",
            output::counted(idle, "idle job"),
            output::with_commas(running as u64)
        );
        let found = self.found_words();
        let mut lines = self.folded(LineColour::Plain, &format!("{counts}: {found}"));
        let looked = format!(
            "looked at {} that idle jobs need",
            output::counted(self.looks.looked_files, "file")
        );
        lines.extend(self.folded(LineColour::Dim, &looked));
        if let Some(end_ms) = self.log_end_ms {
            let log = format!("log until {}", output::utc_time(end_ms));
            lines.extend(self.folded(LineColour::Dim, &log));
        }
        let skipped = self.jobs.skipped().map(skipped_jobs_words);
        for caveat in skipped.iter().chain(&self.looks.caveats) {
            lines.extend(self.folded(LineColour::Yellow, &format!("note: {caveat}")));
        }
        lines
    }

    /// Says what was found, in a few words.
    fn found_words(&self) -> String {
        let faulty: usize = self
            .looks
            .faults
            .iter()
            .map(|one| one.members.jobs.len())
            .sum();
        let memory_jobs = |is_high: bool| -> usize {
            let unfit = self
                .memory
                .iter()
                .filter(|one| is_high == (one.larger_jobs == 0));
            unfit.map(|one| one.members.jobs.len()).sum()
        };
        let unmatched = self.unmatched.iter().map(|one| one.members.jobs.len());
        let looping: usize = self.loops.iter().map(|one| one.jobs.len()).sum();
        let parts = [
            (faulty, "without a file that they need"),
            (unmatched.sum(), "that no machine matches"),
            (memory_jobs(false), "with a low request of memory"),
            (memory_jobs(true), "with a high request of memory"),
            (looping, "put back again and again"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(jobs, _)| *jobs > 0)
            .map(|(jobs, what)| format!("{} {what}", output::with_commas(*jobs as u64)))
            .collect();
        let found = match parts.is_empty() {
            true => "no fault was found".to_owned(),
            false => parts.join(", "),
        };
        match self.looks.unseen_jobs {
            0 => found,
            unseen => {
                let jobs = output::with_commas(unseen as u64);
                format!("{found}; the files of {jobs} were not all looked at")
            }
        }
    }

    /// The faults of input files, with the commands that hold their jobs.
    fn input_lines(&self) -> Vec<PageLine> {
        let faults = (self.looks.faults.iter()).map(|fault| {
            (
                fault.members.jobs.len(),
                self.fault_words(fault),
                &fault.commands[..],
            )
        });
        self.section("FIX BEFORE THEY START", faults.collect())
    }

    /// The jobs that no machine matches, with the commands that make their requests fit.
    fn unmatched_lines(&self) -> Vec<PageLine> {
        let unmatched = (self.unmatched.iter()).map(|one| {
            (
                one.members.jobs.len(),
                self.unmatched_words(one),
                &one.commands[..],
            )
        });
        self.section("NO MACHINE MATCHES NOW", unmatched.collect())
    }

    /// The requests of memory that are too low, or far too high if `is_high`, with the commands that change them.
    fn memory_lines(&self, title: &str, is_high: bool) -> Vec<PageLine> {
        let unfit = self
            .memory
            .iter()
            .filter(|one| is_high == (one.larger_jobs == 0));
        let unfit = unfit.map(|one| {
            (
                one.members.jobs.len(),
                self.memory_words(one),
                &one.commands[..],
            )
        });
        self.section(title, unfit.collect())
    }

    /// A part of the page: findings about a number of jobs, with their words and commands.
    fn section(&self, title: &str, findings: Vec<(usize, String, &[String])>) -> Vec<PageLine> {
        if findings.is_empty() {
            return Vec::new();
        }
        let jobs = findings.iter().map(|(jobs, ..)| jobs).sum();
        let title = format!("{title}: {}", output::counted(jobs, "job"));
        let mut lines = vec![PageLine::of(LineColour::Yellow, title)];
        let most = |limit: usize| if self.shows_all { usize::MAX } else { limit };
        for (_, words, commands) in findings.iter().take(most(MAX_FAULTS)) {
            lines.extend(self.folded(LineColour::Plain, &format!("  {words}")));
            let shown = commands.iter().take(most(MAX_COMMANDS));
            lines.extend(shown.map(|command| PageLine::plain(format!("    {command}"))));
            let hidden = commands.len().saturating_sub(most(MAX_COMMANDS));
            lines.extend(hidden_line("    ", hidden, "more command"));
        }
        let hidden = findings.len().saturating_sub(most(MAX_FAULTS));
        lines.extend(hidden_line("  ", hidden, "more finding"));
        lines
    }

    fn fault_words(&self, fault: &FaultyInput) -> String {
        let whose = self.jobs_words(&fault.members);
        let is_one = fault.members.jobs.len() == 1;
        let need = if is_one { "needs" } else { "need" };
        let what = file_words(fault);
        let then = match (fault.commands.is_empty(), is_one) {
            (true, _) => "",
            (_, true) => ", or hold it until then:",
            (_, false) => ", or hold them until then:",
        };
        format!("{whose} {need} {what}{then}")
    }

    fn unmatched_words(&self, unmatched: &UnmatchedJobs) -> String {
        let whose = self.jobs_words(&unmatched.members);
        let is_one = unmatched.members.jobs.len() == 1;
        let verb = |one: &str, many: &str| if is_one { one } else { many }.to_owned();
        let mut parts: Vec<String> = unmatched.requests.iter().map(excess_words).collect();
        if let Some(first) = parts.first_mut() {
            *first = format!("{} {first}", verb("requests", "request"));
        }
        if !unmatched.clauses.is_empty() {
            let clauses: Vec<&str> = unmatched.clauses.iter().map(|one| one.as_str()).collect();
            let clauses = output::cut(&clauses.join(" && "), CLAUSES_WIDTH);
            let require = verb("requires", "require");
            parts.push(format!("{require} {clauses}, which is true for no machine"));
        }
        let then = match (unmatched.commands.is_empty(), &unmatched.members.jobs[..]) {
            (false, _) => ": ask for less:".to_owned(),
            (true, [first, ..]) => format!(": condor_q -better-analyze {first}"),
            (true, []) => String::new(),
        };
        format!("{whose} {}{then}", parts.join(", and "))
    }

    fn memory_words(&self, unfit: &UnfitRequest) -> String {
        let whose = self.jobs_words(&unfit.members);
        let verb = if unfit.members.jobs.len() == 1 {
            "requests"
        } else {
            "request"
        };
        let larger = output::with_commas(unfit.larger_jobs as u64);
        let known = output::counted(unfit.known_jobs, "job");
        let requested = output::with_commas(unfit.requested_mb);
        let colon = if unfit.commands.is_empty() { "" } else { ":" };
        if unfit.larger_jobs == 0 {
            let enough = output::with_commas(unfit.request_mb);
            return format!(
                "{whose} {verb} {requested} MB: {enough} MB would do for {known} seen of this batch, and match more slots{colon}"
            );
        }
        format!("{whose} {verb} {requested} MB: {larger} of {known} of this batch used more{colon}")
    }

    /// Names idle jobs by their batch, or else by their cluster.
    fn jobs_words(&self, members: &IdleBatch) -> String {
        let jobs = output::counted(members.jobs.len(), "idle job");
        let owner = members.owner.as_deref();
        let owner = owner.filter(|_| self.has_several_owners());
        let owner = owner.map_or(String::new(), |owner| format!("{owner}, "));
        let clusters = clusters_words(&members.clusters);
        match &members.batch {
            Some(batch) => {
                let batch = output::cut(batch, BATCH_WIDTH);
                format!("{jobs} of {owner}batch {batch} ({clusters})")
            }
            None => format!("{jobs} of {owner}{clusters}"),
        }
    }

    fn has_several_owners(&self) -> bool {
        let jobs = self.jobs.jobs();
        let first = jobs.first().map(|job| &job.owner);
        jobs.iter().any(|job| Some(&job.owner) != first)
    }

    fn loop_lines(&self) -> Vec<PageLine> {
        let layout = LoopLayout {
            width: self.width,
            shows_all: self.shows_all,
            moment_words: &|ms| format!("at {}", output::utc_time(ms)),
        };
        loop_lines(self.loops, &layout)
    }

    fn folded(&self, colour: LineColour, text: &str) -> Vec<PageLine> {
        let lines = output::wrapped(text, self.width).into_iter();
        lines.map(|line| PageLine::of(colour, line)).collect()
    }
}

/// Describes a request that no machine has room for.
fn excess_words(excess: &ExcessRequest) -> String {
    let (attribute, largest) = (excess.attribute, excess.largest);
    let requested = amount_words(attribute, excess.requested);
    let machine = match excess.is_had_by_others {
        true => "no machine that has all else they need",
        false => "no machine",
    };
    match largest {
        0 => format!("{requested}, and {machine} has any"),
        _ => format!(
            "{requested}, and {machine} has more than {}",
            amount_words(attribute, largest)
        ),
    }
}

fn amount_words(attribute: RequestAttribute, amount: u64) -> String {
    let counted = |what| output::counted(usize::try_from(amount).unwrap_or(usize::MAX), what);
    match attribute {
        RequestAttribute::RequestMemory => format!("{} MB of memory", output::with_commas(amount)),
        RequestAttribute::RequestDisk => {
            format!("{} MB of disk", output::with_commas(amount / 1024))
        }
        RequestAttribute::RequestCpus => counted("CPU"),
        RequestAttribute::RequestGPUs => counted("GPU"),
    }
}

/// Describes the file, and what to do.
fn file_words(fault: &FaultyInput) -> String {
    let path = &fault.path;
    let is_one = fault.files == 1;
    let others = format!(
        "{path} and {}",
        output::counted(fault.files.saturating_sub(1), "other file")
    );
    match fault.state {
        LookState::NotAllowed if is_one => {
            format!("{path}, which the owner may not read: change its mode")
        }
        LookState::NotAllowed => {
            format!("{others}, which the owner may not read: change the modes")
        }
        _ if is_one && path.contains("://") => {
            format!("{path}, which its server does not have: put it there")
        }
        _ if is_one => format!("{path}, which does not exist: put it there"),
        _ => format!("{others}, which do not exist: put them there"),
    }
}

fn clusters_words(clusters: &[i32]) -> String {
    let named: BTreeSet<&i32> = clusters.iter().take(MAX_NAMED_CLUSTERS).collect();
    let mut words: Vec<String> = named.iter().map(ToString::to_string).collect();
    if let [only] = &words[..] {
        return format!("cluster {only}");
    }
    if clusters.len() > MAX_NAMED_CLUSTERS {
        words.push(format!("{} more", clusters.len() - MAX_NAMED_CLUSTERS));
    }
    format!("clusters {}", words.join(", "))
}

fn hidden_line(indent: &str, hidden: usize, what: &str) -> Option<PageLine> {
    let words = format!("{indent}and {}: --all", output::counted(hidden, what));
    (hidden > 0).then(|| PageLine::of(LineColour::Dim, words))
}
