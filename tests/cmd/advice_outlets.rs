//! Metrics, pages of owners, and notices of `poolcast advise`.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::docs::read;
use crate::own_logs::with_programs;
use crate::place::{Outcome, Place, queue};

/// A directory with a queue in which jobs of two owners are held.
fn place_with_queue() -> Place {
    let place = Place::with_answers();
    place.write("queue.json", serde_json::to_vec(&queue()).expect("JSON"));
    place
}

/// Runs the program with a state directory of the test.
fn run(place: &Place, args: &str) -> Outcome {
    let mut command = place.command(args);
    let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
    command
        .env("XDG_STATE_HOME", place.path("state"))
        .env("PATH", path);
    Outcome::of(command.output().expect("it starts"))
}

/// Returns the name, the labels and the number of each sample; fails for text that is no metric.
fn samples(text: &str) -> Vec<(String, String, f64)> {
    let mut known = BTreeSet::new();
    let mut samples = Vec::new();
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a name and a kind");
            assert_eq!(kind, "gauge");
            assert!(known.insert(name.to_owned()), "{name} stands twice");
        } else if !line.starts_with("# HELP ") {
            let (name, number) = line.rsplit_once(' ').expect("a number");
            let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
            assert!(known.contains(name) && labels.ends_with('}'), "{line}");
            let number = number.parse().expect("a number");
            samples.push((name.to_owned(), labels.to_owned(), number));
        }
    }
    samples
}

#[test]
fn metrics_count_held_jobs_and_name_no_owner() {
    let place = place_with_queue();
    let call = "advise run --log EventLog.xz --queue queue.json --prometheus metrics/poolcast.prom";
    let outcome = run(&place, call);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let text = String::from_utf8(place.files("metrics")["poolcast.prom"].clone()).expect("text");
    let samples = samples(&text);
    let of = |name: &str| {
        samples
            .iter()
            .filter(|one| one.0 == name)
            .map(|one| one.2)
            .sum::<f64>()
    };
    assert!(of("poolcast_held_jobs") > 0.0);
    assert_eq!(of("poolcast_held_jobs"), of("poolcast_held_jobs_all"));
    assert!(of("poolcast_oldest_hold_age_seconds") > 0.0);
    let advice = run(
        &place,
        "advise run --log EventLog.xz --queue queue.json --json",
    );
    let advice: Value = serde_json::from_str(&advice.stdout).expect("JSON");
    for one in advice["advice"].as_array().expect("a list") {
        if let Some(owner) = one["owner"].as_str() {
            assert!(!text.contains(owner), "{owner} is in the metrics");
        }
    }
    let mode = fs_err::metadata(place.path("metrics/poolcast.prom")).expect("there");
    assert_eq!(mode.permissions().mode() & 0o777, 0o644);
    assert_eq!(place.files("metrics").len(), 1, "no leftovers");
}

/// Returns the names of metrics in `text`: words that begin with `begin` and then `poolcast_`.
fn metric_names<'a>(text: &'a str, begin: &str) -> BTreeSet<&'a str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let starts = text.match_indices("poolcast_").map(|(at, _)| at);
    let starts = starts.filter(|&at| text[..at].ends_with(begin));
    starts
        .map(|at| text[at..].split(|c| !is_name(c)).next().unwrap_or_default())
        .collect()
}

#[test]
fn documented_metrics_are_those_that_are_written() {
    let source = read("src/site/metrics.rs");
    let written = metric_names(&source, "\"");
    assert!(written.len() > 5, "{written:?}");
    let page = read("docs/access-point.md");
    assert_eq!(metric_names(&page, "`"), written);
    for file in ["alerts.yaml", "grafana-dashboard.json"] {
        let text = read(&format!("docs/monitoring/{file}"));
        let named = metric_names(&text, "");
        assert!(
            !named.is_empty() && named.is_subset(&written),
            "{file}: {named:?}"
        );
    }
}

#[test]
fn the_shown_jobs_are_written_as_one_html_page() {
    let place = place_with_queue();
    let call = "advise run --log EventLog.xz --queue queue.json --html held.html";
    let outcome = run(&place, call);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let read = || fs_err::read_to_string(place.path("held.html")).expect("read");
    let all = read();
    let head = "<title>localhost: 8 held jobs, 2026-11-21";
    assert!(
        all.contains(head),
        "{:?}",
        all.find("<title>").map(|at| &all[at..at + 99])
    );

    // The page has the commands of the terminal, and not those of jobs that no option chose.
    let printed = run(
        &place,
        "advise run --log EventLog.xz --queue queue.json --all",
    );
    let commands: Vec<&str> = (printed.stdout.lines())
        .filter_map(|line| line.find("condor_release").map(|at| &line[at..]))
        .collect();
    assert!(!commands.is_empty(), "{printed}");
    let text = (all.replace("&quot;", "\"").replace("&gt;", ">"))
        .replace("&lt;", "<")
        .replace("&amp;", "&");
    for command in &commands {
        assert!(text.contains(command), "{command}");
    }
    let of_one = run(&place, &format!("{call} --code 13"));
    assert_eq!(of_one.code, Some(0), "{of_one}");
    assert!(read().len() < all.len());

    let refused = run(&place, &call.replace("held.html", "nowhere/held.html"));
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("cannot write the page to"),
        "{refused}"
    );
}

#[test]
fn each_owner_gets_a_page() {
    let place = place_with_queue();
    let call = "advise run --log EventLog.xz --queue queue.json --pages pages";
    let outcome = run(&place, call);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let pages = place.files("pages");
    assert!(pages.len() > 1, "{:?}", pages.keys());
    for (name, page) in pages {
        let Some(owner) = name
            .strip_suffix(".json")
            .filter(|name| *name != "manifest")
        else {
            continue;
        };
        let page: Value = serde_json::from_slice(&page).expect("JSON");
        let jobs = page["advice"].as_array().expect("a list");
        assert!(
            !jobs.is_empty() && jobs.iter().all(|one| one["owner"] == owner),
            "{name}"
        );
        assert!(page["schema_version"].is_u64());
    }
    fs_err::create_dir(place.path("other")).expect("made");
    place.write("other/mine.json", "{}");
    let refused = run(&place, &call.replace("pages pages", "pages other"));
    assert_eq!(refused.code, Some(2), "{refused}");
    assert_eq!(place.files("other")["mine.json"], b"{}");
}

/// Puts a `sendmail` into the test directory that keeps each mail, unless a file `full` is there.
fn with_sendmail(place: &Place) {
    fs_err::create_dir(place.path("bin")).expect("made");
    let dir = place.path("").display().to_string();
    let script =
        format!("[ ! -e {dir}/full ] || exit 75\necho \"$@\" >>{dir}/calls\ncat >>{dir}/mails");
    place.put_program("bin/sendmail", &script);
}

fn mails(place: &Place) -> String {
    fs_err::read_to_string(place.path("mails")).unwrap_or_default()
}

#[test]
fn mails_have_only_what_is_new_and_none_is_lost() {
    let place = place_with_queue();
    with_sendmail(&place);
    let call = "advise run --log EventLog.xz --queue queue.json --notify mailto:ada@example.org";
    place.write("full", "");
    let failed = run(&place, call);
    assert_eq!(failed.code, Some(2), "{failed}");
    assert!(
        failed
            .stderr
            .contains("cannot notify mailto:ada@example.org"),
        "{failed}"
    );
    fs_err::remove_file(place.path("full")).expect("removed");

    let sent = run(&place, call);
    assert_eq!(sent.code, Some(0), "{sent}");
    let first = mails(&place);
    assert!(
        first.starts_with("To: ada@example.org\nSubject: poolcast: "),
        "{first}"
    );
    assert!(first.contains("new causes, held now:\n"), "{first}");
    assert!(
        first.contains("multipart/alternative") && first.matches("held now").count() == 2,
        "{first}"
    );
    run(&place, call);
    assert_eq!(mails(&place), first, "nothing is new");

    // A job with a cause that nobody knew of, in hostile words.
    let mut jobs = queue();
    let mut new = jobs[0].clone();
    new["ClusterId"] = 999_999.into();
    new["HoldReasonCode"] = 12.into();
    new["HoldReasonSubCode"] = 2.into();
    new["HoldReason"] = "x\r\n\r\n.\r\nBcc: eve@example.org\u{1b}[31m".into();
    jobs.push(new);
    place.write("queue.json", serde_json::to_vec(&jobs).expect("JSON"));
    run(&place, call);
    let second = mails(&place).split_off(first.len());
    assert!(
        second.contains("new cause") && second.contains(", since 2026-"),
        "{second}"
    );
    let (headers, body) = second.split_once("\n\n").expect("a body");
    assert!(
        !headers.contains("Bcc") && !second.contains('\u{1b}'),
        "{second}"
    );
    assert!(
        body.lines()
            .all(|line| line != "." && !line.starts_with("Bcc")),
        "{second}"
    );
    let calls = fs_err::read_to_string(place.path("calls")).expect("read");
    assert!(calls.lines().all(|call| call == "-t -i"), "{calls}");
}

#[test]
fn web_addresses_get_json_and_stay_secret() {
    let place = place_with_queue();
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in ["500 Internal Server Error", "200 OK"] {
            let (mut stream, _) = listener.accept().expect("a connection");
            requests.push(read_request(&mut stream));
            let answer =
                format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).expect("answered");
        }
        requests
    });
    let call = format!(
        "advise --log EventLog.xz --queue queue.json --notify http://{address}/hooks/secret"
    );
    let failed = run(&place, &call);
    assert_eq!(failed.code, Some(1), "{failed}");
    assert!(!failed.stderr.contains("secret"), "{failed}");
    let sent = run(&place, &call);
    assert_eq!(sent.code, Some(0), "{sent}");
    let requests = server.join().expect("a server");
    assert_eq!(requests[0].1, requests[1].1, "nothing was lost");
    assert!(
        requests[1].0.starts_with("POST /hooks/secret HTTP/1.1"),
        "{}",
        requests[1].0
    );
    let document: Value = serde_json::from_str(&requests[1].1).expect("JSON");
    assert_eq!(document["schema_version"], 1);
    assert!(
        document["text"]
            .as_str()
            .expect("text")
            .contains("new causes, held now")
    );
    assert!(document["causes"][0]["owners"].is_u64());
    let state = place.files("state");
    assert!(
        state.keys().all(|name| !name.contains("secret")),
        "{:?}",
        state.keys()
    );
    assert!(
        state
            .values()
            .all(|bytes| !String::from_utf8_lossy(bytes).contains("secret"))
    );
}

/// Reads the head and the body of a request.
fn read_request(stream: &mut std::net::TcpStream) -> (String, String) {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part).expect("read");
        text.extend_from_slice(&part[..count]);
        let all = String::from_utf8_lossy(&text);
        if let Some((head, body)) = all.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse::<usize>().expect("a number"))
            });
            if body.len() >= length.unwrap_or(0) {
                return (head.to_owned(), body.to_owned());
            }
        }
    }
}

#[test]
fn addresses_are_checked() {
    let place = place_with_queue();
    for address in ["ada@example.org", "mailto:a?cc=b", "file:///x", "https://"] {
        let refused = run(
            &place,
            &format!("advise --queue queue.json --notify {address}"),
        );
        assert_eq!(refused.code, Some(2), "{refused}");
    }
}

/// Returns what `condor_q` prints if each job of the queue has the answer `values`.
fn marks(values: &str) -> String {
    let id = |job: &Value, name: &str| job[name].as_i64().expect("a number");
    let jobs = queue();
    let lines = jobs
        .iter()
        .map(|job| format!("{} {} {values}\n", id(job, "ClusterId"), id(job, "ProcId")));
    lines.collect()
}

#[test]
fn refused_edit_says_who_may_edit() {
    let place = place_with_queue();
    let dir = place.path("").display().to_string();
    place.write("marks", marks("undefined undefined"));
    let condor_q =
        format!("case \"$*\" in *-af*) cat {dir}/marks ;; *) cat {dir}/queue.json ;; esac");
    let condor_qedit = "echo 'Queue transaction failed.' >&2; exit 1";
    let programs = [("condor_q", &*condor_q), ("condor_qedit", condor_qedit)];
    let outcome = with_programs(&place, "advise --queue now --qedit", &programs);
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(
        outcome.stderr.contains("Queue transaction failed."),
        "{outcome}"
    );
    assert!(
        outcome.stderr.contains("`condor_qusers -add NAME`"),
        "{outcome}"
    );
}

#[test]
fn queue_gets_changed_answers_in_batches() {
    let place = place_with_queue();
    fs_err::create_dir(place.path("bin")).expect("made");
    let dir = place.path("").display().to_string();
    let scripts = [
        (
            "condor_q",
            format!("case \"$*\" in *-af*) cat {dir}/marks ;; *) cat {dir}/queue.json ;; esac"),
        ),
        (
            "condor_qedit",
            format!("printf '%s\\n' \"$@\" >>{dir}/edits"),
        ),
    ];
    for (name, script) in scripts {
        place.put_program(&format!("bin/{name}"), &script);
    }
    place.write("marks", marks("undefined undefined"));
    let call = "advise --queue now --qedit";
    let outcome = run(&place, call);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let edits = fs_err::read_to_string(place.path("edits")).expect("edited");
    let lines: Vec<&str> = edits.lines().collect();
    assert_eq!(lines[0], "-constraint");
    assert!(
        lines[1].starts_with("JobStatus == 5 && ((ClusterId == "),
        "{edits}"
    );
    assert_eq!(
        [lines[2], lines[4]],
        ["PoolcastAdvice", "PoolcastProbability"]
    );

    // Without a model, rules answer, and no probability is known.
    let rule = |name: &str| format!("{name} undefined");
    let known = lines[3].trim_matches('"');
    place.write("marks", marks(&rule(known)));
    fs_err::remove_file(place.path("edits")).expect("removed");
    run(&place, call);
    let again = fs_err::read_to_string(place.path("edits")).unwrap_or_default();
    assert!(!again.contains(&format!("\"{known}\"")), "{again}");

    // The jobs of a log or of a file may have the ids of other jobs in this queue.
    fs_err::remove_file(place.path("edits")).unwrap_or_default();
    for inputs in ["--log EventLog.xz --queue queue.json", "--log EventLog.xz"] {
        let refused = run(&place, &format!("advise {inputs} --qedit"));
        assert_eq!(refused.code, Some(2), "{refused}");
    }
    assert!(!place.path("edits").exists(), "the queue was edited");
}
