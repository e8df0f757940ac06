//! `rhumb.quorums`: who is what in the quorums of QuAD, as this site sees it at the moment of the statement. One row for each site that takes
//! part, or none where there are no such databases.

use crate::engine::batch_of;
use crate::types::{Datum, SqlType, UTC};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::TableSource;
use rhumb_core::SiteId;
use rhumb_quad::SiteFacts;
use rhumb_quad::administration::QuorumView;
use std::collections::BTreeSet;
use std::sync::Arc;

const COLUMNS: [(&str, SqlType); 15] = [
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

/// Makes the table.
pub fn make(view: Option<&QuorumView>) -> Result<Arc<dyn TableSource>> {
    let fields: Vec<_> = COLUMNS.iter().map(|(name, ty)| ty.field(name, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let rows: Vec<_> = view.into_iter().flat_map(|view| view.explanation.sites.iter().map(|facts| row(view, facts))).collect();
    let batch = batch_of(&schema, rows.len(), |row, column| rows[row][column].clone())?;
    Ok(provider_as_source(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
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
        text(view.explanation.why.clone()),
    ]
}
