//! Tests of advice by a look at the files that holds name.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::json_documents::{PrintedKeys, print_all};
use crate::place::{Outcome, Place};

/// A user with the rights of the process, who owns the jobs.
const OWNER: &str = "root";

/// A user whom every machine has, and its number.
const DAEMON: (&str, u32) = ("daemon", 1);

/// Returns the ad of a job that has been held since 1970, for an input file at the access point.
fn held_for_input(cluster: u32, path: &str) -> Value {
    let reason = format!(
        "Transfer input files failure at access point ap40 while sending files to execution point slot1@e. \
         Details: reading from file {path}: (errno 2) No such file or directory"
    );
    held(cluster, 13, 2, &reason)
}

fn held(cluster: u32, code: u32, subcode: u32, reason: &str) -> Value {
    json!({"ClusterId": cluster, "ProcId": 0, "JobStatus": 5, "GlobalJobId": format!("ap40#{cluster}.0#9"), "Owner": OWNER,
        "HoldReasonCode": code, "HoldReasonSubCode": subcode, "HoldReason": reason, "EnteredCurrentStatus": 1000, "NumHolds": 1})
}

fn held_for_output(cluster: u32, path: &str) -> Value {
    let reason = format!(
        "Transfer output files failure at access point ap40 while receiving files from execution point slot1@e. \
         Details: writing to file {path}: (errno 28) No space left on device"
    );
    let mut job = held(cluster, 12, 28, &reason);
    job["DiskUsage"] = 1.into();
    job
}

/// A directory with files of jobs. It is not in `/dev/shm`, where nothing is looked at.
struct JobFiles(tempfile::TempDir);

impl JobFiles {
    /// Makes a directory with an input file of this name.
    fn with_input(name: &str) -> JobFiles {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        fs_err::write(dir.path().join(name), "data").expect("written");
        JobFiles(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("text").to_owned()
    }
}

fn write_queue(place: &Place, jobs: &[Value]) {
    place.write("queue.json", serde_json::to_string(jobs).expect("JSON"));
}

/// Calls `advise` on the queue, by the owner of the jobs.
fn advise(place: &Place, options: &str) -> Outcome {
    let mut command = place.command(&format!("advise --queue queue.json {options}"));
    Outcome::of(command.env("USER", OWNER).output().expect("it starts"))
}

/// Calls `advise` on the jobs in the queue of this access point, by their owner.
fn advise_on_queue(place: &Place, options: &str) -> Outcome {
    let mut command = queue_command(place, &format!("advise --all-users {options}"));
    Outcome::of(command.output().expect("it starts"))
}

/// Returns a call by the owner of the jobs, in which `condor_q` prints the queue.
pub(crate) fn queue_command(place: &Place, args: &str) -> std::process::Command {
    let list = place.path("queue.json").display().to_string();
    place.put_program("condor_q", &format!("cat {list}"));
    let mut command = place.command(args);
    let path = format!("{}:/usr/bin:/bin", place.path("").display());
    command.env("USER", OWNER).env("PATH", path);
    command
}

/// Returns the action, the firmness and the state of the look for each job.
fn answers(place: &Place, options: &str) -> Vec<String> {
    answers_in(&advise(place, &format!("{options} --sort id --json")))
}

/// Returns the same of a call that has printed JSON.
fn answers_in(outcome: &Outcome) -> Vec<String> {
    let document: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let jobs = document["advice"].as_array().expect("a list").iter();
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    jobs.map(|one| {
        let look = word(&one["look"]["state"]);
        [word(&one["action"]), word(&one["firmness"]), look].join(" ")
    })
    .collect()
}

/// Returns jobs that are held for an input file that is there, for one that is not, and for an output
/// file.
fn three_jobs(files: &JobFiles) -> [Value; 3] {
    [
        held_for_input(1, &files.path("in.dat")),
        held_for_input(2, &files.path("typo.dat")),
        held_for_output(3, &files.path("out.dat")),
    ]
}

/// Returns the keys for advice by looks.
pub(crate) fn look_documents() -> PrintedKeys {
    let place = Place::new();
    let files = JobFiles::with_input("in.dat");
    write_queue(&place, &three_jobs(&files));
    print_all(&place, &["advise --queue queue.json --look --json"])
}

#[test]
fn missing_files_are_fixed_and_files_that_came_back_are_released() {
    let place = Place::new();
    let files = JobFiles::with_input("in.dat");
    let mut jobs = three_jobs(&files).to_vec();
    jobs.extend([
        held_for_output(4, &files.path("none/out.dat")),
        held(
            5,
            14,
            2,
            "Cannot access initial working directory /no/such/run: No such file or directory",
        ),
    ]);
    write_queue(&place, &jobs);
    let seen = [
        "release firm changed",
        "fix firm missing",
        "release firm has_room",
        "fix firm missing",
        "fix probable no_directory",
    ];
    assert_eq!(answers(&place, "--look"), seen);
    let page = advise(&place, "--look").stdout;
    assert!(
        page.contains("checked now: ") && page.contains("does not exist"),
        "{page}"
    );
    let one = advise(&place, "--look 2.0");
    assert_eq!(one.code, Some(10), "{one}");
    let why = format!(
        "why: checked now: {} does not exist",
        files.path("typo.dat")
    );
    assert!(one.stdout.contains(&why), "{one}");

    let by_rule = [
        "fix - -",
        "fix - -",
        "later possible -",
        "later possible -",
        "fix - -",
    ];
    assert_eq!(answers(&place, "--no-look"), by_rule);
    assert_eq!(
        answers(&place, ""),
        by_rule,
        "the queue is of another machine"
    );
}

#[test]
fn jobs_of_one_cause_are_decided_file_by_file() {
    let place = Place::new();
    let files = JobFiles::with_input("in_1.dat");
    let jobs =
        [1, 2, 3].map(|number| held_for_input(number, &files.path(&format!("in_{number}.dat"))));
    write_queue(&place, &jobs);
    let outcome = advise(&place, "--look --json");
    let document: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let groups = document["groups"].as_array().expect("a list");
    let shown: Vec<String> = groups
        .iter()
        .map(|group| {
            format!(
                "{} {} {}",
                group["action"], group["jobs"], group["looked_files"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [r#""release" ["1.0"] 1"#, r#""fix" ["2.0","3.0"] 2"#]
    );
    let command = groups[0]["command"].as_str().expect("a command");
    assert!(command.contains("ClusterId==1 &&"), "{command}");
    let page = advise(&place, "--look").stdout;
    // A note is folded at the width of the page.
    let words: Vec<&str> = page.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("in_2.dat does not exist, like 1 other file"),
        "{page}"
    );
}

#[test]
fn devices_fifos_and_paths_of_execution_points_decide_nothing() {
    let place = Place::new();
    let files = JobFiles::with_input("in.dat");
    let fifo = files.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|status| status.success()));
    symlink("/dev/zero", files.path("device")).expect("a link");
    let at_ep = "Transfer input files failure at execution point slot1@e while receiving files from access point ap40. \
        Details: writing to file /no/such/file: (errno 2) No such file or directory";
    let jobs = [
        held_for_input(1, &fifo),
        held_for_input(2, &files.path("device")),
        held_for_input(3, "/proc/self/no-such-file"),
        held_for_input(4, "no-directory/relative.dat"),
        // Reasons lose repeated blanks, so this may be another name.
        held_for_input(5, &files.path("a b.dat")),
        held(6, 13, 2, at_ep),
        held(7, 1, 0, "via condor_hold"),
    ];
    write_queue(&place, &jobs);
    let seen = [
        "fix - unknown",
        "fix - unknown",
        "fix - unknown",
        "fix - -",
        "fix - unknown",
        "probe - -",
        "leave - -",
    ];
    assert_eq!(answers(&place, "--look"), seen);
}

#[test]
fn hostile_paths_are_escaped() {
    let place = Place::new();
    write_queue(
        &place,
        &[held_for_input(1, "/no/such\u{1b}[31m\u{202e}file")],
    );
    for options in ["--look", "--look --long", "--look 1.0", "--look --json"] {
        let outcome = advise(&place, options);
        let is_raw = |c: char| c == '\u{1b}' || c == '\u{202e}';
        assert!(!outcome.stdout.contains(is_raw), "{options}: {outcome}");
        assert!(outcome.stdout.contains("such"), "{options}: {outcome}");
    }
}

/// The page prints `once fixed: poolcast advise ... --cause NAME --ids | ...` for long lists of jobs.
#[test]
fn name_of_a_cause_finds_its_jobs_after_the_repair() {
    let place = Place::new();
    let files = JobFiles::with_input("other.dat");
    let mut jobs = [1, 2].map(|cluster| held_for_input(cluster, &files.path("in.dat")));
    jobs[1]["NumHolds"] = json!(2);
    write_queue(&place, &jobs);
    let document: Value =
        serde_json::from_str(&advise(&place, "--look --json").stdout).expect("JSON");
    let name = document["groups"][0]["cause"].as_str().expect("a name");
    let ids = || advise(&place, &format!("--look --cause {name} --ids")).stdout;
    assert_eq!(ids(), "1.0\n2.0\n");

    fs_err::write(files.path("in.dat"), "data").expect("written");
    assert_eq!(answers(&place, "--look"), ["release firm changed"; 2]);
    assert_eq!(ids(), "1.0\n2.0\n");

    // The repair is not known to be later than the failure.
    let now = std::time::UNIX_EPOCH.elapsed().expect("a time after 1970");
    for job in &mut jobs {
        job["EnteredCurrentStatus"] = json!(now.as_secs() + 60);
    }
    write_queue(&place, &jobs);
    let seen = ["release probable unchanged", "fix - unchanged"];
    assert_eq!(answers(&place, "--look"), seen);
    assert_eq!(ids(), "1.0\n2.0\n");
}

/// Begins a server that answers HEAD requests: it has `/there`, fails at `/broken`, and has nothing
/// else. Returns its URL, and the number of requests that it gets.
pub(crate) fn begin_server() -> (String, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            counted.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let status = match request.split(' ').take(2).collect::<Vec<&str>>()[..] {
                ["HEAD", "/there"] => "200 OK",
                ["HEAD", "/broken"] => "503 Service Unavailable",
                ["HEAD", _] => "404 Not Found",
                _ => "405 Method Not Allowed",
            };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (format!("http://{address}"), requests)
}

/// Returns the ad of a job that has been held since 1970, because `url` could not be read.
fn held_for_url(cluster: u32, url: &str) -> Value {
    let reason = format!(
        "Transfer input files failure at execution point slot1@e using protocol http. Details: {url}: no response ( URL file = {url} )|"
    );
    held(cluster, 13, 256, &reason)
}

/// Time of the last holds in [`log_of_failed_releases`], s since 1970.
const HELD_AT_S: i64 = 1_795_224_300;

/// Returns a log in which five clusters got past the fault of another server, and five are held for
/// `url`, after two releases in vain.
fn log_of_failed_releases(url: &str) -> String {
    let mut records: Vec<(usize, String)> = Vec::new();
    let mut add = |number: &str, cluster: usize, minute: usize, text: &str| {
        let stamp = format!("2026-11-21 {:02}:{:02}:00", minute / 60, minute % 60);
        let record = format!("{number} ({cluster}.000.000) {stamp} {text}\n...\n");
        records.push((minute, record));
    };
    let submitted = "Job submitted from host: <10.0.0.1:9618?alias=ap40>";
    let hold = |url: &str| {
        format!(
            "Job was held.\n\tTransfer input files failure at execution point slot1@e using protocol http. \
             Details: The requested URL returned error: 503 ( URL file = {url} )|\n\tCode 13 Subcode 256"
        )
    };
    let released = "Job was released.\n\tvia condor_release";
    for cluster in 1..=5 {
        add("000", cluster, 0, submitted);
        add("012", cluster, 5, &hold("http://other.example.edu/in.dat"));
        add("013", cluster, 9, released);
        add("001", cluster, 10, "Job executing on host: <10.0.0.2:9618>");
        let ended = "Job terminated.\n\t(1) Normal termination (return value 0)";
        add("005", cluster, 20, ended);
    }
    for cluster in 6..=10 {
        add("000", cluster, 60, submitted);
        for minute in [65, 75] {
            add("012", cluster, minute, &hold(url));
            add("013", cluster, minute + 5, released);
        }
        add("012", cluster, 85, &hold(url));
    }
    records.sort();
    records.into_iter().map(|(_, record)| record).collect()
}

/// The same jobs get the same answer with and without learned odds, as the program asks the server now.
#[test]
fn answers_of_servers_outweigh_the_odds_of_earlier_outcomes() {
    let place = Place::new();
    let (server, _) = begin_server();
    for (path, action, words) in [
        ("there", "release", "has it"),
        ("broken", "later", "does not answer"),
        ("lost", "fix", "does not exist"),
    ] {
        let url = format!("{server}/{path}");
        place.write("own.log", log_of_failed_releases(&url));
        let mut jobs: Vec<Value> = (6..=10)
            .map(|cluster| held_for_url(cluster, &url))
            .collect();
        for job in &mut jobs {
            job["EnteredCurrentStatus"] = HELD_AT_S.into();
        }
        write_queue(&place, &jobs);
        let odds = answers(&place, "--log own.log --no-look");
        assert!(
            odds.iter().all(|answer| !answer.starts_with("none")),
            "{odds:?}"
        );
        // Only the queue itself makes poolcast ask a server in a private network.
        for options in ["--log own.log", ""] {
            let call = format!("advise {options} --queue now --sort id --json");
            let asked = queue_command(&place, &call).output().expect("it starts");
            let found = answers_in(&Outcome::of(asked));
            let is_right = |answer: &String| answer.starts_with(action);
            assert!(found.iter().all(is_right), "{path} {options}: {found:?}");
        }
        let mut call = queue_command(&place, "advise --log own.log --queue now");
        let page = Outcome::of(call.output().expect("it starts")).stdout;
        let page: Vec<&str> = page.split_whitespace().collect();
        let page = page.join(" ");
        assert!(
            page.contains("checked now: ") && page.contains(words),
            "{page}"
        );
    }
}

#[test]
fn servers_are_asked_for_input_files() {
    let place = Place::new();
    let (server, requests) = begin_server();
    let closed = TcpListener::bind("127.0.0.1:0").expect("bound");
    let closed_address = closed.local_addr().expect("an address");
    drop(closed);
    let mut of_other = held_for_url(5, &format!("{server}/there"));
    of_other["Owner"] = json!("another");
    let jobs = [
        held_for_url(1, &format!("{server}/there")),
        held_for_url(2, &format!("{server}/typo")),
        held_for_url(3, &format!("{server}/broken")),
        held_for_url(4, &format!("http://{closed_address}/there")),
        of_other,
        held_for_url(6, "http://ada:secret@127.0.0.1/there"),
    ];
    write_queue(&place, &jobs);
    let seen = [
        "release probable reachable",
        "fix probable missing",
        "later probable no_answer",
        "later probable no_answer",
        "none - -",
        "none - -",
    ];
    let of_queue = |options: &str| {
        answers_in(&advise_on_queue(
            &place,
            &format!("{options} --sort id --json"),
        ))
    };
    assert_eq!(of_queue(""), seen);
    let before = requests.load(Ordering::Relaxed);
    for options in ["--no-network", "--no-look"] {
        assert_eq!(of_queue(options), ["none - -"; 6], "{options}");
    }
    // A list and a log may be anyone's, and must not make this machine ask itself.
    for options in ["--look", ""] {
        assert_eq!(answers(&place, options), ["none - -"; 6], "{options}");
    }
    assert_eq!(requests.load(Ordering::Relaxed), before);
}

/// A log that anyone has written, with the name of this user and of this host.
#[test]
fn strangers_logs_make_no_request_to_this_machine() {
    let place = Place::new();
    let (server, requests) = begin_server();
    let host = host_name();
    let url = format!("{server}/there");
    let job = held_for_url(1, &url);
    let reason = job["HoldReason"].as_str().expect("text");
    place.write(
        "job.log",
        format!(
            "000 (1.0.0) 2026-11-21 01:00:00 Job submitted from host: <10.0.0.1:9618?alias={host}>\n...\n\
             028 (1.0.0) 2026-11-21 01:00:00 Job ad information event triggered.\nOwner = \"{OWNER}\"\n\
             TriggerEventTypeNumber = 0\n...\n\
             012 (1.0.0) 2026-11-21 01:10:00 Job was held.\n\t{reason}\n\tCode 13 Subcode 256\n...\n"
        ),
    );
    for options in ["", "--look"] {
        let mut command = place.command(&format!("advise --log job.log {options} --json"));
        let outcome = Outcome::of(command.env("USER", OWNER).output().expect("it starts"));
        let document: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let advice = &document["advice"][0];
        assert_eq!(advice["owner"], OWNER, "{outcome}");
        assert!(advice["look"].is_null(), "{outcome}");
    }
    assert_eq!(requests.load(Ordering::Relaxed), 0);
}

/// The name of this host.
fn host_name() -> String {
    let name = fs_err::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    name.trim().to_owned()
}

/// Root sees every file, and looks with the rights of the owner of the job.
#[test]
fn root_tells_nobody_of_the_private_files_of_others() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let files = tempfile::tempdir().expect("a directory");
    let set = |name: &str, mode: u32, owner: Option<u32>| {
        let path = files.path().join(name);
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs_err::set_permissions(&path, permissions).expect("permissions");
        std::os::unix::fs::chown(&path, owner, owner).expect("an owner");
    };
    fs_err::create_dir(files.path().join("home")).expect("made");
    fs_err::write(files.path().join("home/secret"), "data").expect("written");
    set("home/secret", 0o600, Some(DAEMON.1));
    set("home", 0o700, Some(DAEMON.1));
    set("", 0o755, None);

    let path = |name: &str| files.path().join("home").join(name).display().to_string();
    let job = |cluster: u32, owner: &str, name: &str| {
        let mut job = held_for_input(cluster, &path(name));
        job["Owner"] = json!(owner);
        job
    };
    write_queue(
        &place,
        &[
            job(1, DAEMON.0, "secret"),
            job(2, DAEMON.0, "gone"),
            job(3, "nobody", "secret"),
            job(4, "nobody", "gone"),
            job(5, "no-such-user", "secret"),
            job(6, "0", "secret"),
            job(7, "--help", "secret"),
        ],
    );
    let outcome = advise_on_queue(&place, "--sort id --json");
    assert_eq!(
        answers_in(&outcome),
        [
            "release firm changed",
            "fix firm missing",
            // Whether it is there or not, these say the same.
            "fix firm not_allowed",
            "fix firm not_allowed",
            "fix - -",
            "fix - -",
            "fix - -",
        ]
    );
    let document: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    for job in 2..7 {
        let look = &document["advice"][job]["look"];
        assert!(look["changed_ms"].is_null(), "{outcome}");
    }
}
