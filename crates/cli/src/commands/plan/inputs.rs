//! From options and files to a request of the planner. A mistake in any of them is one line that says where it is.

use super::options::{AtMost, model};
use super::{Args, Failure};
use crate::wan;
use rhumb_core::RttMatrix;
use rhumb_plan::places::{self, Position};
use rhumb_plan::{Constraint, Groups, Matrix, Prices, Request, capacity, workload};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was read.
pub struct Inputs {
    /// The round trips as they were given.
    pub rtt: RttMatrix,
    /// What is asked of the planner.
    pub request: Request,
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
    /// Reads all that `args` name.
    pub fn read(args: &Args) -> Result<Inputs, Failure> {
        let rtt = wan::read(&args.rtt).map_err(|error| usage(format!("--rtt: {error}")))?;
        let matrix = Matrix::try_from(&rtt).map_err(|error| usage(format!("--rtt {}: {error}", args.rtt)))?;
        let model = model(args).map_err(usage)?;
        let mut assumptions = Vec::new();
        let clients = match read_file(args.workload.as_ref())? {
            Some(Text { name, text }) => workload::parse(&name, &text, &matrix, args.reads_per_txn).map_err(usage)?,
            None => {
                assumptions.push("No workload was given: one client in every region.");
                workload::uniform(&matrix, args.reads_per_txn)
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
        let compared = args.compare.iter().map(|names| placement(names, &matrix, args.faults)).collect::<Result<_, _>>()?;
        let (matrix, objective) = (Arc::new(matrix), args.objective);
        let request = Request { matrix, clients, model, faults: args.faults, objective, constraints, prices };
        Ok(Inputs { rtt, request, assumptions, compared, positions })
    }
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

/// What was asked wrongly.
pub fn usage(error: impl ToString) -> Failure {
    (error.to_string(), 2)
}
