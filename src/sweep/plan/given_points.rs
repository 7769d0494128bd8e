//! The points that a tracker gives to a sweep, stored in a file in the sweep's folder. A process
//! with network access writes the file. The manager puts its trials into the queue, and workers
//! read their parameters.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Config;
use poolcast_base::{files, manifest};

/// The version of the file format.
const VERSION: u32 = 1;

/// The name of the file in the sweep's folder.
pub(crate) const POINTS_FILE: &str = "given-points.json";

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// The largest size of a run id or an agent id, in bytes.
const MAX_ID_BYTES: usize = 256;

/// A point that a tracker has given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenPoint {
    /// The tracker's id of the run.
    pub run_id: String,
    /// The values of hyper-parameters, by name.
    pub parameters: BTreeMap<String, Value>,
}

/// An agent that the tracker knows as one worker. The tracker gives it one point at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointAgent {
    /// The tracker's id of the agent.
    pub id: String,
    /// The runs that it was given and that have not ended.
    pub run_ids: Vec<String>,
    /// True if it has requested a point and has no known answer.
    pub is_asking: bool,
}

/// The points that a tracker has given so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenPoints {
    format_version: u32,
    /// True if no more points will follow.
    pub is_complete: bool,
    /// The points of the trials, from trial 1 on.
    pub points: Vec<GivenPoint>,
    /// The agents that request points.
    pub agents: Vec<PointAgent>,
}

impl GivenPoints {
    /// Reads the points that were given to the sweep in `dir`. They are empty if there is no file
    /// yet.
    ///
    /// # Errors
    /// Fails for a file that is damaged, or has another version.
    pub fn read(dir: &Path) -> Result<GivenPoints> {
        let path = dir.join(POINTS_FILE);
        let text = match files::read_regular(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(GivenPoints::none()),
            Err(error) => return Err(error.into()),
        };
        let cannot = || format!("cannot use `{}`", path.display());
        let given: GivenPoints = serde_json::from_slice(&text).with_context(cannot)?;
        given.check().with_context(cannot)?;
        Ok(given)
    }

    fn none() -> GivenPoints {
        GivenPoints {
            format_version: VERSION,
            is_complete: false,
            points: Vec::new(),
            agents: Vec::new(),
        }
    }

    fn check(&self) -> Result<()> {
        let version = self.format_version;
        ensure!(
            version == VERSION,
            "it has version {version}, and this program reads version {VERSION}"
        );
        let runs = self.points.iter().map(|point| &point.run_id);
        let agents = self.agents.iter().map(|agent| &agent.id);
        ensure!(
            runs.into_iter().all(|id| is_usable_run_id(id))
                && agents.into_iter().all(|id| is_usable_id(id)),
            "it has an invalid id of a run or an agent"
        );
        self.points.iter().try_for_each(GivenPoint::check)
    }

    /// Writes the points to `dir`.
    ///
    /// # Errors
    /// Fails on a full disk.
    pub fn write(&self, dir: &Path) -> Result<()> {
        manifest::write_json(&dir.join(POINTS_FILE), self)
    }

    /// Returns true if every point is known: no more will follow, and no agent waits for an answer.
    /// A lost answer may hold a point, which is recovered later.
    pub(crate) fn has_every_point(&self) -> bool {
        self.is_complete && self.agents.iter().all(|agent| !agent.is_asking)
    }

    /// The number of the trial whose run has the id `run_id`.
    pub fn trial_of(&self, run_id: &str) -> Option<usize> {
        let at = self.points.iter().position(|point| point.run_id == run_id);
        at.map(|at| at + 1)
    }

    /// The tracker's id of the run of `trial`.
    pub fn run_id_of(&self, trial: usize) -> Option<&str> {
        let point = self.points.get(trial.checked_sub(1)?)?;
        Some(&point.run_id)
    }

    /// The configuration of `trial` of the sweep of `config`.
    ///
    /// # Errors
    /// Fails for a trial that was not given.
    pub(crate) fn trial_config(&self, config: &Config, trial: usize) -> Result<Config> {
        let point = trial.checked_sub(1).and_then(|at| self.points.get(at));
        let point =
            point.with_context(|| format!("the tracker has given no point for trial {trial}"))?;
        let mut config = config.with_values(&point.parameters);
        // The configuration of a single trial does not belong to the tracker's sweep.
        config.wandb.sweep.id = None;
        Ok(config)
    }
}

impl GivenPoint {
    /// Checks that all parameters are hyper-parameters of poolcast with plain values.
    ///
    /// # Errors
    /// Names the first parameter that is not.
    pub fn check(&self) -> Result<()> {
        for (name, value) in &self.parameters {
            ensure!(
                Config::has_hyper_parameter(name),
                "`{name}` is not a hyper-parameter of networks or of their samples"
            );
            let is_plain = value.is_number() || value.is_string() || value.is_boolean();
            ensure!(is_plain, "`{name}` must be a number or a word, got {value}");
        }
        Ok(())
    }
}

/// Returns true if `id` can be the id of a run.
pub fn is_usable_run_id(id: &str) -> bool {
    is_usable_id(id) && !id.contains(['/', ':', '+', '=']) && !id.starts_with('.')
}

/// Returns true if `id` can be the id of an agent.
pub fn is_usable_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=+/:".contains(&byte);
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn points_are_missing_while_an_agent_waits_for_an_answer() {
        let mut given = GivenPoints::none();
        assert!(!given.has_every_point());
        given.is_complete = true;
        assert!(given.has_every_point());

        // Another agent was sent away while the answer to this one was lost.
        given.agents.push(PointAgent {
            id: "QWdlbnQ6MQ==".to_owned(),
            run_ids: Vec::new(),
            is_asking: true,
        });
        assert!(!given.has_every_point());
        given.agents[0].is_asking = false;
        assert!(given.has_every_point());
    }

    #[test]
    fn given_points_round_trip_and_damaged_files_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut given = GivenPoints::read(dir.path()).expect("there is none yet");
        let parameters = BTreeMap::from([("hidden_size".to_owned(), json!(8))]);
        given.points.push(GivenPoint {
            run_id: "abc".to_owned(),
            parameters,
        });
        given.agents.push(PointAgent {
            id: "QWdlbnQ6MQ==".to_owned(),
            run_ids: vec!["abc".to_owned()],
            is_asking: true,
        });
        given.write(dir.path()).expect("written");
        assert_eq!(GivenPoints::read(dir.path()).expect("read"), given);
        assert_eq!(given.trial_of("abc"), Some(1));
        assert_eq!(
            (given.run_id_of(1), given.run_id_of(2)),
            (Some("abc"), None)
        );
        assert_eq!(given.run_id_of(0), None);
        let config = Config::load(None, &BTreeMap::new()).expect("a configuration");
        let trial = given.trial_config(&config, 1).expect("given");
        assert_eq!(
            trial
                .training
                .parameters
                .trial()
                .expect("plain")
                .hidden_size,
            8
        );
        assert!(given.trial_config(&config, 2).is_err());

        let text = fs_err::read_to_string(dir.path().join(POINTS_FILE)).expect("read");
        for (from, to) in [
            ("\"format_version\": 1", "\"format_version\": 2"),
            ("abc", "../../etc"),
            ("abc", "a\\u001bc"),
            ("hidden_size", "hidden"),
            ("8", "[8]"),
            ("\"is_complete\"", "\"is_over\""),
        ] {
            fs_err::write(dir.path().join(POINTS_FILE), text.replace(from, to)).expect("written");
            assert!(GivenPoints::read(dir.path()).is_err(), "{to}");
        }
    }
}
