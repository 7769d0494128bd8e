//! Tests of every verb as a user types it: the real program, its exit code, stdout and stderr.

mod place;

mod advise;
mod advise_sources;
mod advise_views;
mod answer_check;
mod chain_script;
mod collect;
mod config;
mod dag;
mod digests;
mod docs;
mod ensemble;
mod evaluate;
mod help;
mod hostile;
mod json_documents;
mod leftovers;
mod mlflow_server;
mod node_advice;
mod nodes;
mod pager;
mod parse;
mod pipelines;
mod pipelines_of_numbers;
mod policy;
mod predict;
mod private;
mod provision;
mod provision_live;
mod provision_sweep;
mod provision_train;
mod report;
mod run;
mod simulate;
mod sweep;
mod tensors;
mod terminal;
mod threads;
mod track;
mod track_control;
mod track_docs;
mod track_export;
mod train;
#[expect(dead_code, reason = "the tests of the sender itself need more of it")]
mod wandb_server;
