//! The held jobs of other users, where the queue was asked for the jobs of one user.

use std::collections::HashSet;
use std::io::BufRead;

use anyhow::Result;
use serde_json::Value;

use poolcast_holds::job_ads::for_each_ad;

/// The attribute of a held job that names its owner.
pub const OWNER_ATTRIBUTE: &str = "Owner";

/// The held jobs of other users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldByOthers {
    /// Number of the jobs.
    pub jobs: usize,
    /// Number of their owners.
    pub owners: usize,
}

impl HeldByOthers {
    /// Reads the output of `condor_q -json` for the held jobs of all users from `input`, and counts
    /// those that `user` does not own.
    ///
    /// # Errors
    /// Fails if `input` cannot be read, or if it is not a complete JSON list.
    pub fn count(input: impl BufRead, user: Option<&str>) -> Result<HeldByOthers> {
        let mut owners: HashSet<Option<String>> = HashSet::new();
        let mut jobs = 0;
        for_each_ad(input, |ad| {
            let Ok(ad) = ad else { return };
            let owner = ad.get(OWNER_ATTRIBUTE).and_then(Value::as_str);
            if owner.is_none() || owner != user {
                jobs += 1;
                owners.insert(owner.map(str::to_owned));
            }
        })?;
        Ok(HeldByOthers {
            jobs,
            owners: owners.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_jobs_are_not_counted() {
        let ads = br#"[{"Owner": "bob"}, {"Owner": "ada"}, {"Owner": "bob"}, {"Owner": "eve"}, 7, {"Owner": 7}]"#;
        let count = |user| HeldByOthers::count(&ads[..], user).expect("counted");
        assert_eq!((count(Some("ada")).jobs, count(Some("ada")).owners), (4, 3));
        assert_eq!((count(None).jobs, count(None).owners), (5, 4));
        assert_eq!(HeldByOthers::count(&b""[..], None).expect("none").jobs, 0);
        assert!(HeldByOthers::count(&b"{}"[..], None).is_err());
    }
}
