//! An access point as a whole: examines what advice needs there, and writes the files of a service
//! that advises all users: metrics for Prometheus, notices of new causes, and the units themselves.

pub mod doctor;
pub mod metrics;
pub mod notices;
pub mod pages;
pub mod queue_marks;
pub mod service;
