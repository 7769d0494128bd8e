//! `poolcast provision link`: makes a batch script a chain of jobs, from within its jobs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::chain::{
    check_script, deadline_s, default_directory, end_code, find_past, lock, with_caller,
};
use super::live_sources::LivePast;
use crate::cmd::text::advice::shell_word;
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::files;
use poolcast_base::output;
use poolcast_base::process::{Process, ask_to_end};
use poolcast_cli::ProvisionLinkArgs;
use poolcast_slurm::chain::{
    ChainEnd, ChainPlan, ChainState, ChainTiming, LINK_VARIABLE, OwnJob, OwnLink,
    PREDECESSOR_VARIABLE, enter_chain, leave_chain, run_chain,
};
use poolcast_slurm::live::query_job_command;

/// Maximum time for which the script of a job waits for Slurm at its begin and at its end.
const PATIENCE: Duration = Duration::from_secs(120);

/// File in the directory of a chain with the identity of the process that submits the next link.
const PROCESS_FILE: &str = "process";

/// Name of the copy of its script that Slurm runs as a job.
const SCRIPT_COPY: &str = "slurm_script";

/// Begins or ends the caller's link, or submits the next one.
pub(super) fn run(args: &ProvisionLinkArgs) -> Result<u8> {
    let own = own_job(args.ended.is_some())?;
    let command = match args.command.is_empty() {
        true => script_command(own.id)?,
        false => args.command.clone(),
    };
    let script = Path::new(&command[0]);
    check_script(script)?;
    let dir = match &args.options.state {
        Some(dir) => dir.clone(),
        None => own.submit_dir.join(default_directory(script)?),
    };
    let plan = ChainPlan {
        command,
        links: args.links,
        every: Duration::from_secs(args.every.into()),
        when: args.when,
        deadline_s: deadline_s(&args.options),
        own: Some(own),
    };
    match args.ended {
        Some(code) => end(args, &plan, &dir, code),
        None if args.watch => watch(args, &plan, &dir),
        None => begin(args, &plan, &dir),
    }
}

/// Finds the caller's own job in the environment.
fn own_job(is_ending: bool) -> Result<OwnJob> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let id = variable("SLURM_JOB_ID").and_then(|id| id.to_str()?.parse().ok());
    let id = id.context(hinted(
        "this is not a job of Slurm: `SLURM_JOB_ID` is not set",
        "write `eval \"$(poolcast provision link --links 20)\"` at the top of a batch script, and submit that with `sbatch`",
    ))?;
    ensure!(
        variable("SLURM_ARRAY_JOB_ID").is_none(),
        hinted(
            format!("job {id} is an element of an array of jobs"),
            "a link of a chain is one job: submit the script without `--array`"
        )
    );
    let submit_dir = variable("SLURM_SUBMIT_DIR").map(PathBuf::from);
    Ok(OwnJob {
        id,
        submit_dir: submit_dir.unwrap_or_else(|| PathBuf::from(".")),
        is_ending,
    })
}

/// Returns the script of the job `id` and its arguments. Slurm joins them by spaces, and only the shell that runs the
/// script knows them apart.
fn script_command(id: u64) -> Result<Vec<String>> {
    let joined = query_job_command(id)?.with_context(|| {
        hinted(
            format!("Slurm has no file name of the script of job {id}"),
            "submit a file: `sbatch train.sbatch`",
        )
    })?;
    let mut arguments = Vec::new();
    let mut ancestor = Some(std::os::unix::process::parent_id());
    while let Some(pid) = ancestor {
        if let Some(found) = arguments_of(pid) {
            arguments = found;
            break;
        }
        ancestor = parent_of(pid);
    }
    let tail: String = arguments.iter().map(|word| format!(" {word}")).collect();
    let script = joined.strip_suffix(&tail).unwrap_or(&joined);
    ensure!(
        Path::new(script).is_file(),
        hinted(
            format!("`{joined}` is not a script that can be submitted again"),
            "call this in the batch script itself, and submit that as a file: `sbatch train.sbatch`"
        )
    );
    Ok([vec![script.to_owned()], arguments].concat())
}

/// Returns the arguments of the batch script, if the process `pid` is the shell that runs it.
fn arguments_of(pid: u32) -> Option<Vec<String>> {
    let line = fs_err::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    words.find(|word| word.ends_with(format!("/{SCRIPT_COPY}").as_bytes()))?;
    words
        .map(|word| String::from_utf8(word.to_vec()).ok())
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|parent| *parent > 0)
}

/// Finds the caller's link, starts the process that submits the next one, and prints commands for the caller's shell.
fn begin(args: &ProvisionLinkArgs, plan: &ChainPlan, dir: &Path) -> Result<u8> {
    let locked = lock(dir)?;
    let mut state = ChainState::open(dir)?;
    let past = LivePast::unneeded();
    let patience = Some(PATIENCE);
    let link = with_caller(&args.options, plan, &past, &locked, patience, |caller| {
        enter_chain(&mut state, plan, caller)
    })?;
    drop(locked);

    let OwnLink { number, .. } = link;
    if link.is_needless {
        let dir = dir.display();
        output::note(&format!(
            "the work was done before link {number}, so this job ends; the chain is in `{dir}`"
        ));
        output::print("exit 0\n")?;
        return Ok(EXIT_DONE);
    }
    let log = dir.join(format!("link-{number}.log"));
    if number < args.links {
        let process = start_watching(plan, &log)?.file_name_part();
        files::write_atomic(&dir.join(PROCESS_FILE), process.as_bytes())?;
    }
    output::note(&format!(
        "this is link {number} of at most {}; the messages of the chain are in `{}`",
        args.links,
        log.display()
    ));
    let program = std::env::current_exe()?;
    let words = std::env::args_os().skip(1);
    let words: Vec<_> = [program.into_os_string()]
        .into_iter()
        .chain(words)
        .collect();
    output::print(&shell_text(&link, &words, &std::env::current_dir()?)?)?;
    Ok(EXIT_DONE)
}

/// Starts this call again in the background of the job, to submit the next link. It is not a child of the shell, whose
/// `wait` would wait for it.
fn start_watching(plan: &ChainPlan, log: &Path) -> Result<Process> {
    let messages = fs_err::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)?;
    let messages = messages.into_file();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).arg("--watch");
    // The cores of the job are for its work.
    if !std::env::args().any(|word| word.starts_with("--threads")) {
        command.args(["--threads", "1"]);
    }
    // The shell, which knows the script, is not an ancestor of that process.
    command.arg("--").args(&plan.command);
    command.stdin(Stdio::null());
    command.stdout(messages.try_clone()?).stderr(messages);
    let child = command.spawn().context("cannot start a process")?;
    Ok(Process::with_id(child.id()))
}

/// Returns the commands for the shell of the script. `words` is the call that printed them, in `dir`.
fn shell_text(link: &OwnLink, words: &[impl AsRef<OsStr>], dir: &Path) -> Result<String> {
    let quoted = |word: &OsStr| {
        let word = word.to_str().context("an argument is not UTF-8")?;
        anyhow::Ok(shell_word(word))
    };
    let mut call = Vec::new();
    for word in words {
        call.push(quoted(word.as_ref())?);
    }
    let before = link.predecessor.map_or(String::new(), |id| id.to_string());
    // The script may change its directory.
    let at_end = format!(
        "poolcast_code=$?; (cd {} && {} --ended \"$poolcast_code\") || :",
        quoted(dir.as_os_str())?,
        call.join(" ")
    );
    Ok(format!(
        "export {LINK_VARIABLE}={} {PREDECESSOR_VARIABLE}={before}\ntrap {} EXIT\n",
        link.number,
        shell_word(&at_end)
    ))
}

/// Submits the next link when it is time.
fn watch(args: &ProvisionLinkArgs, plan: &ChainPlan, dir: &Path) -> Result<u8> {
    let locked = lock(dir)?;
    let mut state = ChainState::open(dir)?;
    let past = match args.when {
        Some(ChainTiming::Dependency) => LivePast::unneeded(),
        _ => find_past(&args.options)?,
    };
    past.note_missing();
    let end = with_caller(&args.options, plan, &past, &locked, None, |caller| {
        run_chain(&mut state, plan, caller)
    })?;
    Ok(code_of(end))
}

/// Ends the link of the script, which exits with `code`.
fn end(args: &ProvisionLinkArgs, plan: &ChainPlan, dir: &Path, code: i32) -> Result<u8> {
    stop_watching(dir);
    let locked = lock(dir)?;
    let mut state = ChainState::open(dir)?;
    // The script is over, so there is no time for a forecast.
    let plan = ChainPlan {
        when: Some(ChainTiming::Dependency),
        ..plan.clone()
    };
    let (past, patience) = (LivePast::unneeded(), Some(PATIENCE));
    let end = with_caller(&args.options, &plan, &past, &locked, patience, |caller| {
        leave_chain(&mut state, &plan, caller, code)
    })?;
    Ok(code_of(end))
}

fn code_of(end: ChainEnd) -> u8 {
    match end {
        // The next link says the rest.
        ChainEnd::Stopped => EXIT_DONE,
        end => end_code(end),
    }
}

/// Asks the process that submits the next link to end, if it still runs.
fn stop_watching(dir: &Path) {
    let text = fs_err::read_to_string(dir.join(PROCESS_FILE)).unwrap_or_default();
    if let Some(process) = Process::from_file_name_part(&text) {
        ask_to_end(&process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_text_keeps_hostile_words_and_the_exit_code() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path().join("it's $(touch no) \"here\"");
        fs_err::create_dir(&dir).expect("made");
        let words = [
            "printf",
            "<%s>",
            "a'b",
            "$(touch no) `touch no`",
            "",
            "\n;exit 9",
        ];
        let link = OwnLink {
            number: 2,
            predecessor: Some(11),
            is_needless: false,
        };
        let text = shell_text(&link, &words, &dir).expect("text");
        for shell in ["sh", "bash"] {
            let script = format!("{text}echo \"$POOLCAST_LINK $POOLCAST_PREDECESSOR\"; exit 5");
            let mut command = Command::new(shell);
            command.args(["-euc", &script]).current_dir(place.path());
            let output = command.output().expect("it starts");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(
                printed,
                "2 11\n<a'b><$(touch no) `touch no`><><\n;exit 9><--ended><5>"
            );
            assert_eq!(output.status.code(), Some(5), "{shell}");
        }
        assert!(!place.path().join("no").exists() && !dir.join("no").exists());
    }
}
