//! A running cluster as the planner sees it: the placement in force, and what its sites measured, by way of one site's HTTP
//! port.

use super::{Failure, usage};
use crate::http::{self, Answer};
use rhumb_api::placement::{self, Placement, PlacementChange, PlacementStatus};
use rhumb_core::{RttMatrix, Span};
use rhumb_plan::layout::{Coordinators, Layout};
use rhumb_plan::{Client, Matrix};

/// Where the placement is.
pub const PATH: &str = "/placement";
/// Fewer transactions a second, of all regions together, are no load to plan for: six in the last minute, or so.
const LOAD_MIN_PER_SECOND: f64 = 0.1;

/// What a site shows.
#[derive(Clone, Debug)]
pub struct Live {
    /// The address of the site.
    pub url: String,
    /// What it shows.
    pub shown: PlacementStatus,
}

impl Live {
    /// Asks the site at `url`. `Err`: why it does not show its placement.
    pub async fn look(url: &str) -> Result<Live, String> {
        let url = url.trim_end_matches('/');
        let answer = http::get(url, PATH).await.map_err(|error| error.to_string())?;
        Live::of(url, &answer)
    }

    fn of(url: &str, answer: &Answer) -> Result<Live, String> {
        let Answer { status, body } = answer;
        if *status != 200 {
            return Err(match answer.refusal() {
                Some(message) => format!("{url} does not show its placement: {message}"),
                None => format!("{url} is no site of Rhumb: it answers {status} to GET {PATH}; give the address of a site's HTTP port"),
            });
        }
        let foreign = |why: String| format!("{url} is no site of Rhumb, or one of another version: {why}");
        let shown: PlacementStatus = serde_json::from_str(body).map_err(|error| foreign(error.to_string()))?;
        let live = Live { url: url.to_owned(), shown };
        match live.unknown_region() {
            None if live.layout().active.is_empty() => Err(foreign("no region votes".to_owned())),
            None => Ok(live),
            Some(name) => Err(foreign(format!("`{name}` is placed and not among the regions"))),
        }
    }

    /// A region of the placement that the cluster does not have.
    fn unknown_region(&self) -> Option<String> {
        let layout = self.layout();
        let named = layout.coordinators.iter().flat_map(|(of, Coordinators { read, commit })| [of, read, commit]);
        let regions = self.regions();
        named.chain(&layout.active).chain(&layout.passive).find(|name| !regions.contains(name)).cloned()
    }

    /// The placement in force.
    pub fn layout(&self) -> Layout {
        layout(&self.shown.placement)
    }

    /// The names of the regions, in the order of the cluster.
    pub fn regions(&self) -> Vec<String> {
        self.shown.regions.iter().map(|region| region.name.clone()).collect()
    }

    /// That the cluster is not on its way elsewhere already.
    pub fn check_settled(&self) -> Result<(), Failure> {
        if self.shown.settled {
            return Ok(());
        }
        let epoch = self.shown.placement.epoch;
        Err((format!("the cluster is still moving into the placement of epoch {epoch}; ask again once it has settled"), 1))
    }

    /// The round trips that were measured. Every one is needed.
    pub fn rtt(&self) -> Result<RttMatrix, Failure> {
        let names = self.regions();
        let trip = |from: usize, to: usize| self.shown.rtt_ms.get(from)?.get(to).copied().flatten().and_then(Span::from_millis_f64);
        let pairs = (0..names.len()).flat_map(|from| (0..names.len()).map(move |to| (from, to)));
        let holes: Vec<(usize, usize)> = pairs.filter(|&(from, to)| trip(from, to).is_none()).collect();
        if let Some(&(from, to)) = holes.first() {
            let away =
                |region: &usize| !self.shown.regions[*region].reachable && holes.iter().any(|&(from, to)| from == *region || to == *region);
            let away: Vec<&str> = (0..names.len()).filter(away).map(|region| names[region].as_str()).collect();
            return Err((
                if away.is_empty() {
                    let (from, to) = (&names[from], &names[to]);
                    format!("the round trip from {from} to {to} has not been measured yet; ask again in some seconds, or give --rtt")
                } else {
                    format!("the round trips of {} are not known: it does not answer; start it again, or give --rtt", away.join(", "))
                },
                1,
            ));
        }
        Ok(RttMatrix::of(names, |from, to| trip(from, to).expect("there is no hole")))
    }

    /// What the clients of each region do: transactions a second, in thousandths, for their number.
    pub fn load(&self, matrix: &Matrix) -> Result<Vec<Client>, Failure> {
        let commits: f64 = self.shown.regions.iter().map(|region| region.commits_per_second).sum();
        if commits < LOAD_MIN_PER_SECOND {
            let reads: f64 = self.shown.regions.iter().map(|region| region.reads_per_second).sum();
            let measured = format!("{commits:.2} commits and {reads:.2} reads a second");
            return Err((
                format!("{} has not measured any load to plan for ({measured}); send load for a minute, or give --workload", self.url),
                1,
            ));
        }
        let milli = |rate: f64| (rate * 1e3).round() as u64;
        let clients = self.shown.regions.iter().filter(|region| milli(region.commits_per_second) > 0).map(|region| Client {
            region: matrix.region(&region.name).expect("the matrix is of the cluster's regions"),
            clients: milli(region.commits_per_second),
            reads_milli: milli(region.reads_per_second / region.commits_per_second),
        });
        Ok(clients.collect())
    }

    /// That every region that may be chosen answers, so that it can be moved to.
    pub fn check_reachable(&self, matrix: &Matrix, candidates: &[usize]) -> Result<(), Failure> {
        let answers = |name: &str| self.shown.regions.iter().any(|region| region.name == name && region.reachable);
        let away: Vec<&str> = candidates.iter().map(|&region| matrix.names()[region].as_str()).filter(|name| !answers(name)).collect();
        if away.is_empty() {
            return Ok(());
        }
        let away = away.join(",");
        Err((
            format!("no replica can be moved to {away}, which does not answer; start it again, or plan without it: --forbidden {away}"),
            1,
        ))
    }

    /// The regions of a matrix of the user's that the cluster has, in the order of the cluster.
    pub fn restrict(&self, given: &RttMatrix, option: &str) -> Result<RttMatrix, Failure> {
        let names = self.regions();
        let missing: Vec<&str> = names.iter().map(String::as_str).filter(|name| !given.names().iter().any(|known| known == name)).collect();
        if missing.is_empty() {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Ok(given.restrict(&names).expect("it has them all"));
        }
        Err(usage(format!("{option}: has no round trips for {}, which {} has", missing.join(", "), self.url)))
    }
}

/// A placement as a site shows it.
pub fn layout(named: &Placement) -> Layout {
    let coordinators = named
        .coordinators
        .iter()
        .map(|(of, placement::Coordinators { read, commit })| (of.clone(), Coordinators { read: read.clone(), commit: commit.clone() }));
    Layout {
        active: named.active.iter().cloned().collect(),
        passive: named.passive.iter().cloned().collect(),
        coordinators: coordinators.collect(),
    }
}

/// The change to this placement, to come after that of `epoch`.
pub fn change(epoch: u64, layout: &Layout) -> PlacementChange {
    let coordinators = layout
        .coordinators
        .iter()
        .map(|(of, Coordinators { read, commit })| (of.clone(), placement::Coordinators { read: read.clone(), commit: commit.clone() }));
    PlacementChange {
        epoch,
        active: layout.active.iter().cloned().collect(),
        passive: layout.passive.iter().cloned().collect(),
        coordinators: coordinators.collect(),
        lost: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// What a site of three regions shows.
    fn shown() -> Value {
        json!({
            "epoch": 4, "active": ["a", "b"], "passive": ["c"], "coordinators": {"c": {"read": "a", "commit": "b"}}, "settled": true,
            "regions": [
                {"name": "a", "commits_per_second": 2.0, "reads_per_second": 3.0, "reachable": true},
                {"name": "b", "commits_per_second": 0.0, "reads_per_second": 0.0, "reachable": true},
                {"name": "c", "commits_per_second": 0.5, "reads_per_second": 0.0, "reachable": true},
            ],
            "rtt_ms": [[0.0, 10.0, 20.5], [10.0, 0.0, 30.0], [20.5, 30.0, 0.0]],
        })
    }

    fn live(shown: &Value) -> Live {
        Live::of("http://h:1", &Answer { status: 200, body: shown.to_string() }).expect("a site")
    }

    #[test]
    fn what_was_measured_is_what_is_planned_for() {
        let live = live(&shown());
        let PlacementChange { epoch, active, passive, coordinators, lost } = change(4, &live.layout());
        assert_eq!(Placement { epoch, active, passive, coordinators, lost }, live.shown.placement);
        let rtt = live.rtt().expect("whole");
        assert_eq!(rtt.to_csv(), "region,a,b,c\na,0,10,20.5\nb,10,0,30\nc,20.5,30,0\n");
        let matrix = Matrix::try_from(&rtt).expect("three regions");
        let client = |region, clients, reads_milli| Client { region, clients, reads_milli };
        assert_eq!(live.load(&matrix), Ok(vec![client(0, 2_000, 1_500), client(2, 500, 0)]));
        assert_eq!((live.check_settled(), live.check_reachable(&matrix, &[0, 1, 2])), (Ok(()), Ok(())));
        let given = RttMatrix::parse("m.csv", "region,c,x,b,a\nc,0,9,3,2\nx,9,0,9,9\nb,3,9,0,1\na,2,9,1,0\n").expect("valid");
        assert_eq!(live.restrict(&given, "--rtt m.csv").expect("all are there").to_csv(), "region,a,b,c\na,0,1,2\nb,1,0,3\nc,2,3,0\n");
        let given = RttMatrix::parse("m.csv", "region,a\na,0\n").expect("valid");
        let line = "--rtt m.csv: has no round trips for b, c, which http://h:1 has";
        assert_eq!(live.restrict(&given, "--rtt m.csv"), Err((line.to_owned(), 2)));
    }

    #[test]
    fn what_cannot_be_planned_from_says_why() {
        let with = |pointer: &str, value: Value| {
            let mut shown = shown();
            *shown.pointer_mut(pointer).expect("it is there") = value;
            live(&shown)
        };
        let failure = |line: &str| (line.to_owned(), 1);
        let line = "the cluster is still moving into the placement of epoch 4; ask again once it has settled";
        assert_eq!(with("/settled", json!(false)).check_settled(), Err(failure(line)));
        let mut hole = with("/rtt_ms/0/2", json!(null));
        let line = "the round trip from a to c has not been measured yet; ask again in some seconds, or give --rtt";
        assert_eq!(hole.rtt(), Err(failure(line)));
        hole.shown.regions[2].reachable = false;
        let line = "the round trips of c are not known: it does not answer; start it again, or give --rtt";
        assert_eq!(hole.rtt(), Err(failure(line)));
        let away = with("/regions/1/reachable", json!(false));
        let matrix = Matrix::try_from(&away.rtt().expect("measured before")).expect("three regions");
        let line = "no replica can be moved to b, which does not answer; start it again, or plan without it: --forbidden b";
        assert_eq!(away.check_reachable(&matrix, &[0, 1, 2]), Err(failure(line)));
        assert_eq!(away.check_reachable(&matrix, &[0, 2]), Ok(()));
        let mut idle = with("/regions/0/commits_per_second", json!(0.01));
        idle.shown.regions[2].commits_per_second = 0.0;
        let line = "http://h:1 has not measured any load to plan for (0.01 commits and 3.00 reads a second); \
                    send load for a minute, or give --workload";
        assert_eq!(idle.load(&matrix), Err(failure(line)));
    }

    #[test]
    fn what_is_no_site_is_told_so() {
        let of = |status, body: &str| Live::of("http://h:1", &Answer { status, body: body.to_owned() }).expect_err("no site");
        assert_eq!(
            of(404, "not here"),
            "http://h:1 is no site of Rhumb: it answers 404 to GET /placement; give the address of a site's HTTP port"
        );
        assert_eq!(
            of(503, r#"{"error":{"code":"UNAVAILABLE","message":"the site is busy"}}"#),
            "http://h:1 does not show its placement: the site is busy"
        );
        let unknown = shown().to_string().replace(r#""passive":["c"]"#, r#""passive":["mars"]"#);
        assert!(of(200, &unknown).ends_with("`mars` is placed and not among the regions"));
        assert!(of(200, "<html>").starts_with("http://h:1 is no site of Rhumb, or one of another version: expected value"));
    }
}
