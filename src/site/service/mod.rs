//! The files of a service that collects, learns and advises for all users of an access point: units
//! of systemd, or jobs of the schedd itself.

mod commands;
mod condor_files;
mod plan;
mod service_paths;
mod site_file;
mod unit_files;

pub use plan::{ServiceKind, ServicePlan, plan_service};
pub use site_file::{FileState, SiteFile};
