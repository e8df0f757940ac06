//! The site that is asked about quotas: which one it is, and what it answers.

use crate::http::{self, HttpError};
use crate::running::{self, Running, RunningError};
use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Longer than a site lets an operation wait for tokens or a reader for a count.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Why there is nothing to show.
#[derive(Debug, Error)]
pub enum SiteError {
    /// No demo, or no such site in it.
    #[error(transparent)]
    Demo(#[from] RunningError),
    /// No answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No site to ask.
    #[error("every site of {0} is dead; `rhumb chaos restart` starts them again")]
    Dead(String),
    /// An answer that says why not.
    #[error("{0}")]
    Refused(String),
}

/// A site, by its HTTP address.
pub struct Site(String);

impl Site {
    /// The site at `http`; else of the demo whose state file is `demo` the one called `name`, or the first that lives.
    pub fn find(http: Option<&str>, demo: Option<PathBuf>, name: Option<&str>) -> Result<Site, SiteError> {
        if let Some(http) = http {
            return Ok(Site(http.trim_end_matches('/').to_owned()));
        }
        let running = Running::find(&demo.unwrap_or_else(running::default_path))?;
        let sites = match name {
            Some(name) => running.select(name)?,
            None => running.sites.iter().collect(),
        };
        let alive = sites.into_iter().find(|site| site.pid.is_some());
        alive.map(|site| Site(site.http.clone())).ok_or_else(|| SiteError::Dead(name.unwrap_or("the demo").to_owned()))
    }

    /// Asks, and returns what is answered, if there is anything in it.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Option<Value>, SiteError> {
        let body = body.map_or(String::new(), |body| body.to_string());
        let answer = http::ask(&self.0, path, method, body, ANSWER_TIMEOUT).await?;
        if answer.is_success() {
            return Ok(serde_json::from_str(&answer.body).ok());
        }
        Err(match answer.refusal() {
            Some(message) => SiteError::Refused(message),
            None => self.foreign(&format!("it answers {}: {}", answer.status, answer.body)),
        })
    }

    /// What was answered, as what it ought to be.
    pub fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T, SiteError> {
        serde_json::from_value(value).map_err(|error| self.foreign(&error.to_string()))
    }

    fn foreign(&self, why: &str) -> SiteError {
        SiteError::Refused(format!("{} is not a site with quotas: {why}", self.0))
    }
}
