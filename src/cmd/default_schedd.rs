//! Finds the access point that HTCondor's programs here ask by default.

use poolcast_advice::{DefaultSchedd, JobAdvice};
use poolcast_base::process::Process;
use poolcast_sweep::condor;

/// Lets the commands on `advice` name the access points that HTCondor's programs here do not ask
/// anyway.
pub(super) fn name_other_schedds(advice: &mut [JobAdvice]) {
    if !advice.is_empty() {
        default_schedd().name_others(advice);
    }
}

/// Returns the access point that HTCondor's programs here ask. Where they are missing, it is the one of
/// this host.
pub(super) fn default_schedd() -> DefaultSchedd {
    let mut names = condor::default_schedd_names();
    if names.is_empty() {
        names.push(Process::current().host);
    }
    DefaultSchedd::new(names)
}
