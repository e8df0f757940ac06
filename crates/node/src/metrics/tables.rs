//! How full the tables and queues of a site's services are, as metrics.
//!
//! Everywhere in the metrics of a site holds: where there is one whose name ends in `_bound`, the one without that ending is never above
//! it; where there is one whose name ends in `_at_rest`, it is not above that once no client asks, nothing goes wrong and a while has passed.
//! So who watches a site need not know its tables.

use crate::service::Service;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use rhumb_core::Table;
use std::collections::BTreeMap;
use std::fmt;

/// Of tables of the same name, such as one for each quota, the one that is nearest to its bound.
fn fullest(tables: &[Table]) -> Vec<Table> {
    let mut fullest: BTreeMap<&str, Table> = BTreeMap::new();
    for table in tables {
        let known = fullest.entry(table.name).or_insert(*table);
        if table.size as u128 * known.bound as u128 > known.size as u128 * table.bound as u128 {
            *known = *table;
        }
    }
    fullest.into_values().collect()
}

/// Writes those of each service that has said how it is.
pub fn encode(encoder: &mut DescriptorEncoder, tables: &[(Service, Option<Vec<Table>>)]) -> fmt::Result {
    let mut all = Vec::new();
    for (service, tables) in tables {
        let of_service = tables.iter().flat_map(|tables| fullest(tables));
        all.extend(of_service.map(|table| ([("service", service.name()), ("table", table.name)], table)));
    }
    if all.is_empty() {
        return Ok(());
    }
    let mut gauge = |name: &str, help: &str, of: fn(&Table) -> Option<usize>| {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in all.iter().filter_map(|(labels, table)| Some((labels, of(table)?))) {
            ConstGauge::new(value as i64).encode(family.encode_family(labels)?)?;
        }
        Ok(())
    };
    gauge("table_entries", "Entries of a table or queue of a service; bytes where its name says so.", |table| Some(table.size))?;
    gauge("table_entries_bound", "The most that there may be, of tables that a constant bounds.", |table| below_max(table.bound))?;
    gauge("table_entries_at_rest", "The most that there may be once nothing is asked and nothing goes wrong.", |table| {
        below_max(table.resting)
    })
}

/// A bound, if there is one.
fn below_max(bound: usize) -> Option<usize> {
    (bound < usize::MAX).then_some(bound)
}

#[cfg(test)]
mod tests {
    use crate::metrics::Metrics;
    use crate::metrics::vitals::{Said, Vitals};
    use rhumb_core::{Table, Time};

    #[test]
    fn each_table_is_shown_once_with_its_bounds_if_it_has_any() {
        let metrics = Metrics::new();
        let fuller = Table::new("transactions", 3, 20_000);
        let tables = vec![Table::new("transactions", 4, 80_000), fuller, Table::new("log", 17, usize::MAX).resting_at(50)];
        metrics.vitals.show(Said { commits: Some(Vitals { tables, ..Vitals::default() }), ..Said::default() }, Time::ZERO);
        let text = metrics.render();
        let shown: Vec<&str> = text.lines().filter(|line| line.starts_with("rhumb_table_")).collect();
        let expected = [
            "rhumb_table_entries{service=\"commit\",table=\"log\"} 17",
            "rhumb_table_entries{service=\"commit\",table=\"transactions\"} 3",
            "rhumb_table_entries_bound{service=\"commit\",table=\"transactions\"} 20000",
            "rhumb_table_entries_at_rest{service=\"commit\",table=\"log\"} 50",
            "rhumb_table_entries_at_rest{service=\"commit\",table=\"transactions\"} 0",
        ];
        assert_eq!(shown, expected);
    }
}
