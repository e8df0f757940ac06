//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What `mutex` guards; a client that panicked has left it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
