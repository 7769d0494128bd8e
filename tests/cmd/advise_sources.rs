//! Tests of the inputs that `advise` finds automatically: the queue, the run and the logs.

use std::os::unix::fs::PermissionsExt as _;

use crate::place::{Outcome, Place, queue};

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
fn queue_supplies_owners_and_requests_of_jobs() {
    let place = Place::with_run();
    place.write("queue.json", queue_text(|_| {}));
    let document = place.json("advise run --log EventLog.xz --queue queue.json --json --sort id");
    assert_eq!(
        document["queue"],
        serde_json::json!({"held": 8, "not_in_log": 0, "not_in_queue": 0})
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
    let place = Place::with_run();
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
            && !one.stdout.contains("condor_qedit"),
        "{one}"
    );

    place.write("none.json", "");
    let none = place.stdout("advise run --log EventLog.xz --queue none.json");
    assert!(none.starts_with("no job is held"), "{none}");
    place.write("bad.json", "{\"ClusterId\": 1}");
    let bad = place.run("advise run --log EventLog.xz --queue bad.json");
    assert_eq!(bad.code, Some(2), "{bad}");
}

#[test]
fn current_queue_is_queried_once() {
    let place = Place::with_run();
    let missing = place.run("advise run --log EventLog.xz --queue now");
    assert_eq!(missing.code, Some(2), "{missing}");
    assert!(
        missing.stderr.contains("cannot run `condor_q`"),
        "{missing}"
    );

    place.write("queue.json", queue_text(|_| {}));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {0}/asked\ncat {0}/queue.json\n",
        place.path("").display()
    );
    place.write("condor_q", script);
    fs_err::set_permissions(
        place.path("condor_q"),
        std::fs::Permissions::from_mode(0o755),
    )
    .expect("set");
    let mut command = place.command("advise run --log EventLog.xz --queue now --json");
    let path = format!("{}:/usr/bin:/bin", place.path("").display());
    let outcome = Outcome::of(command.env("PATH", path).output().expect("it starts"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let asked = fs_err::read_to_string(place.path("asked")).expect("it was asked");
    assert_eq!(asked.lines().count(), 1);
    assert!(
        asked.starts_with("-allusers -constraint JobStatus==5 -json -attributes ClusterId,"),
        "{asked}"
    );
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
    error: there is no run here: looked in this directory, the `out` of its configuration files, and `out`

    hint: name one: poolcast advise RUN; `poolcast run --log LOG` creates one
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

    hint: name one: poolcast advise elsewhere
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
    let place = Place::with_run();
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
