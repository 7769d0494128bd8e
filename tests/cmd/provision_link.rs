//! Tests of `poolcast provision link` in scripts that a shell runs as Slurm would, with fake Slurm programs.

use std::process::{Command, Stdio};

use crate::docs;
use crate::place::Outcome;
use crate::provision_live::FakeSlurm;

/// The name of the script, and its arguments.
const SCRIPT: &str = "hard $(touch no) 'script.sh";
const ARGUMENTS: [&str; 2] = ["a  b", "$(touch no)'"];

/// Waits until the job with this number is released, for at most a minute.
fn wait_for(job: u32) -> String {
    format!(
        "for _ in $(seq 600); do grep -q released $FAKE_SLURM/jobs/{job} && break; sleep 0.1; done 2>/dev/null\n"
    )
}

/// A cluster whose job 11 is the first job of [`SCRIPT`]. Jobs may run for an hour, and run until a test ends them.
fn slurm() -> FakeSlurm {
    let slurm = FakeSlurm::new();
    slurm.set("limit", "60");
    submit(&slurm, 11);
    for number in 1..4 {
        slurm.plan(number, "COMPLETED", 5000);
    }
    let path = slurm.place.path(SCRIPT);
    slurm.set(
        "command",
        &format!("{} {}\n", path.display(), ARGUMENTS.join(" ")),
    );
    fs_err::create_dir(slurm.place.path("spool")).expect("made");
    slurm
}

/// Adds a job as a user submits it.
fn submit(slurm: &FakeSlurm, id: u32) {
    let now_s = jiff::Timestamp::now().as_second();
    let job = format!("comment=\"\"\nlink=1\nsubmitted={now_s}\nreleased={now_s}\n");
    slurm.set(&format!("jobs/{id}"), &job);
}

/// Runs the script as the job `id`: the line with `options`, and then `body`.
fn run_job(slurm: &FakeSlurm, id: u32, options: &str, body: &str) -> Outcome {
    let program = env!("CARGO_BIN_EXE_poolcast");
    let text = format!(
        "#!/bin/sh\neval \"$('{program}' provision link --links 9 {options})\"\necho \"$POOLCAST_LINK after $POOLCAST_PREDECESSOR: $*\"\n{body}"
    );
    run_script(slurm, id, &text)
}

/// Runs the script with this text as the job `id`.
fn run_script(slurm: &FakeSlurm, id: u32, text: &str) -> Outcome {
    slurm.place.write(SCRIPT, text);
    slurm.place.write("spool/slurm_script", text);
    let caller = slurm.command("");
    let mut command = Command::new("sh");
    let variables = caller.get_envs();
    command
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .arg(slurm.place.path("spool/slurm_script"))
        .args(ARGUMENTS)
        .current_dir(slurm.place.path(""))
        .env("SLURM_JOB_ID", id.to_string())
        .env("SLURM_SUBMIT_DIR", slurm.place.path(""))
        .env("SLURM_NTASKS", "7")
        .stdin(Stdio::null());
    Outcome::of(command.output().expect("it starts"))
}

fn job(slurm: &FakeSlurm, id: u32) -> String {
    fs_err::read_to_string(slurm.path(&format!("jobs/{id}"))).unwrap_or_default()
}

#[test]
fn script_with_the_line_is_a_chain() {
    let slurm = slurm();
    // The link fails once, and the next one goes on.
    let body = wait_for(12) + "cd /; exit 3";
    let first = run_job(&slurm, 11, "--when dependency", &body);
    assert_eq!(first.code, Some(3), "{first}");
    let arguments = ARGUMENTS.join(" ");
    assert_eq!(first.stdout, format!("1 after : {arguments}\n"), "{first}");
    let successor = job(&slurm, 12);
    assert!(successor.contains("depends=11\n"), "{successor}");
    assert!(successor.contains("link=2\n"), "{successor}");
    assert!(!successor.contains("cancelled="), "{successor}");

    // The exit code 0 of the second link is the end, which the third one finds: a shell may report 0 for a signal.
    slurm.plan(1, "FAILED", 0);
    let body = wait_for(13) + "cd /";
    let second = run_job(&slurm, 12, "--when dependency", &body);
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!(second.stdout, format!("2 after 11: {arguments}\n"));
    assert!(!job(&slurm, 13).contains("cancelled="), "{second}");
    assert!(!slurm.place.path("no").exists());
    slurm.plan(2, "COMPLETED", 0);
    let third = run_job(&slurm, 13, "", "exit 4");
    assert_eq!((third.code, &*third.stdout), (Some(0), ""), "{third}");
    let end = "the work was done before link 3";
    assert!(third.stderr.contains(end), "{third}");

    // After its end, the next `sbatch` begins another chain.
    slurm.plan(3, "COMPLETED", 0);
    submit(&slurm, 20);
    let other = run_job(&slurm, 20, "", "exit 4");
    assert_eq!(other.code, Some(4), "{other}");
    assert_eq!(other.stdout, format!("1 after : {arguments}\n"));
}

#[test]
fn link_that_ends_early_submits_its_successor() {
    let slurm = slurm();
    // At two intervals of 300 s before the limit of an hour, the chain would submit the next link.
    let first = run_job(&slurm, 11, "", "exit 3");
    assert_eq!(first.code, Some(3), "{first}");
    assert!(job(&slurm, 12).contains("depends=11\n"), "{first}");

    slurm.plan(1, "FAILED", 0);
    let second = run_job(&slurm, 12, "", "exit 3");
    assert_eq!(second.code, Some(3), "{second}");
    assert!(
        second.stderr.contains("link 2 (job 12) has failed"),
        "{second}"
    );
    assert_eq!(job(&slurm, 13), "", "a third link is submitted");
}

#[test]
fn successor_is_submitted_at_the_last_moment_by_dependency() {
    let slurm = slurm();
    slurm.set("limit", "9");
    let body = wait_for(12);
    let outcome = run_job(&slurm, 11, "--done 'test -e never'", &body);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let successor = job(&slurm, 12);
    assert!(successor.contains("depends=11\n"), "{successor}");
    assert!(!successor.contains("cancelled="), "{successor}");
}

#[test]
fn work_that_is_done_ends_the_script() {
    let slurm = slurm();
    let outcome = run_job(&slurm, 11, "--done 'test $POOLCAST_LINK = 0'", "exit 4");
    assert_eq!((outcome.code, &*outcome.stdout), (Some(0), ""), "{outcome}");
    let end = "the work was done before link 1, so this job ends";
    assert!(outcome.stderr.contains(end), "{outcome}");
}

/// The results are there before the first link.
#[test]
fn script_of_the_page_on_chains_succeeds() {
    let page = docs::read("docs/chain.md");
    let [script] = docs::blocks(&page, "bash")[..] else {
        panic!("one script");
    };
    let call = format!("$('{}' provision", env!("CARGO_BIN_EXE_poolcast"));
    let text = script.replace("$(poolcast provision", &call) + "exit 4";
    assert!(text.contains(&call), "{text}");
    let slurm = slurm();
    fs_err::create_dir(slurm.place.path("results")).expect("made");
    slurm.place.write("results/final.pt", "");
    let outcome = run_script(&slurm, 11, &text);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let end = "the work was done before link 1";
    assert!(outcome.stderr.contains(end), "{outcome}");
}

#[test]
fn job_that_is_not_in_the_chain_runs_as_it_is() {
    let slurm = slurm();
    let body = wait_for(12) + "exit 3";
    run_job(&slurm, 11, "--when dependency", &body);
    submit(&slurm, 20);
    let other = run_job(&slurm, 20, "", "exit 4");
    assert_eq!(other.code, Some(4), "{other}");
    assert!(other.stdout.starts_with(" after : "), "{other}");
    let why = "error: job 20 is not the running link of the chain in ";
    assert!(other.stderr.contains(why), "{other}");
    assert!(other.stderr.contains("its link 1 is job 11"), "{other}");
    assert_eq!(job(&slurm, 21), "");
}

#[test]
fn chain_and_link_exclude_each_other() {
    let slurm = slurm();
    let program = env!("CARGO_BIN_EXE_poolcast");
    // The second look is of the process in the background, which waits for the end of the job.
    let body = format!(
        "for _ in $(seq 600); do [ $(wc -l <$FAKE_SLURM/looks) -ge 2 ] && break; sleep 0.1; done
        '{program}' provision chain job.sh --links 2 --state *.chain; exit 3"
    );
    let outcome = run_job(&slurm, 11, "--done false", &body);
    let busy = "another process is writing to `hard $(touch no) 'script.sh.chain`";
    assert!(outcome.stderr.contains(busy), "{outcome}");
    assert!(job(&slurm, 12).contains("depends=11\n"), "{outcome}");
}

#[test]
fn calls_outside_of_a_script_are_rejected() {
    let slurm = FakeSlurm::new();
    let refusal = |variables: &[(&str, &str)]| {
        let mut command = slurm.command("provision link --links 3");
        command.envs(variables.iter().copied());
        let outcome = Outcome::of(command.output().expect("it starts"));
        assert_eq!((outcome.code, &*outcome.stdout), (Some(2), ""), "{outcome}");
        outcome.stderr
    };
    insta::assert_snapshot!(refusal(&[]), @r#"
    error: this is not a job of Slurm: `SLURM_JOB_ID` is not set

    hint: write `eval "$(poolcast provision link --links 20)"` at the top of a batch script, and submit that with `sbatch`
    "#);
    let array = [("SLURM_JOB_ID", "11"), ("SLURM_ARRAY_JOB_ID", "11")];
    insta::assert_snapshot!(refusal(&array), @"
    error: job 11 is an element of an array of jobs

    hint: a link of a chain is one job: submit the script without `--array`
    ");
    slurm.set("command", "(null)");
    insta::assert_snapshot!(refusal(&[("SLURM_JOB_ID", "11")]), @"
    error: Slurm has no file name of the script of job 11

    hint: submit a file: `sbatch train.sbatch`
    ");
    slurm.set("command", "/no/such script.sh");
    insta::assert_snapshot!(refusal(&[("SLURM_JOB_ID", "11")]), @"
    error: `/no/such script.sh` is not a script that can be submitted again

    hint: call this in the batch script itself, and submit that as a file: `sbatch train.sbatch`
    ");
}

/// A job of a chain may run any command of this program.
#[test]
fn variables_of_a_link_are_not_configuration_keys() {
    let slurm = FakeSlurm::new();
    let mut command = slurm.command("config");
    command.envs([("POOLCAST_LINK", "2"), ("POOLCAST_PREDECESSOR", "11")]);
    let outcome = Outcome::of(command.output().expect("it starts"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
}
