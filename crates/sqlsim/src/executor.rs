//! Futures polled by hand, on one thread, in the order in which they were woken.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

/// A future that runs to its end by itself.
type Work = Pin<Box<dyn Future<Output = ()>>>;

/// What runs in a world besides its sites.
#[derive(Default)]
pub struct Executor {
    tasks: Vec<Option<Task>>,
    woken: Arc<Woken>,
}

struct Task {
    work: Work,
    waker: Waker,
}

/// Which tasks can go on, each once.
#[derive(Default)]
struct Woken(Mutex<(VecDeque<usize>, BTreeSet<usize>)>);

impl Woken {
    fn push(&self, task: usize) {
        let (queue, queued) = &mut *self.0.lock().expect("nothing panics while it holds the queue");
        if queued.insert(task) {
            queue.push_back(task);
        }
    }

    fn pop(&self) -> Option<usize> {
        let (queue, queued) = &mut *self.0.lock().expect("nothing panics while it holds the queue");
        let task = queue.pop_front()?;
        queued.remove(&task);
        Some(task)
    }
}

struct TaskWaker {
    task: usize,
    woken: Arc<Woken>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.woken.push(self.task);
    }
}

/// The end of a task, and what it came to.
pub struct Joined<T>(Rc<RefCell<Option<T>>>);

impl<T> Joined<T> {
    /// What the task came to, once it has ended.
    pub fn take(&self) -> Option<T> {
        self.0.borrow_mut().take()
    }
}

impl Executor {
    /// Runs `work` from the next [`run`](Executor::run) on.
    pub fn spawn<T: 'static>(&mut self, work: impl Future<Output = T> + 'static) -> Joined<T> {
        let result = Rc::new(RefCell::new(None));
        let joined = Joined(Rc::clone(&result));
        let task = self.tasks.len();
        let waker = Waker::from(Arc::new(TaskWaker { task, woken: Arc::clone(&self.woken) }));
        let work = Box::pin(async move {
            let value = work.await;
            *result.borrow_mut() = Some(value);
        });
        self.tasks.push(Some(Task { work, waker }));
        self.woken.push(task);
        joined
    }

    /// Polls tasks until none can go on.
    pub fn run(&mut self) {
        while let Some(task) = self.woken.pop() {
            let Some(Task { work, waker }) = &mut self.tasks[task] else { continue };
            if work.as_mut().poll(&mut Context::from_waker(waker)).is_ready() {
                self.tasks[task] = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::VirtualTime;
    use rhumb_core::{Rng, Span, Time};

    #[test]
    fn sleepers_wake_in_the_order_of_their_time_and_a_task_that_wakes_itself_goes_on() {
        let time = VirtualTime::new(Rng::seeded(1));
        let (mut executor, log) = (Executor::default(), Rc::new(RefCell::new(Vec::new())));
        let ends: Vec<Joined<u64>> = [30, 10, 20]
            .map(|millis| {
                let (time, log) = (time.clone(), Rc::clone(&log));
                executor.spawn(async move {
                    time.sleep(Span::from_millis(millis)).await;
                    log.borrow_mut().push(millis);
                    millis
                })
            })
            .into();
        for millis in 0..=25 {
            time.advance(Time::from_micros(millis * 1_000));
            executor.run();
        }
        assert_eq!(*log.borrow(), [10, 20]);
        assert_eq!(ends.iter().map(Joined::take).collect::<Vec<_>>(), [None, Some(10), Some(20)]);
    }
}
