//! The settings of a cluster that decide whether its queue can be forecast, from
//! `scontrol show config` and `scontrol show partition`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

/// The settings of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmSettings {
    /// The plugin that selects nodes, such as `select/linear`.
    select_type: String,
    /// The kinds of information that users see only about themselves.
    private_data: Vec<String>,
    /// The number of the user who runs the controller, and may see everything.
    slurm_user_id: Option<u32>,
    /// The consumable resources, such as `CR_CORE_MEMORY`.
    select_parameters: String,
    /// The plugin that ranks jobs, such as `priority/multifactor`; empty if it is not listed.
    pub(super) priority_type: String,
    /// The weight of fair-share in priorities.
    pub(super) fair_share_weight: i64,
    /// True if Slurm enforces the limits of accounts and users.
    pub(super) enforces_limits: bool,
    partitions: BTreeMap<String, PartitionSettings>,
}

/// The settings of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PartitionSettings {
    /// The value of `OverSubscribe`.
    oversubscribe: String,
    /// The value of `PriorityTier`: jobs of a higher one come first.
    tier: i64,
    /// True if jobs that name no partition go to this one.
    is_default: bool,
    /// The value of `MaxTime`.
    max_time: Option<String>,
    /// A setting that is not simulated, if there is one.
    unknown: Option<String>,
}

impl SlurmSettings {
    /// Parses the output of `scontrol show config`, and of `scontrol --oneliner show partition`.
    ///
    /// # Errors
    /// Fails if a setting is missing.
    pub fn parse(config: &str, partitions: &str) -> Result<SlurmSettings> {
        let value = |key: &str| {
            let line = config.lines().find_map(|line| {
                let (name, value) = line.split_once('=')?;
                (name.trim() == key).then(|| value.trim().to_owned())
            });
            line.with_context(|| format!("`scontrol show config` has no `{key}`"))
        };
        let mut settings = BTreeMap::new();
        for line in partitions.lines() {
            let value = |key: &str| {
                let mut pairs = line.split_ascii_whitespace();
                pairs.find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
            };
            if let (Some(name), Some(sharing)) = (value("PartitionName"), value("OverSubscribe")) {
                let unset = [
                    ("MaxCPUsPerNode", "UNLIMITED"),
                    ("MaxCPUsPerSocket", "UNLIMITED"),
                    ("ExclusiveUser", "NO"),
                ];
                let is_set =
                    |(key, unset): &&(&str, &str)| value(key).is_some_and(|value| value != *unset);
                let unknown = unset.iter().find(is_set);
                let partition = PartitionSettings {
                    oversubscribe: sharing.to_owned(),
                    tier: value("PriorityTier")
                        .and_then(|tier| tier.parse().ok())
                        .unwrap_or(1),
                    is_default: value("Default") == Some("YES"),
                    max_time: value("MaxTime").map(str::to_owned),
                    unknown: unknown.and_then(|(key, _)| Some(format!("{key}={}", value(key)?))),
                };
                settings.insert(name.to_owned(), partition);
            }
        }
        let private_data = value("PrivateData")?;
        let enforced = value("AccountingStorageEnforce").unwrap_or_default();
        let fair_share_weight = value("PriorityWeightFairShare").ok();
        Ok(SlurmSettings {
            select_type: value("SelectType")?,
            private_data: private_data.split(',').map(str::to_owned).collect(),
            slurm_user_id: user_number(&value("SlurmUser")?),
            // Before Slurm 22.05, it may be empty.
            select_parameters: value("SelectTypeParameters").unwrap_or_default(),
            priority_type: value("PriorityType").unwrap_or_default(),
            fair_share_weight: fair_share_weight
                .and_then(|weight| weight.parse().ok())
                .unwrap_or(0),
            enforces_limits: enforced.contains("limits") || enforced.contains("safe"),
            partitions: settings,
        })
    }

    /// Returns the setting by which jobs of `partition` can share a node, or `None` if each job has
    /// whole nodes.
    pub fn sharing(&self, partition: &str) -> Option<String> {
        let over = self.partitions.get(partition);
        let over = over.map(|settings| settings.oversubscribe.as_str());
        let is_linear = self.select_type == "select/linear";
        match over {
            Some("EXCLUSIVE") => None,
            Some("NO") if is_linear => None,
            Some("NO") => Some(format!("SelectType={}", self.select_type)),
            Some(over) => Some(format!("OverSubscribe={over}")),
            None => Some("no known setting of OverSubscribe".to_owned()),
        }
    }

    /// Returns the name of the partition of jobs that name none, if there is one.
    pub fn default_partition(&self) -> Option<&str> {
        let mut partitions = self.partitions.iter();
        let found = partitions.find(|(_, settings)| settings.is_default);
        found.map(|(name, _)| name.as_str())
    }

    /// Returns the longest time limit of jobs in `partition`, as Slurm prints it.
    pub(super) fn max_time(&self, partition: &str) -> Option<&str> {
        self.partitions.get(partition)?.max_time.as_deref()
    }

    /// Returns true if jobs of any partition can share a node.
    pub fn has_shared_nodes(&self) -> bool {
        self.partitions
            .keys()
            .any(|name| self.sharing(name).is_some())
    }

    /// Returns a setting of `partition` with which nodes that jobs share are not simulated.
    pub(super) fn beyond_simulation(&self, partition: &str) -> Option<String> {
        if !["select/cons_tres", "select/cons_res"].contains(&self.select_type.as_str()) {
            return Some(format!("SelectType={}", self.select_type));
        }
        let settings = self.partitions.get(partition)?;
        // Only with a number above 1 do jobs share cores.
        let simulated = ["NO", "EXCLUSIVE", "YES:1", "FORCE:1"];
        if !simulated.contains(&settings.oversubscribe.as_str()) {
            return Some(format!("OverSubscribe={}", settings.oversubscribe));
        }
        settings.unknown.clone()
    }

    /// Returns true if Slurm allocates memory.
    pub(super) fn allocates_memory(&self) -> bool {
        self.select_parameters
            .to_ascii_uppercase()
            .contains("MEMORY")
    }

    /// Returns true if Slurm allocates whole cores, or more.
    pub(super) fn allocates_cores(&self) -> bool {
        let parameters = self.select_parameters.to_ascii_uppercase();
        !parameters.split(',').any(|name| name.starts_with("CR_CPU"))
    }

    /// Returns the highest tier of `partitions`. Slurm considers the jobs of higher tiers first.
    pub(super) fn tier(&self, partitions: &[String]) -> i64 {
        let settings = partitions
            .iter()
            .filter_map(|name| self.partitions.get(name));
        settings.map(|settings| settings.tier).max().unwrap_or(1)
    }

    /// Returns true if `PrivateData` hides other users' jobs from the user with the number
    /// `user_id`.
    pub fn hides_jobs(&self, user_id: u32) -> bool {
        let sees_all = user_id == 0 || self.slurm_user_id == Some(user_id);
        !sees_all && self.private_data.iter().any(|kind| kind == "jobs")
    }
}

/// Parses the number in `slurm(64030)`.
fn user_number(user: &str) -> Option<u32> {
    let (_, number) = user.strip_suffix(')')?.rsplit_once('(')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that Slurm 22.05 prints.
    const CONFIG: &str = "\
Configuration data as of 2026-11-24T12:08:20
JobCredentialPrivateKey = (null)
PrivateData             = accounts,jobs
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SlurmUser               = slurm(64030)
";

    fn settings(select: &str, sharing: &str) -> SlurmSettings {
        let config = CONFIG.replace("select/cons_tres", select);
        let partition = format!(
            "PartitionName=all AllowGroups=ALL Nodes=n[1-4] ReqResv=NO OverSubscribe={sharing} OverTimeLimit=NONE State=UP\n"
        );
        SlurmSettings::parse(&config, &partition).expect("read")
    }

    #[test]
    fn partitions_whose_jobs_share_nodes_are_found() {
        let sharing = |select, over| settings(select, over).sharing("all");
        assert_eq!(sharing("select/linear", "NO"), None);
        assert_eq!(sharing("select/cons_tres", "EXCLUSIVE"), None);
        let of_cores = Some("SelectType=select/cons_tres".to_owned());
        assert_eq!(sharing("select/cons_tres", "NO"), of_cores);
        let forced = Some("OverSubscribe=FORCE:4".to_owned());
        assert_eq!(sharing("select/linear", "FORCE:4"), forced);
        assert!(settings("select/linear", "NO").sharing("other").is_some());
    }

    #[test]
    fn private_data_hides_jobs_from_ordinary_users() {
        let settings = settings("select/linear", "NO");
        let hidden = [0, 64_030, 1000].map(|user_id| settings.hides_jobs(user_id));
        assert_eq!(hidden, [false, false, true]);
        let public = CONFIG.replace("accounts,jobs", "none");
        let public = SlurmSettings::parse(&public, "").expect("read");
        assert!(!public.hides_jobs(1000));
    }

    #[test]
    fn missing_settings_are_named() {
        let config = CONFIG.replace("PrivateData", "Private");
        let error = SlurmSettings::parse(&config, "").expect_err("rejected");
        assert!(error.to_string().contains("`PrivateData`"), "{error}");
    }
}
