//! Tests of `poolcast advise`: held jobs of the bundled log, and job ids that get no advice.

use crate::place::{LOG_TEXT, Place, queue};

#[test]
fn a_rule_answers_by_itself() {
    let place = Place::with_answers();
    insta::assert_snapshot!(without_scores(&place.run("advise run --log EventLog.xz 1161.0")), @r#"
    exit 10
    1161.0: FIX, THEN RELEASE
      why: the access point could not read the file /home/tester/gel/in/typo.dat: it does not exist (errno 2); put the input file /home/tester/gel/in/typo.dat back on the access point, or correct its path; a queued job keeps its values: if TransferInput is wrong, change it by condor_qedit before the release, or remove the job and submit it again; 0 of 192 earlier holds for this reason succeeded after release, 0 of the last ten; it was released several times, and held again for the same reason each time; /home/tester/gel/in/typo.dat: last failure 2026-11-21 02:26:02 UTC, no success since
      because: reason_states_it
      hold code 13/2: input files could not be transferred to the job: no such file or directory
      held since 2026-11-21 02:26:02 UTC, 15 s when the log ends
      held 3 times so far, 3 times for this reason; no other job of its cluster is held for it now
      hold reason: Transfer input files failure at access point localhost while sending files to execution point slot1_15@localhost. Details: 1 total failures: first failure: reading from file /home/tester/gel/in/typo.dat: (errno 2) No such file or directory
      owner: tester
      run: condor_q -hold 1161.0
      once it is fixed: condor_release -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795227964 && Owner=="tester" && ClusterId==1161 && ProcId==0'
      or remove and submit again: condor_rm -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795227964 && Owner=="tester" && ClusterId==1161 && ProcId==0'
    log of localhost: 2026-11-21 01:49 to 2026-11-21 02:26 UTC, 2,119 holds
    rules answer, and the outcomes of earlier holds: learned until 2026-11-21 02:26
      UTC (0 holds since), rehearsed on its log: right about 131 of 141 faults, and
      in 23 of 23 firm answers
    "#);
    let json = place.run("advise run --log EventLog.xz 1161.0 --json");
    assert_eq!(json.code, Some(10));
    let document: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let advice = &document["advice"][0];
    assert_eq!(
        (&document["schema_version"], &advice["action"]),
        (&2.into(), &"fix".into())
    );
    assert!(
        advice["probability"].is_null() && advice["like_cases"].is_null(),
        "no odds where a rule decides"
    );
}

#[test]
fn the_moment_of_asking_can_be_named() {
    let place = Place::with_answers();
    // 1161.0 was held at 02:26:02 for the third time, and the log ends at 02:26:17.
    let earlier = place.run("advise run --log EventLog.xz 1161.0 --at 2026-11-21T02:26:05Z");
    insta::assert_snapshot!(without_scores(&earlier));
    let seconds = place.run("advise run --log EventLog.xz 1161.0 --at 1795227965");
    assert_eq!(seconds.stdout, earlier.stdout);
    insta::assert_snapshot!(
        place.run("advise run --log EventLog.xz 1161.0 --at 2026-11-21T02:26:01")
    );
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz --at 2026-11-22"));
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz --at now"));
}

#[test]
fn advice_about_a_moment_is_that_of_a_log_that_ends_then() {
    let place = Place::with_answers();
    let log = &*LOG_TEXT;
    let end = log
        .find(") 11/21 02:15:00")
        .expect("a record of that second");
    let end = log[..end].rfind("...\n").expect("the end of a record") + 4;
    place.write("EventLog", &log[..end]);

    let document = |args: &str| -> serde_json::Value {
        serde_json::from_str(&place.run(&format!("advise {args} --json")).stdout).expect("JSON")
    };
    let known_then = document("--log EventLog");
    let at_ms = known_then["asked_ms"].as_i64().expect("ms");
    let at = jiff::Timestamp::from_millisecond(at_ms).expect("in range");
    // The run has learned from later holds, so it does not answer.
    for asked in ["", "run "] {
        let later = document(&format!("{asked}--log EventLog.xz --at {at}"));
        assert_eq!(later["asked_ms"], at_ms);
        assert_eq!(later["advice"], known_then["advice"]);
        assert_eq!(later["trained_until_ms"], known_then["trained_until_ms"]);
    }
    assert!(
        known_then["advice"]
            .as_array()
            .is_some_and(|all| all.len() > 3)
    );
}

#[test]
fn advised_jobs_are_the_held_jobs_of_the_queue() {
    let place = Place::with_answers();
    let outcome = place.run("advise run --log EventLog.xz --json --sort id");
    assert_eq!(outcome.code, Some(0), "several were asked for");
    let agreed = place.run("advise run --log EventLog.xz --json --exit-code");
    assert_eq!(agreed.code, Some(10), "all are to be fixed");
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let advice = document["advice"].as_array().expect("a list");
    let found: Vec<&str> = advice
        .iter()
        .map(|advice| advice["job"].as_str().expect("an id"))
        .collect();
    let queue = queue();
    let mut held: Vec<&serde_json::Value> =
        queue.iter().filter(|ad| ad["JobStatus"] == 5).collect();
    held.sort_by_key(|ad| (ad["ClusterId"].as_i64(), ad["ProcId"].as_i64()));
    assert_eq!(
        found,
        held.iter()
            .map(|ad| format!("{}.{}", ad["ClusterId"], ad["ProcId"]))
            .collect::<Vec<_>>()
    );
    for (advice, ad) in advice.iter().zip(held) {
        assert_eq!(
            (&advice["hold_code"], &advice["hold_subcode"]),
            (&ad["HoldReasonCode"], &ad["HoldReasonSubCode"])
        );
        let since_s = advice["held_since_ms"].as_i64().expect("ms") / 1000;
        assert!(
            (since_s - ad["EnteredCurrentStatus"].as_i64().expect("s")).abs() <= 1,
            "{advice}"
        );
    }
}

#[test]
fn the_model_answers_where_no_rule_does() {
    let place = Place::with_answers();
    let filters = [
        (r"unchanged: \d+ %", "unchanged: ## %"),
        (r"\d\.\d{2}\b", "#.##"),
    ];
    insta::with_settings!({filters => filters}, {
        insta::assert_snapshot!(place.run("advise run --log EventLog.xz 1185.0"), @r#"
        exit 10
        1185.0: FIX, THEN RELEASE
          why: released unchanged, it succeeds with a probability of less than 1 % now, and of less than 1 % later; 409 of 1,248 earlier holds for this reason succeeded after release, 2 of the last ten; this reason in cluster 1185: last failure 2026-11-21 02:26:05 UTC, no success since
          because: fault_stays
          hold code 12/2: output files could not be transferred back: no such file or directory
          held since 2026-11-21 02:26:05 UTC, 12 s when the log ends
          held 3 times so far, 3 times for this reason; 3 other jobs of its cluster are held for it now
          probability of success if released unchanged: less than 1 %
          similar earlier answers: 53 of 53 were right (100 %, at least 95 %)
          hold reason: Transfer output files failure at execution point slot1_20@localhost while sending files to access point localhost. Details: 1 total failures: first failure: reading from file /var/lib/condor/execute/dir_53094/scratch/out.txt: (errno 2) No such file or directory
          owner: tester
          run: condor_q -hold 1185.0
          once it is fixed: condor_release -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795227967 && Owner=="tester" && ClusterId==1185 && ProcId==0'
        log of localhost: 2026-11-21 01:49 to 2026-11-21 02:26 UTC, 2,119 holds
        rules answer, and the outcomes of earlier holds: learned until 2026-11-21 02:26
          UTC (0 holds since), rehearsed on its log: right about 131 of 141 faults, and
          in 23 of 23 firm answers
        good until 2026-11-21 02:26:29 UTC, which is over: ask with `--queue now`
        "#);
    });
}

#[test]
fn cluster_id_selects_all_its_held_jobs() {
    let place = Place::with_answers();
    let text = place
        .run("advise run --log EventLog.xz 1185 --long --sort id")
        .stdout;
    let heads = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(job, _)| job)
        .filter(|job| job.starts_with("1185"));
    let jobs: Vec<&str> = heads.collect();
    assert_eq!(jobs, ["1185.0", "1185.1", "1185.2", "1185.3"]);
}

#[test]
fn costs_choose_the_action() {
    let place = Place::with_answers();
    let action = |settings: &str| {
        place.copy_all(&place.path("run"), settings);
        let config =
            fs_err::read_to_string(place.path(settings).join("config.yaml")).expect("read");
        let (before, rest) = config.split_once("advice:\n").expect("a key");
        let after: Vec<&str> = rest
            .lines()
            .skip_while(|line| line.starts_with(' '))
            .collect();
        let advice = match settings {
            "release" => {
                "{precision: 0.9, probable_precision: 0.9, cost: {wasted_run: 1.0, lost_success: 1000.0}, remove_from_holds: 5, rehearsed_models: 1, prior: false}"
            }
            "fix" => {
                "{precision: 0.9, probable_precision: 0.9, cost: {wasted_run: 1000.0, lost_success: 1.0}, remove_from_holds: 5, rehearsed_models: 1, prior: false}"
            }
            _ => {
                "{precision: 0.9, probable_precision: 0.9, cost: {wasted_run: 1000.0, lost_success: 1.0}, remove_from_holds: 1, rehearsed_models: 1, prior: false}"
            }
        };
        place.write(
            &format!("{settings}/config.yaml"),
            format!("{before}advice: {advice}\n{}\n", after.join("\n")),
        );
        let outcome = place.run(&format!("advise {settings} --log EventLog.xz 1185.0"));
        let first = outcome.stdout.lines().next().unwrap_or_default().to_owned();
        (
            outcome.code,
            first,
            outcome
                .stdout
                .lines()
                .rfind(|line| line.contains("condor_"))
                .map(str::trim)
                .map(str::to_owned),
        )
    };
    let said = |code, first: &str, last: Option<&str>| {
        (Some(code), first.to_owned(), last.map(str::to_owned))
    };
    let guarded = "-constraint 'JobStatus==5 && EnteredCurrentStatus<=1795227967 && Owner==\"tester\" && ClusterId==1185 && ProcId==0'";
    assert_eq!(
        action("release"),
        said(
            0,
            "1185.0: RELEASE AS IT IS",
            Some(&format!("run: condor_release {guarded}"))
        )
    );
    assert_eq!(
        action("fix"),
        said(
            10,
            "1185.0: FIX, THEN RELEASE",
            Some(&format!("once it is fixed: condor_release {guarded}"))
        )
    );
    assert_eq!(
        action("remove"),
        said(
            20,
            "1185.0: REMOVE",
            Some(&format!("run: condor_rm {guarded}"))
        )
    );
}

#[test]
fn a_hold_on_purpose_is_left_alone() {
    let place = Place::with_answers();
    place.write(
        "EventLog",
        "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <10.0.0.1:9618>\n...\n\
         012 (1.0.0) 2026-11-21 01:50:20 Job was held.\n\tvia condor_hold (by user ada)\n\tCode 1 Subcode 0\n...\n",
    );
    insta::assert_snapshot!(without_scores(&place.run("advise run --log EventLog 1.0")), @"
    exit 30
    1.0: LEAVE IT HELD
      why: ada holds the job on purpose; release it once that reason is gone
      because: reason_states_it
      hold code 1/0: held by a person (condor_hold)
      held since 2026-11-21 01:50:20 UTC, 0 s when the log ends
      held once so far, once for this reason; no other job of its cluster is held for it now
      hold reason: via condor_hold (by user ada)
      once the reason to hold it is gone: condor_release -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795225822 && ClusterId==1 && ProcId==0'
    log of 10.0.0.1: 2026-11-21 01:50 to 2026-11-21 01:50 UTC, 1 hold
    no model: rules for hold codes answer
    ");
}

#[test]
fn jobs_that_are_not_held_are_told_apart() {
    let place = Place::with_answers();
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz 999999.0"), @"
    exit 2
    error: job 999999.0 is not in the log

    hint: omit the job ids to get advice on every held job
    ");
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz 999999"), @"
    exit 2
    error: cluster 999999 is not in the log

    hint: omit the job ids to get advice on every held job
    ");
    let ended = place.stdout("advise run --log EventLog.xz 1.0");
    let first =
        "job 1.0 succeeded: it terminated with exit code 0 at 2026-11-21 01:50:00 UTC\nlog of ";
    assert!(ended.starts_with(first), "{ended}");
    let both = place.stdout("advise run --log EventLog.xz 1161.0 1");
    assert!(
        both.contains("job 1.1 ") && both.contains("1 of 8 held jobs: "),
        "{both}"
    );
    insta::assert_snapshot!(place.run("advise run twelve --log EventLog.xz"), @"
    exit 2
    error: `twelve` is neither a job id nor a file or directory

    hint: write `123.0` for a job, `123` for a cluster, or the path of a log, of a directory of logs or of a run
    ");
}

#[test]
fn missing_pieces_are_named() {
    let place = Place::with_answers();
    insta::assert_snapshot!(place.run("advise run/events --log EventLog.xz"), @"
    exit 2
    error: `run/events` has no finished run

    hint: name the directory that `poolcast learn`, `run` or `train` wrote, once it has ended
    ");
    insta::assert_snapshot!(place.run("advise run --log nowhere"), @"
    exit 2
    error: cannot read the log `nowhere`
      caused by: cannot open the log `nowhere`
      caused by: failed to open file `nowhere`: No such file or directory (os error 2)

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    place.copy("run", "half");
    fs_err::remove_file(place.path("half/manifest.json")).expect("removed");
    let unfinished = place.run("advise half --log EventLog.xz");
    assert!(
        unfinished.stderr.contains("`half` has no finished run"),
        "{unfinished}"
    );
}

#[test]
fn nobody_is_held() {
    let place = Place::with_answers();
    place.write(
        "EventLog",
        "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <10.0.0.1:9618>\n...\n",
    );
    insta::assert_snapshot!(without_scores(&place.run("advise run --log EventLog")), @"
    exit 0
    no job is held when the log ends
    log of 10.0.0.1: 2026-11-21 01:50 to 2026-11-21 01:50 UTC, 0 holds
    no model: rules for hold codes answer
    ");
}

/// Returns the printed text without the scores of the model, which differ between processors.
fn without_scores(outcome: &crate::place::Outcome) -> String {
    let mut text = String::new();
    for line in outcome.to_string().lines() {
        let is_score = line.contains("ROC-AUC") || line.starts_with("  [");
        match line.find("ROC-AUC").or(line.find('[')).filter(|_| is_score) {
            Some(at) => {
                text.push_str(&line[..at]);
                text.push_str(&line[at..].replace(|c: char| c.is_ascii_digit(), "#"));
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// Returns a log of one job with `records`, each an event number and a second.
fn log_of(records: &[(u16, u32)]) -> String {
    let text = |&(number, second): &(u16, u32)| {
        let body = match number {
            0 => "Job submitted from host: <10.0.0.1:9618>",
            9 => "Job was aborted.\n\tvia condor_rm (by user ada)",
            12 => "Job was held.\n\tdisk quota\n\tCode 6 Subcode 122",
            _ => "Job was released.\n\tvia condor_release (by user ada)",
        };
        format!("{number:03} (1.0.0) 2026-11-21 01:50:{second:02} {body}\n...\n")
    };
    records.iter().map(text).collect()
}

#[test]
fn events_of_one_second_keep_their_order() {
    let place = Place::with_answers();
    let said = |records: &[(u16, u32)]| {
        place.write("EventLog", log_of(records));
        let outcome = place.run("advise run --log EventLog --json --exit-code");
        let document: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        (outcome.code, document["counts"].to_string())
    };
    let held = (Some(10), r#"{"fix":1}"#.to_owned());
    let not_held = (Some(0), "{}".to_owned());
    assert_eq!(said(&[(0, 0), (12, 5), (13, 5), (12, 5)]), held);
    assert_eq!(said(&[(0, 0), (12, 5), (12, 5), (13, 5)]), not_held);
    assert_eq!(said(&[(0, 0), (9, 5), (12, 5)]), not_held, "removed");
    assert_eq!(said(&[(0, 0), (12, 5), (9, 5)]), not_held, "removed");
}

#[test]
fn a_quota_is_no_path() {
    let place = Place::with_answers();
    place.write("EventLog", log_of(&[(0, 0), (12, 5)]));
    insta::assert_snapshot!(without_scores(&place.run("advise run --log EventLog 1.0")), @"
    exit 10
    1.0: FIX, THEN RELEASE
      why: the machine could not start the program: disk quota; a disk quota is used up: remove files or ask for a larger quota
      because: reason_states_it
      hold code 6/122: the program could not be started: quota exceeded
      held since 2026-11-21 01:50:05 UTC, 0 s when the log ends
      held once so far, once for this reason; no other job of its cluster is held for it now
      hold reason: disk quota
      run: condor_q -hold 1.0
      once it is fixed: condor_release -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795225807 && ClusterId==1 && ProcId==0'
    log of 10.0.0.1: 2026-11-21 01:50 to 2026-11-21 01:50 UTC, 1 hold
    no model: rules for hold codes answer
    ");
}

#[test]
fn piped_log_gets_the_same_advice_as_a_file() {
    let place = Place::with_answers();
    place.write("EventLog", log_of(&[(0, 0), (12, 5)]));
    let log = fs_err::File::open(place.path("EventLog")).expect("opened");
    let mut command = place.command("advise run --log - 1.0");
    // The program must not read its standard input twice, as it may be a pipe.
    let outcome = crate::place::Outcome::of(
        command
            .stdin(log.into_file())
            .output()
            .expect("the program starts"),
    );
    assert_eq!(
        (outcome.code, outcome.stdout),
        (Some(10), place.run("advise run --log EventLog 1.0").stdout)
    );
}

/// Returns the output of a call with `COLUMNS` set to `columns`.
fn view(place: &Place, columns: usize, args: &str) -> String {
    let mut command = place.command(&format!("advise run --log EventLog.xz {args}"));
    let output = command.env("COLUMNS", columns.to_string()).output();
    crate::place::Outcome::of(output.expect("the program starts")).to_string()
}

#[test]
fn views_fit_their_width() {
    let place = Place::with_answers();
    let filters = [
        (r" *(\d+-)?\d+%", " ##%"),
        (r"\d\.\d{2}\b", "#.##"),
        (r"unchanged: \d+ %", "unchanged: ## %"),
    ];
    insta::with_settings!({filters => filters}, {
        for columns in [80, 120] {
            for (name, args) in [("page", ""), ("jobs", "--jobs --sort id"), ("fix", "--action fix --long")] {
                let text = view(&place, columns, args);
                let is_command = |line: &&str| line.contains("condor_");
                let is_table = name != "fix";
                let longest = text.lines().filter(|line| !is_command(line)).map(|line| line.chars().count()).max();
                assert!(!is_table || longest <= Some(columns), "{text}");
                insta::assert_snapshot!(format!("advice_{name}_{columns}"), text);
            }
        }
        insta::assert_snapshot!("advice_one_job", view(&place, 80, "1161.0"));
    });
}

#[test]
fn ids_lists_jobs_to_release_or_the_selected_jobs() {
    let place = Place::with_answers();
    let ids = |args: &str| place.stdout(&format!("advise run --log EventLog.xz --ids {args}"));
    assert_eq!(ids(""), "", "no job is to be released");
    assert_eq!(ids("--action fix --code 13"), "1161.0\n");
    assert_eq!(ids("--action fix --code 13/3"), "");
    assert_eq!(
        ids("--action none --action fix --cluster 1185 --sort id"),
        "1185.0\n1185.1\n1185.2\n1185.3\n"
    );
    assert_eq!(ids("--action none --owner nobody"), "");
    assert_eq!(
        ids("--action none --action fix --owner tester")
            .lines()
            .count(),
        8
    );
}

#[test]
fn cause_name_selects_the_jobs_of_its_group() {
    let place = Place::with_answers();
    let document = place.json("advise run --log EventLog.xz --json");
    let groups = document["groups"].as_array().expect("a list");
    let mut jobs = 0;
    for group in groups {
        let cause = group["cause"].as_str().expect("a name");
        let ids = place.stdout(&format!(
            "advise run --log EventLog.xz --cause {cause} --ids"
        ));
        let expected: Vec<&str> = group["jobs"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|id| id.as_str().expect("an id"))
            .collect();
        let mut found: Vec<&str> = ids.lines().collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{group}");
        jobs += found.len();
    }
    assert_eq!(jobs, 8, "each job is of one group");
}

#[test]
fn advice_notes_a_gap_and_another_access_point() {
    let place = Place::with_answers();
    let submitted = |sequence: u32, ap: &str, minute: u32| {
        format!(
            "008 (-01.-01.-01) 2026-11-21 01:{minute}:00 Global JobLog: ctime=17952258{minute} id=0 sequence={sequence} size=0 events=0 \
             offset=0 event_off=0 max_rotation=5 creator_name=<{ap}>\n...\n\
             000 ({sequence}.0.0) 2026-11-21 01:{minute}:10 Job submitted from host: <10.0.0.1:9618>\n...\n\
             012 ({sequence}.0.0) 2026-11-21 01:{minute}:20 Job was held.\n\tno\u{1b} file\n\tCode 12 Subcode 2\n...\n"
        )
    };
    // The model is a trial of a sweep on another access point, and a generation is missing.
    fs_err::create_dir_all(place.path("out/trials")).expect("made");
    place.copy("events", "out/events");
    place.copy("run", "out/trials/trial-0001");
    place.write("EventLog", submitted(1, "ap9", 50));
    place.write("later", submitted(3, "ap9", 52));
    let asked = "advise out/trials/trial-0001 --log EventLog --log later";
    let said = place.run(asked);
    insta::with_settings!({filters => [(r"\d\.\d{2}\b", "#.##"), (r" *(\d+-)?\d+%", " ##%")]}, {
        insta::assert_snapshot!("advice_gap_and_other_access_point", said);
        let wide = format!("{asked} --jobs");
        let output = place.command(&wide).env("COLUMNS", "120").output();
        let said = crate::place::Outcome::of(output.expect("the program starts"));
        insta::assert_snapshot!("advice_gap_and_other_access_point_jobs_120", said);
    });
}

/// A job that is held because its input `/home/ada/in/FILE` is missing: proc and file, and the
/// minutes of the hold and, if there are any, of the release and of the success.
type MissingInput = (u32, &'static str, u32, Option<(u32, u32)>);

/// Returns the log of the cluster 7 with these jobs, in order of time.
fn log_of_missing_inputs(jobs: &[MissingInput]) -> String {
    let mut records = Vec::new();
    for &(proc, file, held, end) in jobs {
        let mut add = |minute: u32, number: u16, body: String| {
            let (hour, minute) = (2 + minute / 60, minute % 60);
            let text = format!(
                "{number:03} (007.{proc:03}.000) 2026-11-21 {hour:02}:{minute:02}:00 {body}\n...\n"
            );
            records.push((hour * 60 + minute, text));
        };
        add(0, 0, "Job submitted from host: <10.0.0.1:9618>".to_owned());
        let held_body = format!(
            "Job was held.\n\tTransfer input files failure at access point localhost while sending files to execution point \
             slot1_{proc}@localhost. Details: 1 total failures: first failure: reading from file /home/ada/in/{file}: \
             (errno 2) No such file or directory\n\tCode 13 Subcode 2"
        );
        add(held, 12, held_body);
        if let Some((released, ended)) = end {
            add(
                released,
                13,
                "Job was released.\n\tvia condor_release (by user ada)".to_owned(),
            );
            add(
                ended - 1,
                1,
                "Job executing on host: <10.0.0.2:9618>".to_owned(),
            );
            add(
                ended,
                5,
                "Job terminated.\n\t(1) Normal termination (return value 0)".to_owned(),
            );
        }
    }
    records.sort_by_key(|(minute, _)| *minute);
    records.into_iter().map(|(_, text)| text).collect()
}

/// Returns the ground of the advice on job `7.PROC` of the log with these jobs.
fn ground_of(jobs: &[MissingInput], proc: u32) -> (String, String) {
    let place = Place::with_answers();
    place.write("EventLog", log_of_missing_inputs(jobs));
    let document: serde_json::Value = serde_json::from_str(
        &place
            .run(&format!("advise run --log EventLog --json 7.{proc}"))
            .stdout,
    )
    .expect("JSON");
    let advice = &document["advice"][0];
    let text = |key: &str| advice[key].as_str().unwrap_or_default().to_owned();
    (text("ground"), text("action"))
}

#[test]
fn successes_for_other_files_do_not_overrule_a_rule() {
    let mut jobs: Vec<MissingInput> = (0..40)
        .map(|proc| (proc, "site.dat", 10, Some((20, 30))))
        .collect();
    jobs.push((99, "typo.dat", 40, None));
    let by_rule = ("rule".to_owned(), "fix".to_owned());
    assert_eq!(ground_of(&jobs, 99), by_rule);
}

#[test]
fn one_job_past_the_same_missing_file_overrules_a_rule() {
    let by_rule = ("rule".to_owned(), "fix".to_owned());
    let ground = |released: u32| {
        let jobs = [
            (1, "site.dat", 10, Some((released, 50))),
            (2, "site.dat", 30, None),
            (3, "site.dat", 60, None),
        ];
        ground_of(&jobs, 2)
    };
    assert_ne!(ground(40), by_rule, "released since the hold");
    assert_eq!(ground(20), by_rule, "released before the hold");
}
