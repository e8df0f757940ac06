//! What a workload gives the driver: clients, which carry out what is due.

use std::future::Future;

use rhumb_core::Rng;

use super::client_slot::ClientSlot;
use super::meter::Meter;
use super::turn::Turn;
use super::window::Window;
use crate::error::BenchError;

/// A workload, ready to run.
pub trait Workload {
    /// What is at work at each connection.
    type Client: Client;

    /// How many regions have clients.
    fn regions(&self) -> usize;

    /// How many kinds of operation it has; each is metered apart.
    fn kinds(&self) -> usize;

    /// Operations that a client begins together, at most.
    fn batch_max(&self) -> usize {
        1
    }

    /// The client of `slot`, connected, whose randomness is `rng`.
    fn client(&self, slot: ClientSlot, rng: Rng) -> impl Future<Output = Result<Self::Client, BenchError>>;
}

/// One client of a run.
pub trait Client: Send + 'static {
    /// What its operations are counted by.
    type Meter: Meter;

    /// Waits until something can be begun, such as for a new connection, or until the run is over.
    fn ready(&mut self, _window: &Window) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Carries out what is due, and counts what came of it. An error ends the run.
    fn work(&mut self, turn: Turn<'_, Self::Meter>) -> impl Future<Output = Result<(), BenchError>> + Send;
}
