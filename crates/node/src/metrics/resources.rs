//! What a site takes of its machine: memory, open files, bytes of its stores. Measured for each view of the metrics.
//!
//! Memory and files are read from `/proc`; where there is none they are not shown.

use crate::service::Service;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::path::{Path, PathBuf};

/// Measures a site's process and the folders of its stores.
#[derive(Debug)]
pub struct Resources {
    stores: Vec<(Service, PathBuf)>,
}

impl Resources {
    /// Of this process, and of the folders in which `stores` have their files.
    pub fn new(stores: Vec<(Service, PathBuf)>) -> Resources {
        Resources { stores }
    }
}

impl Collector for Resources {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let limit = getrlimit(Resource::Nofile).current;
        let measured = [
            ("resident_memory_bytes", "Memory of the process that is in the machine's.", resident_bytes()),
            ("open_files", "Files and connections that the process has open.", open_files()),
            ("open_files_bound", "How many it may have open.", limit),
        ];
        for (name, help, value) in measured {
            if let Some(value) = value {
                let gauge = ConstGauge::new(value as i64);
                gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
            }
        }
        let help = "Bytes of the files of a service's store.";
        let mut stores = encoder.encode_descriptor("store_files_bytes", help, None, MetricType::Gauge)?;
        for (service, folder) in &self.stores {
            ConstGauge::new(bytes_of(folder) as i64).encode(stores.encode_family(&[("service", service.name())])?)?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes: u64 = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())?;
    Some(kibibytes << 10)
}

fn open_files() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

/// The bytes of all files in a folder and the folders in it. A file that goes meanwhile counts for nothing.
fn bytes_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn folders_are_measured_with_all_that_is_in_them() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("tables")).expect("made");
        std::fs::write(folder.path().join("journal"), [0; 100]).expect("written");
        std::fs::write(folder.path().join("tables/1"), [0; 23]).expect("written");
        let mut metrics = Metrics::new();
        let stores = vec![(Service::Commit, folder.path().to_owned()), (Service::Quad, folder.path().join("none"))];
        metrics.measure(Resources::new(stores));
        let text = metrics.render();
        for line in ["rhumb_store_files_bytes{service=\"commit\"} 123", "rhumb_store_files_bytes{service=\"quad\"} 0"] {
            assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
        }
        #[cfg(target_os = "linux")]
        for name in ["rhumb_resident_memory_bytes ", "rhumb_open_files "] {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok());
            assert!(value.is_some_and(|value| value > 3), "{name}: {text}");
        }
    }
}
