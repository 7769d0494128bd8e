//! What the last script of a DAG can send with: DAGMan hands scripts `HOME` and `PATH`, and no other
//! variable that says where a tracker is or what the key for it is.

use poolcast_config::{Config, Tracker};

use super::mlflow_settings::MlflowSettings;
use super::wandb_settings::{WandbSettings, variable};

/// Why the last script of a DAG of `config` will not send to a tracker that is enabled, each with what
/// to do; empty if it will, as far as that can be told here.
pub fn missing_under_dagman(config: &Config) -> Vec<String> {
    let of_home = |name: &str| variable(name).filter(|_| name == "HOME");
    let mut missing = Vec::new();
    for tracker in config.enabled_trackers() {
        let failure = match tracker {
            Tracker::Wandb => WandbSettings::new(config, of_home)
                .and_then(|mut settings| settings.key(of_home))
                .err(),
            Tracker::Mlflow => MlflowSettings::new(config, of_home).err(),
        };
        if let Some(failure) = failure {
            missing.push(format!("{tracker}: {failure}"));
        }
    }
    missing
}
