//! Asks servers whether they have files, without a key.

use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::header::USER_AGENT;
use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use tokio::task::JoinSet;

use super::http_exchange::new_client;
use super::http_sender::PROGRAM_NAME;
use super::server_address::host_of;
use poolcast_advice::UrlAnswer;

/// Number of redirects that are followed: storage federations redirect to a server near by.
const MAX_REDIRECTS: usize = 3;

/// Sends a HEAD request to each of `urls`, all at once, and returns what the servers say within
/// `limit`. No body is read, and nothing is sent but the address and the name of this program.
///
/// # Errors
/// Fails if the system's proxies or certificates cannot be used.
pub fn ask_urls(urls: &[String], limit: Duration) -> Result<Vec<UrlAnswer>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a thread for HTTP")?;
    let client = new_client(Policy::limited(MAX_REDIRECTS))?;
    let mut answers = vec![UrlAnswer::Unknown; urls.len()];
    runtime.block_on(async {
        let mut asked = JoinSet::new();
        for (at, url) in urls.iter().enumerate() {
            if host_of(url).is_some() {
                let (client, url) = (client.clone(), url.clone());
                asked.spawn(async move { (at, ask_url(&client, &url, limit).await) });
            }
        }
        while let Some(Ok((at, answer))) = asked.join_next().await {
            answers[at] = answer;
        }
    });
    // A name lookup may still run in a thread.
    runtime.shutdown_background();
    Ok(answers)
}

async fn ask_url(client: &Client, url: &str, limit: Duration) -> UrlAnswer {
    let request = client
        .request(Method::HEAD, url)
        .header(USER_AGENT, PROGRAM_NAME);
    let Ok(answer) = tokio::time::timeout(limit, request.send()).await else {
        return UrlAnswer::NoAnswer;
    };
    match answer.map(|answer| answer.status().as_u16()) {
        Ok(200..300) => UrlAnswer::Found,
        Ok(404 | 410) => UrlAnswer::NotFound,
        Ok(500 | 502..=504) => UrlAnswer::NoAnswer,
        Ok(_) => UrlAnswer::Unknown,
        Err(error) if is_unknown_host(&error) => UrlAnswer::Unknown,
        Err(error) if error.is_connect() || error.is_timeout() => UrlAnswer::NoAnswer,
        Err(_) => UrlAnswer::Unknown,
    }
}

/// Returns true if the name of the host was not found, as for a server with a typo.
fn is_unknown_host(error: &reqwest::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.to_string().contains("dns error") {
            return true;
        }
        cause = error.source();
    }
    false
}
