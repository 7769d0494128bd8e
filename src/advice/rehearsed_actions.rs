//! How often the answers with each action were right in a rehearsal.

use serde::{Deserialize, Serialize};

use poolcast_holds::decision::HoldAction;
use poolcast_holds::rehearsal::{Proportion, RehearsalTally};

/// Right answers among the settled ones, by action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RehearsedActions {
    /// The answer to release the job.
    pub release: Proportion,
    /// The answer to try one.
    pub probe: Proportion,
    /// The answer to fix a fault first.
    pub fix: Proportion,
    /// The answer to remove the job.
    pub remove: Proportion,
    /// The answer to release the job later.
    pub later: Proportion,
}

impl RehearsedActions {
    /// Returns the record of the answers with `action`; `None` for actions that claim nothing.
    pub fn of(&self, action: HoldAction) -> Option<Proportion> {
        match action {
            HoldAction::Release => Some(self.release),
            HoldAction::Probe => Some(self.probe),
            HoldAction::Fix => Some(self.fix),
            HoldAction::Remove => Some(self.remove),
            HoldAction::Later => Some(self.later),
            HoldAction::Leave | HoldAction::None => None,
        }
    }

    /// Returns true if the numbers are possible in a rehearsal. A file may have any.
    pub(super) fn is_valid(&self) -> bool {
        let mut records = HoldAction::COUNTED
            .into_iter()
            .filter_map(|action| self.of(action));
        records.all(|right| right.count <= right.of)
    }
}

impl From<&RehearsalTally> for RehearsedActions {
    fn from(tally: &RehearsalTally) -> RehearsedActions {
        let right = |action| {
            let kinds = tally.kinds.iter().filter(|kind| kind.action == action);
            kinds.fold(Proportion::default(), |sum, kind| Proportion {
                count: sum.count + kind.right.count,
                of: sum.of + kind.right.of,
            })
        };
        RehearsedActions {
            release: right(HoldAction::Release),
            probe: right(HoldAction::Probe),
            fix: right(HoldAction::Fix),
            remove: right(HoldAction::Remove),
            later: right(HoldAction::Later),
        }
    }
}
