//! Looks at the files that held jobs name on this access point, and decides by what is there.
//!
//! Paths come from job ads and hold reasons, so anyone may have chosen them. A child process looks,
//! because a call to a dead mount may never return. It opens nothing for reading. Root's process looks
//! with the rights of the owner of the job. Servers of input files are asked for the files of the
//! caller's own jobs alone.

mod input_looks;
pub(crate) mod job_look;
mod look_process;
mod look_user;
mod named_path;
mod path_sight;
mod looks;
pub(crate) mod url_looks;

pub use input_looks::{FaultyInput, InputLooks};
pub use job_look::{JobLook, LookState};
pub use look_process::{LookProcess, answer_looks, end_with_caller};
pub use look_user::become_user;
pub use looks::{LookPlan, LookScope};
pub use url_looks::{UrlAnswer, UrlQuestion};
