//! How full the tables and queues of a site's services are, as metrics.
//!
//! Everywhere in the metrics of a site holds: where there is one whose name ends in `_bound`, the one without that ending is never above
//! it. So who watches a site need not know the bounds.

use crate::frame::Service;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use rhumb_core::Occupancy;
use rhumb_quota::request::Status as QuotaVitals;
use rhumb_quota::window::WINDOW_BYTES_MAX;
use std::fmt;

/// Those of the quotas.
pub fn of_quotas(vitals: &QuotaVitals) -> Vec<Occupancy> {
    vec![
        Occupancy::bounded("remembered_bytes", vitals.remembered_bytes, WINDOW_BYTES_MAX),
        Occupancy::unbounded("waiting_operations", vitals.waiting),
    ]
}

/// Writes those of each service that has said how it is.
pub fn encode(encoder: &mut DescriptorEncoder, tables: &[(Service, Option<Vec<Occupancy>>)]) -> fmt::Result {
    let all = |(service, tables): &(Service, Option<Vec<Occupancy>>)| {
        let labelled = |table: Occupancy| ([("service", service.name()), ("table", table.table)], table);
        tables.iter().flatten().copied().map(labelled).collect::<Vec<_>>()
    };
    let all: Vec<_> = tables.iter().flat_map(all).collect();
    if all.is_empty() {
        return Ok(());
    }
    let help = "Entries of a table or queue of a service; bytes where its name says so.";
    let mut entries = encoder.encode_descriptor("table_entries", help, None, MetricType::Gauge)?;
    for (labels, table) in &all {
        ConstGauge::new(table.entries as i64).encode(entries.encode_family(labels)?)?;
    }
    let help = "The most that there may be, of tables that a constant bounds.";
    let mut bounds = encoder.encode_descriptor("table_entries_bound", help, None, MetricType::Gauge)?;
    for (labels, bound) in all.iter().filter_map(|(labels, table)| Some((labels, table.bound?))) {
        ConstGauge::new(bound as i64).encode(bounds.encode_family(labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::metrics::Metrics;
    use crate::vitals::{Said, Vitals};
    use rhumb_core::{Occupancy, Time};

    #[test]
    fn each_table_is_shown_with_its_bound_if_it_has_one() {
        let metrics = Metrics::new();
        let tables = vec![Occupancy::bounded("transactions", 3, 20_000), Occupancy::unbounded("log", 17)];
        metrics.vitals.show(Said { commits: Some(Vitals { tables, ..Vitals::default() }), ..Said::default() }, Time::ZERO);
        let text = metrics.render();
        let shown: Vec<&str> = text.lines().filter(|line| line.starts_with("rhumb_table_")).collect();
        let expected = [
            "rhumb_table_entries{service=\"commit\",table=\"transactions\"} 3",
            "rhumb_table_entries{service=\"commit\",table=\"log\"} 17",
            "rhumb_table_entries_bound{service=\"commit\",table=\"transactions\"} 20000",
        ];
        assert_eq!(shown, expected);
    }
}
