//! Uploads the best run's files to its run on W&B.

use serde_json::Value;

use super::client::WandbClient;
use super::requests::{create_run_files, uploaded_message};
use crate::runs::BestFiles;
use crate::server::{FileUpload, SendError};

/// Uploads the files of `best`, whose run exists on the server, to URLs that the server names. They
/// replace earlier files of the same names.
pub(super) fn upload_files(client: &mut WandbClient, best: &BestFiles) -> Result<(), SendError> {
    let names = best.names();
    let (entity, project) = client.entity_and_project();
    let wish = create_run_files(&entity, &project, &best.run.run_id, &names);
    let answer = client.ask(&wish, true)?;
    let response = &answer["data"]["createRunFiles"];
    let headers = upload_headers(&response["uploadHeaders"]);
    for file in &best.files {
        let is_this = |file_upload: &&Value| file_upload["name"] == file.name;
        let found = response["files"]
            .as_array()
            .into_iter()
            .flatten()
            .find(is_this);
        let url = found.and_then(|file_upload| file_upload["uploadUrl"].as_str());
        let Some(url) = url else {
            return Err(client.unexpected(&answer));
        };
        client.http.put_file(&FileUpload {
            url,
            headers: &headers,
            bytes: &file.bytes,
            has_key: false,
        })?;
    }
    client.post_stream(&best.run.run_id, &uploaded_message(&best.run, &names))?;
    Ok(())
}

/// Parses the headers of an answer, each `NAME:VALUE`.
fn upload_headers(listed: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for text in listed.as_array().into_iter().flatten() {
        let pair = text.as_str().and_then(|text| text.split_once(':'));
        if let Some((name, value)) = pair {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    headers
}
