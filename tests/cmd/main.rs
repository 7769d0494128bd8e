//! Tests of every verb as a user types it: the real program, its exit code, stdout and stderr.

mod place;

mod advice_outlets;
mod advise;
mod advise_probes;
mod advise_sources;
mod advise_things;
mod advise_views;
mod advise_watch;
mod answer_check;
mod chain_script;
mod collect;
mod command;
mod config;
mod dag;
mod digests;
mod docs;
mod doctor;
mod ensemble;
mod evaluate;
mod explain;
mod file_looks;
mod help;
mod hostile;
mod idle_jobs;
mod json_documents;
mod leftovers;
mod memory_plans;
mod mlflow_server;
mod node_advice;
mod nodes;
mod own_logs;
mod pager;
mod parse;
mod past_jobs;
mod pipelines;
mod pipelines_of_numbers;
mod policy;
mod predict;
mod private;
mod provision;
mod provision_link;
mod provision_live;
mod provision_sweep;
mod provision_train;
mod publish;
mod python_module;
mod readme_page;
mod rehearse;
mod report;
mod run;
mod share;
mod simulate;
mod site;
mod sweep;
mod tensors;
mod terminal;
mod thing_states;
mod threads;
mod track;
mod track_control;
mod track_docs;
mod track_export;
mod train;
mod upgrading;
#[expect(dead_code, reason = "the tests of the sender itself need more of it")]
mod wandb_server;

/// Environment variable with the number of tests that run at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

ctor::declarative::ctor! {
    // Many tests mostly wait, so twice as many as there are cores run at once, unless the caller has
    // set a number. The test harness takes the number from the environment. A program cannot change
    // its own environment safely, so it executes itself again. This is before `main`, where no other
    // thread runs.
    #[ctor(unsafe)]
    fn run_more_tests_at_once() {
        use std::os::unix::process::CommandExt as _;
        if std::env::var_os(TEST_THREADS).is_some() {
            return;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if let Ok(program) = std::env::current_exe() {
            // If this fails, the tests run all the same.
            let _ = std::process::Command::new(program)
                .args(std::env::args_os().skip(1))
                .env(TEST_THREADS, (2 * cores).to_string())
                .exec();
        }
    }
}
