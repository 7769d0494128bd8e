//! Finds the sweep on W&B that an earlier sender created, or creates it.

use anyhow::Result;
use serde_json::{Value, json};

use super::client::WandbClient;
use super::requests::{find_sweeps, upsert_sweep};
use crate::server::SendError;

/// Returns the id of the sweep of this `space` on the server, and creates it if it does not exist.
/// `mark` identifies it.
///
/// # Errors
/// Fails with a [`SendError`] in its chain if the server rejects a request or does not answer.
pub(super) fn find_or_create_sweep(
    client: &mut WandbClient,
    space: &Value,
    mark: &str,
) -> Result<String> {
    match find_sweep(client, mark)? {
        Some(found) => Ok(found),
        None => create_sweep(client, space, mark),
    }
}

/// Returns the id of the sweep that an earlier sender created. A server that does not support the
/// query or does not know the project has no such sweep.
fn find_sweep(client: &mut WandbClient, mark: &str) -> Result<Option<String>> {
    let mut cursor: Option<String> = None;
    loop {
        let body = find_sweeps(client.place(), cursor.as_deref());
        let Some(answer) = client.query_if_supported(&body)? else {
            return Ok(None);
        };
        let sweeps = &answer["data"]["project"]["sweeps"];
        for edge in sweeps["edges"].as_array().into_iter().flatten() {
            let node = &edge["node"];
            let says = |key: &str| node[key].as_str().is_some_and(|text| text.contains(mark));
            if says("description") || says("config") {
                return Ok(node["name"].as_str().map(str::to_owned));
            }
        }

        let page = &sweeps["pageInfo"];
        let next = page["endCursor"].as_str().map(str::to_owned);
        // A server that repeats its cursor must not cause an endless loop.
        if page["hasNextPage"] != json!(true) || next.is_none() || next == cursor {
            return Ok(None);
        }
        cursor = next;
    }
}

/// Creates the sweep. A try whose answer was lost may have created it, so the next try looks for it
/// first.
fn create_sweep(client: &mut WandbClient, space: &Value, mark: &str) -> Result<String> {
    let mut space = space.clone();
    space["description"] = json!(mark);
    let body = upsert_sweep(client.place(), &space, mark);
    let answer = loop {
        match client.ask(&body, false) {
            Err(SendError::InDoubt) => {
                if let Some(found) = find_sweep(client, mark)? {
                    return Ok(found);
                }
            }
            answered => break answered?,
        }
    };

    let sweep = &answer["data"]["upsertSweep"]["sweep"];
    client.record_names(&sweep["project"]);
    match sweep["name"].as_str() {
        Some(name) => Ok(name.to_owned()),
        None => Err(client.unexpected(&answer).into()),
    }
}
