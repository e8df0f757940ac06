//! An evaluation: the experiments of one paper, and the laboratory that runs them.

use super::outcome::Outcome;
use super::progress::Progress;

/// Why an experiment has no outcome.
pub type Failure = Box<dyn std::error::Error>;

/// What whoever asks for experiments may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Decides all that is random.
    pub seed: u64,
    /// Runs are this many times shorter than the paper's, and their figures differ; at least 1.
    pub shorter: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { seed: 1, shorter: 1 }
    }
}

impl Options {
    /// Of `all`, so many as a run of this length has time for: all, or the first and the last.
    pub fn some<T: Copy>(&self, all: &[T]) -> Vec<T> {
        match self.shorter {
            0 | 1 => all.to_vec(),
            _ => [0, all.len() - 1].map(|index| all[index]).to_vec(),
        }
    }
}

/// An experiment in a laboratory `L`.
pub struct Experiment<L> {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Runs it.
    pub run: fn(&mut L, &mut dyn Progress) -> Result<Outcome, Failure>,
}

/// An evaluation, whatever its laboratory is.
pub trait Evaluation {
    /// What the command line calls all of it.
    fn name(&self) -> &'static str;
    /// Names and titles of its experiments, in the order of the paper.
    fn titles(&self) -> Vec<(&'static str, &'static str)>;
    /// Runs the experiment called `name`; none if there is no such.
    fn run(&mut self, name: &str, progress: &mut dyn Progress) -> Option<Result<Outcome, Failure>>;
}

/// A laboratory and what can be done in it.
pub struct Bench<L: 'static> {
    /// What the command line calls the evaluation.
    pub name: &'static str,
    /// What can be done, in the order of the paper.
    pub experiments: &'static [Experiment<L>],
    /// Where it is done.
    pub lab: L,
}

impl<L> Evaluation for Bench<L> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn titles(&self) -> Vec<(&'static str, &'static str)> {
        self.experiments.iter().map(|it| (it.name, it.title)).collect()
    }

    fn run(&mut self, name: &str, progress: &mut dyn Progress) -> Option<Result<Outcome, Failure>> {
        let experiment = self.experiments.iter().find(|it| it.name == name)?;
        Some((experiment.run)(&mut self.lab, progress))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Silent;
    use super::*;

    #[test]
    fn an_experiment_is_run_by_its_name_in_the_laboratory_it_shares() {
        const COUNT: Experiment<u32> = Experiment {
            name: "paper-figure1",
            title: "How often it was run",
            run: |runs, _| {
                *runs += 1;
                Ok(Outcome { notes: vec![runs.to_string()], ..Outcome::default() })
            },
        };
        let mut bench = Bench { name: "paper", experiments: &[COUNT], lab: 0 };
        assert_eq!((bench.name(), bench.titles()), ("paper", vec![("paper-figure1", "How often it was run")]));
        assert!(bench.run("paper-figure2", &mut Silent).is_none());
        for runs in ["1", "2"] {
            let outcome = bench.run("paper-figure1", &mut Silent).expect("there is one").expect("it cannot fail");
            assert_eq!(outcome.notes, [runs]);
        }
    }
}
