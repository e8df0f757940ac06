//! The files that a site may have open: raised as far as the system allows, and enough for all that may connect to it.
//!
//! Invariant: a site that serves clients can open its own files with every listener full.

use crate::admin::listener::CONNECTIONS_MAX as HTTP_CONNECTIONS_MAX;
use crate::transport::UNPROVEN_MAX;
use rhumb_config::Setup;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use thiserror::Error;

/// For the stores of a site and whatever else it opens: files of tables and journals, threads' wakers, standard streams.
const FILES_MAX: u64 = 4_000;

/// Why a site cannot start with the files that it is allowed.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum DescriptorsError {
    #[error(
        "this process may open {allowed} files, and a site needs {needed} for its store and all clients that it admits; raise the hard limit, by \
         `ulimit -Hn {needed}` as root, LimitNOFILE={needed} of systemd, or --ulimit nofile={needed} of a container"
    )]
    TooFew { allowed: u64, needed: u64 },
    #[error("the limit of open files cannot be raised to {to}: {reason}")]
    Fixed { to: u64, reason: io::Error },
}

/// Raises the limit of this process to what the system allows. `clients` connections of databases and quotas must fit.
pub fn secure(setup: &Setup, clients: usize) -> Result<(), DescriptorsError> {
    let limit = getrlimit(Resource::Nofile);
    let needed = needed(setup.addresses.len(), clients);
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    if allowed < needed {
        return Err(DescriptorsError::TooFew { allowed, needed });
    }
    if limit.current == limit.maximum {
        return Ok(());
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    raised.map_err(|reason| DescriptorsError::Fixed { to: allowed, reason: reason.into() })
}

/// With each other site there is a connection either way.
fn needed(sites: usize, clients: usize) -> u64 {
    (2 * sites + UNPROVEN_MAX + HTTP_CONNECTIONS_MAX + clients) as u64 + FILES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listener_counts() {
        assert_eq!(needed(5, 2_600), 10 + UNPROVEN_MAX as u64 + 256 + 2_600 + 4_000);
    }

    #[test]
    fn the_error_says_what_to_do() {
        let error = DescriptorsError::TooFew { allowed: 4_096, needed: 6_930 }.to_string();
        assert!(error.starts_with("this process may open 4096 files, and a site needs 6930 "), "{error}");
    }
}
