//! `rhumb lab`: the experiments of published evaluations, repeated in virtual time.

use super::fail;
use clap::Args as ClapArgs;
use indicatif::{ProgressBar, ProgressStyle};
use rhumb_display::Output;
use rhumb_lab::experiment::{Evaluation, Options, Outcome, Progress};
use rhumb_lab::{catenae, gplacer, quad, samya};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// `list` is no experiment.
const LIST: &str = "list";
/// Quick runs are so many times shorter.
const QUICK: usize = 12;

/// All evaluations.
fn evaluations(options: Options) -> Vec<Box<dyn Evaluation>> {
    vec![
        Box::new(samya::evaluation(options)),
        Box::new(gplacer::evaluation(options)),
        Box::new(catenae::evaluation(options)),
        Box::new(quad::evaluation(options)),
    ]
}

/// Repeat the experiments of published evaluations in virtual time, each figure beside the paper's.
///
/// The sites run the same code as a cluster does, in the simulator: the same seed gives the same figures on every machine.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  rhumb lab list                                 what there is
  rhumb lab samya-table6 --quick                 a twelfth of the time, and other figures
  rhumb lab samya-figure9 samya-table6 --out lab the same runs for both; CSV and SVG go to the folder lab
  rhumb lab samya --all --seed 7 --out lab       all of Samya's evaluation; several minutes for each experiment
  rhumb lab gplacer --all --out lab              all of GPlacer's
  rhumb lab catenae --all --out lab              Catenae's, beside its baselines
  rhumb lab quad --all --out lab                 QuAD's, beside other quorum systems

Exit code 0: done, whether or not a figure is as good as the paper's; 1: an experiment failed; 2: there is no such experiment."
)]
pub struct Args {
    /// Experiments by name; `list` names them; an evaluation such as `samya` with --all is all of its.
    #[arg(value_name = "EXPERIMENT", required = true)]
    what: Vec<String>,
    /// All experiments of an evaluation.
    #[arg(long)]
    all: bool,
    /// Decides all that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs twelve times shorter than the paper's, or a few of them instead of all: to see that all works, not for its figures.
    #[arg(long)]
    quick: bool,
    /// Write tables as CSV and charts as SVG into this folder, made if need be.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs what was asked for.
pub fn run(args: &Args) -> ExitCode {
    let options = Options { seed: args.seed, shorter: if args.quick { QUICK } else { 1 } };
    let mut evaluations = evaluations(options);
    if args.what == [LIST] {
        print!("{}", list(&evaluations));
        return ExitCode::SUCCESS;
    }
    match names(&evaluations, args)
        .map_err(|why| (why, 2))
        .and_then(|names| run_all(&mut evaluations, &names, args).map_err(|why| (why, 1)))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err((why, code)) => fail(why, code),
    }
}

/// Names and titles of all experiments, in the order of the papers.
fn catalogue(evaluations: &[Box<dyn Evaluation>]) -> Vec<(&'static str, &'static str)> {
    evaluations.iter().flat_map(|it| it.titles()).collect()
}

fn list(evaluations: &[Box<dyn Evaluation>]) -> String {
    let catalogue = catalogue(evaluations);
    let width = catalogue.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    catalogue.iter().map(|(name, title)| format!("{name:<width$}  {title}\n")).collect()
}

/// The experiments asked for.
fn names(evaluations: &[Box<dyn Evaluation>], args: &Args) -> Result<Vec<&'static str>, String> {
    let mut names = Vec::new();
    for wanted in &args.what {
        let experiment = catalogue(evaluations).into_iter().find(|(name, _)| name == wanted);
        match (experiment, evaluations.iter().find(|it| it.name() == wanted)) {
            (Some((name, _)), _) => names.push(name),
            (None, Some(evaluation)) if args.all => names.extend(evaluation.titles().into_iter().map(|(name, _)| name)),
            (None, Some(_)) => return Err(format!("`rhumb lab {wanted} --all` runs all experiments; `rhumb lab list` names them")),
            (None, None) => return Err(format!("there is no experiment `{wanted}`; `rhumb lab list` names those that there are")),
        }
    }
    Ok(names)
}

fn run_all(evaluations: &mut [Box<dyn Evaluation>], names: &[&'static str], args: &Args) -> Result<(), String> {
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    }
    let titles = catalogue(evaluations);
    for (number, name) in names.iter().enumerate() {
        let begun = Instant::now();
        let mut bar = Bar::new(format!("[{}/{}] {name}", number + 1, names.len()));
        let outcome = evaluations.iter_mut().find_map(|it| it.run(name, &mut bar)).expect("the name is one of the catalogue");
        bar.bar.finish_and_clear();
        let outcome = outcome.map_err(|why| format!("{name}: {why}"))?;
        let title = titles.iter().find(|(known, _)| known == name).map_or("", |(_, title)| title);
        let shorter = if args.quick { format!(", {QUICK} times shorter than the paper's") } else { String::new() };
        println!("{name} · {title} · seed {}{shorter} · {:.0} s\n\n{outcome}", args.seed, begun.elapsed().as_secs_f64());
        if let Some(folder) = &args.out {
            write(name, &outcome, folder)?;
        }
    }
    Ok(())
}

fn write(name: &str, outcome: &Outcome, folder: &Path) -> Result<(), String> {
    for file in outcome.files(name).map_err(|error| format!("{name}: {error}"))? {
        let path = folder.join(file.name);
        let unwritable = |error: std::io::Error| format!("{}: cannot be written: {error}", path.display());
        Output::at(&path).map_err(unwritable)?.write(file.text.as_bytes()).map_err(unwritable)?;
        println!("written to {}", path.display());
    }
    println!();
    Ok(())
}

/// An experiment as a bar on standard error; nothing if that is no terminal.
struct Bar {
    bar: ProgressBar,
    name: String,
}

impl Bar {
    fn new(name: String) -> Bar {
        let style = ProgressStyle::with_template("{prefix} {bar:30} {percent} %{msg}, {elapsed}").expect("the template is well-formed");
        let bar = ProgressBar::new(1).with_style(style).with_prefix(name.clone());
        Bar { bar, name }
    }
}

impl Progress for Bar {
    fn begin(&mut self, run: &str) {
        self.bar.set_prefix(format!("{}: {run}", self.name));
        self.passed(0, 1);
        self.bar.tick();
    }

    fn passed(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}
