//! Whose a data folder is: the file [`FILE`] in it names the cluster and the site, and the settings that the cluster began with.
//!
//! ```text
//!   site virginia/0 of cluster shop
//!   regions = ["california", "virginia"]
//!   catenae.epoch_ms = 10
//!   …
//! ```
//!
//! A site that went on with the folder of another would break promises: votes, ballots and timestamps of that one are not its own, and
//! the other may be running. And one that went on under other settings than all sites [agree](Setup::agreed) on would take its own for
//! something else. So both are refused before anything in the folder is read. A folder without the file is taken for one's own, and
//! says so from then on.

use rhumb_config::{Agreed, Setup};
use rhumb_store::replace_file;
use std::path::{Path, PathBuf};
use std::{fs, io};
use thiserror::Error;

/// The name of the file.
pub const FILE: &str = "SITE";

/// Why a folder is not taken.
#[derive(Debug, Error)]
pub enum OwnerError {
    /// It is another's.
    #[error(
        "{path} is the data folder of {found}, and this is {expected}: name this site's own folder as data_dir, or an empty one if it is new"
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Who asks.
        expected: String,
    },
    /// A setting that never changes has been changed.
    #[error(
        "{name} is {here}, but {path} was written with {there}: it stays what it was when the cluster began. Set it to {there} again; for \
         another value start a new cluster, with an empty data_dir at every site"
    )]
    Changed {
        /// The folder.
        path: PathBuf,
        /// The key of the setting.
        name: &'static str,
        /// What it was.
        there: String,
        /// What it is now.
        here: String,
    },
    /// The folder is bound to a setting that this version does not have.
    #[error("{path} was written with `{line}`, which this version of rhumb does not know: run the version that wrote it")]
    Unknown {
        /// The folder.
        path: PathBuf,
        /// What stands there.
        line: String,
    },
    /// The file cannot be read or written.
    #[error("{path} cannot be read or written: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Whose a folder is to be.
#[derive(Clone, Debug)]
pub struct Owner {
    who: String,
    agreed: Vec<Agreed>,
}

impl Owner {
    /// The site that `setup` describes.
    pub fn new(setup: &Setup) -> Owner {
        Owner { who: format!("site {} of cluster {}", setup.name(setup.site), setup.cluster), agreed: setup.agreed() }
    }

    /// Checks that `folder` belongs to this site and to these settings, or to nobody yet: then it does from now on.
    pub fn check(&self, folder: &Path) -> Result<(), OwnerError> {
        let path = folder.join(FILE);
        let failed = |source| OwnerError::Io { path: path.clone(), source };
        let found = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            found => found.map_err(failed)?,
        };
        self.compare(folder, &found)?;
        let text = self.text();
        if found == text { Ok(()) } else { replace_file(folder, FILE, &text).map_err(failed) }
    }

    /// What stands in the folder of this site.
    fn text(&self) -> String {
        let settings = self.agreed.iter().map(|Agreed { name, value }| format!("{name} = {value}\n"));
        std::iter::once(format!("{}\n", self.who)).chain(settings).collect()
    }

    /// A folder may lack settings that there were none of when it was made, and the text as a whole.
    fn compare(&self, folder: &Path, found: &str) -> Result<(), OwnerError> {
        let mut lines = found.lines();
        let Some(who) = lines.next() else { return Ok(()) };
        let path = folder.to_owned();
        if who != self.who {
            return Err(OwnerError::Foreign { path, found: who.to_owned(), expected: self.who.clone() });
        }
        for line in lines {
            let setting = line.split_once(" = ");
            let known = setting.and_then(|(name, there)| Some((self.agreed.iter().find(|agreed| agreed.name == name)?, there)));
            let Some((Agreed { name, value }, there)) = known else { return Err(OwnerError::Unknown { path, line: line.to_owned() }) };
            if value != there {
                return Err(OwnerError::Changed { path, name, there: there.to_owned(), here: value.clone() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_config::Config;

    const SHOP: &str = r#"
        cluster = "shop"
        data_dir = "data"
        site = { region = "virginia", shard = 0 }
        listen = { sql = "127.0.0.1:0", http = "127.0.0.1:0", peer = "127.0.0.1:9003" }
        regions = [
            { name = "california", sites = ["127.0.0.1:9001", "127.0.0.1:9002"] },
            { name = "virginia", sites = ["127.0.0.1:9003", "127.0.0.1:9004"] },
        ]
        placement = { active = ["california"], passive = ["virginia"] }
        catenae = { epoch_ms = 10, durability = "majority", coordinators = 1 }
    "#;
    /// For each setting of the list what another cluster's file says: what is replaced in that of the shop, and by what.
    const OTHERS: [(&str, &[(&str, &str)]); 7] = [
        ("regions", &[("california", "oregon")]),
        ("sites per region", &[("\"127.0.0.1:9001\", ", ""), (", \"127.0.0.1:9004\"", "")]),
        (
            "placement.active",
            &[("active = [\"california\"]", "active = [\"virginia\"]"), ("passive = [\"virginia\"]", "passive = [\"california\"]")],
        ),
        ("placement.passive", &[(", passive = [\"virginia\"]", "")]),
        ("catenae.epoch_ms", &[("epoch_ms = 10", "epoch_ms = 20")]),
        ("catenae.durability", &[("\"majority\"", "\"region\"")]),
        ("catenae.coordinators", &[("coordinators = 1", "coordinators = 2")]),
    ];

    fn setup(text: &str) -> Setup {
        Setup::new(Config::parse("site.toml", text).expect("a file"), "site.toml", Path::new("")).expect("whole")
    }

    fn check(folder: &Path, text: &str) -> Result<(), String> {
        Owner::new(&setup(text)).check(folder).map_err(|error| error.to_string())
    }

    #[test]
    fn a_folder_belongs_to_the_first_site_that_takes_it() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(check(folder.path(), SHOP), Ok(()));
        assert_eq!(check(folder.path(), SHOP), Ok(()), "it is its own");
        let place = folder.path().display();
        let refused = |who: &str| {
            Err(format!(
                "{place} is the data folder of site virginia/0 of cluster shop, and this is {who}: name this site's own folder as data_dir, \
                 or an empty one if it is new"
            ))
        };
        let other = SHOP.replace("shard = 0", "shard = 1").replace("peer = \"127.0.0.1:9003\"", "peer = \"127.0.0.1:9004\"");
        assert_eq!(check(folder.path(), &other), refused("site virginia/1 of cluster shop"));
        assert_eq!(check(folder.path(), &SHOP.replace("shop", "stall")), refused("site virginia/0 of cluster stall"));
    }

    #[test]
    fn a_setting_that_all_sites_agree_on_is_refused_once_changed_and_makes_a_non_member_of_the_site() {
        let shop = setup(SHOP);
        assert_eq!(shop.agreed().iter().map(|agreed| agreed.name).collect::<Vec<_>>(), OTHERS.map(|(name, _)| name));
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(check(folder.path(), SHOP), Ok(()));
        let before = fs::read_to_string(folder.path().join(FILE)).expect("written");
        for (Agreed { name, value }, (_, changes)) in shop.agreed().into_iter().zip(OTHERS) {
            let other = changes.iter().fold(SHOP.to_owned(), |text, (from, to)| {
                assert!(text.contains(from), "{name}: `{from}` is in the file");
                text.replace(from, to)
            });
            let here = setup(&other).agreed().into_iter().find(|agreed| agreed.name == name).expect("in the list").value;
            assert_ne!(here, value, "{name}");
            let why = format!(
                "{name} is {here}, but {} was written with {value}: it stays what it was when the cluster began. Set it to {value} again; for \
                 another value start a new cluster, with an empty data_dir at every site",
                folder.path().display()
            );
            assert_eq!(check(folder.path(), &other), Err(why));
            assert_eq!(fs::read_to_string(folder.path().join(FILE)).expect("there"), before, "a refusal changes nothing");
            assert_ne!(setup(&other).fingerprint(), shop.fingerprint(), "{name}");
            assert_eq!(check(folder.path(), SHOP), Ok(()), "{name} is what it was");
        }
    }

    #[test]
    fn a_setting_is_bound_from_when_there_is_one_and_an_unknown_one_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(FILE);
        fs::write(&file, "site virginia/0 of cluster shop\ncatenae.epoch_ms = 10\n").expect("written");
        assert_eq!(check(folder.path(), SHOP), Ok(()));
        assert!(check(folder.path(), &SHOP.replace("\"majority\"", "\"region\"")).is_err(), "bound by now");
        fs::write(&file, "site virginia/0 of cluster shop\ncatenae.colour = \"red\"\n").expect("written");
        let why = format!(
            "{} was written with `catenae.colour = \"red\"`, which this version of rhumb does not know: run the version that wrote it",
            folder.path().display()
        );
        assert_eq!(check(folder.path(), SHOP), Err(why));
    }
}
