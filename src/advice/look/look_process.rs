//! Looks at paths in a child process, which is given up when its time is over.
//!
//! A call to a dead mount can hang in the kernel, and then neither a thread nor its process ends. So
//! the caller waits for the child until a deadline, and never for its end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use poolcast_base::program::without_keys;
use poolcast_base::shared_text::SharedText;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::look_user::LookUser;
use super::path_sight::PathSight;

/// Maximum number of threads that look.
const MAX_THREADS: usize = 32;

/// Maximum number of threads that look at paths of one mount, and may hang there.
const THREADS_PER_MOUNT: usize = 4;

/// Number of directories by which the mount of a path is guessed.
const MOUNT_DIRECTORIES: usize = 2;

/// Maximum number of processes that look at once, each with the rights of another user.
const MAX_PROCESSES: usize = 16;

/// Maximum size of the questions, in bytes.
const MAX_QUESTION_BYTES: u64 = 64 << 20;

/// Maximum length of a line of the answer, in bytes. The child never writes a longer one.
const MAX_LINE_BYTES: u64 = 4096;

/// Time that a child gets to begin, on a machine that is busy. Its own limit begins then.
const BEGINS_WITHIN: Duration = Duration::from_secs(30);

/// Time that a child gets to end once it was killed.
const KILLED_WITHIN: Duration = Duration::from_millis(50);

/// A line of the child: it begins to look at a path, or it has looked.
#[derive(Debug, Serialize, Deserialize)]
struct LookLine {
    /// Index of the path.
    at: usize,
    /// Result of the look; absent at the beginning.
    sight: Option<PathSight>,
}

/// A path, and the user with whose rights it is looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UserPath {
    pub(super) path: SharedText,
    pub(super) user: LookUser,
}

/// The answer about one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookAnswer {
    /// Nothing was tried in time.
    NotTried,
    /// The file system has not answered in time.
    Hangs,
    /// The file system has answered.
    Seen(PathSight),
}

/// A program that looks at paths: this program, started so that it calls [`answer_looks`], after
/// [`become_user`](super::become_user) if its last argument is a user.
#[derive(Debug)]
pub struct LookProcess {
    program: PathBuf,
    arguments: Vec<&'static str>,
    limit: Duration,
}

impl LookProcess {
    /// Creates a process that runs `program` with `arguments`, and that is given up if it looks for
    /// longer than `limit`.
    pub fn new(program: PathBuf, arguments: Vec<&'static str>, limit: Duration) -> LookProcess {
        LookProcess {
            program,
            arguments,
            limit,
        }
    }

    /// Looks at `paths`, each with the rights of its user; returns an answer for each. Of several
    /// users, [`MAX_PROCESSES`] look at once, and none begins after the limit.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub(super) fn look(&self, paths: &[UserPath]) -> Result<Vec<LookAnswer>> {
        let mut by_user: BTreeMap<&LookUser, Vec<usize>> = BTreeMap::new();
        for (at, path) in paths.iter().enumerate() {
            by_user.entry(&path.user).or_default().push(at);
        }
        let users: Vec<(&LookUser, Vec<usize>)> = by_user.into_iter().collect();
        let until = Instant::now() + self.limit;
        let (next, answers) = (
            AtomicUsize::new(0),
            Mutex::new(vec![LookAnswer::NotTried; paths.len()]),
        );
        let look_in_turn = || -> Result<()> {
            while let Some((user, places)) = take(&users, &next) {
                if Instant::now() > until {
                    break;
                }
                let of_user: Vec<&str> = places.iter().map(|&at| paths[at].path.as_str()).collect();
                let found = self.look_as(user, &of_user)?;
                if let Ok(mut answers) = answers.lock() {
                    for (&at, answer) in places.iter().zip(found) {
                        answers[at] = answer;
                    }
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let count = users.len().min(MAX_PROCESSES);
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(look_in_turn)).collect();
            let failed = || anyhow!("a thread that looks at files has failed");
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| failed())?)
        })?;
        Ok(answers.into_inner().unwrap_or_default())
    }

    /// Looks at `paths` with the rights of `user`.
    fn look_as(&self, user: &LookUser, paths: &[&str]) -> Result<Vec<LookAnswer>> {
        let mut child = without_keys(Command::new(&self.program))
            .args(&self.arguments)
            .args(user.name())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start this program to look at files")?;
        send_questions(&mut child, paths)?;
        let mut answers = vec![LookAnswer::NotTried; paths.len()];
        if let Some(output) = child.stdout.take() {
            receive_answers(output, self.limit, &mut answers);
        }
        give_up(&mut child);
        mark_hanging(paths, &mut answers);
        Ok(answers)
    }
}

/// Sends the questions from a thread, because a child that hangs reads none.
fn send_questions(child: &mut Child, paths: &[&str]) -> Result<()> {
    let questions = serde_json::to_vec(paths)?;
    if let Some(mut input) = child.stdin.take() {
        std::thread::spawn(move || {
            // A child that ends early gives no answer, and that is all that counts.
            let _ = input.write_all(&questions);
        });
    }
    Ok(())
}

/// Fills `answers` from the lines of the child until all are known, or until the `limit` has passed
/// since its first line.
fn receive_answers(output: ChildStdout, limit: Duration, answers: &mut [LookAnswer]) {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        loop {
            line.clear();
            let read = output.by_ref().take(MAX_LINE_BYTES).read_line(&mut line);
            let parsed = serde_json::from_str::<LookLine>(&line);
            let (Ok(1..), Ok(parsed)) = (read, parsed) else {
                break;
            };
            if sender.send(parsed).is_err() {
                break;
            }
        }
    });
    let is_open = |answer: &LookAnswer| !matches!(answer, LookAnswer::Seen(_));
    let mut deadline = None;
    while answers.iter().any(is_open) {
        let left = deadline.map_or(BEGINS_WITHIN, |deadline: Instant| {
            deadline.saturating_duration_since(Instant::now())
        });
        let Ok(line) = receiver.recv_timeout(left) else {
            break;
        };
        deadline.get_or_insert_with(|| Instant::now() + limit);
        if let Some(answer) = answers.get_mut(line.at) {
            *answer = line.sight.map_or(LookAnswer::Hangs, LookAnswer::Seen);
        }
    }
}

/// Ends the child. One that hangs in the kernel is left alone.
fn give_up(child: &mut Child) {
    let _ = child.kill();
    let until = Instant::now() + KILLED_WITHIN;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets the kernel end this process when the one that has started it ends. So a killed caller leaves no
/// process behind, unless that hangs in the kernel.
///
/// # Errors
/// Fails if the kernel does not do this.
pub fn end_with_caller() -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot end with the caller")
}

/// Reads paths from `input`, looks at them, and writes what is there to `output`. Few threads look at
/// one mount, so that a dead one does not delay the others.
///
/// # Errors
/// Fails if the input cannot be read or parsed.
pub fn answer_looks(input: impl Read, output: impl Write + Send) -> Result<()> {
    let mut questions = Vec::new();
    input
        .take(MAX_QUESTION_BYTES)
        .read_to_end(&mut questions)
        .context("cannot read the paths to look at")?;
    let paths: Vec<String> =
        serde_json::from_slice(&questions).context("cannot parse the paths to look at")?;
    let mounts = MountQueue::of_paths(&paths);
    // Every mount gets a thread before one gets a second.
    let turns: Vec<&MountQueue> = (0..THREADS_PER_MOUNT).flat_map(|_| &mounts).collect();
    let (next, output) = (AtomicUsize::new(0), Mutex::new(output));
    std::thread::scope(|scope| {
        for _ in 0..turns.len().min(MAX_THREADS) {
            scope.spawn(|| {
                while let Some(mount) = take(&turns, &next) {
                    while let Some(directory) = take(&mount.directories, &mount.next) {
                        look_in_order(&paths, directory, &output);
                    }
                }
            });
        }
    });
    Ok(())
}

/// Looks at the paths with the indices `directory`, one after another.
fn look_in_order(paths: &[String], directory: &[usize], output: &Mutex<impl Write>) {
    for &at in directory {
        write_line(output, &LookLine { at, sight: None });
        let sight = Some(PathSight::look_at(&paths[at]));
        write_line(output, &LookLine { at, sight });
    }
}

/// Returns the next of `items` that no other thread has taken.
fn take<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<&'a T> {
    items.get(next.fetch_add(1, Ordering::Relaxed))
}

/// The paths of what is probably one mount.
struct MountQueue {
    /// The indices of the paths, by directory.
    directories: Vec<Vec<usize>>,
    /// Index of the next directory.
    next: AtomicUsize,
}

impl MountQueue {
    fn of_paths(paths: &[String]) -> Vec<MountQueue> {
        let mut mounts: BTreeMap<&str, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
        for (at, path) in paths.iter().enumerate() {
            let mount = mounts.entry(mount_of(path)).or_default();
            mount.entry(directory_of(path)).or_default().push(at);
        }
        let queue = |directories: BTreeMap<&str, Vec<usize>>| MountQueue {
            directories: directories.into_values().collect(),
            next: AtomicUsize::new(0),
        };
        mounts.into_values().map(queue).collect()
    }
}

/// Returns the first directories of `path`: a mount, or a directory of a user on one.
fn mount_of(path: &str) -> &str {
    let directory = directory_of(path);
    let mut ends = directory.match_indices('/').map(|(at, _)| at);
    let end = ends.nth(MOUNT_DIRECTORIES);
    &directory[..end.unwrap_or(directory.len())]
}

fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Marks those paths as hanging that were not tried because their directory or their mount hangs, and
/// has given no answer at all.
fn mark_hanging(paths: &[&str], answers: &mut [LookAnswer]) {
    for part in [directory_of, mount_of] {
        let parts_with = |wanted: fn(&LookAnswer) -> bool| -> BTreeSet<&str> {
            let both = paths.iter().zip(&*answers);
            let chosen = both.filter(|(_, answer)| wanted(answer));
            chosen.map(|(path, _)| part(path)).collect()
        };
        let hanging = parts_with(|answer| *answer == LookAnswer::Hangs);
        let answering = parts_with(|answer| matches!(answer, LookAnswer::Seen(_)));
        let is_dead = |path: &str| hanging.contains(part(path)) && !answering.contains(part(path));
        for (path, answer) in paths.iter().zip(&mut *answers) {
            if *answer == LookAnswer::NotTried && is_dead(path) {
                *answer = LookAnswer::Hangs;
            }
        }
    }
}

/// Writes a line. A caller who has given up reads no more, which is no error here.
fn write_line(output: &Mutex<impl Write>, line: &LookLine) {
    let Ok(mut text) = serde_json::to_vec(line) else {
        return;
    };
    text.push(b'\n');
    if let Ok(mut output) = output.lock() {
        let _ = output.write_all(&text).and_then(|()| output.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::super::path_sight::Sight;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Runs a shell command in the place of this program, for up to an hour.
    fn look_with(script: &str, paths: &[&str]) -> Vec<LookAnswer> {
        look_within(HOUR, script, paths)
    }

    fn look_within(limit: Duration, script: &str, paths: &[&str]) -> Vec<LookAnswer> {
        let process = LookProcess::new("sh".into(), vec!["-c"], limit);
        let script = SharedText::from(script);
        let look = process.look_as(&LookUser::Owner(script), paths);
        look.expect("it starts")
    }

    #[test]
    fn each_user_has_a_process() {
        let sight = r#"{"target":"missing","parent":"missing","room":null,"is_visible":true}"#;
        // The second argument of the shell is the user, and only ada's process answers.
        let script = format!(r#"test "$0" = ada && echo '{{"at":0,"sight":{sight}}}'"#);
        let arguments = vec!["-c", &*Box::leak(script.into_boxed_str())];
        let process = LookProcess::new("sh".into(), arguments, HOUR);
        let path = |user: &str| UserPath {
            path: "/a".into(),
            user: LookUser::Owner(user.into()),
        };
        let answers = process.look(&[path("bob"), path("ada")]).expect("looked");
        assert_eq!(answers[0], LookAnswer::NotTried);
        assert!(matches!(answers[1], LookAnswer::Seen(_)));
    }

    #[test]
    fn child_answers_about_each_path() {
        let dir = tempfile::tempdir().expect("a directory");
        let there = dir.path().to_str().expect("text").to_owned();
        let paths = vec![there.clone(), format!("{there}/missing"), "x".to_owned()];
        let mut output = Vec::new();
        let input = serde_json::to_vec(&paths).expect("JSON");
        answer_looks(&input[..], &mut output).expect("answered");

        let script = format!("cat >/dev/null; echo '{}'", text(&output));
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let answers = look_with(&script, &paths);
        let targets = answers.iter().map(|answer| match answer {
            LookAnswer::Seen(sight) => sight.target,
            other => panic!("{other:?}"),
        });
        let targets: Vec<Sight> = targets.collect();
        assert!(matches!(targets[0], Sight::Found(_)));
        assert_eq!(targets[1..], [Sight::Missing, Sight::Refused]);
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[test]
    fn hanging_look_is_given_up_and_the_others_count() {
        let missing = r#"{"at":1,"sight":{"target":"missing","parent":"missing","room":null,"is_visible":true}}"#;
        // It ends its answers and hangs, so that no limit decides how many of them arrive.
        let script = format!(
            r#"echo '{{"at":0}}'; echo '{{"at":1}}'; echo '{missing}'; exec sleep 3600 >/dev/null"#
        );
        let answers = look_with(&script, &["/a", "/b", "/c"]);
        assert_eq!(answers[0], LookAnswer::Hangs);
        assert!(matches!(answers[1], LookAnswer::Seen(_)));
        assert_eq!(answers[2], LookAnswer::NotTried);
    }

    #[test]
    fn children_that_fail_or_lie_give_no_answers() {
        let not_tried = [LookAnswer::NotTried];
        assert_eq!(look_with("exit 3", &["/a"]), not_tried);
        let nonsense = "echo nonsense; exec sleep 3600";
        assert_eq!(look_with(nonsense, &["/a"]), not_tried);
        assert_eq!(look_with(r#"echo '{"at":7}'"#, &["/a"]), not_tried);
        let many = vec!["/home/ada/a/long/path/of/many"; 10_000];
        // It reads no question, and its limit begins with its first line.
        let silent = r#"echo '{"at":0}'; exec sleep 3600"#;
        let answers = look_within(Duration::from_millis(100), silent, &many);
        assert!(answers.iter().all(|answer| *answer == LookAnswer::Hangs));
        let missing = LookProcess::new("/no/such/program".into(), Vec::new(), Duration::ZERO);
        assert!(missing.look_as(&LookUser::This, &["/a"]).is_err());
    }

    #[test]
    fn paths_are_grouped_by_mount_and_directory() {
        let paths = [
            "/home/ada/in/a",
            "/home/ada/in/b",
            "/home/ada/c",
            "/home/ben/d",
            "/e",
            "",
        ];
        assert_eq!(
            paths.map(mount_of),
            ["/home/ada", "/home/ada", "/home/ada", "/home/ben", "", ""]
        );
        let mounts = MountQueue::of_paths(&paths.map(str::to_owned));
        let directories: Vec<&[Vec<usize>]> =
            mounts.iter().map(|mount| &mount.directories[..]).collect();
        let expected: [&[Vec<usize>]; 3] = [&[vec![4, 5]], &[vec![2], vec![0, 1]], &[vec![3]]];
        assert_eq!(directories, expected);
    }

    #[test]
    fn paths_beside_a_hanging_one_hang_too() {
        use LookAnswer::{Hangs, NotTried, Seen};
        let seen = Seen(PathSight {
            target: Sight::Missing,
            parent: Sight::Missing,
            room: None,
            is_visible: true,
        });
        let paths = [
            "/mnt/dead/a/1",
            "/mnt/dead/b/2",
            "/home/ada/x/3",
            "/home/ada/x/4",
            "/home/ada/y/5",
        ];
        let mut answers = [Hangs, NotTried, Hangs, NotTried, NotTried];
        mark_hanging(&paths, &mut answers);
        assert_eq!(answers, [Hangs; 5]);
        // A mount that answers elsewhere is not dead.
        let mut answers = [seen, NotTried, Hangs, NotTried, seen];
        mark_hanging(&paths, &mut answers);
        assert_eq!(answers, [seen, NotTried, Hangs, Hangs, seen]);
    }
}
