//! What ends a load, a run or a check, told so that the reader knows what to do next.

use thiserror::Error;

/// Why a benchmark could not go on.
#[derive(Debug, Error)]
pub enum BenchError {
    /// An address that is not one.
    #[error("{argument:?} is not an address: {reason}. Write postgres://USER@HOST:PORT/DATABASE, or REGION=postgres://…")]
    Address {
        /// What was given.
        argument: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The same, of a port for Redis clients.
    #[error("{argument:?} is not an address: {reason}. Write HOST:PORT, redis://HOST:PORT, or either after REGION=")]
    RedisAddress {
        /// What was given.
        argument: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A ready file that cannot be read.
    #[error("cannot read the cluster's ready file {path}: {reason}. `rhumb demo --ready-file {path}` writes it once the cluster serves")]
    ReadyFile {
        /// Where it was looked for.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No server answered.
    #[error("cannot connect to {url}: {reason}. Is the cluster running there? `rhumb demo` starts one and prints its addresses")]
    Connect {
        /// The address, without a password.
        url: String,
        /// What the network or the server said.
        reason: String,
    },
    /// The workload's tables are not there.
    #[error("the tables of {workload} are not loaded ({reason}): run `rhumb bench init {workload}` first")]
    NotLoaded {
        /// The workload asked for.
        workload: &'static str,
        /// What is missing.
        reason: String,
    },
    /// The workload's tables are there already.
    #[error("table {table} exists already: pass --replace to drop the tables of {workload} and load them anew")]
    AlreadyLoaded {
        /// The workload asked for.
        workload: &'static str,
        /// The first table found.
        table: &'static str,
    },
    /// The quota is there already.
    #[error("there is a quota {quota} already: pass --replace to drop it and make it anew")]
    QuotaExists {
        /// Its name.
        quota: String,
    },
    /// There is no quota to run on.
    #[error("there is no quota {quota}: run `rhumb bench init quota` first")]
    NoQuota {
        /// Its name.
        quota: String,
    },
    /// The system refused what a run needs of it.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
    /// Options that contradict themselves.
    #[error("{0}")]
    Options(String),
    /// The server refused a statement for a reason that a retry does not mend.
    #[error("{doing}: the server answered {reason}")]
    Statement {
        /// What was being done.
        doing: String,
        /// SQLSTATE and message.
        reason: String,
    },
    /// The server stayed unavailable, or transactions kept conflicting, for longer than the retries last.
    #[error("{doing}: gave up after {attempts} attempts, the last of which failed with {reason}")]
    GaveUp {
        /// What was being done.
        doing: String,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        reason: String,
    },
}
