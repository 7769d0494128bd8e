//! Tests of the inputs that `advise` finds automatically: the queue, the run and the logs.

use crate::own_logs::with_programs;
use crate::place::{LOG_TEXT, Outcome, Place, queue};

/// Returns the queue of the bundled log as JSON, with `change` applied to each job.
fn queue_text(change: impl Fn(&mut serde_json::Value)) -> String {
    let mut jobs = queue();
    jobs.iter_mut().for_each(change);
    serde_json::to_string_pretty(&jobs).expect("JSON")
}

fn without_scores(text: &str) -> String {
    let head: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("ROC-AUC") && !line.starts_with("  ["))
        .collect();
    head.join("\n")
}

#[test]
fn page_says_that_a_job_was_released_twice_and_held_again() {
    let place = Place::with_log();
    let page = |options: &str| {
        place
            .run(&format!("advise 1161.0 --log EventLog.xz {options}"))
            .stdout
    };
    let words = "it was released several times, and held again for the same reason each time";
    let after_one_release = page("--at 2026-11-21T02:25:40Z");
    assert!(after_one_release.starts_with("1161.0: FIX, THEN RELEASE\n"));
    assert!(!after_one_release.contains(words), "{after_one_release}");
    let after_two = page("");
    assert!(
        after_two.starts_with("1161.0: FIX, THEN RELEASE\n"),
        "{after_two}"
    );
    assert!(after_two.contains(words), "{after_two}");
}

#[test]
fn queue_supplies_owners_and_requests_of_jobs() {
    let place = Place::with_answers();
    place.write("queue.json", queue_text(|_| {}));
    let document = place.json("advise run --log EventLog.xz --queue queue.json --json --sort id");
    assert_eq!(
        document["queue"],
        serde_json::json!({"held": 8, "not_in_log": 0, "not_in_queue": 0, "skipped": null})
    );
    for (advice, job) in document["advice"]
        .as_array()
        .expect("a list")
        .iter()
        .zip(queue())
    {
        assert_eq!(advice["owner"], job["Owner"]);
        assert_eq!(advice["queue"]["job_starts"], job["NumJobStarts"]);
        assert_eq!(advice["queue"]["request_memory"], "64");
        assert_eq!(advice["reason"], job["HoldReason"]);
    }
    let filters = [(r" *(\d+-)?\d+%", " ##%")];
    insta::with_settings!({filters => filters}, {
        insta::assert_snapshot!("advice_with_queue", without_scores(&place.stdout("advise run --log EventLog.xz --queue queue.json")));
    });
}

#[test]
fn queue_decides_which_jobs_are_held() {
    let place = Place::with_answers();
    // One job was released, one was held again for another reason, and one is not in the log.
    let text = queue_text(|job| match job["ClusterId"].as_i64() {
        Some(1086) => job["JobStatus"] = 2.into(),
        Some(1141) => {
            job["HoldReasonCode"] = 1.into();
            job["HoldReasonSubCode"] = 0.into();
            job["HoldReason"] = "via condor_hold (by user ada)".into();
        }
        Some(1148) => {
            job["ClusterId"] = 99_999.into();
            job["HoldReasonCode"] = 34.into();
            job["HoldReasonSubCode"] = 102.into();
            job["HoldReason"] =
                "Error from slot1_14@localhost: Job has gone over memory limit of 64 megabytes."
                    .into();
            job["RequestMemory"] = "/Expr(MemoryUsage * 2)/".into();
        }
        _ => {}
    });
    place.write("queue.json", &text);
    let filters = [(r" *(\d+-)?\d+%", " ##%")];
    insta::with_settings!({filters => filters}, {
        insta::assert_snapshot!("advice_corrected_by_queue", without_scores(&place.stdout("advise run --log EventLog.xz --queue queue.json")));
    });
    let ids = place.stdout("advise run --log EventLog.xz --queue queue.json --ids --action leave");
    assert_eq!(ids, "1141.0\n");
    let one = place.run("advise run --log EventLog.xz --queue queue.json 99999.1");
    assert!(
        one.stdout.contains("RequestMemory is an expression")
            && !one.stdout.contains("run: condor_qedit"),
        "{one}"
    );

    place.write("none.json", "");
    let none = place.stdout("advise run --log EventLog.xz --queue none.json");
    assert!(none.starts_with("no job is held"), "{none}");
    place.write("bad.json", "{\"ClusterId\": 1}");
    let bad = place.run("advise run --log EventLog.xz --queue bad.json");
    assert_eq!(bad.code, Some(2), "{bad}");
}

/// Calls the program where a `condor_q` prints `queue.json` and records its arguments in `asked`.
fn ask_queue(place: &Place, args: &str) -> Outcome {
    let dir = place.path("").display().to_string();
    let condor_q = format!("echo \"$@\" >> {dir}/asked\ncat {dir}/queue.json");
    with_programs(place, args, &[("condor_q", &condor_q)])
}

#[test]
fn queue_that_is_asked_now_sets_the_prediction_time() {
    let place = Place::with_answers();
    place.write("queue.json", queue_text(|_| {}));
    let document = |queue: &str| -> serde_json::Value {
        let args = format!("advise run --log EventLog.xz --queue {queue} --json");
        serde_json::from_str(&ask_queue(&place, &args).stdout).expect("JSON")
    };
    let time = |document: &serde_json::Value, key: &str| document[key].as_i64().expect("a time");

    // Nobody knows when the file was written.
    let of_file = document("queue.json");
    assert_eq!(time(&of_file, "asked_ms"), time(&of_file, "log_end_ms"));

    // The tests ask an hour after the log's end, in which nothing has happened. The model has learned
    // from 27 minutes.
    let of_now = document("now");
    assert_eq!(time(&of_now, "log_end_ms"), time(&of_file, "log_end_ms"));
    assert_eq!(
        time(&of_now, "asked_ms"),
        time(&of_now, "log_end_ms") + 3_600_000
    );
    let caveats = of_now["caveats"].to_string();
    assert!(!caveats.contains("out of date"), "{caveats}");
    let held_for = |document: &serde_json::Value| {
        let mut advice = document["advice"].as_array().expect("answers").iter();
        let of_job = advice.find(|one| one["job"] == "1161.0").expect("held");
        time(of_job, "held_for_ms")
    };
    assert_eq!(held_for(&of_now), held_for(&of_file) + 3_600_000);

    // The log has gone on for longer than the model has learned from.
    let later = "000 (99999.000.000) 11/21 03:10:00 Job submitted from host: <127.0.0.1:9618?alias=localhost>\n...\n";
    place.write("Later", LOG_TEXT.clone() + later);
    let page = place.stdout("advise run --log Later");
    assert!(page.contains("is out of date"), "{page}");
    assert!(
        place.path("run/answers-of-log/manifest.json").exists(),
        "the next call learns nothing"
    );

    // Then the log answers as without a run.
    let answers = |args: &str| -> Vec<(String, String, Option<i64>)> {
        let document: serde_json::Value = serde_json::from_str(&place.stdout(args)).expect("JSON");
        let advice = document["advice"].as_array().expect("answers").iter();
        let answer = |one: &serde_json::Value| {
            let word = |key: &str| one[key].as_str().expect("a word").to_owned();
            (word("job"), word("action"), one["good_until_ms"].as_i64())
        };
        advice.map(answer).collect()
    };
    let without_run = answers("advise --log Later --json");
    let is_learned =
        |(_, _, good_until_ms): &(String, String, Option<i64>)| good_until_ms.is_some();
    assert!(without_run.iter().any(is_learned), "{without_run:?}");
    assert_eq!(answers("advise run --log Later --json"), without_run);
}

#[test]
fn current_queue_is_queried_once() {
    let place = Place::with_answers();
    let missing = place.run("advise run --log EventLog.xz --queue now");
    assert_eq!(missing.code, Some(2), "{missing}");
    assert!(
        missing.stderr.contains("cannot run `condor_q`"),
        "{missing}"
    );

    place.write("queue.json", queue_text(|_| {}));
    let outcome = ask_queue(&place, "advise run --log EventLog.xz --queue now --json");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let asked = fs_err::read_to_string(place.path("asked")).expect("it was asked");
    assert_eq!(asked.lines().count(), 1);
    assert!(
        asked.starts_with("-allusers -constraint JobStatus==5 -json -attributes ClusterId,"),
        "{asked}"
    );
}

/// Programs of an access point with the event log `event_log`, on which `ada` has two of eight held jobs.
fn access_point(place: &Place, event_log: &str) -> [(&'static str, String); 2] {
    let mut jobs = queue();
    place.write("all.json", serde_json::to_string(&jobs).expect("JSON"));
    jobs.retain(|job| job["JobStatus"] == 5);
    jobs.truncate(2);
    place.write("own.json", serde_json::to_string(&jobs).expect("JSON"));
    let dir = place.path("").display().to_string();
    let condor_q =
        format!("case \"$*\" in *-allusers*) cat {dir}/all.json ;; *) cat {dir}/own.json ;; esac");
    let settings = format!(
        "case $1 in EVENT_LOG) echo {dir}/{event_log} ;; *) echo \"Not defined: $1\" >&2; exit 1 ;; esac"
    );
    [("condor_q", condor_q), ("condor_config_val", settings)]
}

#[test]
fn event_log_of_the_access_point_answers_where_no_log_is_named() {
    let place = Place::new();
    place.write("EventLog", &*LOG_TEXT);
    let programs = access_point(&place, "EventLog");
    let programs = programs.each_ref().map(|(name, script)| (*name, &**script));
    let document = |args: &str| -> serde_json::Value {
        let outcome = with_programs(
            &place,
            &format!("advise {args} --no-look --json"),
            &programs,
        );
        serde_json::from_str(&outcome.stdout).expect("JSON")
    };
    let answers = |document: &serde_json::Value| -> Vec<(String, String, Option<f64>)> {
        let word =
            |one: &serde_json::Value, key: &str| one[key].as_str().expect("a word").to_owned();
        let jobs = document["advice"].as_array().expect("answers").iter();
        jobs.map(|one| {
            (
                word(one, "job"),
                word(one, "action"),
                one["probability"].as_f64(),
            )
        })
        .collect()
    };
    let named = document("--log EventLog --queue now");
    assert!(
        named["held"] == 8 && !named["trained_until_ms"].is_null(),
        "{named}"
    );
    assert_eq!(answers(&document("--all-users")), answers(&named));

    let own = document("");
    let mut of_own = answers(&named);
    let ids: Vec<String> = answers(&own).into_iter().map(|(id, ..)| id).collect();
    of_own.retain(|(id, ..)| ids.contains(id));
    assert_eq!((answers(&own), ids.len()), (of_own, 2));
    // The queue was not asked for the held jobs of others.
    assert_eq!(own["queue"]["not_in_queue"], 0);

    let silent = [("condor_q", "exit 1"), programs[1]];
    let refused = with_programs(&place, "advise", &silent);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("no queue answers"),
        "{refused}"
    );
}

/// The logs that the own held jobs name answer if the event log cannot be read, also without a model.
#[test]
fn logs_of_held_jobs_answer_where_there_is_no_event_log() {
    let place = Place::new();
    place.write("job.log", &*LOG_TEXT);
    let mut programs = access_point(&place, "no/EventLog");
    let dir = place.path("").display().to_string();
    let logs = format!(
        "case \"$*\" in *UserLog*) echo '[{{\"UserLog\": \"{dir}/job.log\"}}]'; exit ;; esac\n"
    );
    programs[0].1.insert_str(0, &logs);
    let programs = programs.each_ref().map(|(name, script)| (*name, &**script));
    let page = with_programs(&place, "advise --no-look", &programs);
    assert!(page.stdout.starts_with("2 held jobs: "), "{page}");
    let learned = "rules answer, and the outcomes of earlier holds";
    assert!(page.stdout.contains(learned), "{page}");
}

/// Adds the bundled log to the configuration of `run`.
fn name_log(place: &Place, run: &str) {
    let path = place.path(&format!("{run}/config.yaml"));
    let text = fs_err::read_to_string(&path).expect("read");
    fs_err::write(&path, text.replace("logs: []", "logs: [EventLog.xz]")).expect("written");
}

#[test]
fn the_run_and_the_logs_of_a_directory_are_found() {
    let place = Place::with_log();
    insta::assert_snapshot!(place.run("advise"), @"
    exit 2
    error: there is nothing to advise on: no log is named, there is no run here, and no queue answers

    hint: name the logs of your jobs: poolcast advise *.log; or the queue: --queue FILE
    ");

    place.copy("run", "out");
    name_log(&place, "out");
    let named = place.stdout("advise out --log EventLog.xz --jobs");
    assert_eq!(place.stdout("advise --jobs"), named);
    assert_eq!(place.stdout("advise out --jobs"), named);
    let one = place.run("advise 1161.0");
    assert_eq!(one.code, Some(10), "{one}");

    // `advise` also finds the `out` of a configuration file, and does not choose between several
    // runs.
    place.copy("run", "elsewhere");
    name_log(&place, "elsewhere");
    place.write("pool.yaml", "logs: [EventLog.xz]\nout: elsewhere\n");
    place.write("other.yaml", "a: 1\n");
    insta::assert_snapshot!(place.run("advise"), @"
    exit 2
    error: there are several runs here: `elsewhere`, `out`

    hint: name one, such as `elsewhere`
    ");
    fs_err::remove_dir_all(place.path("out")).expect("removed");
    assert_eq!(place.stdout("advise --jobs"), named);

    fs_err::remove_file(place.path("EventLog.xz")).expect("removed");
    insta::assert_snapshot!(place.run("advise"), @"
    exit 2
    error: cannot find `EventLog.xz`, the log that `elsewhere` was made from

    hint: name the log: --log LOG; `condor_config_val EVENT_LOG` prints that of an access point
    ");
}

#[test]
fn archive_is_accepted_as_a_log() {
    let place = Place::with_answers();
    let header = "008 (-01.-01.-01) 11/21 01:50:00 Global JobLog: ctime=1795225800 id=0.1 sequence=1 size=0 events=0 offset=0 \
                  event_off=0 max_rotation=1 creator_name=<localhost>";
    let events = "000 (1.0.0) 11/21 01:50:01 Job submitted from host: <10.0.0.1:9618>\n...\n\
                  012 (1.0.0) 11/21 01:50:05 Job was held.\n\tdisk quota\n\tCode 6 Subcode 122\n...\n";
    place.write("EventLog", format!("{header:<320}\n...\n{events}"));
    place.stdout("collect EventLog -o archive");
    let from_archive = place.stdout("advise run --log archive --jobs");
    assert_eq!(
        from_archive,
        place.stdout("advise run --log EventLog --jobs")
    );
    assert!(from_archive.contains("1.0  fix"), "{from_archive}");
}

/// A log without job ads: one job used 220 MB at the times of its two image size events, and was
/// then held for memory.
const MEMORY_LOG: &str = "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <10.0.0.1:9618>\n...\n\
    001 (1.0.0) 2026-11-21 01:50:01 Job executing on host: <10.0.0.2:9618>\n...\n\
    006 (1.0.0) 2026-11-21 01:50:02 Image size of job updated: 226000\n\t220  -  MemoryUsage of job (MB)\n\t225280  -  ResidentSetSize of job (KB)\n...\n\
    006 (1.0.0) 2026-11-21 01:50:03 Image size of job updated: 226000\n\t3  -  MemoryUsage of job (MB)\n\t3000  -  ResidentSetSize of job (KB)\n...\n\
    012 (1.0.0) 2026-11-21 01:50:05 Job was held.\n\tmemory usage exceeded request_memory\n\tCode 34 Subcode 102\n...\n";

#[test]
fn memory_command_counts_the_log_and_the_queue() {
    let place = Place::with_answers();
    let command = |log: &str, usage: serde_json::Value| {
        place.write("EventLog", log);
        let mut job = serde_json::json!({
            "ClusterId": 1, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102,
            "EnteredCurrentStatus": 1_795_225_805, "RequestMemory": 64,
            "MemoryUsage": "/Expr(( ( ResidentSetSize + 1023 ) / 1024 ))/"
        });
        for (name, value) in usage.as_object().expect("attributes") {
            job[name] = value.clone();
        }
        place.write("queue.json", serde_json::json!([job]).to_string());
        let said = place.json("advise run --log EventLog --queue queue.json --json");
        assert_eq!(said["groups"][0]["command"], said["advice"][0]["command"]);
        said["advice"][0]["command"]
            .as_str()
            .expect("a command")
            .to_owned()
    };
    let raised = |mb: u64| {
        format!(
            "condor_qedit -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795225807 && ClusterId==1 && ProcId==0' RequestMemory {mb}"
        )
    };
    let without_sizes: String = MEMORY_LOG
        .split_inclusive("...\n")
        .filter(|event| !event.starts_with("006"))
        .collect();
    assert_eq!(command(MEMORY_LOG, serde_json::json!({})), raised(384));
    let resident = serde_json::json!({"ResidentSetSize": 409_601});
    assert_eq!(command(MEMORY_LOG, resident.clone()), raised(640));
    assert_eq!(command(&without_sizes, resident), raised(640));
    assert_eq!(
        command(&without_sizes, serde_json::json!({})),
        "condor_q -hold 1.0",
        "no usage is known"
    );
}

#[test]
fn damaged_jobs_of_the_queue_are_skipped_and_named() {
    let place = Place::with_answers();
    let [mut jobs, whole] = [queue(), queue()];
    let as_bytes = |jobs: &[serde_json::Value]| serde_json::to_vec_pretty(jobs).expect("JSON");
    place.write("queue.json", as_bytes(&whole));
    let expected = place.stdout("advise run --log EventLog.xz --queue queue.json --jobs");

    // A byte of Latin-1, half a character and a second key change nothing else.
    let text = String::from_utf8(as_bytes(&jobs)).expect("text");
    let owner = "\"Owner\": \"tester\"";
    let text = text.replacen(
        owner,
        "\"Owner\": \"tester\", \"Cmd\": \"M?ller \\ud800\", \"Cmd\": \"\"",
        3,
    );
    let bytes: Vec<u8> = text
        .bytes()
        .map(|byte| if byte == b'?' { 0xfc } else { byte })
        .collect();
    assert_ne!(bytes, as_bytes(&jobs));
    place.write("queue.json", bytes);
    assert_eq!(
        place.stdout("advise run --log EventLog.xz --queue queue.json --jobs"),
        expected
    );

    // A job that is listed five times counts once, and one without a valid id is named.
    let again = jobs[2].clone();
    jobs.extend(std::iter::repeat_n(again, 4));
    let mut negative = jobs[1].clone();
    negative["ClusterId"] = (-1).into();
    negative["ProcId"] = (-7).into();
    jobs.insert(1, negative);
    place.write("queue.json", as_bytes(&jobs));
    let document = place.json("advise run --log EventLog.xz --queue queue.json --json");
    assert_eq!(
        document["queue"],
        serde_json::json!({"held": 8, "not_in_log": 0, "not_in_queue": 0, "skipped": {
            "count": 1, "first": 2, "why": "its ClusterId and ProcId are not a job id"}})
    );
    let page = place.stdout("advise run --log EventLog.xz --queue queue.json");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!page.contains("==-"), "{page}");
    let note = "note: 1 job of the queue cannot be read, and gets no advice; number 2 of the list:";
    assert!(page.contains(note), "{page}");
    let ids = place.run("advise run --log EventLog.xz --queue queue.json --ids --action fix");
    assert!(
        ids.stderr.contains(note) && ids.stdout.lines().count() == 8,
        "{ids}"
    );
}

/// Writes a queue of `jobs` held jobs, each with its own reason. The ad of the first one has a
/// value of `value_bytes`.
fn write_long_queue(path: &std::path::Path, jobs: u32, value_bytes: usize) {
    use std::io::Write as _;
    let mut file = std::io::BufWriter::new(fs_err::File::create(path).expect("created"));
    for number in 0..jobs {
        let begin = if number == 0 { "[" } else { "," };
        let (cluster, proc) = (200_000 + number / 100, number % 100);
        // HTCondor rounds the resident set size to a few values.
        let resident_kib = 25_000 * (number % 20);
        let value = "A".repeat(if number == 0 { value_bytes } else { 0 });
        writeln!(
            file,
            r#"{begin}{{"ClusterId": {cluster}, "ProcId": {proc}, "JobStatus": 5, "HoldReasonCode": 13, "HoldReasonSubCode": 2,
            "EnteredCurrentStatus": 1795227966, "GlobalJobId": "ap.example.org#{cluster}.{proc}#1795227668", "Owner": "ada", "QDate": 1795220000,
            "HoldReason": "Transfer input files failure at access point ap.example.org while sending files to execution point slot1_{proc}@host{number}.example.org. Details: reading from file /home/ada/in/typo.dat: (errno 2) No such file or directory",
            "NumJobStarts": {proc}, "RequestMemory": 128, "ResidentSetSize": {resident_kib}, "PeriodicRelease": false, "Env": "{value}"}}"#
        )
        .expect("written");
    }
    file.write_all(b"]\n").expect("written");
}

/// Asserts that advice on such a queue takes less than 200 MiB. Asserts nothing if GNU time is
/// missing.
fn assert_bounded_memory(jobs: u32, value_bytes: usize) {
    let place = Place::with_answers();
    write_long_queue(&place.path("queue.json"), jobs, value_bytes);
    let args = "advise run --log EventLog.xz --queue queue.json";
    let Some((outcome, used_mib)) = place.run_measured(args) else {
        return;
    };
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.contains("held jobs: "), "{outcome}");
    assert!(used_mib < 200, "{jobs} jobs: {used_mib} MiB");
}

#[test]
fn a_long_value_is_read_in_bounded_memory() {
    assert_bounded_memory(3, 100_000_000);
}

#[test]
fn many_held_jobs_are_read_in_bounded_memory() {
    assert_bounded_memory(100_000, 0);
}

#[test]
fn queue_alone_answers_by_what_a_plug_in_says() {
    let place = Place::new();
    let job = |cluster: i32, error: &str| {
        let reason = format!(
            "Transfer input files failure at execution point slot1@node using protocol https. Details: {error} \
             ( URL file = https://fs1.example.edu/in/part{cluster}.dat )|"
        );
        serde_json::json!({
            "ClusterId": cluster, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 13, "HoldReasonSubCode": 256,
            "HoldReason": reason, "EnteredCurrentStatus": 1_795_227_985, "Owner": "ada",
        })
    };
    let jobs = [
        job(1, "The requested URL returned error: 404"),
        job(2, "The requested URL returned error: 503"),
        job(3, "The requested URL returned error: 418"),
    ];
    place.write("queue.json", serde_json::json!(jobs).to_string());
    let document = place.json("advise --queue queue.json --no-network --json --sort id");
    let advice = document["advice"].as_array().expect("a list");
    let answers: Vec<_> = advice
        .iter()
        .map(|one| {
            (
                one["job"].as_str().expect("an id"),
                one["action"].as_str().expect("an action"),
            )
        })
        .collect();
    assert_eq!(answers, [("1.0", "fix"), ("2.0", "later"), ("3.0", "none")]);
    assert!(
        advice[0]["reasons"][0]
            .as_str()
            .expect("a reason")
            .contains("the server does not have what the address names")
    );
}
