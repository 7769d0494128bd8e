//! Submits a script to a live Slurm as a chain of jobs. Each job is submitted so that it starts
//! when the previous one ends.

mod chain_run;
mod chain_state;
mod own_link;

pub use chain_run::{
    AdviseLink, ChainCaller, ChainEnd, ChainNote, ChainPlan, ChainTiming, IsWorkDone,
    LINK_VARIABLE, OwnJob, PREDECESSOR_VARIABLE, run_chain,
};
pub use chain_state::{ChainLink, ChainState, LinkEvent};
pub use own_link::{OwnLink, enter_chain, leave_chain};
