//! The `poolcast` program: parses arguments, calls the library, turns the outcome into an exit code.
fn main() {}
