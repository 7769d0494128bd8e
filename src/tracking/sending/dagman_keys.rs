//! Checks that the last script of a DAG can send its runs to trackers. DAGMan passes only `HOME`
//! and `PATH` to scripts, so servers and keys must be known without other variables.

use poolcast_sweep::config::{Config, Tracker};

use crate::mlflow::MlflowSettings;
use crate::server::variable;
use crate::wandb::WandbSettings;

/// Returns why the last script of a DAG of `config` cannot send to an enabled tracker, and what to
/// do. One text per tracker; empty if no obstacle can be detected here.
pub fn missing_under_dagman(config: &Config) -> Vec<String> {
    let of_home = |name: &str| variable(name).filter(|_| name == "HOME");
    let mut missing = Vec::new();
    for tracker in config.enabled_trackers() {
        let failure = match tracker {
            Tracker::Wandb => WandbSettings::new(config, None, of_home)
                .and_then(|mut settings| settings.key(of_home))
                .err(),
            Tracker::Mlflow => MlflowSettings::new(config, None, of_home)
                .and_then(|mut settings| settings.key(of_home))
                .err(),
        };
        if let Some(failure) = failure {
            missing.push(format!("{tracker}: {failure}"));
        }
    }
    missing
}
