//! The stack that statements are parsed, planned, run and forgotten on.
//!
//! All of that is recursion: over the parts of a statement, over the plan made of them, over the streams of rows. How deep it goes is bounded by
//! [`parser`](crate::parser) (`parser/nesting.rs`, `parser/relations.rs`); how much stack that takes was measured, in a build without
//! optimizations.
//!
//! Invariant: what is polled and dropped by a [`LargeStack`] has at least [`STACK_BYTES`], whichever thread does it.

use std::pin::Pin;
use std::task::{Context, Poll};

/// The stack that the worst text that is accepted leaves half of.
pub const STACK_BYTES: usize = 256 << 20;
/// What a new stack has above that.
const SPARE_BYTES: usize = 1 << 20;

/// Does `work` on the stack of this thread if that has [`STACK_BYTES`] left, or else on one made for it.
pub fn on_large_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_BYTES, STACK_BYTES + SPARE_BYTES, work)
}

/// A future that always has [`STACK_BYTES`]. It costs nothing on threads that have so much by themselves.
pub struct LargeStack<F>(Option<Pin<Box<F>>>);

impl<F: Future> LargeStack<F> {
    /// `work`, with so much stack.
    pub fn new(work: F) -> LargeStack<F> {
        LargeStack(Some(Box::pin(work)))
    }
}

impl<F: Future> Future for LargeStack<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let work = self.0.as_mut().expect("it is there until this is dropped");
        on_large_stack(|| work.as_mut().poll(context))
    }
}

impl<F> Drop for LargeStack<F> {
    fn drop(&mut self) {
        on_large_stack(|| drop(self.0.take()));
    }
}
