//! Tests of the output of `poolcast advise` for people: on terminals of two widths, with ages and
//! colours, with and without a queue, and with three hundred held jobs.

use std::fmt::Write as _;

use crate::advise_probes::{log_of_two, released};
use crate::place::{LOG_TEXT, Outcome, Place, queue};
use crate::run::SMALL;
use crate::terminal::run_on_terminal;

/// Filters for text that differs between processors or builds: probabilities, scores, and the
/// digest of the model.
const FILTERS: [(&str, &str); 5] = [
    (r"[0-9a-f]{64}", "DIGEST"),
    (r" *(\d+-)?\d+%", " ##%"),
    (r"\d\.\d{3,}", "#.###"),
    (r"\d\.\d{2}\b", "#.##"),
    (r"unchanged: \d+ %", "unchanged: ## %"),
];

/// Returns the output on a terminal of `columns`, where `\e` stands for the escape character before
/// a colour.
fn on_terminal(place: &Place, columns: u16, args: &str) -> String {
    let call = format!("advise run {args}");
    let outcome = run_on_terminal(place, &call, (columns, 40), &[("PAGER", "cat")]);
    outcome.to_string().replace('\u{1b}', "\\e")
}

/// Returns the output to a pipe, with `COLUMNS` set as a shell may set it.
fn in_pipe(place: &Place, columns: u16, args: &str) -> String {
    let mut command = place.command(&format!("advise run {args}"));
    command.env("COLUMNS", columns.to_string());
    Outcome::of(command.output().expect("the program starts")).to_string()
}

/// A test directory with the bundled log and its queue.
fn place_with_queue() -> Place {
    let place = Place::with_answers();
    let text = serde_json::to_string(&queue()).expect("JSON");
    place.write("queue.json", text);
    place
}

#[test]
fn terminals_show_ages_and_colours() {
    let place = place_with_queue();
    let views = [
        ("page", "--log EventLog.xz"),
        ("page_of_queue", "--log EventLog.xz --queue queue.json"),
        ("jobs", "--log EventLog.xz --jobs --sort id"),
        ("long", "--log EventLog.xz --long --action fix"),
        ("one_job", "--log EventLog.xz 1161.0"),
        ("none", "--log EventLog.xz --owner nobody"),
    ];
    insta::with_settings!({filters => FILTERS}, {
        for (name, args) in views {
            for columns in [80, 120] {
                let shown = on_terminal(&place, columns, args);
                insta::assert_snapshot!(format!("terminal_{name}_{columns}"), shown);
            }
        }
    });
}

#[test]
fn programs_and_pipes_get_the_same_at_any_width() {
    let place = place_with_queue();
    let of_queue = "--log EventLog.xz --queue queue.json";
    insta::with_settings!({filters => FILTERS}, {
        for (name, args) in [
            ("jobs", format!("{of_queue} --jobs --sort id")),
            ("long", format!("{of_queue} --long --action fix")),
        ] {
            for columns in [80, 120] {
                let printed = in_pipe(&place, columns, &args);
                insta::assert_snapshot!(format!("queue_{name}_{columns}"), printed);
            }
        }
        insta::assert_snapshot!("queue_one_job", in_pipe(&place, 80, &format!("{of_queue} 1161.0")));
        insta::assert_snapshot!("json", in_pipe(&place, 80, &format!("{of_queue} 1161.0 --json")));
        insta::assert_snapshot!("ids", in_pipe(&place, 80, "--log EventLog.xz --ids --action none --sort id"));
    });
    for args in ["--json", "--ids --action none"] {
        let args = format!("{of_queue} {args}");
        assert_eq!(in_pipe(&place, 80, &args), in_pipe(&place, 120, &args));
    }
}

#[test]
fn colours_follow_the_environment() {
    let place = Place::with_answers();
    let is_coloured = |variables: &[(&str, &str)]| {
        let mut command = place.command("advise run --log EventLog.xz --jobs");
        let output = command.envs(variables.iter().copied()).output();
        Outcome::of(output.expect("it starts"))
            .stdout
            .contains('\u{1b}')
    };
    assert!(!is_coloured(&[]));
    assert!(is_coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!is_coloured(&[("CLICOLOR_FORCE", "0")]));
    assert!(!is_coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    let args = "advise run --log EventLog.xz --jobs";
    let calm = [("CLICOLOR", "0"), ("PAGER", "cat")];
    let shown = run_on_terminal(&place, args, (80, 40), &calm);
    assert!(!shown.stdout.contains('\u{1b}'), "{shown}");
}

/// Returns a log of three hundred held jobs, of clusters from `first` on, with many hold reasons.
/// Every third cluster, a hundred jobs in all, misses the same file. Fifty jobs used too much
/// memory. Each of the other missing files concerns few jobs.
fn crowded_log(first: u32) -> String {
    let mut log = String::new();
    for number in 0..300_u32 {
        let cluster = first + number;
        let (minute, second) = (number / 60, number % 60);
        let missing = |file: &str| {
            format!(
                "Transfer input files failure at access point ap while sending files to execution point slot1@node. \
                 Details: reading from file /home/ada/in/{file}: (errno 2) No such file or directory\n\tCode 13 Subcode 2"
            )
        };
        let reason = match number % 3 {
            0 => missing("sample.dat"),
            1 if number < 150 => {
                "Error from slot1@node: memory usage exceeded request_memory\n\tCode 34 Subcode 102"
                    .to_owned()
            }
            _ => missing(&format!(
                "part-{}.dat",
                char::from(b'a' + (number % 26) as u8)
            )),
        };
        write!(
            log,
            "000 ({cluster}.0.0) 2026-11-21 01:{minute:02}:{second:02} Job submitted from host: <10.0.0.1:9618>\n...\n\
             012 ({cluster}.0.0) 2026-11-21 02:{minute:02}:{second:02} Job was held.\n\t{reason}\n...\n"
        )
        .expect("written");
    }
    log
}

/// Returns the number of rows that `page` takes at a width of `columns`.
fn row_count(page: &str, columns: u16) -> usize {
    let rows_of = |line: &str| line.chars().count().div_ceil(columns.into()).max(1);
    page.lines().map(rows_of).sum()
}

#[test]
fn three_hundred_jobs_fit_on_one_screen() {
    let place = Place::with_answers();
    place.write("EventLog", crowded_log(100));
    insta::with_settings!({filters => FILTERS}, {
        for columns in [80, 120] {
            let page = in_pipe(&place, columns, "--log EventLog");
            assert!(row_count(&page, columns) <= 24, "{page}");
            insta::assert_snapshot!(format!("crowd_{columns}"), page);
        }
    });
}

/// Returns a log of held jobs, of clusters from `first` on: two jobs for each of `causes` missing
/// files, and one that used too much memory.
fn scattered_log(first: u32, causes: u8) -> String {
    let mut log = String::new();
    for number in 0..2 * u32::from(causes) + 1 {
        let file = (number / 2) as u8;
        let reason = if file < causes {
            let name = [b'a' + file / 26, b'a' + file % 26].map(char::from);
            let name: String = name.into_iter().collect();
            format!(
                "Transfer input files failure at access point ap while sending files to execution point slot1@node. \
                 Details: reading from file /home/ada/in/{name}.dat: (errno 2) No such file or directory\n\tCode 13 Subcode 2"
            )
        } else {
            "Error from slot1@node: memory usage exceeded request_memory\n\tCode 34 Subcode 102"
                .to_owned()
        };
        let cluster = first + number;
        let (minute, second) = (number / 60, number % 60);
        let memory = if file < causes {
            ""
        } else {
            "\t300  -  MemoryUsage of job (MB)\n\t300000  -  ResidentSetSize of job (KB)\n"
        };
        write!(
            log,
            "000 ({cluster}.0.0) 2026-11-21 01:{minute:02}:{second:02} Job submitted from host: <10.0.0.1:9618>\n...\n\
             028 ({cluster}.0.0) 2026-11-21 01:{minute:02}:{second:02} Job ad information event triggered.\n\
             Owner = \"ada\"\nRequestMemory = 128\n...\n\
             006 ({cluster}.0.0) 2026-11-21 01:{minute:02}:{second:02} Image size of job updated: 300000\n{memory}...\n\
             012 ({cluster}.0.0) 2026-11-21 02:{minute:02}:{second:02} Job was held.\n\t{reason}\n...\n"
        )
        .expect("written");
    }
    log
}

/// The page has room for a command, and `--all` has the commands for all causes.
#[test]
fn eighteen_causes_are_two_things() {
    let place = Place::with_answers();
    place.write("EventLog", scattered_log(100, 17));
    for columns in [80, 120] {
        let page = in_pipe(&place, columns, "--log EventLog");
        assert!(row_count(&page, columns) <= 24, "{page}");
        assert!(page.contains("own input file missing"), "{page}");
        assert!(page.contains("asked less memory than used"), "{page}");
        assert!(page.contains("condor_qedit "), "{page}");
        assert!(!page.contains(" more job"), "{page}");
    }

    let all = place.stdout("advise run --log EventLog --all");
    assert_eq!(
        all.matches("once fixed: condor_release").count(),
        17,
        "{all}"
    );
    assert!(
        all.contains("#2 asked less memory than used: 1 job "),
        "{all}"
    );
    assert!(!all.contains(" --all"), "{all}");
}

/// Returns a log of a job for each of `servers` servers that do not answer, and more jobs for the first ones.
fn log_of_servers(servers: u8) -> String {
    let mut log = String::new();
    let mut cluster = 100;
    for server in 0..servers {
        for _ in 0..=servers - server {
            let name = char::from(b'a' + server);
            let reason = format!(
                "Transfer input files failure at execution point slot1@node using protocol https. Details: Transfer.TimedOut \
                 ( URL file = https://{name}.example.org/in.dat )"
            );
            write!(
                log,
                "000 ({cluster}.0.0) 2026-11-21 01:00:00 Job submitted from host: <10.0.0.1:9618>\n...\n\
                 012 ({cluster}.0.0) 2026-11-21 02:00:00 Job was held.\n\t{reason}\n\tCode 13 Subcode 256\n...\n"
            )
            .expect("written");
            cluster += 1;
        }
    }
    log
}

#[test]
fn things_beyond_ten_are_counted_with_a_command() {
    let place = Place::with_answers();
    place.write("EventLog", log_of_servers(13));
    let page = in_pipe(&place, 80, "--log EventLog");
    assert!(page.contains("10      5  91%  LATER "), "{page}");
    let more = "    9 more jobs in 3 things: poolcast advise run --log EventLog --all";
    assert!(page.contains(more), "{page}");
    assert!(!page.contains("m.example.org"), "{page}");

    let all = place.stdout("advise run --log EventLog --all");
    assert!(all.contains("#13 server m.example.org: 2 jobs "), "{all}");
}

#[test]
fn screen_of_a_terminal_is_never_longer_than_24_rows() {
    let place = Place::with_answers();
    let long_name = "event-log-of-the-access-point";
    place.write("EventLog", log_of_servers(20));
    place.write(long_name, log_of_servers(20));
    for (columns, log) in [(80, "EventLog"), (120, "EventLog"), (80, long_name)] {
        let outcome = run_on_terminal(
            &place,
            &format!("advise run --log {log}"),
            (columns, 24),
            &[("PAGER", "cat"), ("NO_COLOR", "1")],
        );
        // The prompt of the shell has the last row.
        assert!(row_count(&outcome.stdout, columns) <= 23, "{outcome}");
        assert!(outcome.stdout.contains(" more jobs in "), "{outcome}");
    }
}

/// The page has the command of a release: it is all that a user has to type.
#[test]
fn release_has_its_command_on_the_page() {
    let place = Place::with_answers();
    place.copy_all(&place.path("run"), "mine");
    let config = fs_err::read_to_string(place.path("mine/config.yaml")).expect("read");
    place.write(
        "mine/config.yaml",
        config.replace("prior: false", "prior: true"),
    );
    // Job 8.0 got past the fault for which 7.0 is still held.
    let others = scattered_log(99, 49).replace(
        "Error from slot1@node: memory usage exceeded request_memory\n\tCode 34 Subcode 102",
        "Transfer input files failure at access point localhost: reading from file /home/ada/in/other.dat: (errno 2) No such file or directory\n\tCode 13 Subcode 2",
    );
    let log = log_of_two() + &released(8, 60, 0) + &others;
    place.write("EventLog", log);
    let page = place.stdout("advise mine --log EventLog");
    assert!(page.contains(" TRY 1 of 1 "), "{page}");
    assert!(page.contains("\n  condor_release -constraint "), "{page}");
}

#[test]
fn run_prints_numbers_that_advise_opens() {
    let place = Place::with_log();
    let mut log = LOG_TEXT.clone();
    // Another group of repairs, for the one job with a firm answer, would change the command.
    log.push_str("009 (1161.000.000) 11/21 02:30:00 Job was aborted.\n\tvia condor_rm (by user tester)\n...\n");
    let crowd = scattered_log(90_000, 45);
    let later = crowd.replace("2026-11-21 02:", "11/21 04:");
    log.push_str(&later.replace("2026-11-21 01:", "11/21 03:"));
    place.write("EventLog", log);
    let small = SMALL
        .replace("runs: 3", "runs: 1")
        .replace("EventLog.xz", "EventLog");
    place.write("small.yaml", small);

    let printed = place.stdout("run small.yaml");
    assert!(
        printed.contains("\npoolcast advise out --thing 1 "),
        "{printed}"
    );
    let row = printed.lines().find(|line| line.starts_with(" 1 "));
    let row = row.unwrap_or_else(|| panic!("no first row in\n{printed}"));
    let jobs = row.split_ascii_whitespace().nth(1).expect("a number");
    let ids = place.stdout("advise out --thing 1 --jobs");
    // A line has the names of the columns.
    assert!(
        ids.lines().count() > jobs.parse().expect("a number"),
        "{ids}"
    );
}

#[test]
fn long_command_calls_poolcast_for_ids_unless_the_log_was_piped() {
    let place = Place::with_answers();
    place.write("EventLog", crowded_log(100));
    let page = place.stdout("advise run --log EventLog --action fix --code 13 --all");
    let short = page
        .lines()
        .find(|line| line.contains("| xargs -n 1000 sh -c 'condor_release -constraint"));
    let (call, _) = short
        .expect("a command for a hundred jobs")
        .split_once(" | xargs ")
        .expect("two commands");
    let (_, call) = call.split_once("poolcast ").expect("a call");
    assert!(call.contains("--code 13") && call.contains("--action fix"));
    assert_eq!(place.stdout(call).lines().count(), 100, "{call}");

    // A log from standard input cannot be read again, so the page shows the whole command. In a
    // pipe, a command is one line.
    let log = fs_err::File::open(place.path("EventLog")).expect("opened");
    let mut command = place.command("advise run --log - --all");
    let outcome = Outcome::of(command.stdin(log.into_file()).output().expect("it starts"));
    let whole = outcome
        .stdout
        .lines()
        .find(|line| line.contains("condor_release -constraint"));
    let whole = whole.unwrap_or_else(|| panic!("no constraint in\n{outcome}"));
    assert!(whole.len() > 240 && whole.ends_with('\''), "{whole}");
}
