//! What artefacts say to people.

pub(super) mod advice;
pub(super) mod changes;
pub(super) mod evaluation;
pub(super) mod events;
pub(super) mod policy;
pub(super) mod tensors;
pub(super) mod trials;
