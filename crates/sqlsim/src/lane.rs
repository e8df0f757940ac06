//! A world and the requests that sessions have to its actors.

use crate::port::Port;
use rhumb_core::{Actor, Time};
use rhumb_sim::{SimError, World};
use std::sync::Arc;

/// A world with its port.
pub struct Lane<A: Actor> {
    /// The world.
    pub world: World<A>,
    /// Where its actors are asked.
    pub port: Arc<Port<A>>,
}

impl<A: Actor> Lane<A> {
    /// `world`, of whose actors nobody has asked anything.
    pub fn new(world: World<A>) -> Lane<A> {
        Lane { world, port: Arc::default() }
    }

    /// Hands what was asked to the world, lets it go on until `to`, and hands out the answers.
    pub fn advance(&mut self, to: Time) -> Result<(), SimError> {
        for asked in self.port.take() {
            // The process that asked in another incarnation is gone, and its requests with it.
            if self.world.incarnation(asked.site) == asked.incarnation {
                let site = asked.site;
                let (request, reply) = asked.split();
                let id = self.world.submit(site, request);
                self.port.sent(id, reply);
            }
        }
        self.world.run_until(to)?;
        for reply in self.world.take_replies() {
            self.port.answer(reply.id, reply.answer);
        }
        Ok(())
    }
}
