//! What `--wan` and `--regions` mean: the regions, and the round trips between them.

use super::error::DemoError;
use super::ports::Ports;
use crate::wan;
use rhumb_commit::placement::Regions;
use rhumb_config::{Catenae, Clock, Cluster, Listen, Placement, Quad, Quotas, Storage, Wan, names_a_folder};
use rhumb_core::{RegionId, RttMatrix, Span};
use std::path::Path;

/// Regions without a profile, unless told otherwise.
const REGIONS_DEFAULT: usize = 5;
/// What `--wan` says for no emulated network.
const NONE: &str = "none";

/// The network that a demo emulates, and what else a file of a cluster says of it.
#[derive(Clone, Debug)]
pub struct Network {
    /// What the user called it.
    pub name: String,
    /// The names of the regions, in order.
    pub regions: Vec<String>,
    /// The round trips between them; none for the loopback's own.
    pub matrix: Option<RttMatrix>,
    /// The same as sites are told it.
    pub wan: Option<Wan>,
    /// How many sites each region has.
    pub sites_per_region: u16,
    /// Which regions hold what; all are active if it does not say.
    pub placement: Option<Placement>,
    /// Ports to take if they are free, region by region; none are as good as any.
    pub ports: Vec<Ports>,
    /// The clocks of the sites.
    pub clock: Clock,
    /// The storage engine.
    pub storage: Storage,
    /// Quotas.
    pub quotas: Quotas,
    /// Databases of protocol `catenae`.
    pub catenae: Catenae,
    /// Databases of protocol `quad`.
    pub quad: Quad,
}

impl Network {
    /// The network called `name`: a shipped profile, `none`, or a file. Only its first `count` regions, if given.
    pub fn choose(name: &str, count: Option<usize>, sites_per_region: u16) -> Result<Network, DemoError> {
        let named = name.to_owned();
        if name == NONE {
            let regions = (1..=count.unwrap_or(REGIONS_DEFAULT)).map(|n| format!("region{n}")).collect();
            return Ok(Network::plain(named, regions, None, sites_per_region));
        }
        let matrix = wan::read(name)?;
        let there = matrix.names().len();
        let asked = count.unwrap_or(there);
        if !(1..=there).contains(&asked) {
            return Err(DemoError::TooManyRegions { asked, wan: named, there });
        }
        let regions: Vec<String> = matrix.names()[..asked].to_vec();
        if let Some(region) = regions.iter().find(|region| !names_a_folder(region)) {
            return Err(DemoError::RegionName { wan: named, region: region.clone() });
        }
        let kept: Vec<&str> = regions.iter().map(String::as_str).collect();
        let matrix = matrix.restrict(&kept).expect("the regions are the matrix's own");
        Ok(Network::plain(named, regions, Some(matrix), sites_per_region))
    }

    /// The network of a cluster by its file.
    pub fn of_cluster(path: &Path) -> Result<Network, DemoError> {
        let cluster = Cluster::load(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let first = Cluster::load_site(path, &cluster.regions[0].name, 0)?;
        let ports = |site: &Listen| Ports {
            sql: site.sql.port(),
            resp: site.resp.map_or(0, |address| address.port()),
            http: site.http.port(),
            peer: site.peer.port(),
        };
        let regions: Vec<String> = cluster.regions.iter().map(|region| region.name.clone()).collect();
        let mut network =
            Network::plain(path.display().to_string(), regions, first.wan.map(|links| links.matrix), cluster.regions[0].sites.len() as u16);
        if let (Some(own), Some(said)) = (&mut network.wan, &cluster.wan) {
            (own.jitter_ms, own.loss) = (said.jitter_ms, said.loss);
        }
        network.ports = cluster.regions.iter().flat_map(|region| region.sites.iter().map(ports)).collect();
        network.placement = cluster.placement;
        network.clock = cluster.clock;
        network.storage = cluster.storage;
        network.quotas = cluster.quotas;
        network.catenae = cluster.catenae;
        network.quad = cluster.quad;
        for model in network.quotas.models.values_mut() {
            *model = std::path::absolute(folder.join(&*model))
                .map_err(|reason| DemoError::System { doing: "cannot find this folder", reason })?;
        }
        Ok(network)
    }

    fn plain(name: String, regions: Vec<String>, matrix: Option<RttMatrix>, sites_per_region: u16) -> Network {
        let wan = matrix.as_ref().map(|matrix| Wan { matrix: Some(matrix.to_csv()), ..Wan::default() });
        Network {
            name,
            regions,
            matrix,
            wan,
            sites_per_region,
            placement: None,
            ports: Vec::new(),
            clock: Clock::default(),
            storage: Storage::default(),
            quotas: Quotas::default(),
            catenae: Catenae::default(),
            quad: Quad::default(),
        }
    }

    /// The floor of a commit in the region at `index` if these regions vote; none without an emulated network.
    pub fn floor(&self, index: usize, voters: Regions) -> Option<Span> {
        self.matrix.as_ref()?.floor_among(RegionId(index as u16), voters.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_may_be_cut_to_its_first_regions() {
        let network = Network::choose("paper_replicated_commit_5", Some(3), 1).expect("shipped");
        assert_eq!(network.regions, ["california", "oregon", "virginia"]);
        assert_eq!(network.floor(0, Regions::first(3)), Some(Span::from_millis(21)));
        assert_eq!(network.floor(0, RegionId(2).into()), Some(Span::from_millis(86)));
        let error = Network::choose("paper_replicated_commit_5", Some(6), 1).expect_err("five only");
        assert_eq!(error.to_string(), "--regions 6: paper_replicated_commit_5 has 5 regions; expected 1 to 5");
    }

    #[test]
    fn without_a_profile_regions_are_numbered() {
        let network = Network::choose("none", Some(2), 1).expect("none");
        assert_eq!((network.regions, network.matrix), (vec!["region1".to_owned(), "region2".to_owned()], None));
    }

    #[test]
    fn a_file_may_name_the_regions_as_long_as_folders_can_be_named_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wan.csv");
        let choose = |text: &str| {
            std::fs::write(&path, text).expect("written");
            Network::choose(&path.display().to_string(), None, 1)
        };
        assert_eq!(choose("region,a,b\na,0,1\nb,1,0\n").expect("whole").regions, ["a", "b"]);
        let error = choose("region,../a,b\n../a,0,1\nb,1,0\n").expect_err("a way out");
        let expected = format!(
            "--wan {}: the region `../a` cannot name a folder; expected letters, digits, `-`, `_`, `.` and `:`, a letter or digit first",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
    }
}
