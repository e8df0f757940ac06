//! What sites say of their tables, queues, memory and folders, and how much of that may be.

use crate::cluster::Cluster;
use std::collections::BTreeMap;
use std::io;

/// Memory of a site of the debug build: caches of four stores, 512 MiB of them at the most, queries, and what its allocator keeps.
const RESIDENT_BYTES_MAX: f64 = (1_u64 << 30) as f64;
/// Files and connections of a site: 35 clients, 120 that are half-open, and the files of its stores.
const OPEN_FILES_MAX: f64 = 1_000.0;
/// Files of one store: 128 MiB of journals, and versions of ten minutes.
const STORE_BYTES_MAX: f64 = (768_u64 << 20) as f64;

/// What holds at all times, besides that nothing is above the bound that its site names.
const ALWAYS: [(&str, f64); 3] = [
    ("rhumb_resident_memory_bytes", RESIDENT_BYTES_MAX),
    ("rhumb_open_files", OPEN_FILES_MAX),
    ("rhumb_store_files_bytes", STORE_BYTES_MAX),
];

/// What holds a while after the last client has gone and the last fault is healed: nothing waits, and what is kept for a time is kept for
/// no longer.
const AT_REST: [(&str, &str, f64); 32] = [
    ("rhumb_attempts_in_doubt", "", 0.0),
    ("rhumb_safe_timestamp_lag_seconds", "", 15.0),
    ("rhumb_quota_operations_waiting", "", 0.0),
    ("rhumb_mailbox_inputs", "", 64.0),
    // What the emulated wide area delays. Sites of Catenae go on sealing epochs where Held overtakes Epoch, 500 messages a second on a link.
    ("rhumb_peer_queue_messages", "", 256.0),
    ("rhumb_requests_waiting", "", 8.0),
    ("rhumb_quad_is_sealed", "", 0.0),
    ("rhumb_epoch_regions_passed_over", "", 0.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"transactions\"", 0.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"handed\"", 0.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"reads\"", 0.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"votes_unresolved\"", 0.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"attempts\"", 0.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"locks\"", 0.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"waiting_reads\"", 0.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"waiting_to_begin\"", 0.0),
    // Of the minute for which attempts are remembered.
    ("rhumb_table_entries", "service=\"commit\",table=\"votes\"", 4_000.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"applied\"", 4_000.0),
    ("rhumb_table_entries", "service=\"commit\",table=\"log\"", 100.0),
    ("rhumb_table_entries", "service=\"catenae\",table=\"queue\"", 0.0),
    ("rhumb_table_entries", "service=\"catenae\",table=\"running\"", 0.0),
    ("rhumb_table_entries", "service=\"catenae\",table=\"backlog\"", 0.0),
    ("rhumb_table_entries", "service=\"catenae\",table=\"unsettled\"", 0.0),
    ("rhumb_table_entries", "service=\"catenae\",table=\"waiting_reads\"", 0.0),
    // What was said since a quiet site last told how far it has come.
    ("rhumb_table_entries", "service=\"catenae\",table=\"log\"", 4_000.0),
    ("rhumb_table_entries", "service=\"catenae\",table=\"stream_entries\"", 4_000.0),
    ("rhumb_table_entries", "service=\"quad\",table=\"open\"", 0.0),
    ("rhumb_table_entries", "service=\"quad\",table=\"decided\"", 0.0),
    ("rhumb_table_entries", "service=\"quad\",table=\"sessions\"", 0.0),
    ("rhumb_table_entries", "service=\"quad\",table=\"prepared\"", 0.0),
    ("rhumb_table_entries", "service=\"quad\",table=\"locks\"", 0.0),
    ("rhumb_table_entries", "service=\"quad\",table=\"waiting\"", 0.0),
];

/// What one site says.
pub struct Metrics {
    site: String,
    /// By name, and then by labels.
    samples: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Metrics {
    /// Asks the site of a region.
    pub fn read(cluster: &Cluster, region: usize) -> io::Result<Metrics> {
        let (status, text) = cluster.get(region, "/metrics")?;
        if status != 200 {
            return Err(io::Error::other(format!("/metrics answers {status}")));
        }
        Ok(Metrics::parse(cluster.name(region), &text))
    }

    fn parse(site: &str, text: &str) -> Metrics {
        let mut samples: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((what, value)) = line.rsplit_once(' ') else { continue };
            let (name, labels) = what.split_once('{').map_or((what, ""), |(name, rest)| (name, rest.trim_end_matches('}')));
            if let Ok(value) = value.parse() {
                samples.entry(name.to_owned()).or_default().insert(labels.to_owned(), value);
            }
        }
        Metrics { site: site.to_owned(), samples }
    }

    /// The samples of a metric, those with `labels` if these are given.
    fn of<'a>(&'a self, name: &str, labels: &'a str) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
        let all = self.samples.get(name).into_iter().flatten();
        all.filter(move |(of, _)| labels.is_empty() || *of == labels).map(|(labels, value)| (labels.as_str(), *value))
    }

    /// The sum of the samples of a metric.
    pub fn sum(&self, name: &str) -> f64 {
        self.of(name, "").map(|(_, value)| value).sum()
    }

    /// What is above a bound that holds at all times: site, metric, value, bound.
    pub fn above_bounds(&self) -> Vec<String> {
        let named = self.samples.iter().filter_map(|(name, samples)| Some((name.strip_suffix("_bound")?, samples)));
        let named = named.flat_map(|(name, bounds)| bounds.iter().map(move |(labels, bound)| (name, labels.as_str(), *bound)));
        let always = ALWAYS.iter().map(|(name, bound)| (*name, "", *bound));
        self.above(named.chain(always))
    }

    /// What is above what may be there at rest.
    pub fn above_rest(&self) -> Vec<String> {
        let missing = AT_REST.iter().filter(|(name, labels, _)| self.of(name, labels).next().is_none());
        let missing = missing.map(|(name, labels, _)| format!("{} does not tell {name}{{{labels}}}", self.site));
        missing.chain(self.above(AT_REST.into_iter())).collect()
    }

    fn above<'a>(&'a self, bounds: impl Iterator<Item = (&'a str, &'a str, f64)>) -> Vec<String> {
        let above = |(name, wanted, bound): (&'a str, &'a str, f64)| {
            let samples = self.of(name, wanted).filter(move |(_, value)| *value > bound);
            samples.map(move |(labels, value)| format!("{}: {name}{{{labels}}} is {value}, above its bound of {bound}", self.site))
        };
        bounds.flat_map(above).collect()
    }
}

#[test]
fn what_is_above_a_bound_is_told_with_site_metric_value_and_bound() {
    let text = "# TYPE rhumb_x gauge\nrhumb_x{a=\"1\"} 3\nrhumb_x{a=\"2\"} 5\nrhumb_x_bound{a=\"1\"} 2\nrhumb_x_bound{a=\"2\"} 5\n\
                rhumb_y{peer=\"p\"} 9\nrhumb_y_bound 8\nrhumb_open_files 1e6\n# EOF\n";
    let expected = [
        "oregon: rhumb_x{a=\"1\"} is 3, above its bound of 2",
        "oregon: rhumb_y{peer=\"p\"} is 9, above its bound of 8",
        "oregon: rhumb_open_files{} is 1000000, above its bound of 1000",
    ];
    let metrics = Metrics::parse("oregon", text);
    assert_eq!(metrics.above_bounds(), expected);
    assert!(metrics.above_rest().contains(&"oregon does not tell rhumb_attempts_in_doubt{}".to_owned()));
}
