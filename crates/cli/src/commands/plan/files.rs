//! The files that a plan is written to: a map, and the file of a cluster.

use super::Failure;
use super::inputs::Inputs;
use super::usage;
use rhumb_config::{Cluster, Coordinators, Placement, Wan};
use rhumb_display::plot::{Links, Mark, Marks, Point, WorldMap};
use rhumb_plan::layout::proposal::propose;
use rhumb_plan::report::ClientReport;
use rhumb_plan::{ChangeReport, Layout, Problem, Report};
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

/// The file `path` of a cluster with a site in each of the regions chosen and in each that has clients, as far as somebody said
/// where they are, and the wide area between them. Of a cluster that runs: in all its regions, placed as proposed.
pub fn cluster(inputs: &Inputs, problem: &Problem, report: &Report, change: Option<&ChangeReport>, path: &Path) -> Result<String, Failure> {
    let (layout, mean_ms) = match change {
        Some(change) => (change.proposed.clone(), change.mean_then_ms),
        None => (planned(inputs, problem, report), report.mean_ms),
    };
    let has_clients = |name: &String| inputs.counted.is_some() && report.clients.iter().any(|client| client.region == *name);
    let has_site = |name: &&String| change.is_some() || layout.copies().contains(*name) || has_clients(name);
    let regions: Vec<String> = problem.matrix().names().iter().filter(has_site).cloned().collect();
    let names: Vec<&str> = regions.iter().map(String::as_str).collect();
    let rtt = inputs.rtt.restrict(&names).expect("the regions are those of the matrix");
    let wan = Wan { matrix: Some(rtt.to_csv()), ..Wan::default() };
    let mut cluster = Cluster::on_loopback(&regions, Some(wan));
    cluster.placement = placement(&layout, &regions);
    cluster.check("-o", Path::new("")).map_err(usage)?;
    let (source, file) = (&inputs.source, path.display());
    let secret = path.with_file_name(&cluster.secret_file);
    let secret = secret.display();
    let head = format!(
        "# Chosen by `rhumb plan` from {source}: mean {mean_ms:.1} ms.\n# rhumb demo --cluster {file}\n# rhumb secret {secret}\n# rhumb start --config {file} --region {}\n\n",
        report.replicas[0]
    );
    Ok(head + &cluster.to_toml())
}

/// What the plan says of its regions, as a cluster can be told.
fn planned(inputs: &Inputs, problem: &Problem, report: &Report) -> Layout {
    let replicas: Vec<usize> = report.replicas.iter().filter_map(|name| problem.matrix().region(name)).collect();
    let mut layout = propose(problem, &replicas, &Layout::default());
    if inputs.counted.is_none() {
        // Clients were assumed everywhere; that is no reason to start a site everywhere.
        layout.passive.clear();
        layout.coordinators.clear();
    }
    if problem.model().protocol.has_leaders() {
        // A leader is no coordinator of the engine's.
        layout.coordinators.clear();
    }
    layout
}

/// The section of the file, if it says anything: not every region votes, or somebody's commits are run elsewhere.
fn placement(layout: &Layout, regions: &[String]) -> Option<Placement> {
    let listed = |of: &dyn Fn(&String) -> bool| regions.iter().filter(|name| of(name)).cloned().collect::<Vec<String>>();
    let coordinators =
        layout.coordinators.iter().map(|(of, named)| (of.clone(), Coordinators { read: named.read.clone(), commit: named.commit.clone() }));
    let placement = Placement {
        active: listed(&|name| layout.active.contains(name)),
        passive: listed(&|name| layout.passive.contains(name)),
        coordinators: coordinators.collect(),
    };
    (placement.active.len() < regions.len() || !placement.coordinators.is_empty()).then_some(placement)
}
