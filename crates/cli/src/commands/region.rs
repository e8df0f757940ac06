//! `rhumb region`: which regions hold what, and a region that is lost for good.

use super::reach::Reach;
use super::{fail, runtime};
use crate::http;
use clap::{Args as ClapArgs, Subcommand};
use rhumb_api::placement::{Placement, PlacementChange, PlacementStatus};
use std::process::ExitCode;

/// Declare regions lost.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  rhumb region lost ireland             what that means and risks; nothing is changed
  rhumb region lost ireland --yes       by way of the first site of the running demo that lives
  rhumb region lost ireland --yes --http http://10.0.1.5:8080

Exit code 0: it is decided; 1: it is not, or not known; 2: --yes is missing, and nothing was changed."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Subcommand)]
enum What {
    /// Have regions never be waited for again: they neither vote nor hold a copy, and what they alone knew counts as committed. Say so
    /// only of regions whose sites have stopped and whose folders are gone. A region that will be back is left alone: the others go on.
    Lost {
        /// The regions.
        #[arg(value_name = "REGION", required = true)]
        regions: Vec<String>,
        /// Do it.
        #[arg(long)]
        yes: bool,
    },
}

/// Says what it risks, and does it if that is wanted.
pub fn run(args: &Args) -> ExitCode {
    let What::Lost { regions, yes } = &args.what;
    eprintln!("{}", risk(regions));
    if !yes {
        return fail("nothing was changed; add --yes to go on", 2);
    }
    let work = async {
        let base = args.reach.base_among(|site| !regions.contains(&site.region))?;
        let placement = declare(&base, regions).await?;
        Ok::<_, String>(placement)
    };
    match runtime().and_then(|runtime| runtime.block_on(work).map_err(|error| (error, 1))) {
        Ok(placement) => println!("{}", text(&placement)),
        Err((error, code)) => return fail(error, code),
    }
    ExitCode::SUCCESS
}

/// What an operator risks, said before it is done.
fn risk(regions: &[String]) -> String {
    format!(
        "Declaring lost: {}.\n\
         - Transactions that only a lost region can decide count as committed, since their clients may have been told so. A client of \
         a lost region that was told of a conflict instead may find its transaction committed. Such a transaction may overwrite what others \
         have committed since it read: `rhumb status` shows how many are in doubt.\n\
         - A site of a lost region that still runs is not believed any more. Its clients may be told of an outcome that the others \
         do not have: make sure that it has stopped, and that its folders are never started again.",
        regions.join(", ")
    )
}

/// Has the placement without `regions` come next.
async fn declare(base: &str, regions: &[String]) -> Result<Placement, String> {
    let answer = http::get(base, "/placement").await.map_err(|error| error.to_string())?;
    if answer.status != 200 {
        return Err(format!("{base}/placement answers {}: {}", answer.status, answer.reason()));
    }
    let status: PlacementStatus =
        serde_json::from_str(&answer.body).map_err(|error| format!("{base}/placement is not that of a site: {error}"))?;
    let next = without(status.placement, regions);
    let answer = http::post(base, "/placement", &next).await.map_err(|error| format!("{error}; look at {base}/placement"))?;
    if answer.status != 200 {
        return Err(answer.reason());
    }
    serde_json::from_str(&answer.body).map_err(|error| format!("{base}/placement answers what is no placement: {error}"))
}

/// What is to come after `placement`: nobody waits for `regions`, nor reads or commits there.
fn without(placement: Placement, regions: &[String]) -> PlacementChange {
    let Placement { epoch, mut active, mut passive, mut coordinators, .. } = placement;
    active.retain(|region| !regions.contains(region));
    passive.retain(|region| !regions.contains(region));
    coordinators.retain(|_, named| !regions.contains(&named.read) && !regions.contains(&named.commit));
    PlacementChange { epoch, active, passive, coordinators, lost: regions.to_vec() }
}

fn text(placement: &Placement) -> String {
    let Placement { epoch, active, passive, lost, .. } = placement;
    let passive = if passive.is_empty() { String::new() } else { format!(", passive: {}", passive.join(", ")) };
    format!("placement {epoch} is decided. Active: {}{passive}, lost: {}", active.join(", "), lost.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_api::placement::Coordinators;
    use std::collections::BTreeMap;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_lost_region_neither_votes_nor_is_read_nor_runs_commits() {
        let by = |read: &str, commit: &str| Coordinators { read: read.to_owned(), commit: commit.to_owned() };
        let coordinators = BTreeMap::from([("d".to_owned(), by("c", "a")), ("e".to_owned(), by("a", "b"))]);
        let placement = Placement { epoch: 7, active: names(&["a", "b", "c"]), passive: names(&["d"]), coordinators, lost: names(&["z"]) };
        let next = without(placement, &names(&["c", "d"]));
        let kept = BTreeMap::from([("e".to_owned(), by("a", "b"))]);
        assert_eq!(
            next,
            PlacementChange { epoch: 7, active: names(&["a", "b"]), passive: vec![], coordinators: kept, lost: names(&["c", "d"]) }
        );
        let PlacementChange { epoch, active, passive, coordinators, lost } = next;
        assert_eq!(text(&Placement { epoch, active, passive, coordinators, lost }), "placement 7 is decided. Active: a, b, lost: c, d");
    }

    #[test]
    fn what_is_risked_names_the_regions() {
        assert!(risk(&names(&["ireland", "oregon"])).starts_with("Declaring lost: ireland, oregon."));
    }
}
