//! Reads the ads of jobs, as HTCondor's programs print them and as the schedd keeps them.

mod ad_lines;
mod ad_list;
pub mod job_status;

pub use ad_lines::for_each_ad;
pub use ad_list::{ListedAd, MAX_STRING_BYTES};
