//! From text to [`Config`]: syntax, unknown keys and wrong types, each reported with its line and dotted key.

use super::{Config, ConfigError, Setup};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::net::SocketAddr;
use std::path::Path;

impl Config {
    /// Reads and checks the file at `path`.
    pub fn load(path: &Path) -> Result<Setup, ConfigError> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable { file: file.clone(), reason: error.to_string() })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Setup::new(Config::parse(&file, &text)?, &file, folder)
    }

    /// Reads `text`; `file` names it in errors. What it means is checked by [`Setup::new`].
    pub fn parse(file: &str, text: &str) -> Result<Config, ConfigError> {
        parse(file, text)
    }

    /// The file of this configuration.
    pub fn to_toml(&self) -> String {
        written(self)
    }
}

/// Reads a TOML text, which `file` names in errors.
pub(super) fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ConfigError> {
    let mistake = |key: String, error: &toml::de::Error| ConfigError::Mistake {
        file: file.to_owned(),
        line: error.span().map(|span| line_of(text, span.start)),
        key,
        message: error.message().lines().collect::<Vec<_>>().join(", "),
    };
    let document = toml::Deserializer::parse(text).map_err(|error| mistake(String::new(), &error))?;
    serde_path_to_error::deserialize(document).map_err(|error| {
        let key = error.path().to_string();
        mistake(if key == "." { String::new() } else { key }, error.inner())
    })
}

/// The TOML text of a configuration.
pub(super) fn written(config: &impl Serialize) -> String {
    toml::to_string(config).expect("a configuration holds nothing that TOML lacks")
}

/// The line of the byte `offset`, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// An `IP:PORT`, with an error that says so.
pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    parse_address(&String::deserialize(deserializer)?)
}

/// An `IP:PORT` that may be left out.
pub(super) fn optional_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    address(deserializer).map(Some)
}

/// A list of `IP:PORT`.
pub(super) fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    Vec::<String>::deserialize(deserializer)?.iter().map(|text| parse_address(text)).collect()
}

fn parse_address<E: de::Error>(text: &str) -> Result<SocketAddr, E> {
    text.parse().map_err(|_| E::custom(format!("`{text}` is not an address; expected IP:PORT, such as \"127.0.0.1:9001\"")))
}
