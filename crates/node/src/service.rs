//! The services of a site: what it does for its peers and clients, each by an actor with threads and a store of its own.

/// What a site does for its peers, each by an actor of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Commits transactions.
    Commit,
    /// Keeps quotas.
    Quotas,
    /// Runs one-shot transactions by epochs.
    Catenae,
    /// Commits transactions in quorums that follow load and distance.
    Quad,
}

impl Service {
    /// All of them.
    pub const ALL: [Service; 4] = [Service::Commit, Service::Quotas, Service::Catenae, Service::Quad];

    /// Its name, in metrics and in the names of threads.
    pub fn name(self) -> &'static str {
        match self {
            Service::Commit => "commit",
            Service::Quotas => "quotas",
            Service::Catenae => "catenae",
            Service::Quad => "quad",
        }
    }

    /// Its actor's thread, for people.
    pub fn actor(self) -> &'static str {
        match self {
            Service::Commit => "the thread of the site's transactions",
            Service::Quotas => "the thread of the site's quotas",
            Service::Catenae => "the thread of the site's epochs",
            Service::Quad => "the thread of the site's quorums",
        }
    }
}
