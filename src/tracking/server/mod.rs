//! The connection to a tracker: its address and key, paced HTTP requests, the state in which the
//! tracker is, and notes of what it already has.

mod answer_json;
mod ask_urls;
mod environment;
mod http_exchange;
mod http_sender;
mod known_names;
mod networks;
mod post_document;
mod request_pace;
mod sender_clock;
mod sent_note;
mod sent_summary;
mod server_address;
mod tracker_key;
mod tracker_state;

pub(crate) use answer_json::parse_answer;
pub use ask_urls::ask_urls;
pub(crate) use environment::variable;
pub(crate) use http_sender::{FileUpload, HttpSender, JsonRequest, SendError, SendLimits};
pub use post_document::post_document;
pub(crate) use sender_clock::SenderClock;
pub(crate) use sent_note::SentNote;
pub use sent_summary::SentSummary;
pub(crate) use server_address::{host_of, missing_tls_warning, without_port};
pub(crate) use tracker_key::{
    TrackerKey, loose_mode_warning, netrc_login, netrc_path, untrusted_server,
};
pub use tracker_state::{TrackerState, tracker_states};
