//! What `--wan` and `--regions` mean: the regions, and the round trips between them.

use super::error::DemoError;
use rhumb_core::{RegionId, RttMatrix, Span, wan};

/// Regions without a profile, unless told otherwise.
const REGIONS_DEFAULT: usize = 5;
/// What `--wan` says for no emulated network.
const NONE: &str = "none";

/// The network that a demo emulates.
#[derive(Clone, Debug)]
pub struct Network {
    /// What the user called it.
    pub name: String,
    /// The names of the regions, in order.
    pub regions: Vec<String>,
    /// The round trips between them; none for the loopback's own.
    pub matrix: Option<RttMatrix>,
    /// The text of the user's own file, where the matrix comes from one.
    pub text: Option<String>,
}

impl Network {
    /// The network called `name`: a shipped profile, `none`, or a file. Only its first `count` regions, if given.
    pub fn choose(name: &str, count: Option<usize>) -> Result<Network, DemoError> {
        let named = name.to_owned();
        if name == NONE {
            let regions = (1..=count.unwrap_or(REGIONS_DEFAULT)).map(|n| format!("region{n}")).collect();
            return Ok(Network { name: named, regions, matrix: None, text: None });
        }
        let (matrix, text) = match wan::profile(name) {
            Some(profile) => (profile.matrix(), None),
            None => {
                let text = std::fs::read_to_string(name).map_err(|reason| {
                    let known = wan::PROFILES.map(|profile| profile.name).join(", ");
                    DemoError::UnknownWan { name: named.clone(), reason, known }
                })?;
                (RttMatrix::parse(name, &text)?, Some(text))
            }
        };
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
        Ok(Network { name: named, regions, matrix: Some(matrix), text })
    }

    /// The floor of a commit in the region at `index`; none without an emulated network.
    pub fn floor(&self, index: usize) -> Option<Span> {
        self.matrix.as_ref().map(|matrix| matrix.floor(RegionId(index as u16)))
    }
}

fn names_a_folder(region: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    region.starts_with(|c: char| c.is_ascii_alphanumeric()) && region.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_may_be_cut_to_its_first_regions() {
        let network = Network::choose("paper_replicated_commit_5", Some(3)).expect("shipped");
        assert_eq!(network.regions, ["california", "oregon", "virginia"]);
        assert_eq!(network.floor(0), Some(Span::from_millis(21)));
        let error = Network::choose("paper_replicated_commit_5", Some(6)).expect_err("five only");
        assert_eq!(error.to_string(), "--regions 6: paper_replicated_commit_5 has 5 regions; expected 1 to 5");
    }

    #[test]
    fn without_a_profile_regions_are_numbered() {
        let network = Network::choose("none", Some(2)).expect("none");
        assert_eq!((network.regions, network.matrix), (vec!["region1".to_owned(), "region2".to_owned()], None));
    }

    #[test]
    fn a_file_may_name_the_regions_as_long_as_folders_can_be_named_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wan.csv");
        let choose = |text: &str| {
            std::fs::write(&path, text).expect("written");
            Network::choose(&path.display().to_string(), None)
        };
        assert_eq!(choose("region,a,b\na,0,1\nb,1,0\n").expect("whole").regions, ["a", "b"]);
        let error = choose("region,../a,b\n../a,0,1\nb,1,0\n").expect_err("a way out");
        let expected =
            format!("--wan {}: the region `../a` cannot name a folder; expected letters, digits, `-`, `_` and `.`", path.display());
        assert_eq!(error.to_string(), expected);
    }
}
