//! Hold cycles: which holds become samples, their labels and their splits.

mod asked_hold;
mod base_rate;
mod frame_choice;
mod hold_counts;
mod hold_cycles;
mod labelled_holds;
mod split;
mod split_assignment;

pub use asked_hold::{QueriedHold, cutoffs_ms};
pub(crate) use base_rate::share_error;
pub use base_rate::{BaseRateShift, base_rate_shifts};
pub use frame_choice::FrameChoice;
pub use hold_counts::{HoldCount, hold_counts};
pub(crate) use hold_cycles::removal_just_before;
pub use hold_cycles::{ExclusionReason, HoldCycle, HoldOutcome, hold_cycles};
pub(crate) use labelled_holds::{FoundHolds, LabelledHold, find_labelled_holds};
pub use split::Split;
pub(crate) use split_assignment::{SplitMember, assign_splits};
