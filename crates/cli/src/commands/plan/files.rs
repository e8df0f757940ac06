//! The files that a plan is written to: a map, and the file of a cluster.

use super::inputs::{Inputs, usage};
use super::{Args, Failure};
use rhumb_lab::plot::{Links, Mark, Marks, Point, WorldMap};
use rhumb_node::config::{Cluster, Wan};
use rhumb_plan::Report;
use rhumb_plan::report::ClientReport;
use std::path::Path;

/// A map of the replicas, the clients, and who coordinates for whom.
pub fn map(inputs: &Inputs, report: &Report) -> Result<String, Failure> {
    let at = |name: &String| {
        let region = inputs.request.matrix.region(name).expect("a report names regions of the matrix");
        let position = inputs.positions[region];
        Point { latitude: f64::from(position.latitude) / 10_000.0, longitude: f64::from(position.longitude) / 10_000.0 }
    };
    let mark = |name: &String| Mark { label: name.clone(), at: at(name) };
    let links = |name: &str, dashed: bool, coordinator: fn(&ClientReport) -> &String| {
        let elsewhere = report.clients.iter().filter(|client| *coordinator(client) != client.region);
        Links { name: name.to_owned(), links: elsewhere.map(|client| (at(&client.region), at(coordinator(client)))).collect(), dashed }
    };
    let mut shown = vec![links("coordinator of commits elsewhere", false, |client| &client.commit_coordinator)];
    if report.clients.iter().any(|client| client.reads_per_txn > 0.0) {
        shown.push(links("coordinator of reads elsewhere", true, |client| &client.read_coordinator));
    }
    shown.retain(|group| !group.links.is_empty());
    let map = WorldMap {
        title: format!("{} replicas, mean {:.1} ms", report.replicas.len(), report.mean_ms),
        marks: vec![
            Marks { name: "replica".to_owned(), marks: report.replicas.iter().map(mark).collect() },
            Marks { name: "clients".to_owned(), marks: report.clients.iter().map(|client| mark(&client.region)).collect() },
        ],
        links: shown,
    };
    map.to_svg().map_err(|error| usage(format!("--map: {error}")))
}

/// The file of a cluster with a site in each of the regions chosen, and the wide area between them.
pub fn cluster(inputs: &Inputs, report: &Report, args: &Args) -> Result<String, Failure> {
    let names: Vec<&str> = report.replicas.iter().map(String::as_str).collect();
    let matrix = inputs.rtt.restrict(&names).expect("a report names regions of the matrix");
    let wan = Wan { matrix: Some(matrix.to_csv()), ..Wan::default() };
    let cluster = Cluster::on_loopback(&report.replicas, Some(wan));
    cluster.check("-o", Path::new("")).map_err(usage)?;
    let file = args.output.as_deref().unwrap_or(Path::new("cluster.toml")).display();
    let head = format!(
        "# Chosen by `rhumb plan` from {}: mean {:.1} ms.\n# rhumb demo --cluster {file}\n# rhumb start --config {file} --region {}\n\n",
        args.rtt, report.mean_ms, report.replicas[0]
    );
    Ok(head + &cluster.to_toml())
}
