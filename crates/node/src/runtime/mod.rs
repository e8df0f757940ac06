//! Actors, driven: each in its cell, with a thread of its own and those of its store, all over the links of one site.
//!
//! ```text
//!   clients ─ask, end─▶ ┌──── Cell ────────────────┐
//!   peers ──messages──▶ │ Mailbox ─▶ Driver, Actor │ ──Disk──▶ Writer ──▶ disk
//!   timers, loads ────▶ └──────────────────────────┘             │
//!                           ▲        │ notes, answers            │ promises, answers
//!                           │        ▼                           │
//!                           │    Transport ◀─────────────────────┤
//!                           └── own messages, notifications ─────┘
//! ```
//!
//! All but the transport is there once per service: what one waits for (its actor's steps, its disk) the others do not.
//! The way of a read through a site is one thread, from socket to socket: whoever has something for an actor steps it (`cell.rs`). A commit
//! goes over to the thread that syncs, and back. The way of a quota's request is one thread again: it waits for nothing but the disk.

mod attend;
mod cell;
mod collector;
mod disk;
mod driver;
mod loader;
mod mailbox;
mod queue;
mod rejected;
mod requests;
mod service;
mod unapplied;
mod writer;

pub use rejected::Rejected;
pub use requests::{Handle, Undo};
pub(crate) use service::{Common, start};

use crate::transport::frame::FrameError;
use rhumb_core::actor::{Actor, Body};
use serde::{Serialize, de::DeserializeOwned};

/// What can go over a wire and between threads.
pub trait Wire: Serialize + DeserializeOwned + Send + 'static {}
impl<T: Serialize + DeserializeOwned + Send + 'static> Wire for T {}

/// An actor that a node can run.
pub trait Hosted:
    Actor<Note: Wire, Promise: Wire, Timer: Send + 'static, Request: Send + 'static, Answer: Send + 'static> + Send + 'static
{
}
impl<A> Hosted for A where
    A: Actor<Note: Wire, Promise: Wire, Timer: Send + 'static, Request: Send + 'static, Answer: Send + 'static> + Send + 'static
{
}

/// A message from the data of its frame, all of it. A pure function.
pub fn decode_message<N: DeserializeOwned, P: DeserializeOwned>(data: &[u8]) -> Result<Body<N, P>, FrameError> {
    match postcard::take_from_bytes(data) {
        Ok((body, [])) => Ok(body),
        Ok((_, rest)) => Err(FrameError::Message(format!("{} bytes are left over", rest.len()))),
        Err(error) => Err(FrameError::Message(error.to_string())),
    }
}
