//! Held jobs, a model and rules → what to do with each, and why. Never acts; prints commands.

mod codes;
mod judge;
mod wording;

pub use codes::{Rule, meaning, rule};
pub use judge::{Action, Advice, Cases, Ground, Selection, Skill, advise, exit_code};
pub use wording::text;
