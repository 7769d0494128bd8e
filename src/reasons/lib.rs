//! Reads the reason of a hold, in the words of any version and site, as facts: who speaks, what failed on
//! which side, and how it ended. A table of rules over facts says what to do.
//!
//! [`read_reason`] reads, [`rules`] has the table, and [`explain`] puts both into words. A reader of one
//! part of the language is in a file of its own; none knows whole sentences, so that a reason that is in
//! no catalogue is read by the parts that it has.

#[cfg(test)]
mod catalogue;
mod codes;
mod containers;
mod explanation;
mod facts;
mod heads;
mod input;
mod outcomes;
mod policies;
mod quantities;
mod reader;
mod remote;
pub mod rules;
mod scan;
mod transfers;

pub use codes::kind_of_code;
pub use explanation::{Explanation, explain};
pub use facts::{
    Amount, Direction, Number, Operation, Outcome, ReasonFacts, ReasonKind, Side, Speaker, Thing,
};
pub use reader::read_reason;
