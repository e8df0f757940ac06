//! Multi-version storage of Rhumb: rows with their versions, and the protocols' own records, over a small key-value trait.
//!
//! [`Store`] carries out what an actor writes down ([`Batch`](rhumb_core::Batch), [`Load`](rhumb_core::Load),
//! [`Collect`](rhumb_core::actor::Collect)) on any [`Engine`]; it knows nothing of protocols. Two engines ship:
//! [`MemoryEngine`] for the simulator, whose crash loses what a real one would, and [`DiskEngine`], the embedded default.
//! The bytes on disk are described in `FORMAT.md` and made in one place, the module `layout`.

mod device;
#[doc(hidden)] // for fuzzing
pub mod disk;
mod engine;
mod error;
mod folder;
mod garbage;
mod group;
pub mod incarnations;
#[doc(hidden)] // for fuzzing
pub mod journal;
mod layout;
mod log;
mod memory;
mod newest;
mod pass;
mod private;
mod scan;
mod sieve;
mod small_file;
mod stamp;
mod stamps;
mod store;
mod swept;

pub use disk::{DiskEngine, DiskOptions};
pub use engine::{Engine, Entries, View, Write};
pub use error::StoreError;
pub use garbage::Collected;
pub use group::{Group, KEY_BYTES_MAX};
pub use memory::MemoryEngine;
pub use newest::Newest;
pub use pass::{Pass, Passed};
pub use small_file::{remove_file, replace_file, replace_file_naming_itself};
pub use stamp::{Stamp, Syncs};
pub use store::Store;
