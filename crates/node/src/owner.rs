//! Whose a data folder is: the file [`FILE`] in it names the cluster and the site.
//!
//! A site that went on with the folder of another would break promises: votes, ballots and timestamps of that one are not its own, and
//! the other may be running. So it is refused before anything in it is read. A folder without the file is taken for one's own, and
//! says so from then on.

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
    /// The file cannot be read or written.
    #[error("{path} cannot be read or written: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What stands in the folder of the site called `site` in `cluster`.
pub fn text(cluster: &str, site: &str) -> String {
    format!("site {site} of cluster {cluster}")
}

/// Checks that `folder` belongs to `whose`, or to nobody yet.
pub fn check(folder: &Path, whose: &str) -> Result<(), OwnerError> {
    let path = folder.join(FILE);
    let failed = |source| OwnerError::Io { path: path.clone(), source };
    match fs::read_to_string(&path) {
        Ok(found) if found.trim_end() == whose => Ok(()),
        Ok(found) => Err(OwnerError::Foreign { path: folder.to_owned(), found: found.trim_end().to_owned(), expected: whose.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace_file(folder, FILE, &format!("{whose}\n")).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_the_first_site_that_takes_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |cluster, site| check(folder.path(), &text(cluster, site)).map_err(|error| error.to_string());
        assert_eq!(check("shop", "virginia/0"), Ok(()));
        assert_eq!(check("shop", "virginia/0"), Ok(()), "it is its own");
        let place = folder.path().display();
        let refused = |who: &str| {
            Err(format!(
                "{place} is the data folder of site virginia/0 of cluster shop, and this is {who}: name this site's own folder as data_dir, \
                 or an empty one if it is new"
            ))
        };
        assert_eq!(check("shop", "virginia/1"), refused("site virginia/1 of cluster shop"));
        assert_eq!(check("stall", "virginia/0"), refused("site virginia/0 of cluster stall"));
    }
}
