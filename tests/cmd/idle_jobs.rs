//! Tests of advice on idle and running jobs, and on jobs that start and are put back again.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::file_looks::{begin_server, queue_command};
use crate::json_documents::{PrintedKeys, print_all, printed_keys};
use crate::own_logs::with_programs;
use crate::place::{Outcome, Place};

/// A user with the rights of the process, who owns the jobs.
const OWNER: &str = "root";

/// Returns the ad of a job of the batch `sim`, which needs `input` and has had its status for a while.
fn job(id: &str, status: u32, input: &str) -> Value {
    let (cluster, proc) = id.split_once('.').expect("an id");
    let number = |text: &str| text.parse::<u32>().expect("a number");
    json!({"ClusterId": number(cluster), "ProcId": number(proc), "JobStatus": status, "GlobalJobId": format!("ap40#{id}#9"),
        "Owner": OWNER, "JobBatchName": "sim", "EnteredCurrentStatus": 1000, "Iwd": env!("CARGO_MANIFEST_DIR"),
        "Cmd": "/bin/true", "TransferExecutable": false, "TransferInput": input, "ShouldTransferFiles": "YES"})
}

/// Returns a queue in which three idle jobs need a file that is missing, and two need one of their own.
fn queue() -> Vec<Value> {
    let mut jobs = vec![
        job("4.0", 1, "Cargo.toml,no/x.dat"),
        job("4.1", 1, "no/x.dat"),
        job("4.2", 1, "no/x.dat, https://example.edu/y"),
        job("4.3", 2, "no/x.dat"),
        job("4.4", 5, "no/x.dat"),
        job("4.5", 1, "Cargo.toml"),
        job("5.0", 1, "no/1.dat"),
        job("5.1", 1, "no/2.dat"),
    ];
    jobs[6]["JobBatchName"] = Value::Null;
    jobs[7]["JobBatchName"] = Value::Null;
    jobs
}

fn write_queue(place: &Place, jobs: &[Value]) {
    place.write("queue.json", serde_json::to_string(jobs).expect("JSON"));
}

/// Calls `advise --idle` on the queue, by the owner of the jobs, without the network.
fn advise(place: &Place, options: &str) -> Outcome {
    advise_online(place, &format!("--no-network {options}"))
}

/// Like [`advise`], and may ask servers.
fn advise_online(place: &Place, options: &str) -> Outcome {
    let mut command = place.command(&format!("advise --idle --queue queue.json {options}"));
    Outcome::of(command.env("USER", OWNER).output().expect("it starts"))
}

/// Returns `text` on one line, with this directory replaced.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .replace(env!("CARGO_MANIFEST_DIR"), "/home/ada")
}

/// Returns a log in which job 9.0 starts `starts` times, and is evicted after an hour each time.
fn log_of_evictions(starts: u32) -> String {
    let record = |number: &str, hour: u32, text: &str| {
        format!("{number} (9.0.0) 2026-11-20 {hour:02}:00:00 {text}\n...\n")
    };
    let mut log = record(
        "000",
        0,
        "Job submitted from host: <10.0.0.1:9618?alias=ap40>",
    );
    for start in 0..starts {
        log += &record(
            "001",
            2 * start + 1,
            "Job executing on host: <10.0.0.2:9618>",
        );
        log += &record(
            "004",
            2 * start + 2,
            "Job was evicted.\n\t(0) CPU times\n\tReason: the machine drains",
        );
    }
    log
}

/// Returns a log in which twelve jobs of cluster 8 used 1000 MB and succeeded.
fn log_of_large_jobs() -> String {
    let record = |number: &str, proc: u32, hour: u32, text: &str| {
        format!("{number} (8.{proc}.0) 2026-11-20 {hour:02}:00:00 {text}\n...\n")
    };
    let size = "Image size of job updated: 1024000\n\t1000  -  MemoryUsage of job (MB)";
    let ended = "Job terminated.\n\t(1) Normal termination (return value 0)";
    let job = |proc| {
        record(
            "000",
            proc,
            0,
            "Job submitted from host: <10.0.0.1:9618?alias=ap40>",
        ) + &record("001", proc, 1, "Job executing on host: <10.0.0.2:9618>")
            + &record("006", proc, 2, size)
            + &record("005", proc, 3, ended)
    };
    (0..12).map(job).collect()
}

/// Returns a job of the same cluster that requests less.
fn low_request() -> Value {
    let mut low = job("8.20", 1, "");
    low["RequestMemory"] = 512.into();
    low
}

/// Returns a job of the batch `big` with requests of memory in MB, and of GPUs, and with `requirements` of the user.
fn needing(id: &str, memory_mb: u64, gpus: u64, requirements: &str) -> Value {
    let mut needing = job(id, 1, "");
    needing["JobBatchName"] = "big".into();
    needing["RequestMemory"] = memory_mb.into();
    needing["RequestGPUs"] = gpus.into();
    let compared = "(TARGET.Arch == \"X86_64\") && (TARGET.Memory >= RequestMemory) && (TARGET.GPUs >= RequestGPUs)";
    needing["Requirements"] = format!("/Expr(({requirements}) && {compared})/").into();
    needing
}

/// Calls `advise --idle` in a pool of two machines. `condor_status` answers only a call for the totals
/// and the values of `clauses`.
fn advise_in_pool(place: &Place, clauses: &str, settings: &str, options: &str) -> Outcome {
    let condor_status = format!(
        r#"[ "$*" = '-constraint SlotType =!= "Dynamic" -af TotalSlotMemory TotalSlotDisk TotalSlotCpus TotalSlotGPUs {clauses}' ] || exit 1
        echo 257663 53988692.0 64 0 true undefined false; echo 64000 900000 8 4 true undefined false"#
    );
    let config = format!("case $1 in {settings} *) echo Not defined: $1 >&2; exit 1;; esac");
    place.put_program("condor_status", &condor_status);
    place.put_program("condor_config_val", &config);
    let mut command = queue_command(place, &format!("advise --idle {options}"));
    Outcome::of(command.output().expect("it starts"))
}

/// Clauses of [`unmatched_queue`] about machines alone.
const CLAUSES: &str = r#"Arch == "X86_64" HasMatlab Machine == "cn9""#;

/// Returns a queue in which one job matches a machine.
fn unmatched_queue() -> Vec<Value> {
    vec![
        needing("4.0", 524_288, 0, "true"),
        needing("4.1", 524_288, 0, "true"),
        needing("4.2", 100_000, 2, "true"),
        needing("4.3", 16, 8, "true"),
        needing("4.4", 16, 0, "HasMatlab"),
        needing("4.5", 16, 0, r#"Machine == "cn9""#),
        needing("4.6", 257_663, 0, "true"),
        needing("4.7", 524_288, 8, "true"),
    ]
}

/// Returns the keys for advice on idle jobs, and on jobs that are put back.
pub(crate) fn idle_documents() -> PrintedKeys {
    let place = Place::new();
    let mut jobs = queue();
    jobs.push(job("9.0", 1, ""));
    jobs.push(low_request());
    jobs.push(json!({"ClusterId": -1, "JobStatus": 1}));
    write_queue(&place, &jobs);
    place.write("own.log", log_of_evictions(4) + &log_of_large_jobs());
    let calls = [
        "advise --idle --queue queue.json --look --no-network --log own.log --json",
        "advise --log own.log --json",
    ];
    let mut printed = print_all(&place, &calls);
    write_queue(&place, &unmatched_queue());
    let unmatched = advise_in_pool(&place, CLAUSES, "", "--no-look --json").stdout;
    let unmatched: Value = serde_json::from_str(&unmatched).expect("JSON");
    printed.extend(printed_keys("advise --idle --json", &unmatched));
    printed
}

#[test]
fn jobs_that_no_machine_matches_are_counted_with_the_request_that_fits() {
    let place = Place::new();
    write_queue(&place, &unmatched_queue());
    let page = one_line(&advise_in_pool(&place, CLAUSES, "", "--no-look").stdout);
    let command = "condor_qedit -constraint 'JobStatus==1 && EnteredCurrentStatus<=1000 && Owner==\"root\" && ClusterId==4";
    for text in [
        "8 idle jobs, 0 running: 7 that no machine matches".to_owned(),
        "NO MACHINE MATCHES NOW: 7 jobs".to_owned(),
        format!(
            "2 idle jobs of batch big (cluster 4) request 524,288 MB of memory, and no machine has more than 257,663 MB of memory: \
             ask for less: {command} && ProcId>=0 && ProcId<=1' RequestMemory 257536"
        ),
        format!(
            "1 idle job of batch big (cluster 4) requests 100,000 MB of memory, and no machine that has all else they need has more than \
             64,000 MB of memory: ask for less: {command} && ProcId==2' RequestMemory 64000"
        ),
        format!("requests 8 GPUs, and no machine has more than 4 GPUs: ask for less: {command} && ProcId==3' RequestGPUs 4"),
        "requires HasMatlab, which is true for no machine: condor_q -better-analyze 4.4".to_owned(),
        "requires Machine == \"cn9\", which is true for no machine: condor_q -better-analyze 4.5".to_owned(),
        "requests 524,288 MB of memory, and no machine has more than 257,663 MB of memory, and 8 GPUs, and no machine has more than \
         4 GPUs: condor_q -better-analyze 4.7".to_owned(),
    ] {
        assert!(page.contains(&text), "{text}\n{page}");
    }
}

#[test]
fn machines_are_compared_only_where_the_pool_answers_for_all_that_jobs_may_match() {
    let place = Place::new();
    write_queue(&place, &unmatched_queue());
    let flocks = "FLOCK_TO) echo other.example;;";
    for (clauses, settings, options) in [
        ("other", "", "--no-look"),
        (CLAUSES, flocks, "--no-look"),
        (CLAUSES, "", "--no-look --queue queue.json"),
    ] {
        let page = advise_in_pool(&place, clauses, settings, options);
        assert!(
            page.stdout.contains("8 idle jobs, 0 running: no fault"),
            "{page}"
        );
    }
}

#[test]
fn idle_jobs_whose_files_are_missing_are_counted_with_a_command() {
    let place = Place::new();
    write_queue(&place, &queue());
    let page = one_line(&advise(&place, "--look").stdout);
    for text in [
        "6 idle jobs, 1 running: 5 without a file that they need looked at 4 files",
        "FIX BEFORE THEY START: 5 jobs",
        "3 idle jobs of batch sim (cluster 4) need /home/ada/no/x.dat, which does not exist: put it there, or hold them until then: \
         condor_hold -name ap40 -constraint 'JobStatus==1 && EnteredCurrentStatus<=1000 && Owner==\"root\" && ClusterId==4 && ProcId>=0 && ProcId<=2'",
        "2 idle jobs of cluster 5 need /home/ada/no/1.dat and 1 other file, which do not exist: put them there, or hold them until then: \
         condor_hold -name ap40 -constraint 'JobStatus==1 && EnteredCurrentStatus<=1000 && Owner==\"root\" && ClusterId==5 && ProcId>=0 && ProcId<=1'",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    let of_one = one_line(&advise(&place, "--look 5.1").stdout);
    assert!(
        of_one.contains("1 idle job of cluster 5 needs /home/ada/no/2.dat, which does not exist"),
        "{of_one}"
    );
    let other = advise(&place, "--look 4.4");
    assert!(
        other.stderr.contains("job 4.4 is neither idle nor running"),
        "{other}"
    );
}

#[test]
fn servers_are_asked_once_for_the_urls_of_own_idle_jobs() {
    let place = Place::new();
    let (server, requests) = begin_server();
    let url = |name: &str| format!("{server}/{name}");
    let mut of_other = job("7.0", 1, &url("typo"));
    of_other["Owner"] = "another".into();
    let mut jobs = vec![
        job("6.0", 1, &url("typo")),
        job("6.1", 1, &format!("{},{}", url("there"), url("typo"))),
        job("6.2", 1, &format!("no/x.dat,{}", url("typo"))),
        job("6.3", 1, &url("there")),
        job("6.4", 1, &url("broken")),
        job("6.5", 2, &url("running")),
        of_other,
    ];
    jobs[2]["JobBatchName"] = "other".into();
    write_queue(&place, &jobs);
    let ask = |options: &str| {
        let mut command = queue_command(&place, &format!("advise --idle --all-users {options}"));
        Outcome::of(command.output().expect("it starts")).stdout
    };
    let page = one_line(&ask("")).replace(&server, "http://server");
    for text in [
        "6 idle jobs, 1 running: 3 without a file that they need; the files of 2 were not all looked at looked at 4 files",
        "2 idle jobs of root, batch sim (cluster 6) need http://server/typo, which its server does not have: put it there, or hold them \
         until then: condor_hold -constraint 'JobStatus==1 && EnteredCurrentStatus<=1000 && Owner==\"root\" && ClusterId==6 && ProcId>=0 && ProcId<=1'",
        "1 idle job of root, batch other (cluster 6) needs /home/ada/no/x.dat, which does not exist",
        "note: the servers of 1 file that idle jobs need do not answer, such as that of http://server/broken",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert_eq!(requests.load(Ordering::Relaxed), 3);

    for options in ["--no-network", "--no-look"] {
        let offline = ask(options);
        assert!(!offline.contains("its server"), "{offline}");
    }
    // A list may be anyone's, and must not make this machine ask itself.
    for options in ["--look", ""] {
        let of_list = advise_online(&place, options).stdout;
        assert!(!of_list.contains("its server"), "{of_list}");
    }
    assert_eq!(requests.load(Ordering::Relaxed), 3);
}

#[test]
fn files_of_other_machines_and_of_other_owners_are_not_judged() {
    let place = Place::new();
    write_queue(&place, &queue());
    let elsewhere = one_line(&advise(&place, "").stdout);
    assert!(
        elsewhere.contains(
            "no fault was found; the files of 6 were not all looked at looked at 0 files"
        ),
        "{elsewhere}"
    );
    assert!(
        elsewhere.contains("the files of 6 idle jobs may be of another machine"),
        "{elsewhere}"
    );
    let not_looked = one_line(&advise(&place, "--no-look").stdout);
    assert!(
        !not_looked.contains("condor_hold") && !not_looked.contains("note:"),
        "{not_looked}"
    );
    let filtered = one_line(&advise(&place, "--look --owner ada").stdout);
    assert!(
        filtered.contains("0 idle jobs, 0 running: no fault was found"),
        "{filtered}"
    );
}

#[test]
fn hostile_ads_are_escaped() {
    let place = Place::new();
    let mut hostile = job("4.0", 1, "/no/such\u{1b}[31m\u{202e}file");
    hostile["JobBatchName"] = "\u{1b}[2J'; rm -rf ~ #".into();
    write_queue(&place, &[hostile]);
    for options in ["--look", "--look --json"] {
        let outcome = advise(&place, options);
        let is_raw = |c: char| c == '\u{1b}' || c == '\u{202e}';
        assert!(!outcome.stdout.contains(is_raw), "{options}: {outcome}");
        assert!(outcome.stdout.contains("such"), "{options}: {outcome}");
    }
    let command = one_line(&advise(&place, "--look").stdout);
    let command = command.split("condor_hold").nth(1).expect("a command");
    assert!(!command.contains("rm -rf"), "{command}");
}

#[test]
fn the_queue_is_asked_for_idle_and_running_jobs() {
    let place = Place::new();
    write_queue(&place, &queue());
    let dir = place.path("");
    let condor_q = format!(
        "echo \"$@\" >> {0}/asked; cat {0}/queue.json",
        dir.display()
    );
    for options in ["", "--all-users", "--queue now"] {
        let call = format!("advise --idle --no-look {options}");
        let page = with_programs(&place, &call, &[("condor_q", &condor_q)]);
        assert!(page.stdout.starts_with("6 idle jobs, 1 running"), "{page}");
    }
    let asked = fs_err::read_to_string(place.path("asked")).expect("asked");
    let asked: Vec<&str> = asked
        .lines()
        .map(|call| call.split(" -json").next().expect("a part"))
        .collect();
    let constraint = "-constraint JobStatus==1 || JobStatus==2";
    let of_all = format!("-allusers {constraint}");
    assert_eq!(asked, [constraint, &of_all, &of_all]);

    let silent = with_programs(&place, "advise --idle", &[("condor_q", "exec sleep 60")]);
    assert!(
        silent.code == Some(2) && silent.stderr.contains("the queue does not answer"),
        "{silent}"
    );
}

#[test]
fn options_about_held_jobs_are_refused() {
    let place = Place::new();
    for options in [
        "--at 0",
        "--check",
        "--watch",
        "--dag A",
        "--qedit",
        "--ids",
        "--code 13",
        "--exit-code",
    ] {
        let refused = place.run(&format!("advise --idle {options}"));
        assert!(
            refused.code == Some(2) && refused.stderr.contains("cannot be used with"),
            "{options}: {refused}"
        );
    }
}

#[test]
fn jobs_that_are_put_back_again_are_listed_beside_held_ones() {
    let place = Place::new();
    place.write("own.log", log_of_evictions(2));
    let page = place.stdout("advise own.log");
    assert!(!page.contains("PUT BACK"), "two runs are no loop: {page}");
    place.write("own.log", log_of_evictions(4));
    let page = one_line(&place.stdout("advise own.log"));
    let told = "STARTED AND PUT BACK AGAIN: 1 job cluster 9: 1 job, 4 starts, each evicted, 4 h 0 min of runs lost; last at 08:00 \
        the last run of 9.0 ended with: the machine drains each run ends after 1 h 0 min: a limit of time, or a slot that goes away";
    assert!(page.contains(told), "{page}");
    assert!(
        page.contains("condor_q -name ap40 9.0 -af:j NumJobStarts"),
        "{page}"
    );
    let filtered = place.stdout("advise own.log --code 13");
    assert!(!filtered.contains("PUT BACK"), "{filtered}");

    write_queue(&place, &[job("9.0", 1, ""), job("9.1", 1, "")]);
    let idle = one_line(&advise(&place, "own.log").stdout);
    assert!(
        idle.contains("2 idle jobs, 0 running: 1 put back again and again"),
        "{idle}"
    );
    assert!(idle.contains("cluster 9: 1 job, 4 starts"), "{idle}");
    write_queue(&place, &[job("9.1", 1, "")]);
    let gone = advise(&place, "own.log").stdout;
    assert!(
        !gone.contains("PUT BACK"),
        "the job has left the queue: {gone}"
    );
}

#[test]
fn idle_jobs_that_request_too_little_memory_are_counted() {
    let place = Place::new();
    write_queue(&place, &[low_request()]);
    place.write("own.log", log_of_large_jobs());
    let page = one_line(&advise(&place, "own.log").stdout);
    let told = "REQUEST MORE MEMORY: 1 job 1 idle job of batch sim (cluster 8) requests 512 MB: 12 of 12 jobs of this batch used more: \
        condor_qedit -name ap40 -constraint 'JobStatus==1 && EnteredCurrentStatus<=1000 && Owner==\"root\" && ClusterId==8 && ProcId==20' RequestMemory 1152";
    assert!(page.contains(told), "{page}");
}
