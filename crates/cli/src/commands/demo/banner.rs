//! What a demo says once it serves: where to connect, how fast commits can be, and what to try.

use super::folder::{SitePlan, describe, plural};
use super::network::Network;
use console::style;
use rhumb_commit::placement::Placement;
use rhumb_core::{RegionId, RttMatrix, Span, Topology};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The width that a banner keeps to.
const WIDTH: usize = 100;
/// Between columns.
const GAP: usize = 2;

/// What a banner tells.
pub struct Banner<'a> {
    /// The network.
    pub network: &'a Network,
    /// Which regions hold what.
    pub placement: &'a Placement,
    /// All sites, region by region.
    pub sites: Vec<&'a SitePlan>,
    /// How long the start took.
    pub took: Duration,
    /// Where data and logs are.
    pub data: &'a Path,
    /// True if they stay when the demo ends.
    pub kept: bool,
    /// How to address this demo if another state file than usual was asked for.
    pub state: Option<&'a Path>,
}

impl Banner<'_> {
    /// The whole of it, styled if standard output is a terminal.
    pub fn text(&self) -> String {
        [self.title(), self.addresses(), self.round_trips(), self.to_try(), self.end()].join("\n")
    }

    fn title(&self) -> String {
        let regions = plural(self.network.regions.len(), "region");
        let each = if self.network.sites_per_region == 1 { String::new() } else { format!(" of {} sites", self.network.sites_per_region) };
        let wan = if self.network.matrix.is_some() { self.network.name.as_str() } else { "no emulated wide area" };
        let took = self.took.as_secs_f64();
        format!("\n{} {regions}{each} · {wan} · ready in {took:.1} s\n", style("Rhumb").bold().cyan())
    }

    fn addresses(&self) -> String {
        let name = |site: &SitePlan| if self.network.sites_per_region == 1 { site.region.clone() } else { site.name() };
        let rows: Vec<[String; 5]> = self
            .sites
            .iter()
            .enumerate()
            .map(|(index, site)| {
                let floor = self.network.floor(index / usize::from(self.network.sites_per_region), self.placement.voters);
                [
                    name(site),
                    floor.map_or(String::new(), |floor| format!("{} ms", millis(floor))),
                    if site.secure.is_some() { format!("localhost:{}", site.ports.sql) } else { site.pg() },
                    format!(":{}", site.ports.resp),
                    site.http(),
                ]
            })
            .collect();
        let titles = ["region", if self.network.matrix.is_some() { "commit floor" } else { "" }, "PostgreSQL", "Redis", "HTTP"];
        let width = |column: usize| rows.iter().map(|row| row[column].len()).chain([titles[column].len()]).max().unwrap_or(0);
        let (names, floors, pgs, resps) = (width(0), width(1), width(2), width(3));
        let line = |[name, floor, pg, resp, http]: [&str; 5]| {
            format!("{name:<names$}  {floor:>floors$}  {pg:<pgs$}  {resp:<resps$}  {http}").trim_end().to_owned()
        };
        let mut text = format!("{}\n", style(line(titles)).dim());
        for row in &rows {
            writeln!(text, "{}", line(row.each_ref().map(String::as_str))).expect("a string takes all");
        }
        if self.placement.voters.len() < self.network.regions.len() {
            let topology = Topology::new(self.network.regions.clone(), self.network.sites_per_region);
            let others = if self.placement.copies().len() < self.network.regions.len() { "; the others hold no copy" } else { "" };
            writeln!(text, "\n{}{others}", describe(self.placement, &topology)).expect("a string takes all");
        }
        text
    }

    fn round_trips(&self) -> String {
        match &self.network.matrix {
            Some(matrix) if matrix.names().len() > 1 => table(matrix).unwrap_or_else(|| summary(matrix)),
            _ => "Messages between regions take only the time of the loopback.\n".to_owned(),
        }
    }

    fn to_try(&self) -> String {
        let (first, resp) = (self.sites[0].pg(), self.sites[0].ports.resp);
        let middle = &self.sites[self.sites.len() / 2].region;
        let other = self.sites[self.sites.len() - 1].ports.resp;
        let (demo, bench) = match self.state {
            None => (String::new(), "--demo".to_owned()),
            Some(state) => (format!(" --demo {}", state.display()), format!("--demo={}", state.display())),
        };
        let access = self.sites[0].secure.as_ref();
        let (quote, redis) = access.map_or(("", String::new()), |access| ("'", format!(" {}", access.redis())));
        let mut lines = vec![
            (format!("psql {quote}{first}{quote}"), "any client of PostgreSQL will do"),
            ("  CREATE TABLE greeting (id INT PRIMARY KEY, words TEXT);".to_owned(), ""),
            ("  INSERT INTO greeting VALUES (1, 'hello');".to_owned(), "commits in one wide-area round trip"),
            ("  SHOW REGIONS;".to_owned(), "who is reachable, and how far away"),
            (format!("redis-cli -p {resp}{redis} QUOTA.CREATE vm 5000"), "a limit for all regions together"),
            (format!("redis-cli -p {other}{redis} ACQUIRE vm 1"), "answered in the region, on its disk"),
            (format!("rhumb quota ls {bench}"), "what is left of it"),
            (format!("rhumb chaos kill {middle}{demo}"), "the others go on"),
            (format!("rhumb chaos restart {middle}{demo}"), "it returns and catches up"),
            (format!("rhumb bench init bank {bench}"), "load a workload"),
            (format!("rhumb bench run bank {bench}"), "and measure it against the floor"),
            ("Ctrl-C".to_owned(), "stops everything"),
        ];
        if let Some(access) = access {
            lines.insert(4, (format!("curl {} {}/status", access.curl(), self.sites[0].http()), "the site as it sees itself"));
            // It does not encrypt.
            lines.retain(|(what, _)| !what.starts_with("rhumb bench"));
        }
        // A line that is longer than most stands by itself.
        let beside = lines.iter().filter(|(what, why)| !why.is_empty() && what.len() <= WIDTH / 2);
        let width = beside.map(|(what, _)| what.len()).max().unwrap_or(0);
        let mut text = format!("{}\n", style("Try").dim());
        for (what, why) in lines {
            let line = if why.is_empty() { what } else { format!("{what:<width$}  {}", style(why).dim()) };
            writeln!(text, "  {line}").expect("a string takes all");
        }
        text
    }

    fn end(&self) -> String {
        let fate = if self.kept { "stay when the demo ends" } else { "go when the demo ends; --data DIR keeps them" };
        format!("Data and logs are in {} and {fate}.\n", self.data.display())
    }
}

/// The matrix, if it fits.
fn table(matrix: &RttMatrix) -> Option<String> {
    const TITLE: &str = "round trips, ms";
    let names = matrix.names();
    let first = names.iter().map(String::len).chain([TITLE.len()]).max()?;
    let widths: Vec<usize> = names.iter().map(|name| name.len().max(5)).collect();
    if first + widths.iter().map(|width| GAP + width).sum::<usize>() > WIDTH {
        return None;
    }
    let cells = |cells: &[String]| cells.iter().zip(&widths).map(|(cell, width)| format!("{:GAP$}{cell:>width$}", "")).collect::<String>();
    let mut text = format!("{}\n", style(format!("{TITLE:<first$}{}", cells(names))).dim());
    for (from, name) in names.iter().enumerate() {
        let row: Vec<String> = (0..names.len()).map(|to| if from == to { "·".to_owned() } else { cell(matrix, from, to) }).collect();
        writeln!(text, "{name:<first$}{}", cells(&row)).expect("a string takes all");
    }
    Some(text)
}

fn cell(matrix: &RttMatrix, from: usize, to: usize) -> String {
    millis(matrix.rtt(RegionId(from as u16), RegionId(to as u16)))
}

/// The nearest, the middle and the farthest pair of a matrix that is too large to show.
fn summary(matrix: &RttMatrix) -> String {
    let names = matrix.names();
    let pairs = (0..names.len()).flat_map(|from| (0..names.len()).filter(move |&to| to != from).map(move |to| (from, to)));
    let mut trips: Vec<(Span, usize, usize)> =
        pairs.map(|(from, to)| (matrix.rtt(RegionId(from as u16), RegionId(to as u16)), from, to)).collect();
    trips.sort_unstable();
    let show = |&(trip, from, to): &(Span, usize, usize)| format!("{} ms ({} to {})", millis(trip), names[from], names[to]);
    match (trips.first(), trips.get(trips.len() / 2), trips.last()) {
        (Some(nearest), Some(middle), Some(farthest)) => {
            let (nearest, middle, farthest) = (show(nearest), millis(middle.0), show(farthest));
            format!("Round trips: the shortest is {nearest},\nthe longest {farthest}; half are above {middle} ms.\n")
        }
        _ => String::new(),
    }
}

/// Milliseconds, with a decimal only where it matters.
fn millis(span: Span) -> String {
    let millis = span.as_millis_f64();
    if millis >= 10.0 || millis.fract() == 0.0 { format!("{millis:.0}") } else { format!("{millis:.1}") }
}

#[cfg(test)]
mod tests {
    use super::super::ports::Ports;
    use super::*;

    fn sites(network: &Network) -> Vec<SitePlan> {
        let site = |(index, region): (usize, &String)| {
            let index = index as u16;
            let ports = Ports { sql: 26257 + index, resp: 6380 + index, http: 8080 + index, peer: 27257 + index };
            SitePlan { region: region.clone(), shard: 0, ports, config: "site.toml".into(), log: "log.txt".into(), secure: None }
        };
        network.regions.iter().enumerate().map(site).collect()
    }

    fn text(network: &Network) -> String {
        placed(network, &Placement::everywhere(network.regions.len()))
    }

    fn placed(network: &Network, placement: &Placement) -> String {
        let sites = sites(network);
        let banner = Banner {
            network,
            placement,
            sites: sites.iter().collect(),
            took: Duration::from_millis(2_140),
            data: Path::new("/tmp/rhumb-demo-x"),
            kept: false,
            state: None,
        };
        console::strip_ansi_codes(&banner.text()).into_owned()
    }

    #[test]
    fn the_banner_of_five_regions_fits_a_terminal() {
        let network = Network::choose("paper_replicated_commit_5", None, 1).expect("shipped");
        let text = text(&network);
        assert_eq!(text, include_str!("banner_golden.txt"));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_placement_is_told_and_commits_go_to_those_that_vote() {
        let network = Network::choose("paper_replicated_commit_5", None, 1).expect("shipped");
        let voters = [RegionId(0), RegionId(1)].into_iter().collect();
        let text = placed(&network, &Placement { voters, passives: RegionId(4).into(), ..Placement::everywhere(5) });
        assert!(text.contains("\nactive california, oregon; passive singapore; the others hold no copy\n"), "{text}");
        assert!(text.contains("\ncalifornia         21 ms  postgres"), "{text}");
    }

    #[test]
    fn a_matrix_that_does_not_fit_is_summed_up() {
        let network = Network::choose("aws_32", None, 1).expect("shipped");
        let text = text(&network);
        let expected = "\
Round trips: the shortest is 7.1 ms (eu-south-1 to eu-central-2),
the longest 422 ms (ap-southeast-4 to af-south-1); half are above 156 ms.
";
        assert!(text.contains(expected), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}
