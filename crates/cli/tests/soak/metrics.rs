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
const AT_REST: [(&str, &str, f64); 8] = [
    ("rhumb_attempts_in_doubt", "", 0.0),
    ("rhumb_safe_timestamp_lag_seconds", "", 15.0),
    ("rhumb_quota_operations_waiting", "", 0.0),
    ("rhumb_mailbox_inputs", "", 64.0),
    // What the emulated wide area delays.
    ("rhumb_peer_queue_messages", "", 64.0),
    ("rhumb_requests_waiting", "", 8.0),
    ("rhumb_quad_is_sealed", "", 0.0),
    ("rhumb_epoch_regions_passed_over", "", 0.0),
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
        let always = ALWAYS.iter().map(|(name, bound)| (*name, "", *bound));
        self.above(self.named("_bound").chain(always))
    }

    /// The bounds that the site itself names: of the metrics that go by the same name without `ending`.
    fn named<'a>(&'a self, ending: &'static str) -> impl Iterator<Item = (&'a str, &'a str, f64)> {
        let named = self.samples.iter().filter_map(move |(name, samples)| Some((name.strip_suffix(ending)?, samples)));
        named.flat_map(|(name, bounds)| bounds.iter().map(move |(labels, bound)| (name, labels.as_str(), *bound)))
    }

    /// What is above what may be there at rest.
    pub fn above_rest(&self) -> Vec<String> {
        let missing = AT_REST.iter().filter(|(name, labels, _)| self.of(name, labels).next().is_none());
        let missing = missing.map(|(name, labels, _)| format!("{} does not tell {name}{{{labels}}}", self.site));
        missing.chain(self.above(self.named("_at_rest").chain(AT_REST))).collect()
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
