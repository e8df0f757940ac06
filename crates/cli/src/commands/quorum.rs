//! `rhumb quorum`: the quorums of databases of protocol `quad`, as one site sees them, and what would change now; and who takes part.

use super::reach::Reach;
use super::{fail, runtime};
use crate::http;
use clap::{Args as ClapArgs, Subcommand};
use rhumb_api::quorums::{QuorumChange, QuorumPlan, QuorumRole, QuorumSite, Quorums};
use rhumb_display::Table;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

/// What is shown for what is not known.
const NONE: &str = "–";

/// A site that asked to join is a member by then, unless the others do not hear it or plan nothing.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is asked whether it is.
const JOIN_POLL: Duration = Duration::from_millis(250);

/// Look at the quorums of databases of protocol quad, and say who takes part.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  rhumb quorum explain                                by way of the first site of the running demo that lives
  rhumb quorum explain --site ireland                 by way of Ireland
  rhumb quorum explain --http http://127.0.0.1:8080   of a cluster that is no demo
  rhumb quorum explain --json
  rhumb quorum leave ireland                          Ireland is to be stopped for long; the others go on without it
  rhumb quorum leave ireland --lost                   it is gone for good: nobody waits for its word
  rhumb quorum leave ireland oregon --lost            two are, and the others cannot go on with either
  rhumb quorum join ireland

What is shown is one site's view: what it heard of the others in the last period. The first member that is up acts on its own.
`CREATE DATABASE shop WITH (protocol = 'quad', cores = 3)` says how many cores there are, `ALTER DATABASE shop SET cores = 2` changes it."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    reach: Reach,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Who is a core and why, what the next period is expected to bring, and what a change would gain and cost.
    Explain,
    /// Have sites take part no more: they are in nobody's quorums, and serve nothing until they join again. Returns once that is decided.
    Leave {
        /// The sites; without a shard it is 0.
        #[arg(value_name = "REGION[/SHARD]", required = true)]
        leaves: Vec<String>,
        /// They will not come back with what they had on their disks: what they know is not waited for. Say so only of sites that have
        /// stopped: of one that still runs, clients may read what is old, and be told that something is committed which the others
        /// will not have. What clients were told before stays as long as a majority of all sites, or all slaves and a core, are left.
        /// Name all that are lost: a change waits for everybody else.
        #[arg(long)]
        lost: bool,
    },
    /// Have a site of the demo, or the one with this HTTP address, take part again. Returns once it does.
    Join {
        /// The site of the demo.
        #[arg(value_name = "REGION[/SHARD]", required_unless_present = "http", conflicts_with = "http")]
        joins: Option<String>,
    },
}

/// Asks and shows.
pub fn run(args: &Args) -> ExitCode {
    let work = async {
        match &args.what {
            What::Explain => {}
            What::Leave { leaves, lost } => return leave(args, leaves, *lost).await,
            What::Join { joins } => return join(args, joins.as_deref()).await,
        }
        ask(&args.reach.base()?).await
    };
    let asked = runtime().and_then(|runtime| runtime.block_on(work).map_err(|error| (error, 1)));
    match asked {
        Ok(shown) if args.json => println!("{}", serde_json::to_string_pretty(&shown).expect("plain data")),
        Ok(shown) => print!("{}", text(&shown)),
        Err((error, code)) => return fail(error, code),
    }
    ExitCode::SUCCESS
}

async fn ask(base: &str) -> Result<Quorums, String> {
    let answer = http::get(base, "/quorums").await.map_err(|error| error.to_string())?;
    if answer.status != 200 {
        return Err(format!("{base}/quorums answers {}: {}", answer.status, answer.reason()));
    }
    serde_json::from_str(&answer.body).map_err(|error| format!("{base}/quorums is not that of a site: {error}"))
}

/// Has `leaves` be members no more, and returns what is then.
async fn leave(args: &Args, leaves: &[String], lost: bool) -> Result<Quorums, String> {
    let sites: Vec<String> = leaves.iter().map(|name| full_name(name)).collect();
    let base = match args.reach.base_among(|site| !sites.contains(&site.to_string())) {
        Err(_) if args.reach.base().is_ok() => return Err("a site does not take itself out; name another one with --site".to_owned()),
        base => base?,
    };
    if lost {
        eprintln!("{}", risk(&sites));
    }
    tell(&base, &QuorumChange::Leave { sites, lost }).await?;
    ask(&base).await
}

/// The site that is meant by `name`, which may lack its shard.
fn full_name(name: &str) -> String {
    let (region, shard) = name.rsplit_once(['.', '/']).filter(|(_, shard)| shard.parse::<u16>().is_ok()).unwrap_or((name, "0"));
    format!("{region}/{shard}")
}

/// What an operator risks who declares sites lost, said before it is done.
fn risk(sites: &[String]) -> String {
    format!(
        "declaring lost: {}. If one of them still runs, its clients may read what is old, and be told that something is committed \
         which the others will not have.",
        sites.join(", ")
    )
}

/// Has `joins` ask to be a member, and waits until it is one.
async fn join(args: &Args, joins: Option<&str>) -> Result<Quorums, String> {
    let base = match joins {
        Some(joins) => args.reach.alive(Some(joins), |_| true)?,
        None => args.reach.base()?,
    };
    tell(&base, &QuorumChange::Join).await?;
    let joined = async {
        loop {
            let shown = ask(&base).await?;
            if shown.sites.iter().any(|site| site.site == shown.site && site.role != QuorumRole::None) {
                return Ok(shown);
            }
            tokio::time::sleep(JOIN_POLL).await;
        }
    };
    let late = || format!("the site asked, and is no member after {} s; it goes on asking", JOIN_TIMEOUT.as_secs());
    tokio::time::timeout(JOIN_TIMEOUT, joined).await.unwrap_or_else(|_| Err(late()))
}

async fn tell(base: &str, change: &QuorumChange) -> Result<(), String> {
    let answer = http::post(base, "/quorums", change).await.map_err(|error| error.to_string())?;
    if answer.status == 200 { Ok(()) } else { Err(answer.reason()) }
}

/// What people see: a table of the sites, then the plan in words.
fn text(shown: &Quorums) -> String {
    let mut out = String::new();
    let Quorums { site, epoch, cores, why, planner, sealed, .. } = shown;
    let _ = writeln!(out, "epoch {epoch} as {site} sees it: {why}; cores = {cores}");
    if *sealed {
        let _ = writeln!(out, "the quorums are being changed now");
    }
    let mut table = Table::new("site")
        .group("", &["role", "load", "expected", "alpha", "score", "has all"])
        .group("quorums ", &["reads ask", "writes ask"]);
    for site in &shown.sites {
        table.row(row(site));
    }
    let _ = writeln!(out, "\n{table}");
    let planner = planner.as_deref().unwrap_or(NONE);
    match &shown.plan {
        Some(plan) => out.push_str(&in_words(plan, planner)),
        None => out.push_str("the quorums stay as they are: nothing is measured\n"),
    }
    out
}

fn row(site: &QuorumSite) -> Vec<String> {
    let percent = |share: Option<f64>| share.map_or(NONE.to_owned(), |share| format!("{:.0} %", share * 100.0));
    let number = |number: Option<f64>, digits: usize| number.map_or(NONE.to_owned(), |number| format!("{number:.digits$}"));
    let listed = |names: &[String]| if names.is_empty() { NONE.to_owned() } else { names.join(" ") };
    let role = if site.up { site.role.to_string() } else { format!("{}, silent", site.role) };
    vec![
        site.site.clone(),
        role,
        percent(site.load),
        percent(site.load_expected),
        number(site.alpha, 1),
        number(site.score, 3),
        if site.caught_up { "yes" } else { "no" }.to_owned(),
        listed(&site.reads),
        listed(&site.writes),
    ]
}

fn in_words(plan: &QuorumPlan, planner: &str) -> String {
    let mut out = String::new();
    let says = if plan.due { "a change is due, and" } else { "nothing changes:" };
    let _ = writeln!(out, "{says} {}", if plan.due { format!("{planner} brings it about: {}", plan.why) } else { plan.why.clone() });
    let listed = |what: &str, names: &[String]| if names.is_empty() { String::new() } else { format!("; {what}: {}", names.join(", ")) };
    let _ = writeln!(
        out,
        "cores by what is measured: {}{}{}{}",
        plan.cores.join(", "),
        listed("would become one", &plan.promoted),
        listed("would be none", &plan.demoted),
        listed("would ask others", &plan.reassigned)
    );
    let _ = writeln!(
        out,
        "mean score of all quorums: {:.3} now, {:.3} then, a gain of {:.3}",
        plan.mean_score, plan.mean_score_then, plan.gain
    );
    let _ = writeln!(
        out,
        "cost of having the promoted take over what they lack: {:.3}; a gain counts above that, and above {:.3}",
        plan.cost, plan.gain_min
    );
    if let Some(kappa) = &plan.kappa {
        let _ = writeln!(out, "as many cores as are needed: {kappa}");
    }
    out
}
