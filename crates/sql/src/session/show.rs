//! SHOW of a setting and SHOW REGIONS.

use super::outcome::buffered;
use super::{Outcome, Session, State, Tag};
use crate::error::SqlResult;
use crate::executor::ResultColumn;
use crate::quota;
use crate::storage::Row;
use crate::types::{Datum, SqlType};
use rhumb_commit::transaction::RegionStatus;
use std::sync::Arc;

/// The columns of SHOW REGIONS.
const REGION_COLUMNS: [(&str, SqlType); 9] = [
    ("name", SqlType::Text),
    ("local", SqlType::Bool),
    ("sites", SqlType::Int4),
    ("reachable", SqlType::Int4),
    ("rtt_ms", SqlType::Float8),
    ("floor_ms", SqlType::Float8),
    ("role", SqlType::Text),
    ("reads_at", SqlType::Text),
    ("commits_at", SqlType::Text),
];

impl Session {
    pub(super) fn show(&self, name: &str) -> SqlResult<Outcome> {
        if name == "all" {
            let rows = self.facts.settings.all().map(|(name, value)| vec![text(name), text(value)]).collect();
            return Ok(Outcome::Rows { columns: columns_of_show(name), rows: buffered(rows), tag: Tag::Fixed("SHOW".into()) });
        }
        let value = match (name, &self.state) {
            ("transaction_read_only", State::Explicit(open)) if open.mode.is_read_only() => "on".to_string(),
            _ => self.facts.settings.get(name)?,
        };
        let rows = buffered(vec![vec![text(value)]]);
        Ok(Outcome::Rows { columns: columns_of_show(name), rows, tag: Tag::Fixed("SHOW".into()) })
    }

    /// The value of a setting as the one row of a SELECT, in a column of that name.
    pub(super) fn shown(&self, setting: &str, column: &str) -> SqlResult<Outcome> {
        let rows = buffered(vec![vec![text(self.facts.settings.get(setting)?)]]);
        Ok(Outcome::Rows { columns: columns_of_show(column), rows, tag: Tag::Counted("SELECT") })
    }

    pub(super) async fn show_quotas(&self) -> SqlResult<Outcome> {
        let quotas = self.engine.quotas()?;
        let infos = self.interrupt.within(async { Ok(quotas.list().await?) }).await?;
        let rows = infos.iter().map(quota::row).collect();
        Ok(Outcome::Rows { columns: columns_of_quotas(), rows: buffered(rows), tag: Tag::Fixed("SHOW".into()) })
    }

    pub(super) fn show_regions(&self) -> Outcome {
        let rows = self.home.gateway().regions().iter().map(region_row).collect();
        Outcome::Rows { columns: columns_of_regions(), rows: buffered(rows), tag: Tag::Fixed("SHOW".into()) }
    }
}

fn text(value: impl Into<String>) -> Datum {
    Datum::Utf8(Some(value.into()))
}

fn region_row(region: &RegionStatus) -> Row {
    vec![
        text(region.name.clone()),
        Datum::Boolean(Some(region.local)),
        Datum::Int32(i32::try_from(region.sites).ok()),
        Datum::Int32(i32::try_from(region.reachable).ok()),
        Datum::Float64(region.rtt.map(|span| span.as_millis_f64())),
        Datum::Float64(region.floor.map(|span| span.as_millis_f64())),
        text(region.role.to_string()),
        Datum::Utf8(region.reads_at.clone()),
        Datum::Utf8(region.commits_at.clone()),
    ]
}

/// The columns of SHOW `name`.
pub fn columns_of_show(name: &str) -> Arc<[ResultColumn]> {
    let names = if name == "all" { vec!["name", "setting"] } else { vec![name] };
    names.into_iter().map(|name| ResultColumn { name: name.to_string(), ty: SqlType::Text }).collect()
}

/// The columns of SHOW REGIONS.
pub fn columns_of_regions() -> Arc<[ResultColumn]> {
    columns(&REGION_COLUMNS)
}

/// The columns of SHOW QUOTAS.
pub fn columns_of_quotas() -> Arc<[ResultColumn]> {
    columns(&quota::COLUMNS)
}

fn columns(columns: &[(&str, SqlType)]) -> Arc<[ResultColumn]> {
    columns.iter().map(|(name, ty)| ResultColumn { name: name.to_string(), ty: *ty }).collect()
}
