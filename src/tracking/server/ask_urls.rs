//! Asks servers whether they have files, without a key.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::header::{LOCATION, USER_AGENT};
use reqwest::{Client, Method, Response, Url};
use tokio::task::JoinSet;

use super::http_exchange::{build_client, client_builder};
use super::http_sender::PROGRAM_NAME;
use super::known_names::KnownNames;
use super::server_address::host_of;
use poolcast_advice::{UrlAnswer, UrlQuestion};

/// Number of redirects that are followed: storage federations redirect to a server near by.
const MAX_REDIRECTS: usize = 3;

/// Sends a HEAD request for each of `questions`, all at once, and returns what the servers say within
/// `limit`. No body is read, and nothing is sent but the address and the name of this program. Servers
/// in private networks and on this machine are asked only for questions that may be about them, and no
/// redirect leads there from elsewhere.
///
/// # Errors
/// Fails if the system's proxies or certificates cannot be used.
pub fn ask_urls(questions: &[UrlQuestion], limit: Duration) -> Result<Vec<UrlAnswer>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a thread for HTTP")?;
    let mut answers = vec![UrlAnswer::Unknown; questions.len()];
    let asked = runtime.block_on(ask_all(questions, limit, &mut answers));
    // A name lookup may still run in a thread.
    runtime.shutdown_background();
    asked?;
    Ok(answers)
}

async fn ask_all(
    questions: &[UrlQuestion],
    limit: Duration,
    answers: &mut [UrlAnswer],
) -> Result<()> {
    let names = KnownNames::new();
    let client = build_client(client_builder()?.dns_resolver(Arc::new(names.clone())))?;
    let mut asked = JoinSet::new();
    for (at, question) in questions.iter().cloned().enumerate() {
        let (client, names) = (client.clone(), names.clone());
        asked.spawn(async move {
            let answer = ask_url(&client, &names, &question);
            let answer = tokio::time::timeout(limit, answer).await;
            (at, answer.unwrap_or(UrlAnswer::NoAnswer))
        });
    }
    while let Some(Ok((at, answer))) = asked.join_next().await {
        answers[at] = answer;
    }
    Ok(())
}

async fn ask_url(client: &Client, names: &KnownNames, question: &UrlQuestion) -> UrlAnswer {
    let Some(mut url) = askable(&question.address) else {
        return UrlAnswer::Unknown;
    };
    let mut may_be_private = question.may_be_private;
    for _ in 0..=MAX_REDIRECTS {
        match names.is_public(&url).await {
            // Another server must not lead to those that only this machine can reach.
            Some(true) => may_be_private = false,
            Some(false) if may_be_private => {}
            // A name without an address may be a typo.
            Some(false) | None => return UrlAnswer::Unknown,
        }
        let request = client
            .request(Method::HEAD, url.clone())
            .header(USER_AGENT, PROGRAM_NAME);
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) if error.is_connect() || error.is_timeout() => return UrlAnswer::NoAnswer,
            Err(_) => return UrlAnswer::Unknown,
        };
        match next_address(&answer, &url) {
            Some(next) => url = next,
            None => return meaning_of(answer.status().as_u16()),
        }
    }
    UrlAnswer::Unknown
}

/// Parses an address that may be asked for; `None` if it has a user, for example.
fn askable(address: &str) -> Option<Url> {
    host_of(address)?;
    Url::parse(address).ok()
}

/// Returns the address to which `answer`, about `url`, redirects.
fn next_address(answer: &Response, url: &Url) -> Option<Url> {
    if !matches!(answer.status().as_u16(), 301..=303 | 307 | 308) {
        return None;
    }
    let location = answer.headers().get(LOCATION)?.to_str().ok()?;
    askable(url.join(location).ok()?.as_str())
}

fn meaning_of(status: u16) -> UrlAnswer {
    match status {
        200..300 => UrlAnswer::Found,
        404 | 410 => UrlAnswer::NotFound,
        500 | 502..=504 => UrlAnswer::NoAnswer,
        _ => UrlAnswer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::Mutex;

    use super::*;

    /// Begins a server that redirects requests for `/to?URL` to `URL`, and that has every other file. Returns
    /// its address, and the requests that it gets.
    fn begin_server() -> (String, Arc<Mutex<Vec<String>>>) {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let answer = match path.strip_prefix("/to?") {
                    Some(next) => format!("HTTP/1.1 302 Found\r\nLocation: {next}\r\n"),
                    None => "HTTP/1.1 200 OK\r\n".to_owned(),
                };
                let answer = format!("{answer}Content-Length: 0\r\nConnection: close\r\n\r\n");
                seen.lock().expect("unlocked").push(request);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        (address.port().to_string(), requests)
    }

    fn ask(address: String, may_be_private: bool) -> UrlAnswer {
        let question = UrlQuestion {
            address,
            may_be_private,
        };
        ask_urls(&[question], Duration::from_secs(3600)).expect("asked")[0]
    }

    #[test]
    fn this_machine_is_asked_only_for_jobs_of_its_queue() {
        let (port, requests) = begin_server();
        let hosts = [
            "127.0.0.1",
            "localhost",
            "127.1",
            "2130706433",
            "[::ffff:127.0.0.1]",
        ];
        for host in hosts {
            let answer = ask(format!("http://{host}:{port}/a"), false);
            assert_eq!(answer, UrlAnswer::Unknown, "{host}");
        }
        assert_eq!(*requests.lock().expect("unlocked"), [""; 0]);
        for host in &hosts[..4] {
            let answer = ask(format!("http://{host}:{port}/a"), true);
            assert_eq!(answer, UrlAnswer::Found, "{host}");
        }
    }

    #[test]
    fn redirects_carry_no_signature_to_the_next_server() {
        let (port, requests) = begin_server();
        let next = format!("http://127.0.0.1:{port}/a");
        let answer = ask(format!("http://127.0.0.1:{port}/to?{next}"), true);
        assert_eq!(answer, UrlAnswer::Found);
        let requests = requests.lock().expect("unlocked");
        assert_eq!(requests.len(), 2);
        assert!(
            !requests[1].to_lowercase().contains("referer"),
            "{requests:?}"
        );
    }

    #[test]
    fn redirects_in_a_circle_and_to_users_end() {
        let (port, requests) = begin_server();
        let circle = ask(
            format!("http://127.0.0.1:{port}/to?/to?/to?/to?/to?/to?/a"),
            true,
        );
        assert_eq!(circle, UrlAnswer::Unknown);
        assert_eq!(requests.lock().expect("unlocked").len(), 1 + MAX_REDIRECTS);
        let user = format!("http://127.0.0.1:{port}/to?http://ada:secret@127.0.0.1:{port}/a");
        assert_eq!(ask(user, true), UrlAnswer::Unknown);
    }
}
