//! Posts one document to a web address, once.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};

use super::http_exchange::{ExchangeError, HttpExchange};
use super::http_sender::PROGRAM_NAME;
use super::server_address::host_of;
use poolcast_base::error::hinted;
use poolcast_base::output;

/// Time within which the server must have answered.
const LIMIT: Duration = Duration::from_secs(20);

/// Maximum length of a server's text in a message, in columns.
const MAX_COLUMNS: usize = 200;

/// Posts `document`, a JSON text, to `url`. No redirect is followed. Messages name the host alone,
/// because the rest of an address may be a secret.
///
/// # Errors
/// Fails with a retryable error unless the server answers with success.
pub fn post_document(url: &str, document: &[u8]) -> Result<()> {
    let host = host_of(url).with_context(|| {
        hinted(
            "the web address has no plain host, or has a user",
            "write https://HOST/PATH",
        )
    })?;
    let http = HttpExchange::new()?;
    let request = http
        .request(Method::POST, url)
        .header(USER_AGENT, PROGRAM_NAME)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(document.to_vec());
    let answer = http.receive(request, LIMIT, &AtomicBool::new(false));
    let answer = answer.map_err(|error| match error {
        ExchangeError::Stopped => std::io::Error::other("stopped"),
        ExchangeError::Failed(why) => {
            std::io::Error::other(format!("{host}: {}", output::cut(&why, MAX_COLUMNS)))
        }
    })?;
    ensure!(
        (200..300).contains(&answer.status),
        std::io::Error::other(format!("{host} answers {}", answer.status))
    );
    Ok(())
}
