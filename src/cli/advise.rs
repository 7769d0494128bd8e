//! The arguments of `poolcast advise`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use poolcast_advice::HeldGrouping;
use poolcast_base::moment::parse_time_ms;
use poolcast_holds::decision::HoldAction;
use poolcast_site::notices::NoticeTarget;

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// Held jobs (`123.0`, or `123` for a whole cluster), event logs, directories of event logs, and
    /// the directory of a run or a sweep, in any order [default: every held job; the run in the
    /// current directory, or the `out` of a configuration file there; and its logs, or else the
    /// queue]
    #[arg(value_name = "JOB|LOG|DIR|RUN")]
    pub named: Vec<PathBuf>,
    /// Event logs to read, directories of them, archives that `collect` made, `-` for standard
    /// input, or `mine` for the logs that your jobs in the queue and in the history name [default:
    /// the logs that the model was made from]
    #[arg(long = "log", value_name = "LOG", num_args = 1..)]
    pub logs: Vec<PathBuf>,
    /// Source of the queue, which then decides which jobs are held: a file with the output of
    /// `condor_q -allusers -json`, `-` for standard input, or `now` to query the queue of this
    /// access point. The advice is then as of now, and otherwise as of the last event of the log.
    /// Without any log or run, your own jobs in the queue are asked for, or those that you name
    #[arg(long, value_name = "FILE", conflicts_with = "at")]
    pub queue: Option<String>,
    /// Jobs that have left the queue, as evidence beside a log: `now` for the history of this
    /// access point, a file with the output of `condor_history -json` or `-l`, also with `-epochs`, a
    /// `PER_JOB_HISTORY_DIR`, or `-` for standard input; repeat the option for further ones
    #[arg(long, value_name = "now|FILE|DIR", conflicts_with = "at")]
    pub history: Vec<PathBuf>,
    /// Ask for the jobs of all users, where no log and no queue is named, and not only for your own, or
    /// for those whose ids or owners are named
    #[arg(long, conflicts_with_all = ["queue", "at"])]
    pub all_users: bool,
    /// Advise as of this time: on the jobs held then, by what the log showed by then; such as
    /// 2026-11-21T02:20:00Z (UTC if no zone is named), or seconds since 1970 [default: the end of
    /// the log]
    #[arg(long, value_name = "TIME", value_parser = moment_ms)]
    pub at: Option<i64>,
    /// Year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Look at the files that hold reasons name, and ask for their addresses, even if the queue or the
    /// log may be of another machine [default: look if they are of this access point]
    #[arg(long, conflicts_with = "at")]
    pub look: bool,
    /// Look at no files, and ask no servers
    #[arg(long, conflicts_with = "look")]
    pub no_look: bool,
    /// Do not ask the servers of input files that could not be transferred to your jobs, or that your
    /// idle jobs need [default: ask for http, https and osdf addresses, for two seconds]
    #[arg(long)]
    pub no_network: bool,
    /// Advise on idle and running jobs in place of held ones: idle jobs that need a file which does not
    /// exist, and with a log also those that request too little memory, and jobs that start and are
    /// put back again. Asks the queue for your own jobs, or uses the idle and running jobs in --queue
    #[arg(long, conflicts_with_all = ["history", "at", "lists_jobs", "long", "ids", "check", "watch", "prometheus", "html", "pages", "notify", "qedit", "dag", "codes", "actions", "causes", "sort", "exit_code"])]
    pub idle: bool,
    /// Print all things that jobs are held for, with all causes and commands, and not only the things
    /// that fit on one screen
    #[arg(long = "all", group = "view")]
    pub shows_all: bool,
    /// Property that the jobs of a row of the page share
    #[arg(
        long,
        value_enum,
        default_value = "thing",
        hide_possible_values = false
    )]
    pub by: HeldGrouping,
    /// Only the jobs of this number on the page that the same call printed last, with causes, ids and
    /// commands. Jobs that the page did not show are left out, and an expired page is refused
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["at", "check", "dag", "idle", "watch"])]
    pub thing: Option<usize>,
    /// Print only the commands for the jobs of --thing, as lines for `sh`. Those that wait for a
    /// repair, or for a fault to pass, are comments
    #[arg(long = "commands", group = "view", requires = "thing")]
    pub prints_commands: bool,
    /// Print one line per job, not per cause
    #[arg(long = "jobs", group = "view")]
    pub lists_jobs: bool,
    /// Print everything known about each job
    #[arg(long, group = "view")]
    pub long: bool,
    /// Print only ids, one per line: jobs to release as they are, or jobs that other options select
    #[arg(long, group = "view")]
    pub ids: bool,
    /// Print the advice as JSON
    #[arg(long, group = "view")]
    pub json: bool,
    /// Print the outcomes of earlier answers, according to the log read now
    #[arg(long, conflicts_with_all = ["shows_all", "lists_jobs", "long", "ids", "queue", "at", "all_users", "history", "look", "no_look"])]
    pub check: bool,
    /// Ask again every 30 s, or as many as are given, until none of these jobs is held; print the
    /// advice again when an answer has changed, with --json as one line. Nothing is ever released
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "30")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    #[arg(conflicts_with_all = ["at", "check", "dag", "ids", "exit_code"])]
    pub watch: Option<u32>,
    /// Write metrics about all held jobs to this file, for the textfile collector of Prometheus'
    /// node_exporter; they name no owner
    #[arg(long, value_name = "FILE", conflicts_with_all = ["at", "check", "dag", "watch"])]
    pub prometheus: Option<PathBuf>,
    /// Write the shown jobs to this file, as one HTML page with the things, causes and commands; it
    /// loads nothing, and learns nothing new
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "dag", "watch"])]
    pub html: Option<PathBuf>,
    /// Write the advice of each owner of held jobs to DIR/OWNER.json
    #[arg(long, value_name = "DIR", conflicts_with_all = ["at", "check", "dag", "watch"])]
    pub pages: Option<PathBuf>,
    /// Send the causes and answers that are new since the last such call: to a mail address by
    /// `sendmail`, with the first screen as text and HTML, or as JSON to a web address; repeat the
    /// option for further addresses
    #[arg(long, value_name = "mailto:ADDRESS|URL", conflicts_with_all = ["at", "check", "dag", "watch"])]
    pub notify: Vec<NoticeTarget>,
    /// Write the answers to the held jobs in the queue of this access point, as the attributes
    /// PoolcastAdvice and PoolcastProbability, where they have changed; only the users in
    /// QUEUE_SUPER_USERS may do this for the jobs of others
    #[arg(long, conflicts_with_all = ["at", "check", "dag", "watch"])]
    pub qedit: bool,
    /// Name of a node, for its SCRIPT HOLD in DAGMan: write the advice on the held jobs of this
    /// node to the file NODE.advice here, and exit with 0 even after a failure; condor/held-node.sh
    /// is an example
    #[arg(long, value_name = "NODE", conflicts_with_all = ["queue", "all_users", "history", "at", "view", "check", "AdviceFilterArgs", "sort", "exit_code"])]
    pub dag: Option<String>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub filter: AdviceFilterArgs,
    /// Order of the jobs in --jobs, --long and --ids; `since` and `odds` also order the rows of the page
    #[arg(
        long,
        value_enum,
        default_value = "action",
        hide_possible_values = false
    )]
    pub sort: JobOrder,
    /// Encode the answer in the exit code, even for several jobs
    #[arg(long)]
    pub exit_code: bool,
    /// Current time, for tests
    #[arg(long, value_name = "TIME", value_parser = moment_ms, hide = true)]
    pub now: Option<i64>,
}

/// Filters of the held jobs to show; each option narrows the selection.
#[derive(Debug, Args)]
pub struct AdviceFilterArgs {
    /// Only jobs of this owner; repeat the option for further owners
    #[arg(long = "owner", value_name = "NAME")]
    pub owners: Vec<String>,
    /// Only jobs held with this code, or code and subcode: 13 or 13/2
    #[arg(long = "code", value_name = "CODE[/SUBCODE]", value_parser = hold_code)]
    pub codes: Vec<HoldCodeFilter>,
    /// Only jobs of this cluster
    #[arg(long = "cluster", value_name = "ID", value_parser = clap::value_parser!(i32).range(0..))]
    pub clusters: Vec<i32>,
    /// Only jobs with this answer
    #[arg(long = "action", value_name = "ACTION", value_parser = action_parser())]
    pub actions: Vec<HoldAction>,
    /// Only jobs with these causes, by their names on the page, separated by commas
    #[arg(long = "cause", value_name = "NAME", value_delimiter = ',')]
    pub causes: Vec<String>,
}

/// A hold code, with a subcode if one is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldCodeFilter {
    /// Hold code.
    pub code: i32,
    /// Hold subcode; `None` matches any.
    pub subcode: Option<i32>,
}

/// Parses an action by its word.
fn action_parser() -> impl TypedValueParser<Value = HoldAction> {
    let actions = HoldAction::COUNTED;
    PossibleValuesParser::new(actions.map(HoldAction::word)).try_map(move |word| {
        let named = actions.into_iter().find(|action| action.word() == word);
        named.ok_or("not an action")
    })
}

/// Order of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum JobOrder {
    /// By urgency: the first to act on comes first
    Action,
    /// By cluster and proc
    Id,
    /// Longest held first
    Since,
    /// Most likely to succeed first
    Odds,
    /// By the name of the owner
    Owner,
    /// By hold code
    Code,
}

fn hold_code(text: &str) -> Result<HoldCodeFilter, String> {
    let number = |part: &str| {
        part.parse::<i32>()
            .map_err(|_| "write 13 or 13/2".to_owned())
    };
    let (code, subcode) = match text.split_once('/') {
        Some((code, subcode)) => (code, Some(number(subcode)?)),
        None => (text, None),
    };
    Ok(HoldCodeFilter {
        code: number(code)?,
        subcode,
    })
}

/// Parses a time as epoch ms: seconds since 1970, or a text for [`parse_time_ms`].
pub(super) fn moment_ms(text: &str) -> Result<i64, String> {
    let moment_ms = match text.parse::<i64>() {
        Ok(seconds) => jiff::Timestamp::from_second(seconds)
            .ok()
            .map(jiff::Timestamp::as_millisecond),
        Err(_) => parse_time_ms(text),
    };
    moment_ms.ok_or_else(|| "write 2026-11-21T02:20:00Z, or seconds since 1970".to_owned())
}
