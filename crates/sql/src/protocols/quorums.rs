//! `rhumb.quorums`: who is what in the quorums of QuAD, as this site sees it at the moment of the statement. One row for each site that takes
//! part, or none where there are no such databases. And how many cores these have: `CREATE DATABASE … WITH (protocol = 'quad', cores = 3)`
//! and `ALTER DATABASE … SET cores = auto`.
//!
//! One number holds for all databases of the protocol, since quorums are of sites and not of databases. So the first database may say it as it
//! is created, a further one may only say the same, and to alter it for one alters it for all.

use super::{Administration, SharedOption, SiteTable};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, SqlType, UTC};
use async_trait::async_trait;
use rhumb_commit::transaction::TxnError;
use rhumb_core::SiteId;
use rhumb_quad::administration::{self, QuorumView};
use rhumb_quad::{Cores, Role, SiteFacts};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The table.
pub const TABLE: SiteTable = SiteTable { name: "quorums", qualified: "rhumb.quorums", columns: COLUMNS };
/// The option.
pub const CORES: SharedOption = SharedOption {
    name: "cores",
    meaning: "the number of cores",
    example: "cores = 3",
    other_example: "cores = auto",
    check: |value| parse(value).map(drop),
};
/// The word for as many as are needed.
const AUTO: &str = "auto";
/// How often the cluster is asked, should it be changing its quorums just then.
const CORES_ATTEMPTS_MAX: u32 = 20;
/// The pause in between: about as long as a change takes.
const CORES_PAUSE: Duration = Duration::from_millis(500);

const COLUMNS: &[(&str, SqlType)] = &[
    ("site", SqlType::Text),
    ("region", SqlType::Text),
    ("role", SqlType::Text),
    ("up", SqlType::Bool),
    ("load", SqlType::Float8),
    ("load_expected", SqlType::Float8),
    ("score", SqlType::Float8),
    ("read_quorum", SqlType::Text),
    ("write_quorum", SqlType::Text),
    ("caught_up", SqlType::Bool),
    ("epoch", SqlType::Int8),
    ("cores", SqlType::Text),
    ("since", SqlType::TimestampTz),
    ("cause", SqlType::Text),
    ("why", SqlType::Text),
];

/// What a site shows of its quorums, and has changed.
pub struct QuorumAdministration(pub Arc<dyn administration::Administration>);

#[async_trait]
impl Administration for QuorumAdministration {
    async fn rows(&self) -> SqlResult<Vec<Vec<Datum>>> {
        let view = self.0.quorums().await?;
        Ok(view.explanation.sites.iter().map(|facts| row(&view, facts)).collect())
    }

    async fn set_option(&self, value: Option<&str>, other: Option<&str>) -> SqlResult<()> {
        let no_default = || invalid("cores has no default").with_hint("Write SET cores = 3, or SET cores = auto.");
        let cores = parse(value.ok_or_else(no_default)?)?;
        let view = self.0.quorums().await?;
        let members = view.explanation.sites.iter().filter(|facts| facts.role != Role::NonMember).count();
        if let Some(error) = cores.validation_error(members) {
            return Err(invalid(error).with_hint("Write cores = 3, or cores = auto for as many as availability and load ask for."));
        }
        let there = view.explanation.cores;
        match other {
            _ if there == cores => Ok(()),
            Some(other) => {
                let message = format!("databases of protocol \"quad\" share their cores, and \"{other}\" is there with cores = {there}");
                let hint = format!("Leave cores out, or change them for all with ALTER DATABASE {other} SET cores = {cores}.");
                Err(SqlError::new(SqlState::ObjectInUse, message).with_hint(hint))
            }
            None => decide(&*self.0, cores).await,
        }
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// A number, or `auto`. Error 22023.
fn parse(value: &str) -> SqlResult<Cores> {
    if value.eq_ignore_ascii_case(AUTO) {
        return Ok(Cores::Auto);
    }
    match value.parse() {
        Ok(cores) if cores > 0 => Ok(Cores::Fixed(cores)),
        _ => Err(invalid(format!("invalid number of cores: \"{value}\"")).with_hint("Write cores = 3, or cores = auto.")),
    }
}

/// Asks for so many until it is decided.
async fn decide(quorums: &dyn administration::Administration, cores: Cores) -> SqlResult<()> {
    let mut attempt = 1;
    loop {
        match quorums.set_cores(cores).await {
            Err(TxnError::Unavailable(_) | TxnError::Conflict(_)) if attempt < CORES_ATTEMPTS_MAX => attempt += 1,
            outcome => return Ok(outcome?),
        }
        tokio::time::sleep(CORES_PAUSE).await;
    }
}

fn row(view: &QuorumView, facts: &SiteFacts) -> Vec<Datum> {
    let text = |text: String| Datum::Utf8(Some(text));
    let name = |site: &SiteId| view.names.get(site).cloned().unwrap_or_else(|| site.to_string());
    let quorum = |sites: &BTreeSet<SiteId>| {
        let names: Vec<String> = sites.iter().map(name).collect();
        Datum::Utf8(Some(names.join(", ")).filter(|names| !names.is_empty()))
    };
    let since = view.explanation.tally.since.and_then(|since| i64::try_from(since.as_micros()).ok());
    vec![
        text(name(&facts.site)),
        Datum::Utf8(view.regions.get(usize::from(facts.site.region.0)).cloned()),
        text(facts.role.to_string()),
        Datum::Boolean(Some(facts.up)),
        Datum::Float64(facts.load),
        Datum::Float64(facts.forecast.map(|(expected, _)| expected)),
        Datum::Float64(facts.score),
        quorum(&facts.reads),
        quorum(&facts.writes),
        Datum::Boolean(Some(facts.caught_up)),
        Datum::Int64(i64::try_from(view.explanation.epoch.0).ok()),
        text(view.explanation.cores.to_string()),
        Datum::TimestampMicrosecond(since, Some(Arc::from(UTC))),
        text(view.explanation.cause.to_string()),
        text(view.told(&view.explanation.why)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_a_number_above_zero_or_auto() {
        assert_eq!((parse("3"), parse("AUTO")), (Ok(Cores::Fixed(3)), Ok(Cores::Auto)));
        for wrong in ["0", "-1", "2.5", "many", "", "99999999999999999999"] {
            let refused = parse(wrong).expect_err("no number of cores");
            assert_eq!((refused.state(), refused.hint()), (SqlState::InvalidParameterValue, Some("Write cores = 3, or cores = auto.")));
        }
    }
}
