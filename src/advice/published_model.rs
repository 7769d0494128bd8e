//! A model that a site publishes for its users: what `advise` needs of a run, and nothing else. It
//! has numbers, column names and the names of access points, but no events, no hashes of names, and
//! no predictions for single jobs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::advice_basis::ModelOrigin;
use poolcast_base::error::{hinted, unavailable};
use poolcast_base::files::StagedDirectory;
use poolcast_base::manifest;
use poolcast_base::shard::ArtefactFormat;
use poolcast_holds::answers::LearnedAnswers;
use poolcast_holds::config::AdviceConfig;

/// Format of directories of published models.
const PUBLISHED_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "published model",
    version: 3,
    rebuild: "poolcast publish RUN -o DIR",
};

/// Attempts to open a model that is replaced meanwhile.
const MAX_ATTEMPTS: usize = 5;

/// Mode of published directories, which everyone may read.
const DIRECTORY_MODE: u32 = 0o755;

/// Mode of published files.
const FILE_MODE: u32 = 0o644;

/// A published model.
#[derive(Debug)]
pub struct PublishedModel {
    /// The model for questions in the middle of a hold, with the limits of its answers.
    pub answers: LearnedAnswers,
    /// The training data and the rehearsal of the run.
    pub origin: ModelOrigin,
    /// The settings of advice at the site.
    pub settings: AdviceConfig,
}

/// Body of the manifest.
#[derive(Debug, Serialize, Deserialize)]
struct PublishedSummary {
    /// End of the time that the answers learned from, epoch ms.
    learned_ms: i64,
    origin: ModelOrigin,
    settings: AdviceConfig,
}

impl PublishedModel {
    /// Returns true if a model is published in `dir`.
    pub fn is_in(dir: &Path) -> bool {
        let format = manifest::format_name(dir).ok().flatten();
        format.as_deref() == Some(PUBLISHED_FORMAT.name)
    }

    /// Returns the end of the time that the model in `dir` learned from, epoch ms.
    ///
    /// # Errors
    /// Fails if there is no published model of this version.
    pub fn read_age(dir: &Path) -> Result<i64> {
        let summary = manifest::read::<PublishedSummary>(dir, PUBLISHED_FORMAT)?;
        Ok(summary.body.learned_ms)
    }

    /// Writes the model to `dir`, which everyone may then read. An earlier model there is replaced
    /// in one step. `answers_key` is the digest of what the answers were made from.
    ///
    /// # Errors
    /// Fails if `dir` has anything else than a published model.
    pub fn write(&self, dir: &Path, answers_key: &str) -> Result<()> {
        let is_other = dir.join(manifest::FILE).exists() && !PublishedModel::is_in(dir);
        ensure!(
            !is_other,
            hinted(
                format!("`{}` is not a published model", dir.display()),
                "name a new directory for it"
            )
        );
        let staging = StagedDirectory::new(dir, true)?;
        let summary = PublishedSummary {
            learned_ms: self.answers.known_ms,
            origin: self.origin.clone(),
            settings: self.settings.clone(),
        };
        let key = manifest::key(&(&summary, answers_key))?;
        self.answers.write(&answers_dir(staging.path()), &key)?;
        manifest::write(staging.path(), PUBLISHED_FORMAT, &key, &summary)?;
        let_everyone_read(staging.path())?;
        staging.commit()
    }

    /// Opens the model in `dir`. If it is replaced meanwhile, the new one is opened.
    ///
    /// # Errors
    /// Fails if there is none of this version, or if a file is damaged.
    pub fn open(dir: &Path) -> Result<PublishedModel> {
        let mut found = manifest::read::<PublishedSummary>(dir, PUBLISHED_FORMAT)?;
        for _ in 0..MAX_ATTEMPTS {
            let answers = LearnedAnswers::open(&answers_dir(dir));
            let after = manifest::read::<PublishedSummary>(dir, PUBLISHED_FORMAT)?;
            if after.key == found.key {
                return PublishedModel::from_parts(dir, found.body, answers?);
            }
            found = after;
        }
        bail!("`{}` is replaced all the time", dir.display())
    }

    fn from_parts(
        dir: &Path,
        summary: PublishedSummary,
        answers: Option<LearnedAnswers>,
    ) -> Result<PublishedModel> {
        let damaged = || {
            unavailable(
                format!("the published model in `{}` is not complete", dir.display()),
                format!("publish it again: {}", PUBLISHED_FORMAT.rebuild),
            )
        };
        summary.settings.check().with_context(damaged)?;
        let answers = answers.with_context(damaged)?;
        // The model may come from elsewhere. Later times would overflow in differences.
        let is_date = |ms: i64| jiff::Timestamp::from_millisecond(ms).is_ok();
        let from_ms = summary.origin.from_ms;
        let has_times =
            from_ms.is_none_or(|from_ms| is_date(from_ms) && from_ms <= answers.known_ms);
        let has_skill = (summary.origin.rehearsed).is_none_or(|rehearsed| rehearsed.is_valid());
        let is_of_answers = summary.learned_ms == answers.known_ms && is_date(answers.known_ms);
        ensure!(
            is_of_answers && has_times && has_skill,
            unavailable(
                format!(
                    "the published model in `{}` has numbers that no model has",
                    dir.display()
                ),
                format!("publish it again: {}", PUBLISHED_FORMAT.rebuild),
            )
        );
        Ok(PublishedModel {
            answers,
            origin: summary.origin,
            settings: summary.settings,
        })
    }
}

fn answers_dir(dir: &Path) -> PathBuf {
    dir.join("answers")
}

/// Lets everyone read `dir` and everything in it, whatever the umask says.
fn let_everyone_read(dir: &Path) -> Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            let_everyone_read(&path)?;
        } else {
            fs_err::set_permissions(&path, Permissions::from_mode(FILE_MODE))?;
        }
    }
    fs_err::set_permissions(dir, Permissions::from_mode(DIRECTORY_MODE))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice_basis::RehearsedSkill;
    use crate::rehearsed_actions::RehearsedActions;
    use crate::test_config::default_settings;
    use poolcast_events::HoldSource;
    use poolcast_holds::answers::{AnswerLimits, AnswerModel, HoldHistory};
    use poolcast_holds::rehearsal::Proportion;
    use test_stores::log_with_outages;

    /// Returns answers that were learned from a small log.
    fn learned_answers() -> LearnedAnswers {
        let store = log_with_outages(8).store();
        let history = HoldHistory::new(&store);
        let advice = AdviceConfig {
            prior: false,
            ..default_settings()
        };
        let model = AnswerModel::learn(&history, store.summary.end_ms, &advice, 1, &|| false);
        LearnedAnswers {
            model: model.expect("learned").expect("outcomes are known"),
            limits: AnswerLimits::default(),
            known_ms: store.summary.end_ms,
        }
    }

    fn published() -> PublishedModel {
        PublishedModel {
            answers: learned_answers(),
            origin: ModelOrigin {
                rehearsed: Some(RehearsedSkill {
                    kind_right: Proportion { count: 75, of: 90 },
                    firm_right: Proportion { count: 0, of: 0 },
                    by_action: RehearsedActions::default(),
                }),
                source: HoldSource::Log,
                access_points: vec!["ap".to_owned()],
                from_ms: Some(0),
            },
            settings: default_settings(),
        }
    }

    #[test]
    fn published_models_are_replaced_and_read_by_everyone() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("model");
        let model = published();
        assert!(!PublishedModel::is_in(&place));
        for key in ["first", "second"] {
            model.write(&place, key).expect("written");
            let opened = PublishedModel::open(&place).expect("opened");
            assert_eq!(opened.answers, model.answers);
            assert_eq!(opened.origin.access_points, ["ap"]);
        }
        let learned_ms = PublishedModel::read_age(&place).expect("read");
        assert_eq!(learned_ms, model.answers.known_ms);
        for path in ["", "answers", "answers/now"] {
            let mode = fs_err::metadata(place.join(path))
                .expect("there")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, DIRECTORY_MODE, "{path}");
        }
        for path in [
            "manifest.json",
            "answers/manifest.json",
            "answers/now/1/pipeline.json",
        ] {
            let mode = fs_err::metadata(place.join(path))
                .expect("there")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, FILE_MODE, "{path}");
        }
        assert_eq!(
            fs_err::read_dir(dir.path()).expect("listed").count(),
            1,
            "no leftovers"
        );
    }

    #[test]
    fn other_artefacts_are_never_replaced_or_opened() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("run");
        fs_err::create_dir(&place).expect("made");
        fs_err::write(place.join(manifest::FILE), r#"{"format": "run"}"#).expect("written");
        assert!(published().write(&place, "key").is_err());
        assert!(PublishedModel::open(&place).is_err());

        let timeless = dir.path().join("timeless");
        let mut model = published();
        model.answers.known_ms = i64::MAX;
        model.write(&timeless, "key").expect("written");
        assert!(PublishedModel::open(&timeless).is_err());

        let changed = |file: &str, from: &str, to: &str| {
            let place = dir.path().join("changed");
            published().write(&place, "key").expect("written");
            let file = place.join(file);
            let text = fs_err::read_to_string(&file).expect("read");
            assert!(text.contains(from), "{text}");
            fs_err::write(file, text.replacen(from, to, 1)).expect("written");
            PublishedModel::open(&place).map(drop)
        };
        changed(manifest::FILE, "75", "76").expect("also a skill");
        for (from, to) in [
            ("75", "91"),
            ("75", "-1"),
            ("\"from_ms\": 0", "\"from_ms\": 999999999999"),
            ("\"learned_ms\": ", "\"learned_ms\": 1"),
        ] {
            assert!(changed(manifest::FILE, from, to).is_err(), "{to}");
        }
        let forest = "answers/now/1/pipeline.json";
        assert!(
            changed(forest, "0.", "1.").is_err(),
            "not the forest of the manifest"
        );
        let answers = "answers/manifest.json";
        assert!(changed(answers, "\"max_age\": ", "\"max_age\": -").is_err());

        let damaged = dir.path().join("model");
        published().write(&damaged, "key").expect("written");
        fs_err::remove_dir_all(damaged.join("answers")).expect("removed");
        assert!(PublishedModel::open(&damaged).is_err());
    }
}
