//! A client for the API of one W&B project.

use reqwest::Method;
use serde_json::Value;

use super::requests::{WandbProject, stream_path};
use super::settings::WandbSettings;
use crate::server::{HttpSender, JsonRequest, SendError};

/// The text in W&B's error for a run id that was used before and deleted.
const DELETED: &str = "previously created and deleted";

/// Sends requests to one project of W&B.
pub(super) struct WandbClient {
    /// The HTTP sender behind all requests.
    pub(super) http: HttpSender,
    settings: WandbSettings,
    /// The server's names of the entity and the project, once an answer had them.
    answered: Option<(String, String)>,
}

impl WandbClient {
    /// Makes a client for the project in `settings` that sends by `http`.
    pub(super) fn new(settings: WandbSettings, http: HttpSender) -> WandbClient {
        WandbClient {
            http,
            settings,
            answered: None,
        }
    }

    /// The project as configured.
    pub(super) fn place(&self) -> &WandbProject {
        &self.settings.place
    }

    /// URL of the project, with the server's names of entity and project if they are known.
    pub(super) fn address(&self) -> String {
        let (entity, project) = self.entity_and_project();
        let entity = if entity.is_empty() { "-" } else { &entity };
        format!("{}/{entity}/{project}", self.settings.base_url)
    }

    /// Returns true if the server's names of the entity and the project are known.
    pub(super) fn has_names(&self) -> bool {
        self.answered.is_some()
    }

    /// Records the names in the `project` of an answer. They may differ from the configured ones.
    pub(super) fn record_names(&mut self, project: &Value) {
        let entity = project["entity"]["name"].as_str();
        if let (Some(entity), Some(project)) = (entity, project["name"].as_str()) {
            self.answered = Some((entity.to_owned(), project.to_owned()));
        }
    }

    /// The server's names of the entity and the project; the configured ones if these are not
    /// known.
    pub(super) fn entity_and_project(&self) -> (String, String) {
        let place = &self.settings.place;
        self.answered.clone().unwrap_or_else(|| {
            let entity = place.entity.clone().unwrap_or_default();
            (entity, place.project.clone())
        })
    }

    /// Sends a GraphQL request. It is retried after a lost answer only if it `is_repeatable`.
    pub(super) fn ask(&mut self, body: &Value, is_repeatable: bool) -> Result<Value, SendError> {
        let answer = self.post("/graphql", body, is_repeatable)?;
        let has_errors = answer["errors"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        if has_errors {
            return Err(self.unexpected(&answer));
        }
        Ok(answer)
    }

    /// Sends a GraphQL query that only some servers support; `None` if this one does not.
    pub(super) fn query_if_supported(&mut self, body: &Value) -> Result<Option<Value>, SendError> {
        match self.post("/graphql", body, true) {
            Err(SendError::Refused {
                status: 400 | 404 | 422,
                ..
            }) => Ok(None),
            answered => answered.map(Some),
        }
    }

    /// Sends measurements of the run `run_id` to its file stream.
    pub(super) fn post_stream(&mut self, run_id: &str, body: &Value) -> Result<Value, SendError> {
        let (entity, project) = self.entity_and_project();
        self.post(&stream_path(&entity, &project, run_id), body, true)
    }

    fn post(&mut self, path: &str, body: &Value, is_repeatable: bool) -> Result<Value, SendError> {
        let url = format!("{}{path}", self.settings.base_url);
        let text = body.to_string();
        self.http.send(&JsonRequest {
            method: Method::POST,
            url: &url,
            body: Some(text.as_bytes()),
            is_repeatable,
            is_final: is_deleted,
        })
    }

    /// Makes the error for an answer with an unexpected content.
    pub(super) fn unexpected(&self, answer: &Value) -> SendError {
        let named = answer["errors"][0]["message"].as_str();
        let message = named.unwrap_or("it is not an answer of W&B");
        SendError::Refused {
            server: self.settings.host.clone(),
            status: 200,
            message: self.http.shown(message),
        }
    }
}

/// Returns true if the text of an error says that the run was deleted. Other conflicts are retried.
pub(super) fn is_deleted(message: &str) -> bool {
    message.contains(DELETED)
}

/// Makes the error for a demand of W&B that poolcast cannot meet.
pub(super) fn unusable(message: &str) -> SendError {
    SendError::Unusable {
        server: "W&B".to_owned(),
        message: message.to_owned(),
    }
}
