//! Requests to one project of W&B → its answers, as documents.

use reqwest::Method;
use serde_json::Value;

use super::http_sender::{HttpSender, JsonRequest, SendError};
use super::wandb_requests::{WandbProject, stream_path};
use super::wandb_settings::WandbSettings;

/// What W&B says of the id of a run that somebody has deleted.
const DELETED: &str = "previously created and deleted";

/// Asks one project of W&B.
pub(super) struct WandbClient {
    /// What requests go by.
    pub(super) http: HttpSender,
    settings: WandbSettings,
    /// What the server calls the entity and the project, once it has said so.
    answered: Option<(String, String)>,
}

impl WandbClient {
    /// For the project that `settings` name, by `http`.
    pub(super) fn new(settings: WandbSettings, http: HttpSender) -> WandbClient {
        WandbClient {
            http,
            settings,
            answered: None,
        }
    }

    /// The project as it was asked for.
    pub(super) fn place(&self) -> &WandbProject {
        &self.settings.place
    }

    /// The address of the project, with the names that the server has for it, as far as they are known.
    pub(super) fn address(&self) -> String {
        let (entity, project) = self.entity_and_project();
        let entity = if entity.is_empty() { "-" } else { &entity };
        format!("{}/{entity}/{project}", self.settings.base_url)
    }

    /// Whether the server has said what it calls the entity and the project.
    pub(super) fn has_names(&self) -> bool {
        self.answered.is_some()
    }

    /// Takes note of the names in the `project` of an answer: they count for what was asked by others.
    pub(super) fn learn_names(&mut self, project: &Value) {
        let entity = project["entity"]["name"].as_str();
        if let (Some(entity), Some(project)) = (entity, project["name"].as_str()) {
            self.answered = Some((entity.to_owned(), project.to_owned()));
        }
    }

    /// What the server calls the entity and the project, as far as it has said so.
    pub(super) fn entity_and_project(&self) -> (String, String) {
        let place = &self.settings.place;
        self.answered.clone().unwrap_or_else(|| {
            let entity = place.entity.clone().unwrap_or_default();
            (entity, place.project.clone())
        })
    }

    /// Asks by GraphQL, again and again if it may be asked for twice.
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

    /// Asks by GraphQL what not every server knows: `None` from one that does not.
    pub(super) fn ask_if_known(&mut self, body: &Value) -> Result<Option<Value>, SendError> {
        match self.post("/graphql", body, true) {
            Err(SendError::Refused {
                status: 400 | 404 | 422,
                ..
            }) => Ok(None),
            answered => answered.map(Some),
        }
    }

    /// Sends what was measured in the run of this id.
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

    /// The refusal of an answer that is not what it should be.
    pub(super) fn unexpected(&self, answer: &Value) -> SendError {
        let message = answer["errors"][0]["message"].as_str();
        let said = message.unwrap_or("it is not W&B's answer");
        SendError::Refused {
            server: self.settings.host.clone(),
            status: 200,
            said: poolcast_base::output::cut(said, 200),
        }
    }
}

/// Whether a conflict is that of a run that was deleted. Others pass.
pub(super) fn is_deleted(said: &str) -> bool {
    said.contains(DELETED)
}

/// The refusal of what W&B says, as poolcast cannot do it.
pub(super) fn unusable(said: &str) -> SendError {
    SendError::Unusable {
        server: "W&B".to_owned(),
        said: said.to_owned(),
    }
}
