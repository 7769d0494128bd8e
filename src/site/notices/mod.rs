//! Notices of new causes of held jobs, by mail or to a web address. What was sent is remembered, so
//! that the next notice has only what is new since.

mod known_causes;
mod mail;
mod notice;
mod target;

pub use known_causes::TakenState;
pub use mail::send_mail;
pub use notice::{Notice, NoticeCause};
pub use target::NoticeTarget;
