//! `rhumb status`: how the sites of a cluster are, as each of them sees it.

use super::demo::plural;
use super::{fail, runtime};
use crate::http;
use crate::running::{self, Running};
use clap::Args as ClapArgs;
use futures::future::join_all;
use rhumb_api::quorums::QuorumRole;
use rhumb_api::status::{QuorumStatus, QuotaStatus, RegionStatus, Status, TransactionStatus};
use rhumb_display::Table;
use serde::Serialize;
use std::fmt::Write;
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

/// A site, and what came of asking it.
#[derive(Serialize)]
struct Asked {
    site: String,
    http: String,
    status: Option<Status>,
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
        print!("{}", shown(&asked));
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

/// What people see: a table, then what is wrong.
fn shown(asked: &[Asked]) -> String {
    let mut table = Table::new("site")
        .group("", &["role", "ready", "regions reached", "links up", "commit floor ms"])
        .group("transactions", &["open", "prepared", "in doubt"])
        .group("", &["safe lag ms"])
        .group("quotas", &["count", "waiting", "moving"]);
    asked.iter().for_each(|site| table.row(row(site)));
    let reasons = asked.iter().filter_map(|site| {
        let reason = site.error.as_ref().or_else(|| site.status.as_ref()?.reason.as_ref())?;
        Some(format!("{}: {reason}", site.site))
    });
    let reasons: Vec<String> = reasons.collect();
    let mut text = table.to_string();
    coordinators(asked).iter().for_each(|line| text += &format!("\n{line}\n"));
    quorums(asked).iter().for_each(|line| text += &format!("\n{line}\n"));
    if !reasons.is_empty() {
        let _ = writeln!(text, "\n{} not ready", plural(reasons.len(), "site"));
        reasons.iter().for_each(|reason| text += &format!("  {reason}\n"));
    }
    if let Some(warning) = in_doubt(asked) {
        let _ = writeln!(text, "\n{warning}");
    }
    text
}

fn row(site: &Asked) -> Vec<String> {
    let Some(status) = &site.status else {
        return [&site.site, NONE, "no answer", NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE].map(str::to_owned).into();
    };
    let millis = |millis: Option<f64>| millis.map_or(NONE.to_owned(), |millis| format!("{millis:.1}"));
    let transactions = status.transactions.as_ref();
    let count = |of: fn(&TransactionStatus) -> usize| transactions.map_or(NONE.to_owned(), |transactions| of(transactions).to_string());
    let quotas = |of: fn(&QuotaStatus) -> usize| status.quotas.as_ref().map_or(NONE.to_owned(), |quotas| of(quotas).to_string());
    let local = status.regions.iter().find(|region| region.local);
    vec![
        status.site.clone(),
        local.map_or(NONE.to_owned(), |region| region.role.to_string()),
        if status.ready { "yes" } else { "no" }.to_owned(),
        format!("{}/{}", status.regions.iter().filter(|region| region.reachable > 0).count(), status.regions.len()),
        format!("{}/{}", status.peers.iter().filter(|peer| peer.connected).count(), status.peers.len()),
        millis(local.and_then(|region| region.floor_ms)),
        count(|transactions| transactions.open),
        count(|transactions| transactions.prepared),
        count(|transactions| transactions.in_doubt),
        millis(transactions.and_then(|transactions| transactions.safe_lag_ms)),
        quotas(|quotas| quotas.quotas),
        quotas(|quotas| quotas.waiting),
        quotas(|quotas| quotas.redistributing),
    ]
}

/// Where the clients of a region read and commit, of those for which that is said; a line each.
fn coordinators(asked: &[Asked]) -> Vec<String> {
    let regions = asked.iter().find_map(|site| Some(&site.status.as_ref()?.regions)).into_iter().flatten();
    let line = |region: &RegionStatus| {
        let (read, commit) = region.reads_at.as_ref().zip(region.commits_at.as_ref())?;
        Some(format!("clients of {} read at {read} and commit at {commit}", region.name))
    };
    regions.filter_map(line).collect()
}

/// Which sites are cores of databases of protocol quad, by what those say who are in the latest epoch.
fn quorums(asked: &[Asked]) -> Option<String> {
    let said: Vec<(&str, &QuorumStatus)> = asked
        .iter()
        .filter_map(|site| site.status.as_ref().and_then(|status| Some((&status.site[..], status.quorums.as_ref()?))))
        .collect();
    let latest = said.iter().map(|(_, quorums)| quorums).max_by_key(|quorums| quorums.epoch)?;
    let cores: Vec<&str> =
        said.iter().filter(|(_, own)| own.epoch == latest.epoch && own.role == QuorumRole::Core).map(|(site, _)| *site).collect();
    let behind: Vec<&str> =
        said.iter().filter(|(_, own)| own.epoch < latest.epoch || !own.caught_up || own.sealed).map(|(site, _)| *site).collect();
    let behind = if behind.is_empty() { String::new() } else { format!("; not there yet: {}", behind.join(", ")) };
    Some(format!("quorums of epoch {} ({}): cores {}{behind}", latest.epoch, latest.why, cores.join(", ")))
}

/// What commits in doubt mean, if there are any.
fn in_doubt(asked: &[Asked]) -> Option<String> {
    let waits = |site: &&Asked| site.status.as_ref().and_then(|status| status.transactions.as_ref()).is_some_and(|some| some.in_doubt > 0);
    let sites: Vec<&str> = asked.iter().filter(waits).map(|site| site.site.as_str()).collect();
    (!sites.is_empty()).then(|| {
        format!(
            "in doubt at {}: commits whose outcome hangs on the vote of a region that does not answer; the rows they write stay locked until it does",
            sites.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of a site whose actor says `transactions`.
    fn site(name: &str, transactions: &str) -> Asked {
        let answer = format!(
            r#"{{"cluster":"test","site":"{name}","ready":true,"reason":null,"regions":[
                    {{"name":"a","local":true,"sites":1,"reachable":1,"rtt_ms":0.0,"floor_ms":2.5,"role":"active","reads_at":null,"commits_at":null}},
                    {{"name":"b","local":false,"sites":1,"reachable":0,"rtt_ms":null,"floor_ms":null,"role":"none","reads_at":"a","commits_at":"c"}}],
                "peers":[
                    {{"site":"b/0","address":"h:1","connected":true,"rtt_ms":2.5,"heard_ms_ago":1,"clock_ahead_ms":0.1,"clock_apart":false}},
                    {{"site":"c/0","address":"h:2","connected":false,"rtt_ms":null,"heard_ms_ago":null,"clock_ahead_ms":null,"clock_apart":false}}],
                "transactions":{transactions},
                "quotas":{{"quotas":3,"waiting":12,"redistributing":1,"lost":0,"unsettled":0}},"epochs":null,"quorums":null}}"#
        );
        let status = serde_json::from_str(&answer).expect("what a site shows");
        Asked { site: name.to_owned(), http: String::new(), status: Some(status), error: None }
    }

    #[test]
    fn a_commit_in_doubt_is_counted_and_explained() {
        let quiet = site("a/0", r#"{"open":4,"prepared":1,"in_doubt":0,"safe_us":5,"safe_lag_ms":75.25,"reachable_regions":["a"]}"#);
        let waiting = site("b/0", r#"{"open":0,"prepared":3,"in_doubt":2,"safe_us":null,"safe_lag_ms":null,"reachable_regions":[]}"#);
        let silent = Asked { site: "c/0".to_owned(), http: String::new(), status: None, error: Some("nobody there".to_owned()) };
        let expected = [
            "                                                                     transactions ────────────               quotas ───────────────",
            "site    role      ready  regions reached  links up  commit floor ms   open  prepared  in doubt  safe lag ms  count  waiting  moving",
            "───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────",
            "a/0   active        yes              1/2       1/2              2.5      4         1         0         75.2      3       12       1",
            "a/1   active        yes              1/2       1/2              2.5      –         –         –            –      3       12       1",
            "b/0   active        yes              1/2       1/2              2.5      0         3         2            –      3       12       1",
            "c/0        –  no answer                –         –                –      –         –         –            –      –        –       –",
            "",
            "clients of b read at a and commit at c",
            "",
            "1 site not ready",
            "  c/0: nobody there",
            "",
            "in doubt at b/0: commits whose outcome hangs on the vote of a region that does not answer; the rows they write stay locked until it does",
            "",
        ];
        assert_eq!(shown(&[quiet, site("a/1", "null"), waiting, silent]), expected.join("\n"));
    }

    #[test]
    fn the_cores_of_the_latest_epoch_are_named_and_who_is_not_there_yet() {
        let with = |name: &str, epoch: u64, role: QuorumRole| {
            let mut asked = site(name, "null");
            let (cores, why) = ("2".to_owned(), "a/0 is silent".to_owned());
            let quorums = QuorumStatus { epoch, role, cores, caught_up: true, sealed: false, load: Some(0.5), why };
            asked.status.as_mut().expect("it answers").quorums = Some(quorums);
            asked
        };
        let sites = [
            with("a/0", 3, QuorumRole::Core),
            with("b/0", 4, QuorumRole::Core),
            with("c/0", 4, QuorumRole::Core),
            with("d/0", 4, QuorumRole::Slave),
        ];
        assert_eq!(quorums(&sites).as_deref(), Some("quorums of epoch 4 (a/0 is silent): cores b/0, c/0; not there yet: a/0"));
        assert_eq!(quorums(&[site("a/0", "null")]), None);
    }

    #[test]
    fn nothing_is_said_of_doubt_where_there_is_none() {
        assert_eq!(
            in_doubt(&[
                site("a/0", r#"{"open":4,"prepared":1,"in_doubt":0,"safe_us":5,"safe_lag_ms":75.25,"reachable_regions":["a"]}"#),
                site("b/0", "null")
            ]),
            None
        );
    }
}
