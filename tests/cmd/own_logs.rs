//! Tests of advice for users who have the logs of their own jobs, and no global event log.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::json_documents::{PrintedKeys, print_all};
use crate::place::{Outcome, Place, repository_path};

/// A record of an event log, without its last line.
fn record(number: &str, job: &str, minute: u32, text: &str) -> String {
    let (cluster, proc) = job.split_once('.').expect("an id");
    format!("{number} ({cluster}.{proc}.000) 2026-11-21 01:{minute:02}:00 {text}\n...\n")
}

fn submitted(job: &str) -> String {
    record("000", job, 10, "Job submitted from host: <10.0.0.1:9618>")
}

fn held(job: &str, minute: u32, code: &str) -> String {
    let (code, subcode) = code.split_once('/').expect("a code");
    let text = format!("Job was held.\n\tno reason\n\tCode {code} Subcode {subcode}");
    record("012", job, minute, &text)
}

fn terminated(job: &str, minute: u32, exit_code: i32) -> String {
    let text = format!(
        "Job terminated.\n\t(1) Normal termination (return value {exit_code})\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage"
    );
    record("005", job, minute, &text)
}

/// A directory `proj` with the logs of three jobs, two of them held, and with other files.
fn place_with_logs() -> Place {
    let place = Place::new();
    fs_err::create_dir(place.path("proj")).expect("made");
    let write = |name: &str, text: String| place.write(&format!("proj/{name}"), text);
    write("a.log", submitted("1.0") + &held("1.0", 20, "34/102"));
    write("b.log", submitted("2.0") + &held("2.0", 21, "13/2"));
    write("c.log", submitted("3.0") + &terminated("3.0", 22, 0));
    write("job.out", "hello\n".to_owned());
    write("job.err", String::new());
    place
}

/// Returns the keys for advice without a run on jobs with each kind of end, and for a run on few
/// holds.
pub(crate) fn own_log_documents() -> PrintedKeys {
    let place = place_with_logs();
    let killed = "Job terminated.\n\t(0) Abnormal termination (signal 9)\n\t(0) No core file";
    place.write(
        "proj/d.log",
        submitted("4.0") + &record("005", "4.0", 22, killed),
    );
    place.write("proj/nodes.log", log_of_nodes(&[("cn030", "GLOW")]));
    let calls = [
        "advise proj 3.0 4.0 --json",
        "advise proj --json",
        "run --log proj --json",
    ];
    print_all(&place, &calls)
}

/// Returns the program's answer about each job of a document.
fn actions(document: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let jobs = document["advice"].as_array().expect("a list");
    jobs.iter()
        .map(|one| (text(&one["job"]), text(&one["action"])))
        .collect()
}

#[test]
fn own_logs_are_enough_for_a_page() {
    let place = place_with_logs();
    let page = place.run("advise proj");
    insta::assert_snapshot!(page);
    let of_files = place.run("advise proj/a.log proj/b.log proj/c.log --jobs");
    assert_eq!(of_files.stdout, place.stdout("advise proj --jobs"));
    let with_option = place.run("advise --log proj/a.log proj/b.log proj/c.log --jobs");
    assert_eq!(of_files.stdout, with_option.stdout);
    let document = place.json("advise proj --json");
    assert!(document["model"].is_null() && document["better"].is_string());

    // A job and logs may stand in any order, and a log may be repeated by another one.
    for args in [
        "advise 2.0 proj",
        "advise proj 2.0",
        "advise --log proj 2.0",
    ] {
        let one = place.run(args);
        assert_eq!(one.code, Some(10), "{args}: {one}");
        assert!(one.stdout.contains("2.0"), "{one}");
    }
    place.write("nodes.log", submitted("2.0") + &held("2.0", 21, "13/2"));
    assert_eq!(
        actions(&place.json("advise proj nodes.log --json")),
        actions(&document)
    );
}

#[test]
fn what_is_no_log_is_skipped_in_a_directory_and_refused_by_name() {
    let place = place_with_logs();
    let noted = place.run("advise proj --jobs");
    assert!(
        noted
            .stderr
            .contains("skipping 2 files such as `proj/job.err`"),
        "{noted}"
    );
    for (args, words) in [
        ("advise proj/job.out", "is not an HTCondor event log"),
        ("advise proj/missing.log", "is neither a job id nor a file"),
        ("advise", "there is nothing to advise on"),
        (
            "run --log proj/a.log proj/job.out",
            "is not an HTCondor event log",
        ),
    ] {
        let refused = place.run(args);
        assert_eq!(refused.code, Some(2), "{args}: {refused}");
        assert!(refused.stderr.contains(words), "{args}: {refused}");
    }
    fs_err::create_dir(place.path("empty")).expect("made");
    let empty = place.run("advise empty");
    assert!(
        empty.code == Some(2) && empty.stderr.contains("there is no event log in `empty`"),
        "{empty}"
    );
}

#[test]
fn log_whose_first_record_is_not_complete_yet_has_no_times() {
    let place = Place::new();
    place.write("begun.log", submitted("1.0").replace("...\n", ""));
    let page = place.run("advise begun.log");
    assert_eq!(page.code, Some(0), "{page}");
    assert!(
        page.stdout.contains("no record of the log is complete yet"),
        "{page}"
    );
    assert!(!page.stdout.contains("1970"), "{page}");
}

#[test]
fn the_end_of_a_job_is_no_error() {
    let place = place_with_logs();
    insta::assert_snapshot!(place.run("advise proj 3.0"));
    let document = place.json("advise proj 3.0 --json");
    assert_eq!(
        document["ended"][0]["end"],
        serde_json::json!({"exited": 0})
    );
    let both = place.run("advise proj 3.0 2.0");
    assert_eq!(both.code, Some(0), "{both}");
    assert!(both.stdout.starts_with("job 3.0 succeeded: "), "{both}");
}

/// Puts programs named like HTCondor's into the test directory; each of them is a shell script.
pub(crate) fn with_programs(place: &Place, args: &str, programs: &[(&str, &str)]) -> Outcome {
    for (name, script) in programs {
        place.put_program(name, script);
    }
    let path = format!("{}:/usr/bin:/bin", place.path("").display());
    let mut command = place.command(args);
    command.env("PATH", path).env("USER", "ada");
    Outcome::of(command.output().expect("it starts"))
}

#[test]
fn commands_name_the_access_point_of_another_host() {
    let place = Place::new();
    let submitted = "Job submitted from host: <10.0.0.1:9618?alias=ap9.example>";
    let log = record("000", "2.0", 10, submitted) + &held("2.0", 21, "13/2");
    place.write("job.log", log);
    let page = |settings: &str| {
        let script = format!("case $1 in {settings} *) echo Not defined: $1 >&2; exit 1;; esac");
        let page = with_programs(&place, "advise job.log", &[("condor_config_val", &script)]);
        assert!(
            page.stdout.contains("they have changed: ask again"),
            "{page}"
        );
        page.stdout
    };
    let named = "once fixed: condor_release -name ap9.example -constraint '";
    let unnamed = "once fixed: condor_release -constraint '";
    for elsewhere in [
        "",
        "FULL_HOSTNAME) echo ap8.example;;",
        "FULL_HOSTNAME) echo ap9.example;; SCHEDD_HOST) echo ap8.example;;",
    ] {
        let page = page(elsewhere);
        assert!(page.contains(named), "{elsewhere}\n{page}");
    }
    let here = page("FULL_HOSTNAME) echo ap9.example;; SCHEDD_NAME) echo s1;;");
    assert!(here.contains(unnamed), "{here}");

    // The queue of this access point has the jobs of this access point.
    let job = r#"[{"ClusterId": 2, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 13, "HoldReasonSubCode": 2, "Owner": "ada",
        "EnteredCurrentStatus": 1795224060, "GlobalJobId": "ap9.example#2.0#9"}]"#;
    place.write("queue.json", job);
    let condor_q = format!("cat {}/queue.json", place.path("").display());
    let now = with_programs(
        &place,
        "advise job.log --queue now",
        &[("condor_q", &condor_q)],
    );
    let unnamed = "once fixed: condor_release -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795224062 && Owner==\"ada\" && ";
    assert!(now.stdout.contains(unnamed), "{now}");
    let file = place.run("advise job.log --queue queue.json");
    assert!(file.stdout.contains(named), "{file}");
}

/// Returns a log of jobs that failed on these machines and sites, each a node of a DAG, as HTCondor 24 writes it.
fn log_of_nodes(places: &[(&str, &str)]) -> String {
    let mut log = String::new();
    for (proc, (machine, site)) in places.iter().enumerate() {
        let job = format!("6.{proc}");
        let submit = "Job submitted from host: <10.0.0.1:9618?alias=ap40>";
        log += &record(
            "000",
            &job,
            10,
            &format!("{submit}\n    DAG Node: prep_{proc}"),
        );
        let slot = format!("SlotName: slot1_2@{machine}\n\tCpus = 1");
        let run = format!(
            "Job executing on host: <10.0.0.2:9618>\n\t{slot}\n\tGLIDEIN_ResourceName = \"{site}\"\n\tGPUs = 0"
        );
        log += &record("001", &job, 11, &run);
        let reason = format!(
            "Error from slot1_2@{machine}: Failed to execute '/opt/site/x' with arguments: (errno=2: 'No such file or directory')"
        );
        log += &held(&job, 12, "6/2").replace("no reason", &reason);
    }
    log
}

/// Returns what `condor_q -hold -l -global` prints of two schedds, each with two jobs of one kind and one of another.
fn ads_of_two_schedds() -> String {
    let mut text = String::new();
    for schedd in ["ap8.example", "s2@ap9.example"] {
        text += &format!("\n\n-- Schedd: {schedd} : <10.0.0.8:9618?... @ 11/30/26 00:46:40\n");
        let memory = "memory usage exceeded request_memory";
        let reading = "reading from file /home/ada/in.dat: (errno 2) No such file or directory";
        let input = format!(
            "Transfer input files failure at access point {schedd} while sending files to execution point slot1@a. Details: {reading}"
        );
        for (id, code, subcode, reason) in [
            ("7.0", 34, 102, memory),
            ("7.1", 34, 102, memory),
            ("8.0", 13, 2, &input),
        ] {
            let (cluster, proc) = id.split_once('.').expect("an id");
            text += &format!(
                "ClusterId = {cluster}\nProcId = {proc}\nGlobalJobId = \"{schedd}#{id}#9\"\nJobStatus = 5\nOwner = \"ada\"\n\
                 EnteredCurrentStatus = 1795225787\nHoldReasonCode = {code}\nHoldReasonSubCode = {subcode}\nHoldReason = \"{reason}\"\n\n"
            );
        }
    }
    text
}

#[test]
fn kinds_of_several_schedds_are_stated_once_with_a_command_for_each() {
    let place = Place::new();
    place.write("ads", ads_of_two_schedds());
    let mut command = place.command("advise --queue ads --no-look --all");
    let page = Outcome::of(command.env("COLUMNS", "100").output().expect("it starts"));
    insta::assert_snapshot!(page);
    let ads = fs_err::File::open(place.path("ads")).expect("opened");
    let mut command = place.command("explain");
    let explained = command
        .stdin(ads.into_parts().0)
        .output()
        .expect("it starts");
    let explained = Outcome::of(explained).stdout;
    let kinds: Vec<&str> = explained
        .lines()
        .filter(|line| line.contains(", hold code "))
        .collect();
    assert_eq!(
        kinds,
        ["4 jobs, hold code 34/102", "2 jobs, hold code 13/2"]
    );
}

#[test]
fn nodes_and_sites_of_the_log_are_named() {
    let place = Place::new();
    let page = |places: &[(&str, &str)], options: &str| {
        place.write("nodes.log", log_of_nodes(places));
        place
            .run(&format!("advise nodes.log --no-look {options}"))
            .stdout
    };
    let on_one = [
        ("cn030", "GLOW"),
        ("cn030", "GLOW"),
        ("cn030", "GLOW"),
        ("cn031", "MWT2"),
    ];
    let of_machine = page(&on_one, "");
    for text in [
        "3 of 4 on cn030 (site GLOW)",
        "nodes prep_0, prep_1, prep_2, prep_3",
        "first, to avoid this machine: condor_qedit",
    ] {
        assert!(of_machine.contains(text), "{text}\n{of_machine}");
    }
    let of_site = page(
        &[("a", "GLOW"), ("b", "GLOW"), ("c", "GLOW"), ("d", "MWT2")],
        "",
    );
    for text in [
        "3 of 4 at site GLOW",
        "GLIDEIN_ResourceName =!= \\\"GLOW\\\"",
    ] {
        assert!(of_site.contains(text), "{text}\n{of_site}");
    }
    let long = page(&on_one, "6.3");
    assert!(long.contains("  node prep_3, site MWT2\n"), "{long}");
}

#[test]
fn reasons_that_speak_of_a_limit_of_time_give_no_release() {
    let place = Place::new();
    let held =
        |job: &str, code: &str, reason: &str| held(job, 20, code).replace("no reason", reason);
    let job = |job: &str, code, reason| submitted(job) + &held(job, code, reason);
    place.write(
        "job.log",
        job("1.0", "21/0", "Job failed to complete in 72 hrs")
            + &job("2.0", "34/102", "disk usage exceeded request_disk")
            + &job("3.0", "34/102", "memory usage exceeded request_memory"),
    );
    insta::assert_snapshot!(place.run("advise job.log --no-look").stdout);
    let document = place.run("advise job.log --no-look --json").stdout;
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let commands = |job: &str| {
        let advice = document["advice"].as_array().expect("a list");
        let one = advice
            .iter()
            .find(|one| one["job"] == job)
            .expect("the job");
        (&one["command"], &one["then"])
    };
    assert_eq!(
        commands("1.0"),
        (&"condor_q -hold 1.0".into(), &Value::Null)
    );
    assert_eq!(commands("2.0").0, "condor_q -hold 2.0");
}

#[test]
fn hold_without_a_reason_has_that_of_the_run_that_was_lost_just_before() {
    let answer = |lost_minute: u32| {
        let message = "Shadow exception!\n\tError from slot1@e: FILETRANSFER:1:non-zero exit (1) from /usr/libexec/condor/stash_plugin. |Error: failed to get namespace information for remote URL osdf:///lab/anna/in.dat: 404: No namespace found for path ( URL file =  )|";
        let held = record(
            "012",
            "7.0",
            20,
            "Job was held.\n\tReason unspecified\n\tCode 0 Subcode 0",
        );
        let place = Place::new();
        let log = submitted("7.0") + &record("007", "7.0", lost_minute, message) + &held;
        place.write("own.log", log);
        let document = place.json("advise own.log --no-network --json");
        document["advice"][0].clone()
    };
    let found = answer(20);
    assert_eq!(found["action"], "fix", "{found}");
    assert!(
        found["reasons"][0]
            .as_str()
            .is_some_and(|why| why.contains("osdf:///lab/anna/in.dat"))
    );
    // The run before may have been lost for another reason.
    assert_eq!(answer(12)["action"], "none");
}

#[test]
fn the_queue_answers_where_nothing_is_named() {
    let place = Place::new();
    let job = r#"[{"ClusterId": 7, "ProcId": 1, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102, "EnteredCurrentStatus": 100}]"#;
    place.write("queue.json", job);
    let condor_q = format!(
        "echo \"$@\" >> {0}/asked; cat {0}/queue.json",
        place.path("").display()
    );
    let page = with_programs(&place, "advise", &[("condor_q", &condor_q)]);
    insta::assert_snapshot!(page);
    let one = with_programs(&place, "advise 7.1", &[("condor_q", &condor_q)]);
    assert_eq!(one.code, Some(10), "{one}");
    let all = with_programs(&place, "advise --all-users", &[("condor_q", &condor_q)]);
    assert_eq!(all.stdout, page.stdout);
    let asked = fs_err::read_to_string(place.path("asked")).expect("asked");
    let calls: Vec<bool> = (asked.lines())
        .filter(|call| !call.contains("UserLog"))
        .map(|call| call.starts_with("-allusers "))
        .collect();
    assert_eq!(calls, [false, true, true], "a named job may be anyone's");
    let other = with_programs(&place, "advise 8.0", &[("condor_q", &condor_q)]);
    assert!(
        other.stderr.contains("job 8.0 is not held in the queue"),
        "{other}"
    );

    // A queue that hangs, or that fails, does not hold up the answer.
    let hangs = with_programs(&place, "advise", &[("condor_q", "exec sleep 60")]);
    assert_eq!(hangs.code, Some(2), "{hangs}");
    let fails = with_programs(
        &place,
        "advise",
        &[("condor_q", "echo no schedd >&2; exit 1")],
    );
    assert!(
        fails.stderr.contains("no schedd") && fails.code == Some(2),
        "{fails}"
    );
}

/// A `condor_q` in which another user's jobs are listed with `-allusers` alone.
fn queue_of_others(place: &Place) -> String {
    let job = |cluster: u32, owner: &str, status: u32| {
        format!(
            r#"{{"ClusterId": {cluster}, "ProcId": 0, "JobStatus": {status}, "HoldReasonCode": 34, "HoldReasonSubCode": 102,
                "GlobalJobId": "ap40#{cluster}.0#9", "EnteredCurrentStatus": 1000, "TransferInput": "/no/in.dat", "Owner": "{owner}"}}"#
        )
    };
    let held = [job(1, "bob", 5), job(2, "bob", 5), job(3, "eve", 5)];
    place.write("held.json", format!("[{}]", held.join(", ")));
    place.write("idle.json", format!("[{}]", job(4, "bob", 1)));
    let dir = place.path("").display().to_string();
    format!(
        "case \"$*\" in *-allusers*JobStatus==5*) cat {dir}/held.json ;; *-allusers*) cat {dir}/idle.json ;; *) echo '[]' ;; esac"
    )
}

#[test]
fn who_has_no_held_jobs_is_told_of_those_of_others() {
    let place = Place::new();
    let condor_q = queue_of_others(&place);
    let advise = |options: &str| {
        with_programs(
            &place,
            &format!("advise {options}"),
            &[("condor_q", &condor_q)],
        )
    };
    let none = advise("");
    let told = "none of your jobs is held, but 3 jobs of 2 other users: --all-users\n";
    assert!(none.stdout.starts_with(told), "{none}");
    for (options, jobs) in [
        ("--owner bob --ids --action fix", "1.0\n2.0\n"),
        ("3 --ids", "3.0\n"),
        ("--cluster 2 --ids --action fix", "2.0\n"),
        ("--owner ada --ids --action fix", ""),
    ] {
        assert_eq!(advise(options).stdout, jobs, "{options}");
    }
    let one = advise("1.0");
    assert_eq!(one.code, Some(10), "{one}");
    let idle = advise("--idle --no-look --owner bob");
    let told = "1 idle job, 0 running: no fault was found; the files of 1 were not all looked at";
    assert!(idle.stdout.starts_with(told), "{idle}");

    let empty = with_programs(&place, "advise", &[("condor_q", "echo '[]'")]);
    assert!(empty.stdout.starts_with("no job is held"), "{empty}");
    let silent = "case \"$*\" in *-allusers*) exit 1 ;; *) echo '[]' ;; esac";
    let silent = with_programs(&place, "advise", &[("condor_q", silent)]);
    assert!(
        silent.stdout.starts_with("none of your jobs is held\n"),
        "{silent}"
    );
}

#[test]
fn who_may_not_release_the_jobs_of_others_gets_a_page_for_each_owner() {
    let place = Place::new();
    let job = |cluster: u32, owner: &str| {
        format!(
            r#"{{"ClusterId": {cluster}, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102, "Owner": "{owner}"}}"#
        )
    };
    let hostile = job(4, "a b\\u001b[31m");
    let jobs = [job(1, "ada"), job(2, "bob"), job(3, "bob"), hostile].join(", ");
    place.write("queue.json", format!("[{jobs}]"));
    let condor_q = format!("cat {}", place.path("queue.json").display());
    let pages = ["root, condor", "root, ada"].map(|names| {
        let values = format!("echo '{names}'; echo false");
        let programs = [
            ("condor_q", condor_q.as_str()),
            ("condor_config_val", &values),
        ];
        with_programs(&place, "advise --all-users", &programs)
    });
    let end = |page: &Outcome| {
        page.stdout
            .rsplit_once("\n\n")
            .expect("an end")
            .1
            .to_owned()
    };
    insta::assert_snapshot!(end(&pages[0]), @r"
    note: you may not release 3 jobs of other users: their owners may (bob 2, a b\u{1b}[31m
      1), and root, condor
        a page for bob: poolcast advise --all-users --owner bob
    for odds of this access point: poolcast learn --log mine
    ");
    assert!(!end(&pages[1]).contains("may not release"), "{}", pages[1]);
}

#[test]
fn names_of_owners_are_no_options_in_commands() {
    let place = Place::new();
    let job = r#"[{"ClusterId": 1, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102, "Owner": "--help"}]"#;
    place.write("queue.json", job);
    let condor_q = format!("cat {}", place.path("queue.json").display());
    let programs = [
        ("condor_q", condor_q.as_str()),
        ("condor_config_val", "echo root; echo false"),
    ];
    let page = with_programs(&place, "advise --all-users --pages pages", &programs);
    let command = "poolcast advise --all-users --owner=--help";
    assert!(
        page.stdout
            .contains(&format!("a page for --help: {command}\n")),
        "{page}"
    );
    assert!(page.stderr.contains("cannot be a file name"), "{page}");
    let again = with_programs(&place, command.trim_start_matches("poolcast "), &programs);
    assert!(again.stdout.contains("1 held job"), "{again}");
}

#[test]
fn the_logs_of_own_jobs_are_found() {
    let place = place_with_logs();
    let dir = place.path("proj").display().to_string();
    let ads = |names: &[&str]| {
        let ads = names
            .iter()
            .map(|name| format!(r#"{{"UserLog": "{name}", "Iwd": "{dir}"}}"#));
        format!("echo '[{}]'", ads.collect::<Vec<_>>().join(","))
    };
    let (queued, ended) = (
        ads(&["a.log", "b.log"]),
        ads(&["c.log", "gone.log", "job.out"]),
    );
    let programs = [
        ("condor_q", queued.as_str()),
        ("condor_history", ended.as_str()),
    ];
    let found = with_programs(&place, "advise --log mine --jobs", &programs);
    assert_eq!(found.stdout, place.stdout("advise proj --jobs"));
    assert!(
        found.stderr.contains("2 logs of your jobs cannot be read"),
        "{found}"
    );
    let without = place.run("advise --log mine");
    assert!(
        without.code == Some(2) && without.stderr.contains("cannot find your logs"),
        "{without}"
    );
}

#[test]
fn few_holds_are_learned_from_and_the_lack_is_named() {
    let place = place_with_logs();
    let run = place.run("run --log proj");
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stdout
            .contains("no model was trained: outcomes are known of 0 of 2 holds"),
        "{run}"
    );
    let document = place.json("run --log proj --json");
    assert_eq!(document["few_holds"]["known"], 0);
    let page = place.stdout("advise");
    assert!(
        page.contains("no trained model") || page.contains("no model"),
        "{page}"
    );
    assert_eq!(
        actions(&place.json("advise --json")),
        actions(&place.json("advise proj --json"))
    );
}

/// All releases that the models learn from succeed, so that only networks have a model, which nothing can
/// judge. Many outcomes are known, as of a user with one large batch whose fault passed.
#[test]
fn many_holds_that_ended_alike_are_learned_from_without_a_model() {
    let place = Place::new();
    let mut log = String::new();
    for cluster in 1..=240 {
        let job = format!("{cluster}.0");
        let minute = cluster / 5;
        log += &submitted(&job);
        log += &held(&job, minute, "13/2");
        log += &record(
            "013",
            &job,
            minute + 1,
            "Job was released.\n\tvia condor_release",
        );
        log += &record(
            "001",
            &job,
            minute + 1,
            "Job executing on host: <10.0.0.2:9618>",
        );
        log += &terminated(&job, minute + 2, i32::from(cluster > 220));
    }
    log += &submitted("300.0");
    log += &held("300.0", 55, "13/2");
    place.write("own.log", log);
    let run = place.run("run --log own.log");
    assert_eq!(run.code, Some(0), "{run}");
    let known = "no model was trained: outcomes are known of 240 of 241 holds";
    assert!(run.stdout.contains(known), "{run}");
}

/// Returns the page about the held jobs of `log`, with what other access points know.
fn page_of_shared_input(log: &str) -> String {
    let place = Place::new();
    place.write("own.log", log);
    let mut command = place.command("advise own.log --no-look --no-network");
    command.env("POOLCAST_ADVICE__PRIOR", "true");
    Outcome::of(command.output().expect("the program starts")).stdout
}

#[test]
fn jobs_of_a_cluster_that_read_the_same_file_release_those_that_could_not() {
    let log = include_str!("../data/shared_input/own.log");
    let first_read = log.find("040 (001.004.000)").expect("a transfer");
    let during = page_of_shared_input(&log[..first_read]);
    assert!(
        during.contains("POSSIBLY RELEASE LATER: 4 jobs\n"),
        "{during}"
    );

    let after = page_of_shared_input(log);
    assert!(after.contains("\nRELEASE AS IT IS: 4 jobs\n"), "{after}");
    assert!(after.contains(" 4 successes since\n"), "{after}");
    assert!(!after.contains("known from other access points"), "{after}");
}

/// Jobs with such programs got these reasons in a real pool.
#[test]
fn a_program_of_the_machine_is_no_fault_of_the_job() {
    let place = Place::new();
    let held_for = |job: &str, reason: &str, subcode: i32| {
        let text = format!(
            "Job was held.\n\tError from slot1_1@localhost: Failed to execute {reason}\n\tCode 6 Subcode {subcode}"
        );
        submitted(job) + &record("012", job, 20, &text)
    };
    let missing = "(errno=2: 'No such file or directory')";
    let log = [
        held_for(
            "1.0",
            &format!("'/cvmfs/soft.example/bin/start': {missing}"),
            2,
        ),
        held_for(
            "2.0",
            &format!("'/home/tester/machine/no-such': {missing}"),
            2,
        ),
        held_for(
            "5.0",
            "'/usr/lib/os-release': (errno=13: 'Permission denied')",
            13,
        ),
        held_for("6.0", &format!("'/usr/bin/no-such-program': {missing}"), 2),
        held_for("6.1", &format!("'/usr/bin/no-such-program': {missing}"), 2),
    ];
    place.write("jobs.log", log.concat());

    let document = place.json("advise jobs.log --no-look --json");
    let actions = actions(&document);
    let of = |job: &str| actions[job].as_str();
    // A path outside of the job may be on a file system that this machine lacks.
    assert_eq!((of("2.0"), of("5.0")), ("probe", "fix"));
    assert_eq!(
        (of("1.0"), of("6.0"), of("6.1")),
        ("probe", "probe", "probe")
    );
    let page = place.run("advise jobs.log 1.0 --no-look");
    assert!(page.stdout.contains("another machine may"), "{page}");
}

#[test]
fn kinds_of_holds_that_nobody_has_learned_about_have_no_odds_and_no_command() {
    let place = Place::new();
    let held_because = |job: &str, reason: &str| {
        let text = format!("Job was held.\n\t{reason}");
        submitted(job) + &record("012", job, 20, &text)
    };
    let unknown = "The frobnicator is unwell.\n\tCode 99 Subcode 0";
    let plugin = "Transfer input files failure at execution point slot1@ep using protocol foo. Details: non-zero exit (11) from foo_plugin. ( URL file = foo://a/b )\n\tCode 13 Subcode 2816";
    let output = "Transfer output files failure at execution point slot1@ep while sending files to access point ap. Details: reading from file /scratch/out.dat: (errno 2) No such file or directory\n\tCode 12 Subcode 2";
    let reasons = [unknown, unknown, unknown, plugin, output];
    let log: String = reasons
        .iter()
        .zip(1..)
        .map(|(reason, cluster)| held_because(&format!("{cluster}.0"), reason))
        .collect();
    place.write("job.log", log);

    let mut command = place.command("advise job.log --json");
    command.env("POOLCAST_ADVICE__PRIOR", "true");
    let said = Outcome::of(command.output().expect("started")).stdout;
    let document: Value = serde_json::from_str(&said).expect("JSON");
    let advice = document["advice"].as_array().expect("a list");
    let of_cluster = |cluster: u32| {
        let job = format!("{cluster}.0");
        let found = advice.iter().find(|one| one["job"] == job.as_str());
        found.expect("a held job")
    };
    for cluster in 1..=3 {
        let one = of_cluster(cluster);
        assert_eq!(one["action"], "none", "{one}");
        let nothing = ["probability", "later_probability", "command", "then"];
        assert!(nothing.iter().all(|key| one[key].is_null()), "{one}");
        let said = one["reasons"].to_string();
        assert!(
            said.contains("known neither from this log nor from other access points"),
            "{said}"
        );
    }
    // A statement of the reason itself answers without odds.
    for cluster in 4..=5 {
        let stated = of_cluster(cluster);
        assert_ne!(stated["action"], "none", "{stated}");
        assert!(stated["probability"].is_null(), "{stated}");
    }
}

/// Writes a log in which a server fails for job 7.0 an hour before the question, six hours west of UTC,
/// and sets the time at which the file was changed.
fn write_western_log(place: &Place, changed: &str) {
    let reason = "Transfer input files failure at execution point slot1@e.example using protocol https. \
        Details: The requested URL returned error: 503 ( URL file = https://data.example/a.dat )|";
    place.write(
        "job.log",
        format!(
            "000 (7.000.000) 2026-11-20 20:20:00 Job submitted from host: <10.0.0.1:9618>\n...\n\
             012 (7.000.000) 2026-11-20 20:26:17 Job was held.\n\t{reason}\n\tCode 13 Subcode 256\n...\n"
        ),
    );
    let changed: jiff::Timestamp = changed.parse().expect("a time");
    let log = std::fs::File::open(place.path("job.log")).expect("opened");
    log.set_modified(changed.into()).expect("set");
}

#[test]
fn log_that_is_written_here_is_asked_as_of_now_in_its_time_zone() {
    let place = Place::new();
    let hold_s = |document: &Value| {
        document["advice"][0]["held_since_ms"]
            .as_i64()
            .map(|ms| ms / 1000)
    };
    let asked = |document: &Value| {
        let ms = |key: &str| document[key].as_i64().expect("a time");
        ms("asked_ms") - ms("log_end_ms")
    };
    let real_s = 1_795_227_977;

    write_western_log(&place, "2026-11-21T02:26:18Z");
    let live = place.json("advise job.log --json");
    assert_eq!((hold_s(&live), asked(&live)), (Some(real_s), 3_600_000));
    let then = live["advice"][0]["then"].as_str().expect("a command");
    assert!(
        then.contains(&format!("EnteredCurrentStatus<={}", real_s + 2)),
        "{then}"
    );

    // Nobody knows the zone of a copy, nor what happened since.
    write_western_log(&place, "2026-11-21T02:40:03Z");
    let copied = place.json("advise job.log --json");
    assert_eq!(
        (hold_s(&copied), asked(&copied)),
        (Some(real_s - 6 * 3600), 0)
    );
}

#[test]
fn commands_of_a_run_on_own_logs_have_the_time_of_the_queue() {
    let place = Place::new();
    write_western_log(&place, "2026-11-21T02:26:18Z");
    place.stdout("run --log job.log");
    let advice = place.json("advise --json");
    let then = advice["advice"][0]["then"].as_str().expect("a command");
    let guard = format!("EnteredCurrentStatus<={}", 1_795_227_977 + 2);
    assert!(then.contains(&guard), "{then}");
}

#[test]
fn page_on_an_old_log_does_not_say_that_its_answers_are_over() {
    let place = Place::new();
    write_western_log(&place, "2026-11-21T02:40:03Z");
    let mut command = place.command("advise job.log");
    let output = command.env("POOLCAST_ADVICE__PRIOR", "true").output();
    let page = Outcome::of(output.expect("run")).stdout;
    assert!(page.contains("POSSIBLY RELEASE LATER"), "{page}");
    assert!(!page.contains("which is over"), "{page}");
}

/// The texts are those that HTCondor 25.14.1 has printed and written about ten held jobs.
#[test]
fn outputs_of_other_programs_are_read_or_named() {
    let place = Place::new();
    place.copy_all(&repository_path("tests/data/feeds"), "feeds");
    for (args, jobs) in [
        ("feeds/xml.log", 3),
        ("feeds/json.log", 1),
        ("--queue feeds/ads", 2),
    ] {
        let document = place.json(&format!("advise {args} --json"));
        assert_eq!(document["counts"]["fix"], jobs, "{args}");
    }
    for (args, named) in [
        ("feeds/dagman.out", "whose name ends with `.nodes.log`"),
        ("feeds/ads", "`poolcast advise --queue FILE` reads it"),
        ("--queue feeds/ads.xml", "it is a list of jobs in XML"),
        (
            "--queue feeds/hold-table",
            "it is a table of `condor_q -hold`",
        ),
        (
            "--queue feeds/table",
            "it is a table of jobs without hold reasons",
        ),
        ("--queue feeds/xml.log", "it is an event log"),
        ("--queue feeds/dagman.out", "it is DAGMan's own log"),
        (
            "--queue feeds/numbered",
            "cannot parse the text as output of `condor_q`",
        ),
    ] {
        let refused = place.run(&format!("advise {args}"));
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(named), "{refused}");
    }
}
