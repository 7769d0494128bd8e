//! The owners of clusters, by name. An event store has only hashes of these names, so they are
//! collected while a log is read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use htcondor_eventlog::EventBatch;

/// The owners of clusters, by access point and cluster.
#[derive(Debug, Default)]
pub struct OwnerNames {
    by_access_point: HashMap<String, HashMap<i32, ClusterOwner>>,
    names: HashSet<Arc<str>>,
}

/// The owner of a cluster.
#[derive(Debug, PartialEq, Eq)]
enum ClusterOwner {
    Named(Arc<str>),
    /// Several owners had a cluster of this number, or the name is unsafe in an expression.
    Unclear,
}

impl OwnerNames {
    /// Adds the owners that the job ads of `batch` name.
    pub fn add(&mut self, batch: &EventBatch<'_>) {
        for ad in batch.ads {
            if let Some(owner) = &ad.owner {
                self.add_owner(batch.ap, ad.cluster, owner);
            }
        }
    }

    pub(super) fn add_owner(&mut self, ap: &str, cluster: i32, owner: &str) {
        let owner = self.cluster_owner(owner);
        let clusters = match self.by_access_point.get_mut(ap) {
            Some(clusters) => clusters,
            None => self.by_access_point.entry(ap.to_owned()).or_default(),
        };
        match clusters.get_mut(&cluster) {
            Some(known) if *known != owner => *known = ClusterOwner::Unclear,
            Some(_) => {}
            None => {
                clusters.insert(cluster, owner);
            }
        }
    }

    /// Accepts only names that mean the same in a ClassAd, a submit file and a configuration.
    fn cluster_owner(&mut self, name: &str) -> ClusterOwner {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
        if name.is_empty() || !name.chars().all(is_plain) {
            return ClusterOwner::Unclear;
        }
        if let Some(known) = self.names.get(name) {
            return ClusterOwner::Named(Arc::clone(known));
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        ClusterOwner::Named(name)
    }

    /// Returns the owner of a cluster; `None` if no name is known that is safe in an expression.
    pub fn owner(&self, ap: &str, cluster: i32) -> Option<&str> {
        match self.by_access_point.get(ap)?.get(&cluster)? {
            ClusterOwner::Named(name) => Some(name),
            ClusterOwner::Unclear => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclear_and_unsafe_owners_have_no_name() {
        let mut names = OwnerNames::default();
        names.add_owner("ap", 1, "ada");
        names.add_owner("ap", 1, "ada");
        names.add_owner("ap", 2, "ada");
        names.add_owner("ap", 2, "eve");
        names.add_owner("ap", 2, "ada");
        names.add_owner("ap", 3, "x\" || true || \"");
        names.add_owner("ap", 4, "$(HOME)");
        names.add_owner("other", 1, "bob");
        let owners = [1, 2, 3, 4, 5].map(|cluster| names.owner("ap", cluster));
        assert_eq!(owners, [Some("ada"), None, None, None, None]);
        assert_eq!(names.owner("other", 1), Some("bob"));
        assert_eq!(names.owner("none", 1), None);
    }
}
