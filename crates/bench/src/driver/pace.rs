//! How load is offered: as fast as the clients go, or at a rate of its own.

/// Closed or open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A client begins its next operation when the last one ended.
    Closed,
    /// Operations fall due at this rate, over all regions, whatever the servers do.
    Open {
        /// Operations per second.
        rate_per_s: f64,
    },
}

impl Pace {
    /// The rate of an open loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Pace::Closed => None,
            Pace::Open { rate_per_s } => Some(*rate_per_s),
        }
    }

    /// The load in words.
    pub fn describe(&self, clients_per_region: usize) -> String {
        match self {
            Pace::Closed => format!("closed loop, {clients_per_region} clients per region"),
            Pace::Open { rate_per_s } => format!("open loop at {rate_per_s}/s, at most {clients_per_region} at a time per region"),
        }
    }
}
