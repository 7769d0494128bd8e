//! Tests of the number of threads that a call uses.

use crate::place::Place;

/// Returns the number of threads that the program reports in its log.
fn threads(flag: &str, environment: &[(&str, &str)]) -> String {
    let place = Place::new();
    let mut command = place.command(&format!("{flag} config"));
    let output = command
        .envs(environment.iter().copied())
        .env("POOLCAST_LOG", "debug")
        .output()
        .expect("it starts");
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(
        !text.contains('\x1b'),
        "colours are for terminals, and jobs write to files: {text:?}"
    );
    text.lines()
        .find_map(|line| line.split(' ').rev().nth(1).map(str::to_owned))
        .expect("a line on threads")
}

#[test]
fn thread_flag_wins_over_rayon_and_omp_variables() {
    let (rayon, omp) = (("RAYON_NUM_THREADS", "3"), ("OMP_NUM_THREADS", "5"));
    assert_eq!(threads("--threads 2", &[rayon, omp]), "2");
    assert_eq!(threads("", &[rayon, omp]), "3");
    assert_eq!(threads("", &[omp]), "5", "what HTCondor sets in a job");
    let cores = std::thread::available_parallelism()
        .expect("known")
        .to_string();
    assert_eq!(threads("", &[]), cores);
    assert_eq!(
        threads("", &[("OMP_NUM_THREADS", "none")]),
        cores,
        "no number"
    );
}
