//! The tokens of one question while they are chosen: equal things are one token with a count.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::keys::SharedKind;
use super::outcome_state::OutcomeState;
use poolcast_models::TOKENS;

/// What makes two things one token: the cluster, the state, the reason, the moment, and the thing
/// itself for the job's own holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BundleKey {
    pub(crate) cluster: u32,
    pub(crate) state: OutcomeState,
    pub(crate) reason: u32,
    /// Number of the step in time.
    pub(crate) step: i64,
    /// Index of the item if it is the job's own.
    pub(crate) own_item: Option<u32>,
}

/// A token: one thing, or several equal ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBundle {
    /// Index of the newest item.
    pub(crate) item: u32,
    pub(crate) state: OutcomeState,
    /// Time from which the state holds, for the newest item, in epoch ms.
    pub(crate) since_ms: i64,
    /// Number of things.
    pub(crate) count: u32,
    /// For each kind, how many of the things share it with the question.
    pub(crate) shared: [u32; SharedKind::COUNT],
}

/// The chosen tokens of a question. The memory is reused.
#[derive(Debug, Default)]
pub(crate) struct TokenChoice {
    pub(crate) bundles: Vec<TokenBundle>,
    by_key: HashMap<BundleKey, usize, RandomState>,
    seen: HashSet<u32, RandomState>,
}

impl TokenChoice {
    /// Removes all tokens.
    pub(crate) fn clear(&mut self) {
        self.bundles.clear();
        self.by_key.clear();
        self.seen.clear();
    }

    /// Returns true if `item` is part of a token.
    pub(crate) fn has(&self, item: u32) -> bool {
        self.seen.contains(&item)
    }

    /// Adds the thing `new` to the token with this `key`. If there is none, makes one if
    /// `may_begin` and there is room. Returns true if it made one.
    pub(crate) fn add(&mut self, key: BundleKey, new: TokenBundle, may_begin: bool) -> bool {
        if let Some(&at) = self.by_key.get(&key) {
            let bundle = &mut self.bundles[at];
            bundle.count += 1;
            for (sum, shares) in bundle.shared.iter_mut().zip(new.shared) {
                *sum += shares;
            }
            if new.since_ms > bundle.since_ms {
                (bundle.since_ms, bundle.item) = (new.since_ms, new.item);
            }
            self.seen.insert(new.item);
            return false;
        }
        if !may_begin || self.is_full() {
            return false;
        }
        self.by_key.insert(key, self.bundles.len());
        self.seen.insert(new.item);
        self.bundles.push(new);
        true
    }

    /// Returns true if there is no room for another token.
    pub(crate) fn is_full(&self) -> bool {
        self.bundles.len() >= TOKENS
    }
}
