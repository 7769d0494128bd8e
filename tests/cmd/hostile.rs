//! What others put into folders that are shared, and into what is read.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::Place;
use crate::run::SMALL;

fn make_pipe(place: &Place, name: &str) {
    assert!(Command::new("mkfifo").arg(place.path(name)).status().expect("mkfifo runs").success());
}

#[test]
fn what_does_not_belong_into_a_queue_stops_nobody() {
    let place = Place::with_log();
    place.write("small.yaml", SMALL);
    place.stdout("sweep init small.yaml -o sweep");
    let mut manager =
        place.command("sweep manage sweep").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let began = Instant::now();
    while !place.path("sweep/queue/sealed.json").exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
    manager.kill().expect("killed");
    manager.wait().expect("it ended");

    // Results: a pipe, an endless device, a terabyte. Workers: a pipe. A pipe for the log.
    make_pipe(&place, "sweep/queue/results/pipe.jsonl");
    symlink("/dev/zero", place.path("sweep/queue/results/zero.jsonl")).expect("linked");
    fs_err::File::create(place.path("sweep/queue/results/hole.jsonl")).expect("made").set_len(1 << 40).expect("sparse");
    make_pipe(&place, "sweep/queue/workers/ghost");
    fs_err::remove_file(place.path("sweep/status.log")).expect("removed");
    make_pipe(&place, "sweep/status.log");

    // Items: of no trial, of too many epochs, one that a ghost says is done, one in a pipe, and directories that are none.
    let items = place.path("sweep/queue/items");
    let mut segments = fs_err::read_dir(&items).expect("listed").map(|entry| entry.expect("an entry").path());
    let segment =
        segments.find(|path| path.join("t000001-e000003.a1.ready").exists()).expect("the first trial is ready");
    for name in ["t000000-e000003.a1.ready", "t000077-e000003.a1.ready", "t000001-e000099.a1.ready"] {
        fs_err::write(segment.join(name), "").expect("written");
    }
    fs_err::write(segment.join("t000001-e000003.a1.done.ghost"), "").expect("written");
    let name = segment.file_name().expect("a name").to_string_lossy().into_owned();
    make_pipe(&place, &format!("sweep/queue/items/{name}/t000002-e000003.a9.ready"));
    fs_err::write(items.join("p200.b000007.s00000.n1"), "").expect("written");
    symlink("/", items.join("p200.b000008.s00000.n1")).expect("linked");

    let outcome = place.run("sweep run sweep --threads 2");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.starts_with("3 trials: 3 done, 0 failed, 0 running, 0 ready\n"), "{outcome}");
    for name in ["pipe.jsonl", "zero.jsonl", "t000077-e000003", "t000001-e000099", "p200.b000007", "p200.b000008"] {
        assert!(outcome.stderr.contains(name), "`{name}` is not named in\n{outcome}");
    }
}
