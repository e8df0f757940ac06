//! From options and files to a request of the planner. A mistake in any of them is one line that says where it is.

use super::live::Live;
use super::options::{AtMost, model};
use super::{Args, Failure, usage};
use crate::wan;
use rhumb_core::RttMatrix;
use rhumb_plan::places::{self, Position};
use rhumb_plan::report::change::Counted;
use rhumb_plan::{Client, Constraint, Groups, Matrix, Prices, Request, capacity, workload};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was read.
pub struct Inputs {
    /// The round trips as they were given.
    pub rtt: RttMatrix,
    /// What they are called.
    pub source: String,
    /// What is asked of the planner.
    pub request: Request,
    /// How the clients are counted; none if nobody said where they are.
    pub counted: Option<Counted>,
    /// What was assumed for want of something said.
    pub assumptions: Vec<&'static str>,
    /// Given placements, to compare.
    pub compared: Vec<Vec<usize>>,
    /// Where the regions are, if a map is wanted.
    pub positions: Vec<Position>,
}

/// A file of the user's, read.
struct Text {
    name: String,
    text: String,
}

impl Inputs {
    /// Reads all that `args` name. What they do not name is as the `live` cluster has it, if there is one.
    pub fn read(args: &Args, live: Option<&Live>) -> Result<Inputs, Failure> {
        let (rtt, source) = round_trips(args, live)?;
        let matrix = Matrix::try_from(&rtt).map_err(|error| usage(format!("--rtt {source}: {error}")))?;
        let model = model(args).map_err(usage)?;
        let faults = args.faults.unwrap_or(live.map_or(1, |live| live.shown.placement.active.len().saturating_sub(1) / 2));
        let mut assumptions = Vec::new();
        let (clients, counted) = match (read_file(args.workload.as_ref())?, live) {
            (Some(Text { name, text }), _) => {
                let clients = workload::parse(&name, &text, &matrix, args.reads_per_txn.unwrap_or(0)).map_err(usage)?;
                (clients, Some(Counted::Clients))
            }
            (None, Some(live)) => (measured(args, live, &matrix)?, Some(Counted::TransactionsMilli)),
            (None, None) => {
                assumptions.push("No workload was given: one client in every region.");
                (workload::uniform(&matrix, args.reads_per_txn.unwrap_or(0)), None)
            }
        };
        if clients.iter().all(|client| client.reads_milli == 0) {
            assumptions.push("Transactions read nothing: latencies are those of commits.");
        }
        let prices = match read_file(args.prices.as_ref())? {
            Some(Text { name, text }) => {
                Prices::parse(&name, &text, &matrix).map_err(usage)?.per_replica(&clients, args.megabytes.unwrap_or(0))
            }
            None => Vec::new(),
        };
        let places = read_file(args.places.as_ref())?;
        let constraints = constraints(args, &matrix, places.as_ref())?;
        let positions = if args.map.is_some() { positions(&matrix, places.as_ref())? } else { Vec::new() };
        let compared = args.compare.iter().map(|names| placement(names, &matrix, faults)).collect::<Result<_, _>>()?;
        let (matrix, objective) = (Arc::new(matrix), args.objective);
        let request = Request { matrix, clients, model, faults, objective, constraints, prices };
        Ok(Inputs { rtt, source, request, counted, assumptions, compared, positions })
    }
}

/// The round trips, and what they are called.
fn round_trips(args: &Args, live: Option<&Live>) -> Result<(RttMatrix, String), Failure> {
    let Some(name) = &args.rtt else {
        let live = live.expect("clap asks for --rtt or --from");
        return Ok((live.rtt()?, live.url.clone()));
    };
    let given = wan::read(name).map_err(|error| usage(format!("--rtt: {error}")))?;
    let rtt = match live {
        Some(live) => live.restrict(&given, &format!("--rtt {name}"))?,
        None => given,
    };
    Ok((rtt, name.clone()))
}

/// The clients as the cluster has measured them.
fn measured(args: &Args, live: &Live, matrix: &Matrix) -> Result<Vec<Client>, Failure> {
    if args.capacity.is_some() || args.megabytes.is_some() {
        return Err(usage("--capacity and --megabytes are by the client, and a cluster measures transactions: give --workload"));
    }
    let mut clients = live.load(matrix)?;
    if let Some(reads_milli) = args.reads_per_txn {
        clients.iter_mut().for_each(|client| client.reads_milli = reads_milli);
    }
    Ok(clients)
}

fn constraints(args: &Args, matrix: &Matrix, places: Option<&Text>) -> Result<Vec<Constraint>, Failure> {
    let region = |option: &str, name: &String| matrix.find(name).map_err(|error| usage(format!("--{option}: {error}")));
    let mut constraints = Vec::new();
    if !args.within.is_empty() {
        let regions = args.within.iter().map(|name| region("within", name)).collect::<Result<BTreeSet<usize>, Failure>>()?;
        constraints.push(Constraint::Within(regions));
    }
    for name in &args.required {
        constraints.push(Constraint::Required(region("required", name)?));
    }
    for name in &args.forbidden {
        constraints.push(Constraint::Forbidden(region("forbidden", name)?));
    }
    for AtMost { limit, kind } in &args.at_most {
        constraints.push(Constraint::AtMost { limit: *limit, groups: groups(matrix, kind, places)? });
    }
    if let Some(Text { name, text }) = read_file(args.capacity.as_ref())? {
        constraints.push(capacity::parse(&name, &text, matrix).map_err(usage)?);
    }
    constraints.extend(args.budget.map(Constraint::Budget));
    Ok(constraints)
}

fn groups(matrix: &Matrix, kind: &str, places: Option<&Text>) -> Result<Groups, Failure> {
    let own = |error: places::PlaceError| usage(format!("--at-most: {error} with --places"));
    match (places, kind) {
        (Some(Text { name, text }), _) => places::groups_of_table(name, text, matrix, kind).map_err(usage),
        (None, "provider") => places::by_provider(matrix).map_err(own),
        (None, "continent") => places::by_continent(matrix).map_err(own),
        (None, _) => {
            Err(usage(format!("--at-most: `{kind}` is neither `provider` nor `continent`; name a table with such a column with --places")))
        }
    }
}

fn positions(matrix: &Matrix, places: Option<&Text>) -> Result<Vec<Position>, Failure> {
    match places {
        Some(Text { name, text }) => places::positions_of_table(name, text, matrix).map_err(usage),
        None => places::positions(matrix).map_err(|error| usage(format!("--map: {error} with --places"))),
    }
}

/// The placement of these names, separated by commas.
fn placement(names: &str, matrix: &Matrix, faults: usize) -> Result<Vec<usize>, Failure> {
    let wrong = |message: String| usage(format!("--compare {names}: {message}"));
    let regions = names.split(',').map(|name| matrix.find(name.trim())).collect::<Result<Vec<usize>, _>>();
    let regions = regions.map_err(|error| wrong(error.to_string()))?;
    let distinct: BTreeSet<usize> = regions.iter().copied().collect();
    if distinct.len() < regions.len() {
        return Err(wrong("names a region twice".to_owned()));
    }
    if distinct.len() != 2 * faults + 1 {
        return Err(wrong(format!("has {} regions; to survive {faults} lost regions takes {}", distinct.len(), 2 * faults + 1)));
    }
    Ok(distinct.into_iter().collect())
}

fn read_file(path: Option<&PathBuf>) -> Result<Option<Text>, Failure> {
    let read = |path: &PathBuf| {
        let name = Path::display(path).to_string();
        let text = std::fs::read_to_string(path).map_err(|error| usage(format!("{name}: cannot be read: {error}")))?;
        Ok(Text { name, text })
    };
    path.map(read).transpose()
}
