//! What a plan makes small: one integer per placement, from the latency of each client region.

/// What is minimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The mean over all clients: the sum of a region's clients times its latency.
    Mean,
    /// The mean over regions that have clients, each counted once, however many clients it has.
    RegionMean,
    /// The latency of the region that is worst off.
    Worst,
    /// The least latency that at least this many of a thousand clients do not exceed: 950 is the 95th percentile. Between
    /// 1 and 1,000.
    Percentile(u32),
}

impl Objective {
    /// The objective's integer, given the latency (ns) and number of clients of each client region: a sum over clients
    /// for [`Objective::Mean`], a sum over regions for [`Objective::RegionMean`], else a latency. `order` is scratch.
    pub(crate) fn value(self, latencies_ns: &[u64], clients: &[u64], order: &mut Vec<(u64, u64)>) -> u64 {
        match self {
            Objective::Mean => latencies_ns.iter().zip(clients).map(|(latency, weight)| latency * weight).sum(),
            Objective::RegionMean => latencies_ns.iter().sum(),
            Objective::Worst => latencies_ns.iter().copied().max().unwrap_or(0),
            Objective::Percentile(milli) => {
                order.clear();
                order.extend(latencies_ns.iter().copied().zip(clients.iter().copied()));
                order.sort_unstable();
                let mut missing = self.clients_covered(milli, clients);
                for &(latency, weight) in order.iter() {
                    if weight >= missing {
                        return latency;
                    }
                    missing -= weight;
                }
                unreachable!("a percentile is of at most all clients")
            }
        }
    }

    /// How many clients must not exceed the percentile: `milli` thousandths of all, rounded up.
    pub(crate) fn clients_covered(self, milli: u32, clients: &[u64]) -> u64 {
        let total: u128 = clients.iter().map(|&weight| u128::from(weight)).sum();
        u64::try_from((total * u128::from(milli)).div_ceil(1_000)).expect("the clients of a problem are counted in 64 bits")
    }
}
