//! The runs of a laboratory, each made once however many experiments ask for it.

use std::collections::BTreeMap;
use std::rc::Rc;

/// What setups of type `S` came to: runs of type `R`.
pub struct RunCache<S, R> {
    made: BTreeMap<S, Rc<R>>,
}

impl<S: Ord + Clone, R> RunCache<S, R> {
    /// No runs yet.
    pub fn new() -> RunCache<S, R> {
        RunCache { made: BTreeMap::new() }
    }

    /// The run of `setup`, made now with `run` unless that was done before.
    pub fn once<E>(&mut self, setup: &S, run: impl FnOnce() -> Result<R, E>) -> Result<Rc<R>, E> {
        if let Some(made) = self.made.get(setup) {
            return Ok(Rc::clone(made));
        }
        let made = Rc::new(run()?);
        self.made.insert(setup.clone(), Rc::clone(&made));
        Ok(made)
    }
}

impl<S: Ord + Clone, R> Default for RunCache<S, R> {
    fn default() -> RunCache<S, R> {
        RunCache::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_is_run_once_and_again_after_a_failure() {
        let mut runs = RunCache::new();
        assert_eq!(runs.once(&1, || Err("not yet")), Err("not yet"));
        assert_eq!(*runs.once(&1, || Ok::<_, &str>("first")).expect("a run"), "first");
        assert_eq!(*runs.once(&1, || Ok::<_, &str>("second")).expect("a run"), "first");
        assert_eq!(*runs.once(&2, || Ok::<_, &str>("other")).expect("a run"), "other");
    }
}
