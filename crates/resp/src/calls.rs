//! Calls under way: operations of one connection that the quotas were asked to carry out, oldest first.
//!
//! A call waits for the sync of a disk, and sometimes for tokens from another region. Those after it are carried out
//! meanwhile, so that a client that sends without waiting gets as much out of each sync as many clients would.

use rhumb_quota::gateway::Quotas;
use rhumb_quota::operation::{Done, OPERATIONS_MAX, Operation};
use rhumb_quota::refusal::Refusal;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Calls of one connection under way at the most; together they have no more operations than one may have.
pub const CALLS_MAX: usize = 16;

/// What became of the operations of one call, in order.
pub type Outcomes = Vec<Result<Done, Refusal>>;

enum Call<'a> {
    Running { operations: usize, future: Pin<Box<dyn Future<Output = Outcomes> + Send + 'a>> },
    Ended(Outcomes),
}

/// The calls of one connection.
pub struct Calls<'a> {
    quotas: &'a dyn Quotas,
    /// The next call, not started yet.
    gathered: Vec<Operation>,
    started: VecDeque<Call<'a>>,
    /// Operations gathered or started and not answered.
    open: usize,
}

impl<'a> Calls<'a> {
    /// None yet.
    pub fn new(quotas: &'a dyn Quotas) -> Calls<'a> {
        Calls { quotas, gathered: Vec::new(), started: VecDeque::new(), open: 0 }
    }

    /// Adds an operation to the next call; there must be room.
    pub fn gather(&mut self, operation: Operation) {
        assert!(self.has_room(), "operations are gathered only while there is room");
        self.gathered.push(operation);
        self.open += 1;
    }

    /// Starts the next call, if any operation was gathered for it.
    pub fn start(&mut self) {
        if !self.gathered.is_empty() {
            let operations = std::mem::take(&mut self.gathered);
            self.started.push_back(Call::Running { operations: operations.len(), future: self.quotas.run(operations) });
        }
    }

    /// True if one more operation can be taken.
    pub fn has_room(&self) -> bool {
        self.started.len() < CALLS_MAX && self.open < OPERATIONS_MAX
    }

    /// True if every operation is answered.
    pub fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// What became of the oldest call, once it has ended. The first to be started is the first to reach the quotas: all
    /// are polled in order.
    pub fn poll_oldest(&mut self, context: &mut Context<'_>) -> Poll<Outcomes> {
        for call in &mut self.started {
            if let Call::Running { operations, future } = call
                && let Poll::Ready(outcomes) = future.as_mut().poll(context)
            {
                assert_eq!(outcomes.len(), *operations, "every operation has an outcome");
                *call = Call::Ended(outcomes);
            }
        }
        match self.started.pop_front_if(|call| matches!(call, Call::Ended(_))) {
            Some(Call::Ended(outcomes)) => {
                self.open -= outcomes.len();
                Poll::Ready(outcomes)
            }
            _ => Poll::Pending,
        }
    }
}
