//! Previews the requests to W&B without sending them.

use anyhow::Result;
use serde_json::{Value, json};

use super::requests::{
    create_run_files, stream_part, stream_path, uploaded_message, upsert_run, upsert_sweep,
};
use super::settings::WandbSettings;
use crate::runs::TrackedSource;
use crate::server::variable;

/// Placeholder for names that only the server knows.
const SERVER_NAME_PLACEHOLDER: &str = "-";

/// Calls `show` with each request that sends the runs of `source` to an empty server: method, URL
/// and whole document. Keys are sent in a header and are not shown. `server` is the URL of the
/// command line.
///
/// # Errors
/// Fails for names that W&B rejects, if a file cannot be read, or if `show` fails.
pub fn preview_to_wandb(
    source: &TrackedSource,
    server: Option<&str>,
    mut show: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let settings = WandbSettings::new(source.config(), server, variable)?;
    let place = &settings.place;
    let entity = place.entity.as_deref().unwrap_or(SERVER_NAME_PLACEHOLDER);
    let shown = |path: &str, body: &Value| {
        json!({
            "method": "POST",
            "url": format!("{}{path}", settings.base_url),
            "body": body,
        })
    };

    let space = source.sweep_space();
    if let Some(mut space) = space.clone() {
        let mark = source.sweep_mark().unwrap_or_default();
        space["description"] = json!(mark);
        show(&shown("/graphql", &upsert_sweep(place, &space, &mark)))?;
    }
    let named = source.config().wandb.known_sweep().map(str::to_owned);
    let sweep = space.map(|_| named.unwrap_or_else(|| SERVER_NAME_PLACEHOLDER.to_owned()));
    source.visit_runs(|run| {
        let asked = upsert_run(place, sweep.as_deref(), &run);
        show(&shown("/graphql", &asked))?;
        let path = stream_path(entity, &place.project, &run.run_id);
        let mut known_epochs = 0;
        loop {
            let part = stream_part(&run, known_epochs);
            show(&shown(&path, &part.body))?;
            known_epochs = part.known_epochs;
            if known_epochs >= run.epochs.len() {
                return Ok(());
            }
        }
    })?;

    let Some(best) = source.best_files()? else {
        return Ok(());
    };
    let names = best.names();
    let wish = create_run_files(entity, &place.project, &best.run.run_id, &names);
    show(&shown("/graphql", &wish))?;
    for file in &best.files {
        show(&json!({"method": "PUT", "url": SERVER_NAME_PLACEHOLDER, "file": file.shown()}))?;
    }
    let path = stream_path(entity, &place.project, &best.run.run_id);
    show(&shown(&path, &uploaded_message(&best.run, &names)))
}
