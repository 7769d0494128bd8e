//! The causes that a target knows of, kept in a file between two calls. The file changes only after a
//! notice was sent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::notice::{Notice, NoticeCause};
use super::target::NoticeTarget;
use poolcast_advice::CauseGroup;
use poolcast_base::error::hinted;
use poolcast_base::{files, manifest};

/// Version of the file.
const VERSION: u32 = 1;

/// Directory of the files, in the directory of a run or of a user.
const DIRECTORY: &str = "notices";

/// The causes that a target knows of, as stored in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct NoticeState {
    version: u32,
    /// Prediction time of the last call that sent its notice or had none, epoch ms.
    asked_ms: i64,
    /// Names of the causes, each with a digest of the cause without its answer.
    causes: BTreeMap<String, String>,
}

/// The state of one target, locked against other calls.
#[derive(Debug)]
pub struct TakenState {
    path: PathBuf,
    state: Option<NoticeState>,
    _lock: fs_err::File,
}

impl TakenState {
    /// Reads the state of `target` in `dir`. `call` distinguishes several questions to one target.
    ///
    /// # Errors
    /// Fails if the file is damaged or of another version, or if another call sends notices.
    pub fn take(dir: &Path, target: &NoticeTarget, call: &str) -> Result<TakenState> {
        let dir = dir.join(DIRECTORY);
        fs_err::create_dir_all(&dir)?;
        let lock = files::lock_directory(&dir)?;
        // The address may be a secret, so only its digest is in the name.
        let name = manifest::sha256(format!("{}\0{call}", target.address()).as_bytes());
        let path = dir.join(format!("{:.16}.json", name));
        let mut state = None;
        if path.exists() {
            let found: NoticeState = manifest::read_json(&path)?;
            ensure!(
                found.version == VERSION,
                hinted(
                    format!("`{}` has version {}", path.display(), found.version),
                    "move it away: the next notice then has all causes"
                )
            );
            state = Some(found);
        }
        Ok(TakenState {
            path,
            state,
            _lock: lock,
        })
    }

    /// Returns the notice of the `groups` that are new; `None` if all are known.
    pub fn notice(&self, groups: &[CauseGroup<'_>], asked_ms: i64) -> Option<Notice> {
        let empty = BTreeMap::new();
        let known = self.state.as_ref().map_or(&empty, |state| &state.causes);
        let known_problems: BTreeSet<&str> = known.values().map(String::as_str).collect();
        let is_new = |group: &&CauseGroup<'_>| !known.contains_key(&group.cause);
        let causes: Vec<NoticeCause> = (groups.iter().filter(is_new))
            .map(|group| NoticeCause::new(group, known_problems.contains(&*problem_of(group))))
            .collect();
        (!causes.is_empty()).then(|| Notice {
            since_ms: self.state.as_ref().map(|state| state.asked_ms),
            asked_ms,
            causes,
        })
    }

    /// Records that the target knows of `groups`. Call this only once the notice, if there is one, was
    /// sent.
    pub fn keep(self, groups: &[CauseGroup<'_>], asked_ms: i64) -> Result<()> {
        let causes = groups
            .iter()
            .map(|group| (group.cause.clone(), problem_of(group)));
        let state = NoticeState {
            version: VERSION,
            asked_ms,
            causes: causes.collect(),
        };
        if self.state.as_ref() == Some(&state) {
            return Ok(());
        }
        manifest::write_json(&self.path, &state)
    }
}

/// Digest of a cause without its answer and without numbers.
fn problem_of(group: &CauseGroup<'_>) -> String {
    let words = group.words.replace(|c: char| c.is_ascii_digit(), "");
    let parts = (group.ap, group.hold_code, group.hold_subcode, words);
    let text = serde_json::to_vec(&parts).unwrap_or_default();
    format!("{:.16}", manifest::sha256(&text))
}

#[cfg(test)]
mod tests {
    use super::super::notice::tests::group;
    use super::*;

    fn target() -> NoticeTarget {
        NoticeTarget::Mail("ada".to_owned())
    }

    fn take(dir: &Path) -> TakenState {
        TakenState::take(dir, &target(), "advise").expect("taken")
    }

    #[test]
    fn only_new_causes_and_new_answers_are_in_a_notice() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = [group("aaaaaa", "file 1 is missing")];
        let state = take(dir.path());
        let notice = state.notice(&first, 1000).expect("all is new at first");
        assert_eq!((notice.since_ms, notice.causes.len()), (None, 1));
        state.keep(&first, 1000).expect("written");
        assert_eq!(take(dir.path()).notice(&first, 2000).map(drop), None);

        let second = [
            group("aaaaaa", "file 1 is missing"),
            group("bbbbbb", "file 2 is missing"),
            group("cccccc", "fs1 is down"),
        ];
        let notice = take(dir.path()).notice(&second, 3000).expect("news");
        let is_known = notice.causes.iter().map(|cause| cause.is_other_answer);
        assert_eq!(is_known.collect::<Vec<_>>(), [true, false]);
        assert_eq!(notice.since_ms, Some(1000));
    }

    #[test]
    fn unsent_notices_are_made_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let groups = [group("aaaaaa", "fs1 is down")];
        for _ in 0..2 {
            // The state is dropped, as after a failure.
            assert!(take(dir.path()).notice(&groups, 1000).is_some());
        }
    }

    #[test]
    fn targets_and_questions_have_states_of_their_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let groups = [group("aaaaaa", "fs1 is down")];
        take(dir.path()).keep(&groups, 1000).expect("written");
        let other = TakenState::take(dir.path(), &target(), "advise --owner bob").expect("taken");
        assert!(other.notice(&groups, 1000).is_some());
        assert!(
            TakenState::take(dir.path(), &target(), "advise").is_err(),
            "another call holds the lock"
        );
    }

    #[test]
    fn damaged_state_is_an_error_and_loses_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        take(dir.path()).keep(&[], 1000).expect("written");
        let path = take(dir.path()).path;
        fs_err::write(&path, "{").expect("damaged");
        assert!(TakenState::take(dir.path(), &target(), "advise").is_err());
        assert_eq!(fs_err::read_to_string(path).expect("read"), "{");
    }
}
