//! Salts the hashes of names that the log reader makes. Without the salt, nobody can find the names
//! in a store by hashing likely ones.

use htcondor_eventlog::{EventFacts, InputFile, SubmissionNames};
use poolcast_base::salt::hash_name;

/// Number of remembered hashes. Rows of a log often repeat the same few hosts and reasons.
const RECENT_HASHES: usize = 1 << 14;

/// Salts hashes, and remembers recent ones, because a hash costs as much as parsing a record.
#[derive(Debug)]
pub(super) struct SaltedNames {
    salt: String,
    /// Pairs of a hash and its salted hash, at an index that depends on the hash.
    recent: Vec<(u32, u32)>,
}

impl SaltedNames {
    pub(super) fn new(salt: &str) -> SaltedNames {
        SaltedNames {
            salt: salt.to_owned(),
            recent: vec![(0, 0); RECENT_HASHES],
        }
    }

    /// Returns the salted hash of an owner's name. It is never 0, which stands for an unknown
    /// owner.
    pub(super) fn owner_hash(&self, owner: &str) -> u64 {
        hash_name(&self.salt, owner.as_bytes()).max(1)
    }

    /// Returns `names` with salted hashes.
    pub(super) fn salted_submission(&mut self, names: SubmissionNames) -> SubmissionNames {
        SubmissionNames {
            batch: self.salted_hash(names.batch),
            dag_node: self.salted_hash(names.dag_node),
        }
    }

    /// Returns `input` with salted hashes.
    pub(super) fn salted_input(&mut self, input: InputFile) -> InputFile {
        InputFile {
            file: self.salted_hash(input.file),
            origin: self.salted_hash(input.origin),
        }
    }

    /// Returns the facts of event `number` with salted hashes.
    #[inline]
    pub(super) fn of_event(&mut self, number: u16, facts: EventFacts) -> EventFacts {
        if facts.is_empty() {
            return facts;
        }
        facts.with_hashes(number, |hash| self.salted_hash(hash))
    }

    /// Returns the salted hash of a name whose hash is `hash`; 0 stays 0, and no other hash becomes
    /// 0.
    fn salted_hash(&mut self, hash: u32) -> u32 {
        if hash == 0 {
            return 0;
        }
        let at = hash as usize % RECENT_HASHES;
        if self.recent[at].0 != hash {
            // An owner's name has no byte 0, so this name is different from all owners.
            let mut name = [0; 5];
            name[1..].copy_from_slice(&hash.to_le_bytes());
            self.recent[at] = (hash, (hash_name(&self.salt, &name) as u32).max(1));
        }
        self.recent[at].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_salted() {
        let (a, b) = (SaltedNames::new("a"), SaltedNames::new("b"));
        assert_ne!(a.owner_hash("ada"), b.owner_hash("ada"));
        assert_eq!(a.owner_hash("ada"), a.owner_hash("ada"));
    }

    #[test]
    fn hashes_of_names_are_salted() {
        let (mut a, mut b) = (SaltedNames::new("a"), SaltedNames::new("b"));
        let hashes: Vec<u32> = (1..20_000).collect();
        let salted: Vec<u32> = hashes.iter().map(|&hash| a.salted_hash(hash)).collect();
        let again: Vec<u32> = hashes.iter().map(|&hash| a.salted_hash(hash)).collect();
        let other: Vec<u32> = hashes.iter().map(|&hash| b.salted_hash(hash)).collect();
        assert_eq!(salted, again);
        assert!(salted.iter().zip(&other).filter(|(a, b)| a == b).count() < 2);
        assert!(!salted.contains(&0));
        assert_eq!(a.salted_hash(0), 0);
    }
}
