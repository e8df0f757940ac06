//! What one run is made of: a system, a workload, clients. Two runs of equal setups are equal.

use super::parameters as p;
use super::workload::Workload;
use rhumb_catenae::Durability;
use rhumb_core::Span;
use rhumb_paxos_commit::Concurrency;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// Catenae.
    Catenae(When),
    /// Paxos Commit over two-phase locking.
    Locking,
    /// Paxos Commit over optimistic concurrency control.
    Optimistic,
}

/// When a batch of Catenae counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Once it is durable in its own region: the paper's rule.
    Region,
    /// Once it is durable in a majority of the regions, as what the other two systems commit: Rhumb's default.
    Majority,
}

/// How clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clients {
    /// So many per server, each asking again as soon as it is answered.
    Closed(u64),
    /// So many transactions a second in all, at random moments, and so many in all.
    Open {
        /// Per second.
        rate: u64,
        /// In all.
        count: u64,
    },
}

/// What the paper leaves to future work: machines and a network that are worse than its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Adversity {
    /// By region: how fast its machines work.
    pub speeds_percent: [u64; p::REGIONS.len()],
    /// Each message between regions comes up to so much later, at random: messages overtake each other.
    pub late: Span,
    /// Of a hundred messages between regions so many are lost.
    pub loss_percent: u64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setup {
    /// What is measured.
    pub system: System,
    /// What is asked.
    pub workload: Workload,
    /// By whom.
    pub clients: Clients,
    /// How long a closed loop runs before it is measured.
    pub warm_up: Span,
    /// How long a closed loop is measured.
    pub measured: Span,
    /// The length of an epoch.
    pub epoch: Span,
    /// How much longer a hop between chain servers takes at the most. Not at all in a Rhumb site, which puts the messages to itself into one
    /// queue, in their order.
    pub jitter: Span,
    /// What a row read or written costs a region's processors.
    pub row: Span,
    /// What is not as it should be.
    pub adversity: Adversity,
    /// Decides all that is random.
    pub seed: u64,
}

impl Setup {
    /// `system` under `workload` as the parameters have it.
    pub fn new(system: System, workload: Workload, clients: Clients, seed: u64) -> Setup {
        Setup {
            system,
            workload,
            clients,
            warm_up: p::WARM_UP,
            measured: p::MEASURED,
            epoch: p::EPOCH,
            jitter: Span::ZERO,
            row: p::LOCAL.row,
            adversity: Adversity::NONE,
            seed,
        }
    }
}

impl Adversity {
    /// Equal machines, and a network that is always as fast.
    pub const NONE: Adversity = Adversity { speeds_percent: [100; p::REGIONS.len()], late: Span::ZERO, loss_percent: 0 };
}

impl System {
    /// All, Catenae first.
    pub const ALL: [System; 4] = [System::Catenae(When::Region), System::Catenae(When::Majority), System::Locking, System::Optimistic];

    /// Its name in tables and plots.
    pub fn name(self) -> &'static str {
        match self {
            System::Catenae(When::Region) => "Catenae, region",
            System::Catenae(When::Majority) => "Catenae, majority",
            System::Locking => "2PL",
            System::Optimistic => "OCC",
        }
    }

    /// Of a baseline, its concurrency control.
    pub(super) fn concurrency(self) -> Option<Concurrency> {
        match self {
            System::Catenae(_) => None,
            System::Locking => Some(Concurrency::Locking),
            System::Optimistic => Some(Concurrency::Optimistic),
        }
    }
}

impl When {
    /// The protocol's word for it.
    pub(super) fn durability(self) -> Durability {
        match self {
            When::Region => Durability::Region,
            When::Majority => Durability::Majority,
        }
    }
}
