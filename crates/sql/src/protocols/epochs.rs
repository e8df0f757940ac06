//! `rhumb.epochs`: how far this site is with the epochs of Catenae, at the moment of the statement. One row, or none at a site that
//! holds no such databases.

use super::{Administration, SiteTable};
use crate::error::{SqlError, SqlResult};
use crate::types::{Datum, SqlType};
use async_trait::async_trait;
use rhumb_catenae::Status;
use rhumb_catenae::administration::{self, Epochs};
use std::sync::Arc;

/// The table.
pub const TABLE: SiteTable = SiteTable { name: "epochs", qualified: "rhumb.epochs", columns: COLUMNS };
const COLUMNS: &[(&str, SqlType)] = &[
    ("sealed", SqlType::Int8),
    ("complete", SqlType::Int8),
    ("settled", SqlType::Int8),
    ("behind", SqlType::Int8),
    ("unsettled", SqlType::Int8),
    ("passed_over", SqlType::Text),
    ("settle_ms", SqlType::Float8),
];

/// What a site shows of its epochs.
pub struct EpochAdministration(pub Arc<dyn administration::Administration>);

#[async_trait]
impl Administration for EpochAdministration {
    async fn rows(&self) -> SqlResult<Vec<Vec<Datum>>> {
        Ok(vec![row(self.0.epochs().await?)])
    }

    async fn set_option(&self, _: Option<&str>, _: Option<&str>) -> SqlResult<()> {
        Err(SqlError::internal("databases of this protocol share no option"))
    }
}

fn row(Epochs { status, passed_over }: Epochs) -> Vec<Datum> {
    let number = |number: u64| Datum::Int64(i64::try_from(number).ok());
    let Status { coordinator, execution, settled, unsettled, .. } = &status;
    let numbers = [coordinator.0, execution.0, settled.0, status.behind(), *unsettled as u64].map(number);
    let regions = Some(passed_over.join(", ")).filter(|regions| !regions.is_empty());
    let settle = (status.settling.epochs > 0).then(|| status.settling.last.as_millis_f64());
    numbers.into_iter().chain([Datum::Utf8(regions), Datum::Float64(settle)]).collect()
}
