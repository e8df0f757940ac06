//! What a world is made of: its sites, its distances, and how long things take that are not the wide area.

use rhumb_core::{Rng, RttMatrix, Span, Topology, clock_offset, wan};

/// The most events of a run unless its [`Config`] says otherwise: a hundred times what a run of a minute needs.
pub const EVENTS_MAX: u64 = 50_000_000;

/// The regions that Replicated Commit was measured in.
const PAPER_REGIONS: usize = 5;

/// Seven regions of AWS, of which no majority is near.
const AROUND_THE_WORLD: [&str; 7] = ["us-west-2", "us-east-1", "eu-west-1", "ap-northeast-1", "ap-southeast-2", "sa-east-1", "ap-south-1"];

/// How many regions a random cluster has: mostly three or five, as people run them; sometimes so few, so many or an even number
/// that majorities are other than one is used to.
pub(crate) fn draw_regions(rng: &mut Rng) -> usize {
    *rng.pick(&[3, 3, 3, 3, 5, 5, 5, 2, 4, 7]).expect("there are some to pick from")
}

/// How long a sync takes in a random cluster: from a disk with a protected cache to an overloaded one over a network.
pub(crate) fn draw_sync(rng: &mut Rng) -> Span {
    let micros = [100, 1_000, 1_000, 1_000, 5_000, 20_000, 100_000];
    Span::from_micros(*rng.pick(&micros).expect("there are some to pick from"))
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its sites.
    pub topology: Topology,
    /// The distances between its regions, in the order of the topology.
    pub rtt: RttMatrix,
    /// How long things take at a site.
    pub local: LocalDelays,
    /// What work costs its processor.
    pub costs: Costs,
    /// The maximum offset between clocks: a message from farther ahead is refused, a site whose clock is farther off stops.
    pub max_clock_offset: Span,
    /// A run of more events than this counts as a livelock.
    pub events_max: u64,
    /// True if the run is to be traced.
    pub tracing: bool,
}

/// How long things take at a site and within a region. All of it is on top of the wide area, and exact: a commit in an
/// idle world takes its floor plus the sum of these that lie on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalDelays {
    /// From a site to itself or to another one of its region.
    pub message: Span,
    /// One step of an actor, from when its input is taken up to when its effects are carried out. Inputs meanwhile wait.
    pub step: Span,
    /// From a [short](rhumb_core::Load::is_short) load to its answer, which shows the store as of the load.
    pub load: Span,
    /// From a long load to its answer, which shows the store as of the answer.
    pub long_load: Span,
    /// One sync of the disk.
    pub sync: Span,
    /// What one row read from the store, or one version written there, keeps the processor of the site busy, beyond the step that
    /// asked for it. Inputs meanwhile wait.
    pub row: Span,
    /// What a client's request keeps the processor of the site busy before it is taken up, beyond its step: what a gateway does that is
    /// no part of the actor, such as reading and planning statements. Inputs meanwhile wait.
    pub request: Span,
    /// What a message from another site keeps the processor busy before it is taken up, beyond its step: unwrapping it, and wrapping the
    /// answer. Inputs meanwhile wait.
    pub remote: Span,
}

/// What the work of a step costs the processor of its site, beyond [`LocalDelays`]. Inputs meanwhile wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Nanoseconds for a unit of [work](rhumb_core::work) that the protocol reports.
    pub unit_nanos: u64,
    /// Nanoseconds for a row or a record loaded, or a version or a record written.
    pub stored_nanos: u64,
    /// No step may keep its site busy for longer.
    pub step_max: Option<Span>,
}

/// What a step may take in a random run: a site that is busy for longer answers no ping in time and is taken for slow, or dead.
pub const STEP_MAX: Span = Span::from_millis(100);

impl Costs {
    /// Work is free.
    pub const NONE: Costs = Costs { unit_nanos: 0, stored_nanos: 0, step_max: None };

    /// What random runs charge: about what a lookup in a table of memory, and a point read or write of the store, take on a server; no step
    /// above [`STEP_MAX`].
    pub const REALISTIC: Costs = Costs { unit_nanos: 500, stored_nanos: 4_000, step_max: Some(STEP_MAX) };

    /// How long `units` of work, and so many rows and records, take.
    pub(crate) fn of(&self, units: u64, stored: u64) -> Span {
        Span::from_micros((units * self.unit_nanos + stored * self.stored_nanos) / 1_000)
    }
}

impl LocalDelays {
    /// No delay at all: what is left is the wide area.
    pub const NONE: LocalDelays = LocalDelays {
        message: Span::ZERO,
        step: Span::ZERO,
        load: Span::ZERO,
        long_load: Span::ZERO,
        sync: Span::ZERO,
        row: Span::ZERO,
        request: Span::ZERO,
        remote: Span::ZERO,
    };
}

impl Default for LocalDelays {
    /// A server with a fast disk in a datacenter, whose processor is no bottleneck.
    fn default() -> LocalDelays {
        LocalDelays {
            message: Span::from_micros(100),
            step: Span::from_micros(10),
            load: Span::from_micros(50),
            long_load: Span::from_micros(50),
            sync: Span::from_millis(1),
            row: Span::ZERO,
            request: Span::ZERO,
            remote: Span::ZERO,
        }
    }
}

impl Config {
    /// A world of the first `regions` of the five that Replicated Commit was measured in, with `shards` sites in each.
    pub fn of_paper(regions: usize, shards: u16) -> Config {
        let matrix = wan::profile("paper_replicated_commit_5").expect("the profile is shipped").matrix();
        let names: Vec<&str> = matrix.names()[..regions].iter().map(String::as_str).collect();
        Config::new(matrix.restrict(&names).expect("the names are its own"), shards)
    }

    /// A world of `regions` regions with `shards` sites in each: those of [`Config::of_paper`], or up to seven around the world where
    /// these are too few.
    pub fn of_regions(regions: usize, shards: u16) -> Config {
        if regions <= PAPER_REGIONS {
            return Config::of_paper(regions, shards);
        }
        let matrix = wan::profile("aws_32").expect("the profile is shipped").matrix();
        Config::new(matrix.restrict(&AROUND_THE_WORLD[..regions]).expect("the names are its own"), shards)
    }

    /// A world of the regions of `rtt` with `shards` sites in each, default delays, untraced.
    pub fn new(rtt: RttMatrix, shards: u16) -> Config {
        Config {
            topology: Topology::new(rtt.names().to_vec(), shards),
            rtt,
            local: LocalDelays::default(),
            costs: Costs::NONE,
            max_clock_offset: clock_offset::MAX_OFFSET,
            events_max: EVENTS_MAX,
            tracing: false,
        }
    }
}
