//! Fault injection for the sweep's queue: real processes are killed, or stopped past their leases
//! and woken, and the disk fills up. Afterwards every trial must have exactly one result. Without
//! arguments, as under `cargo test`, the program runs a small proof. Trials come in chunks: some
//! chunks have one trial, as for networks, but most have several, as for short fits.
//!
//! `ci/proof/queue` calls this program with more trials. A trial here is a number and a short sleep,
//! because the program tests the queue, through the library and without any verb of poolcast.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use poolcast_queue::{
    AttemptOutcome, ChunkEntry, ItemStateCounts, MAX_CHUNK_TRIALS, ManagerOutcome, Queue,
    QueueSettings, TrialChunk, WorkItem, run_manager, run_worker,
};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

/// Settings with short leases, so that workers lose many of them in little time.
const SHORT: QueueSettings = QueueSettings {
    heartbeat_s: 0.2,
    lease_s: 3.0,
    tries: 20,
};

/// A trial kills its worker if its number is a multiple of this.
const POISON: usize = 997;

const LIMIT: Duration = Duration::from_secs(3600);

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    /// The item's trial number, squared.
    square: usize,
    padding: String,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match words[..] {
        ["work", dir, sleep_us] => worker(Path::new(dir), number(sleep_us)),
        ["manage", dir, items] if !manager(Path::new(dir), number(items)) => {
            return ExitCode::FAILURE;
        }
        ["manage", ..] => {}
        ["proof", dir, items, workers, seconds] => {
            prove(
                Path::new(dir),
                number(items),
                number(workers),
                number(seconds) as u64,
                true,
            );
        }
        ["full-disk", dir, items, workers] => {
            fill_disk(Path::new(dir), number(items), number(workers))
        }
        // `cargo test` passes options or a filter of names. This program runs only if the filter
        // matches.
        _ if words
            .iter()
            .any(|word| !word.starts_with('-') && !"queue".contains(word)) => {}
        _ => {
            let dir = tempfile::tempdir().expect("a directory");
            prove(dir.path(), 400, 8, 3, false);
        }
    }
    ExitCode::SUCCESS
}

fn say(text: &str) {
    poolcast_base::output::print(&format!("{text}\n")).expect("stdout is open");
}

fn worker(dir: &Path, sleep_us: usize) {
    let Ok(queue) = Queue::open(dir) else { return };
    let sleep = Duration::from_micros(sleep_us as u64);
    let padding = "x".repeat(200);
    let outcome = run_worker(
        &queue,
        LIMIT,
        &AtomicBool::new(false),
        |attempt| {
            std::thread::sleep(sleep);
            let trial = attempt.entry.next_item().trial;
            if trial.is_multiple_of(POISON) {
                // This simulates a trial that needs more memory than there is.
                std::process::abort();
            }
            Ok(AttemptOutcome::Done(Answer {
                square: trial * trial,
                padding: padding.clone(),
            }))
        },
        |_, _| (),
    );
    let tally = outcome.unwrap_or_else(|error| panic!("a worker failed: {error:#}"));
    // The driver reads from this file how often the worker was too late.
    fs_err::write(
        dir.join(format!("tally-{}", std::process::id())),
        format!("{} {}", tally.acknowledged, tally.late),
    )
    .expect("written");
}

/// Runs a manager. Returns true if all items have ended.
fn manager(dir: &Path, items: usize) -> bool {
    let Ok(queue) = Queue::open(dir) else {
        return false;
    };
    let fill = |queue: &Queue| {
        queue.add_chunks(0, 100, &chunks(items))?;
        queue.seal(items)
    };
    let never = AtomicBool::new(false);
    let managed = run_manager(&queue, &never, &never, fill, |_| (), |_| Ok(())).expect("managed");
    matches!(managed, ManagerOutcome::AllEnded(_))
}

fn all(items: usize) -> Vec<WorkItem> {
    (1..=items)
        .map(|trial| WorkItem { trial, budget: 1 })
        .collect()
}

/// Divides the trials into chunks: a tenth of the trials alone, the others in chunks of 1 to 64.
fn chunks(items: usize) -> Vec<TrialChunk> {
    let mut random = SmallRng::seed_from_u64(3);
    let (mut chunks, mut next) = (Vec::new(), 1);
    while next <= items {
        let count = if next * 10 <= items {
            1
        } else {
            random.random_range(1..=MAX_CHUNK_TRIALS.min(items + 1 - next))
        };
        chunks.push(TrialChunk {
            first: WorkItem {
                trial: next,
                budget: 1,
            },
            count,
        });
        next += count;
    }
    chunks
}

/// Counts the trials that kill their workers.
fn poisonous(items: usize) -> usize {
    items / POISON
}

fn start(args: &[&str]) -> Child {
    let program = std::env::current_exe().expect("this program");
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts")
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .expect("kill starts");
    assert!(sent.success());
}

/// A constant number of processes of one role.
struct Crew {
    args: Vec<String>,
    children: Vec<Child>,
    /// Stopped processes, and when they were stopped.
    stopped: Vec<(Child, Instant)>,
}

impl Crew {
    fn new(args: &[&str], count: usize) -> Crew {
        let mut crew = Crew {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            children: Vec::new(),
            stopped: Vec::new(),
        };
        crew.fill(count);
        crew
    }

    fn fill(&mut self, count: usize) {
        self.children
            .retain_mut(|child| child.try_wait().expect("asked").is_none());
        while self.children.len() < count {
            let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
            self.children.push(start(&args));
        }
    }

    fn take(&mut self, random: &mut SmallRng) -> Option<Child> {
        let at =
            (!self.children.is_empty()).then(|| random.random_range(0..self.children.len()))?;
        Some(self.children.swap_remove(at))
    }

    fn kill(&mut self, random: &mut SmallRng) {
        if let Some(mut child) = self.take(random) {
            child.kill().expect("killed");
            child.wait().expect("it ended");
        }
    }

    fn stop(&mut self, random: &mut SmallRng) {
        if let Some(child) = self.take(random) {
            signal(&child, "STOP");
            self.stopped.push((child, Instant::now()));
        }
    }

    /// Wakes the processes that were stopped for at least `least`, and adds them to the crew again.
    fn wake(&mut self, least: Duration) {
        let (awake, asleep) = std::mem::take(&mut self.stopped)
            .into_iter()
            .partition(|(_, since)| since.elapsed() >= least);
        self.stopped = asleep;
        let awake: Vec<(Child, Instant)> = awake;
        for (child, _) in awake {
            signal(&child, "CONT");
            self.children.push(child);
        }
    }

    fn end(mut self) {
        self.wake(Duration::ZERO);
        for child in &mut self.children {
            child.wait().expect("it ended");
        }
    }
}

/// Runs `items` items on `workers` workers, injects faults for `seconds` seconds, and checks the
/// results.
fn prove(dir: &Path, items: usize, workers: usize, seconds: u64, talk: bool) {
    let dir = dir.join("queue");
    let queue = Queue::create(&dir, SHORT).expect("made");
    let mut random = SmallRng::seed_from_u64(7);
    let (place, count) = (dir.to_str().expect("a plain name"), items.to_string());
    // The sleep per trial makes all workers together last as long as the fault injection.
    let sleep_us = (seconds * 1_000_000 * workers as u64 / items as u64).to_string();
    let mut managers = Crew::new(&["manage", place, &count], 2);
    let mut crew = Crew::new(&["work", place, &sleep_us], workers);
    let began = Instant::now();
    let past_lease = Duration::from_secs_f64(SHORT.lease_s + 2.0);
    let (mut kills, mut stops, mut manager_kills) = (0, 0, 0);
    // The trials of each chunk that have ended, as seen so far, and the worker that ended a whole
    // chunk. None of this may change later.
    let mut ends: HashMap<WorkItem, (usize, u64, Option<String>)> = HashMap::new();
    // On a busy machine, workers may be killed before they have begun a trial.
    let is_enough = || began.elapsed() >= Duration::from_secs(seconds) && retried(&dir) > 0;
    while !is_enough() && !is_over(&queue) {
        match random.random_range(0..10) {
            0 | 1 if crew.stopped.len() < workers / 4 => {
                crew.stop(&mut random);
                stops += 1;
            }
            2 => {
                managers.kill(&mut random);
                manager_kills += 1;
            }
            3 if managers.stopped.is_empty() => managers.stop(&mut random),
            _ => {
                crew.kill(&mut random);
                kills += 1;
            }
        }
        crew.wake(past_lease);
        managers.wake(past_lease);
        crew.fill(workers);
        managers.fill(2);
        remember(&queue, &mut ends);
        std::thread::sleep(Duration::from_millis(random.random_range(20..200)));
    }
    let under_fire = ItemStateCounts::from_entries(queue.chunk_entries().expect("listed").iter());
    // Stopped processes stay stopped until they have lost their leases.
    while crew
        .stopped
        .iter()
        .chain(&managers.stopped)
        .any(|(_, since)| since.elapsed() < past_lease)
    {
        std::thread::sleep(Duration::from_millis(50));
        crew.fill(workers);
        managers.fill(1);
    }
    crew.wake(past_lease);
    managers.wake(past_lease);
    while !is_over(&queue) {
        assert!(
            began.elapsed() < LIMIT,
            "it takes too long: {:?}",
            queue.chunk_entries()
        );
        crew.fill(workers);
        managers.fill(1);
        std::thread::sleep(Duration::from_millis(50));
    }
    crew.end();
    managers.end();
    remember(&queue, &mut ends);
    let retried = check(&dir, &queue, items, poisonous(items));
    let late: usize = tallies(&dir).iter().map(|(_, late)| late).sum();
    assert!(kills > 0 && (stops == 0 || retried > 0), "there was fire");
    if talk {
        say(&format!(
            "{items} trials, {workers} workers: {kills} workers and {manager_kills} managers killed, {stops} workers stopped past \
             their leases; {} had ended under fire; {retried} results are of later attempts, {late} came late and did not count; \
             {} trials that kill their workers were given up, every other has one result; {:.0} s",
            under_fire.ended(),
            poisonous(items),
            began.elapsed().as_secs_f64()
        ));
    }
}

fn is_over(queue: &Queue) -> bool {
    let counts = ItemStateCounts::from_entries(queue.chunk_entries().expect("listed").iter());
    queue
        .sealed_trials()
        .expect("read")
        .is_some_and(|sealed| counts.ended() == sealed)
}

/// Records the ended trials of all chunks, and asserts that no earlier record has changed.
fn remember(queue: &Queue, ends: &mut HashMap<WorkItem, (usize, u64, Option<String>)>) {
    for entry in queue.chunk_entries().expect("listed") {
        let worker = entry
            .state
            .worker()
            .filter(|_| entry.has_ended())
            .map(str::to_owned);
        let (ended, lost, last) = ends.entry(entry.chunk.first).or_default();
        assert!(
            entry.ended >= *ended && entry.given_up & *lost == *lost,
            "no trial of {entry:?} comes back"
        );
        assert!(
            last.is_none() || *last == worker,
            "{entry:?} had ended by {last:?}"
        );
        (*ended, *lost, *last) = (entry.ended, entry.given_up, worker);
    }
}

/// Asserts that every trial has one result, except the trials that kill their workers. Returns the
/// number of results from later attempts than the first.
fn check(dir: &Path, queue: &Queue, items: usize, poisonous: usize) -> usize {
    let entries = queue.chunk_entries().expect("listed");
    let mut found: Vec<WorkItem> = entries
        .iter()
        .flat_map(|entry| entry.chunk.items())
        .collect();
    found.sort();
    assert_eq!(found, all(items), "each trial once");
    assert!(entries.iter().all(ChunkEntry::has_ended), "{entries:?}");
    let results = queue.results::<Answer>(&entries).expect("read");
    assert_eq!(
        results.len(),
        items - poisonous,
        "all but those that kill their workers"
    );
    let given_up: Vec<WorkItem> = entries
        .iter()
        .flat_map(ChunkEntry::given_up_items)
        .collect();
    assert!(
        given_up.len() == poisonous
            && given_up
                .iter()
                .all(|item| item.trial.is_multiple_of(POISON))
    );
    assert!(
        results
            .iter()
            .all(|(item, answer)| answer.square == item.trial * item.trial)
    );
    retried(dir)
}

/// Counts the journal lines from later attempts than the first.
fn retried(dir: &Path) -> usize {
    let journals = fs_err::read_dir(dir.join("results"))
        .expect("listed")
        .map(|entry| entry.expect("an entry").path());
    let text = journals.map(|path| fs_err::read_to_string(path).expect("read"));
    text.map(|text| {
        text.lines()
            .filter(|line| !line.contains("\"attempt\":1,"))
            .count()
    })
    .sum()
}

/// Reads the counts of the workers that were not killed: acknowledged results and late results.
fn tallies(dir: &Path) -> Vec<(usize, usize)> {
    let files = fs_err::read_dir(dir)
        .expect("listed")
        .map(|entry| entry.expect("an entry").path());
    let tallies = files.filter(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("tally-"))
    });
    let text = tallies.map(|path| fs_err::read_to_string(path).expect("read"));
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).unwrap_or(0);
    text.map(|text| {
        let mut words = text.split(' ');
        (number(words.next()), number(words.next()))
    })
    .collect()
}

/// Runs workers on the small file system `dir` while it is full for a time, and checks the results.
fn fill_disk(dir: &Path, items: usize, workers: usize) {
    let place = dir.join("queue");
    let queue = Queue::create(&place, SHORT).expect("made");
    queue.add_chunks(0, 100, &chunks(items)).expect("added");
    queue.seal(items).expect("sealed");
    let text = place.to_str().expect("a plain name");
    let mut crew = Crew::new(&["work", text, "5000"], workers);
    let count = || ItemStateCounts::from_entries(queue.chunk_entries().expect("listed").iter());
    wait(|| count().done > items / 10);
    let ballast: PathBuf = dir.join("ballast");
    let mut file = fs_err::File::create(&ballast).expect("made");
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    std::thread::sleep(Duration::from_millis(500));
    let full = count();
    std::thread::sleep(Duration::from_secs(1));
    let still = count();
    drop(file);
    fs_err::remove_file(ballast).expect("removed");
    wait(|| {
        crew.fill(workers);
        count().ended() == items
    });
    crew.end();
    check(&place, &queue, items, poisonous(items));
    say(&format!(
        "{items} items, {workers} workers: {} done when the disk was full, {} a second later; every trial has one result",
        full.done, still.done
    ));
    assert!(full.done < items, "the disk was full too late");
}

fn wait(mut until: impl FnMut() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(began.elapsed() < LIMIT, "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}
