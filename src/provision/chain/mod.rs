//! A script and a live Slurm → jobs one after another, each submitted so that it starts when the one
//! before it ends.

mod chain_run;
mod chain_state;

pub use chain_run::{
    AdviseLink, ChainCaller, ChainEnd, ChainNote, ChainPlan, LINK_VARIABLE, PREDECESSOR_VARIABLE,
    run_chain,
};
pub use chain_state::{ChainLink, ChainState, LinkEvent};
