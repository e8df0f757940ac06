//! `rhumb plan`: where replicas should stand, from round trips and a workload alone, or as a running cluster measures them.

mod apply;
mod files;
mod inputs;
mod live;
mod options;
mod search;

use super::{fail, runtime};
use clap::{Args as ClapArgs, Subcommand};
use inputs::Inputs;
use live::Live;
use options::{AtMost, Method, ProtocolName, ReadsName, TwoPhaseName};
use rhumb_display::{Output, parse_duration};
use rhumb_plan::layout::proposal::{is_worth_it, propose, request_beside};
use rhumb_plan::report::change::{Counted, Told};
use rhumb_plan::{ChangeReport, Finding, Layout, Objective, Problem, Report, pareto};
use search::Search;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// More placements than anybody compares.
const FRONT_MAX: usize = 100;

/// Find the regions that should hold replicas, and who should coordinate whose commits.
///
/// Works from round-trip times and a workload alone, or with --from as a running cluster measures them. It changes no cluster;
/// `rhumb plan apply` does. docs/plan.md has a tour, the formats of the files, and what the model leaves out.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  rhumb plan --rtt aws_32 --faults 2                     the best 5 of 32 regions, with a proof
  rhumb plan --rtt rtt.csv --workload clients.csv --reads optimistic
  rhumb plan --rtt aws_azure_42 --faults 2 --at-most 1/continent --at-most 3/provider
  rhumb plan --rtt gcp_39 --objective p95 --forbidden us-west1,us-west2 --json
  rhumb plan --rtt paper_gplacer_9 --protocol two-round --handoff --compare virginia,ireland,tokyo
  rhumb plan --rtt aws_32 --prices prices.csv --megabytes 500 --pareto
  rhumb plan --rtt azure_48 --faults 4 --time-limit 30s  the best found in time, with a bound
  rhumb plan --rtt aws_32 --map map.svg -o cluster.toml && rhumb demo --cluster cluster.toml
  rhumb plan --from http://127.0.0.1:8080 --save plan.json   a better placement for a running cluster
  rhumb plan apply plan.json                             bring it about while clients run

Shipped matrices: paper_replicated_commit_5, paper_samya_5, paper_gplacer_9, aws_32, azure_48, gcp_39, aws_azure_42.
Exit code 0: a plan, or with --from that nothing would be gained; 1: a file cannot be written, or
the cluster does not tell what is needed; 2: what was asked cannot be, and nothing was written."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<PlanCommand>,
    /// Round-trip times: a shipped matrix, or a CSV file `region,NAME,…` with a row per region, in milliseconds.
    #[arg(long, value_name = "PROFILE|FILE", required_unless_present = "from")]
    rtt: Option<String>,
    /// Plan for the running cluster that has a site with this HTTP address: with the round trips and the load that it measured
    /// in the last minute, unless --rtt or --workload say otherwise, and held against its placement.
    #[arg(long, value_name = "URL", conflicts_with_all = ["compare", "pareto", "map"])]
    from: Option<String>,
    /// The clients: a CSV file `region,clients[,reads_per_txn]` [default: one in every region; with --from as measured].
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Reads of a transaction, one after another, where the workload does not say [default: 0; with --from as measured].
    #[arg(long, value_name = "N", value_parser = options::reads, help_heading = "Transactions")]
    reads_per_txn: Option<u64>,
    /// How many regions, whichever, may be lost: f of 2f + 1 [default: 1; with --from as many as now].
    #[arg(long, value_name = "F")]
    faults: Option<usize>,
    /// How transactions commit.
    #[arg(long, value_enum, default_value_t = ProtocolName::ReplicatedCommit, help_heading = "Transactions")]
    protocol: ProtocolName,
    /// Transactions of a hundred that span partitions [default: 0].
    #[arg(long, value_name = "PERCENT", value_parser = options::percent, help_heading = "Transactions")]
    multi_partition: Option<u32>,
    /// Who coordinates those [default: own-leader].
    #[arg(long, value_enum, help_heading = "Transactions")]
    two_phase: Option<TwoPhaseName>,
    /// Where reads go [default: majority; with --from optimistic, as outside of BEGIN].
    #[arg(long, value_enum, help_heading = "Transactions")]
    reads: Option<ReadsName>,
    /// Let a region hand its commits to a replica that ends them sooner.
    #[arg(long, help_heading = "Transactions")]
    handoff: bool,
    /// What to make small: mean, region-mean, worst, or a percentile such as p95.
    #[arg(long, value_name = "WHAT", default_value = "mean", value_parser = options::objective, help_heading = "Search")]
    objective: Objective,
    /// Only these regions may hold data.
    #[arg(long, value_name = "REGION,...", value_delimiter = ',', help_heading = "Constraints")]
    within: Vec<String>,
    /// These regions hold a replica.
    #[arg(long, value_name = "REGION,...", value_delimiter = ',', help_heading = "Constraints")]
    required: Vec<String>,
    /// These regions hold none.
    #[arg(long, value_name = "REGION,...", value_delimiter = ',', help_heading = "Constraints")]
    forbidden: Vec<String>,
    /// At most K replicas per KIND: provider, continent, or a column of --places.
    #[arg(long, value_name = "K/KIND", value_parser = options::at_most, help_heading = "Constraints")]
    at_most: Vec<AtMost>,
    /// Who and where the regions are: a CSV file `region,provider,continent,latitude,longitude` or other columns.
    #[arg(long, value_name = "FILE", help_heading = "Constraints")]
    places: Option<PathBuf>,
    /// How many clients a replica can carry: a CSV file `region,clients`.
    #[arg(long, value_name = "FILE", help_heading = "Constraints")]
    capacity: Option<PathBuf>,
    /// Prices in dollars: a CSV file `region,replica_month,gigabyte_sent`.
    #[arg(long, value_name = "FILE", help_heading = "Prices")]
    prices: Option<PathBuf>,
    /// What each client writes a month, for the price of sending it [default: 0].
    #[arg(long, value_name = "MB", requires = "prices", help_heading = "Prices")]
    megabytes: Option<u64>,
    /// What all replicas together may cost a month.
    #[arg(long, value_name = "DOLLARS", requires = "prices", value_parser = options::dollars, help_heading = "Prices")]
    budget: Option<u64>,
    /// Show the placements that no other beats both at the price and at the objective.
    #[arg(long, requires = "prices", help_heading = "Prices")]
    pareto: bool,
    /// How to search.
    #[arg(long, value_enum, default_value_t = Method::Exact, help_heading = "Search")]
    method: Method,
    /// Stop each search after so long, with the best found and a bound of what may be missed.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Search")]
    time_limit: Option<Duration>,
    /// Hold a given placement against the best; may be repeated.
    #[arg(long, value_name = "REGION,...", help_heading = "Output")]
    compare: Vec<String>,
    /// Print JSON: {"replicas":[…],"mean_ms","proven_gap","clients":[{"region","read_coordinator","commit_coordinator","latency_ms"}…],…}.
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Draw a map of the world as SVG.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    map: Option<PathBuf>,
    /// Write the file of a cluster of these regions, for `rhumb demo --cluster` and `rhumb start --region`.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Keep the plan for a running cluster in this file, for `rhumb plan apply`: what --json prints.
    #[arg(long, value_name = "FILE", requires = "from", help_heading = "Output")]
    save: Option<PathBuf>,
}

#[derive(Subcommand)]
enum PlanCommand {
    Apply(apply::Args),
}

/// What ends the command, and its exit code.
type Failure = (String, u8);

/// What was asked wrongly.
fn usage(error: impl ToString) -> Failure {
    (error.to_string(), 2)
}

/// Plans.
pub fn run(args: &Args) -> ExitCode {
    if let Some(PlanCommand::Apply(args)) = &args.command {
        return apply::run(args);
    }
    match plan(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err((line, code)) => fail(line, code),
    }
}

fn plan(args: &Args) -> Result<(), Failure> {
    if args.time_limit.is_some() && matches!(args.method, Method::Greedy | Method::Weighted) {
        return Err(usage("--time-limit goes with --method exact and exhaustive; the heuristics end by themselves"));
    }
    let written = [("--map", &args.map), ("--output", &args.output), ("--save", &args.save)];
    for (index, (option, path)) in written.iter().enumerate() {
        if let Some((other, _)) = written[..index].iter().find(|(_, other)| path.is_some() && other == path) {
            return Err(usage(format!("{other} and {option} name the same file")));
        }
    }
    let live = args.from.as_deref().map(ask).transpose()?;
    let inputs = Inputs::read(args, live.as_ref())?;
    let problem = Problem::new(inputs.request.clone()).map_err(usage)?;
    let [map, cluster, save] = [&args.map, &args.output, &args.save].map(|path| path.as_deref().map(output).transpose());
    let (map, cluster, save) = (map?, cluster?, save?);

    let search = Search::new(args.method, args.time_limit);
    let (report, change) = match &live {
        None => (found(args, &inputs, &problem, &search)?, None),
        Some(live) => {
            let (report, change) = change(live, &inputs, &problem, &search)?;
            (report, Some(change))
        }
    };
    let json = match &change {
        Some(change) => serde_json::to_string_pretty(change),
        None => serde_json::to_string_pretty(&report),
    };
    let json = json.expect("a report is plain data");
    let svg = map.map(|output| Ok((output, files::map(&inputs, &report)?))).transpose()?;
    let toml = cluster.map(|output| {
        let text = files::cluster(&inputs, &problem, &report, change.as_ref(), output.path())?;
        Ok((output, text))
    });
    let toml = toml.transpose()?;
    let saved = save.map(|output| (output, format!("{json}\n")));
    match &change {
        _ if args.json => println!("{json}"),
        Some(change) => print!("{change}"),
        None => print!("{report}"),
    }
    for (output, text) in svg.into_iter().chain(toml).chain(saved) {
        output.write(text.as_bytes()).map_err(|error| unwritable(output.path(), &error))?;
        // Where JSON is asked for, a program reads standard output.
        let line = format!("written to {}", output.path().display());
        if args.json { eprintln!("{line}") } else { println!("{line}") }
    }
    if change.is_some_and(|change| change.changes_something()) && !args.json {
        println!("\n{}", how_to_apply(args.save.as_deref()));
    }
    Ok(())
}

/// The cluster that has a site at `url`.
fn ask(url: &str) -> Result<Live, Failure> {
    let live = runtime()?.block_on(Live::look(url)).map_err(|why| (why, 1))?;
    live.check_settled()?;
    Ok(live)
}

/// The best placement, and what else was asked for.
fn found(args: &Args, inputs: &Inputs, problem: &Problem, search: &Search) -> Result<Report, Failure> {
    let mut finding = search.find(problem);
    let mut front = None;
    if args.pareto {
        let mut first = Some(finding.clone());
        let mut all_proven = true;
        let points = pareto(&inputs.request, FRONT_MAX, |problem| {
            let found = first.take().unwrap_or_else(|| search.find(problem));
            all_proven &= found.is_proven();
            found.best
        });
        let points = points.map_err(usage)?;
        // As good as what was found, and the cheapest of those.
        finding.best = points[0].best.clone();
        front = Some((all_proven && points.len() < FRONT_MAX, points));
    }
    let mut report = told(inputs, problem, &finding);
    inputs.compared.iter().for_each(|replicas| report.compare(problem, replicas));
    if let Some((complete, points)) = front {
        report.show_front(problem, &points, complete);
    }
    Ok(report)
}

fn told(inputs: &Inputs, problem: &Problem, finding: &Finding) -> Report {
    let mut report = Report::new(problem, finding);
    inputs.assumptions.iter().for_each(|assumption| report.assume(assumption));
    report
}

/// What the best placement would change in a running cluster, if it is worth a move.
fn change(live: &Live, inputs: &Inputs, problem: &Problem, search: &Search) -> Result<(Report, ChangeReport), Failure> {
    live.check_reachable(problem.matrix(), problem.candidates())?;
    let now = live.layout();
    let searched = Problem::new(request_beside(problem, &now)).map_err(usage)?;
    let finding = search.find(&searched);
    let report = told(inputs, &searched, &finding);
    let best: Layout = propose(problem, &finding.best.replicas, &now);
    let proposed = if is_worth_it(problem, &now, &best) { best } else { now.clone() };
    let counted = inputs.counted.unwrap_or(Counted::Clients);
    let (from, epoch) = (live.url.clone(), live.shown.placement.epoch);
    let change = ChangeReport::new(Told { problem, counted, from, epoch, now, proposed, found: report.clone() });
    Ok((report, change))
}

fn how_to_apply(saved: Option<&Path>) -> String {
    match saved {
        Some(path) => format!("Nothing is changed yet: `rhumb plan apply {}` brings it about.", path.display()),
        None => "Nothing is changed yet: keep this plan with --save plan.json; `rhumb plan apply plan.json` brings it about.".to_owned(),
    }
}

fn output(path: &Path) -> Result<Output, Failure> {
    Output::at(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    (format!("{}: cannot be written: {error}", path.display()), 1)
}
