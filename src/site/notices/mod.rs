//! Notices of new causes of held jobs, by mail or to a web address. A mail also has the page about all held jobs.
//! What was sent is remembered, so that the next notice has only what is new since.

mod known_causes;
mod mail;
mod mailed_page;
mod notice;
mod target;

pub use known_causes::TakenState;
pub use mail::send_mail;
pub use mailed_page::MailedPage;
pub use notice::{Notice, NoticeCause};
pub use target::NoticeTarget;
