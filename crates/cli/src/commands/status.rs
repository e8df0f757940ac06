//! `rhumb status`: how the sites of a cluster are, as each of them sees it.

use super::demo::plural;
use super::{fail, runtime};
use crate::http;
use crate::running::{self, Running};
use clap::Args as ClapArgs;
use futures::future::join_all;
use rhumb_lab::bench::table::Table;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;

/// What is shown for what is not known.
const NONE: &str = "–";

/// Show how the sites of a cluster are: ready or why not, and whom they reach.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb status                                   the running demo
  rhumb status --http http://127.0.0.1:8080      one site; may be repeated
  rhumb status --json

Exit code 0: all sites are ready; 1: some are not, or do not answer.")]
pub struct Args {
    /// The running demo, by its state file [default: rhumb-demo.json in $XDG_RUNTIME_DIR or the temporary folder].
    #[arg(long, value_name = "FILE", require_equals = true, conflicts_with = "http")]
    demo: Option<Option<PathBuf>>,
    /// The HTTP address of a site; may be repeated.
    #[arg(long, value_name = "URL")]
    http: Vec<String>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// What `GET /status` shows, as far as it is used here.
#[derive(Deserialize, Serialize)]
struct SiteStatus {
    site: String,
    ready: bool,
    reason: Option<String>,
    regions: Vec<RegionStatus>,
    peers: Vec<PeerStatus>,
}

#[derive(Deserialize, Serialize)]
struct RegionStatus {
    name: String,
    local: bool,
    reachable: u32,
    floor_ms: Option<f64>,
}

#[derive(Deserialize, Serialize)]
struct PeerStatus {
    connected: bool,
}

/// A site, and what came of asking it.
#[derive(Serialize)]
struct Asked {
    site: String,
    http: String,
    status: Option<SiteStatus>,
    error: Option<String>,
}

/// Asks and shows.
pub fn run(args: &Args) -> ExitCode {
    let sites = match sites(args) {
        Ok(sites) => sites,
        Err(error) => return fail(error, 1),
    };
    let asked = match runtime() {
        Ok(runtime) => runtime.block_on(join_all(sites.into_iter().map(ask))),
        Err((error, code)) => return fail(error, code),
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&asked).expect("a status holds nothing that JSON cannot"));
    } else {
        show(&asked);
    }
    let all_ready = asked.iter().all(|site| site.status.as_ref().is_some_and(|status| status.ready));
    if all_ready { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The sites to ask: a name and an address each.
fn sites(args: &Args) -> Result<Vec<(String, String)>, running::RunningError> {
    if !args.http.is_empty() {
        return Ok(args.http.iter().map(|http| (http.clone(), http.clone())).collect());
    }
    let path = args.demo.clone().flatten().unwrap_or_else(running::default_path);
    Ok(Running::find(&path)?.sites.iter().map(|site| (site.to_string(), site.http.clone())).collect())
}

async fn ask((site, http): (String, String)) -> Asked {
    let status = match http::get(&http, "/status").await {
        Err(error) => Err(error.to_string()),
        Ok(answer) if answer.status != 200 => Err(format!("{http}/status answers {}: {}", answer.status, answer.body)),
        Ok(answer) => serde_json::from_str(&answer.body).map_err(|error| format!("{http}/status is not that of a site: {error}")),
    };
    match status {
        Ok(status) => Asked { site, http, status: Some(status), error: None },
        Err(error) => Asked { site, http, status: None, error: Some(error) },
    }
}

fn show(asked: &[Asked]) {
    let mut table = Table::new("site").group("", &["ready", "regions reached", "links up", "commit floor ms"]);
    for site in asked {
        table.row(match &site.status {
            None => [&site.site, "no answer", NONE, NONE, NONE].map(str::to_owned).into(),
            Some(status) => vec![
                status.site.clone(),
                if status.ready { "yes" } else { "no" }.to_owned(),
                format!("{}/{}", status.regions.iter().filter(|region| region.reachable > 0).count(), status.regions.len()),
                format!("{}/{}", status.peers.iter().filter(|peer| peer.connected).count(), status.peers.len()),
                status
                    .regions
                    .iter()
                    .find(|region| region.local)
                    .and_then(|region| region.floor_ms)
                    .map_or(NONE.to_owned(), |floor| format!("{floor:.1}")),
            ],
        });
    }
    print!("{table}");
    let reasons = asked.iter().filter_map(|site| {
        let reason = site.error.as_ref().or_else(|| site.status.as_ref()?.reason.as_ref())?;
        Some(format!("{}: {reason}", site.site))
    });
    let reasons: Vec<String> = reasons.collect();
    if !reasons.is_empty() {
        println!("\n{} not ready", plural(reasons.len(), "site"));
        reasons.iter().for_each(|reason| println!("  {reason}"));
    }
}
