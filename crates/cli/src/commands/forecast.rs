//! `rhumb forecast`: models of demand, trained and set side by side.

use super::fail;
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use rhumb_display::Output;
use rhumb_lab::forecast::{self, Choice, Demand, ForecastError, Progress, SHIPPED, Spec, Watch};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Train models that forecast demand, and see how good they are.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  rhumb forecast train vms.csv --model lstm --period 288,2016 -o vm.model
  rhumb forecast table                        all models on the shipped series, beside the paper's
  rhumb forecast table vms.csv --period 288,2016 --svg errors.svg

docs/forecasts.md tells what a series looks like and which model suits it."
)]
pub struct Args {
    #[command(subcommand)]
    stage: Stage,
}

#[derive(Subcommand)]
enum Stage {
    Train(TrainArgs),
    Table(TableArgs),
}

/// Train a model on a recorded series and write it to a file.
///
/// The error told is that on the last fifth of the series, forecast by a model that was trained on the rest alone. The model written is
/// trained on all of it.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb forecast train vms.csv --model lstm --period 288,2016 -o vm.model
  rhumb forecast train seats.csv --column sold --model arima -o seats.model
  rhumb forecast train vms.csv --model lstm --period 288 --passes 20 --seed 7 -o vm.model

Exit code 0: written; 1: the series or the files are not as they must be; 2: the options do not go together.")]
struct TrainArgs {
    /// A CSV file: a line that names the columns, then a line per epoch, the oldest first.
    series: PathBuf,
    /// The model.
    #[arg(long, value_parser = PossibleValuesParser::new(Spec::NAMES))]
    model: String,
    /// Where to write the model.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Passes over the series in the training of an LSTM [default: 60].
    #[arg(long, visible_alias = "epochs", value_name = "N")]
    passes: Option<usize>,
    /// Decides what is random in the training of an LSTM.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Compare models as Samya's Table 4 does: errors of one-step forecasts of the last fifth of a series.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb forecast table                        the shipped series: VM creations, taxi passengers
  rhumb forecast table --shipped taxi --models random-walk,arima,lstm
  rhumb forecast table vms.csv --period 288,2016 --csv errors.csv --svg errors.svg

The plot of the errors goes to the file of --svg; one for each series, of what was forecast and what came, beside it.")]
struct TableArgs {
    /// A CSV file; without it, the series that ship with rhumb.
    series: Option<PathBuf>,
    /// Only this shipped series.
    #[arg(long, value_enum, conflicts_with = "series")]
    shipped: Option<ShippedName>,
    /// Only these models [default: all that the periods allow].
    #[arg(long, value_delimiter = ',', value_name = "MODEL,...", value_parser = PossibleValuesParser::new(Spec::NAMES))]
    models: Vec<String>,
    #[command(flatten)]
    reading: Reading,
    /// Decides what is random in the training of an LSTM.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the table here too.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write plots here.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// How to read a file.
#[derive(ClapArgs)]
struct Reading {
    /// The column to take, if the file has more than two [default: the only one, or the second].
    #[arg(long, value_name = "NAME", requires = "series")]
    column: Option<String>,
    /// Periods of the series in epochs, such as a day and a week.
    #[arg(long, value_delimiter = ',', value_name = "EPOCHS,...", requires = "series")]
    period: Vec<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ShippedName {
    /// VM creations in a region of Azure per five minutes, 30 days.
    Azure,
    /// Taxi passengers in New York per half hour, 215 days: a series with a clear day and week.
    Taxi,
}

/// Trains, or compares.
pub fn run(args: &Args) -> ExitCode {
    let outcome = match &args.stage {
        Stage::Train(args) => train(args),
        Stage::Table(args) => table(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((line, code)) => fail(line, code),
    }
}

/// What ends the command, and its exit code.
type Failure = (String, u8);

fn train(args: &TrainArgs) -> Result<(), Failure> {
    let output = output(&args.output)?;
    let demand = Demand::read(&args.series, args.reading.column.as_deref(), &args.reading.period).map_err(failure)?;
    let choice = Choice { model: args.model.clone(), passes: args.passes, seed: args.seed };
    let mut bar = Bar::new();
    let trained = forecast::train(&demand, &choice, &mut bar);
    bar.0.finish_and_clear();
    let trained = trained.map_err(failure)?;
    write(&output, &trained.model.save())?;
    print!("{trained}");
    println!("written to {}", output.path().display());
    Ok(())
}

fn table(args: &TableArgs) -> Result<(), Failure> {
    let csv = args.csv.as_deref().map(output).transpose()?;
    let svg = args.svg.as_deref().map(output).transpose()?;
    let mut bar = Bar::new();
    let comparison = forecast::compare(&demands(args)?, &args.models, args.seed, &mut bar);
    bar.0.finish_and_clear();
    let comparison = comparison.map_err(failure)?;
    print!("{comparison}");
    if let Some(output) = csv {
        write(&output, comparison.to_csv().as_bytes())?;
        println!("written to {}", output.path().display());
    }
    let Some(output) = svg else { return Ok(()) };
    let plot = |output: &Output, svg: Result<String, _>| {
        write(output, svg.map_err(|error| failure(ForecastError::Plot(error)))?.as_bytes())?;
        println!("written to {}", output.path().display());
        Ok(())
    };
    plot(&output, comparison.errors_svg())?;
    comparison.series.iter().try_for_each(|series| plot(&output.beside(&series.table.series), series.stretch_svg()))
}

fn demands(args: &TableArgs) -> Result<Vec<Demand>, Failure> {
    if let Some(path) = &args.series {
        return Ok(vec![Demand::read(path, args.reading.column.as_deref(), &args.reading.period).map_err(failure)?]);
    }
    let wanted = |key: &str| match args.shipped {
        None => true,
        Some(ShippedName::Azure) => key == "azure",
        Some(ShippedName::Taxi) => key == "taxi",
    };
    Ok(SHIPPED.iter().filter(|shipped| wanted(shipped.key)).map(Demand::shipped).collect())
}

fn output(path: &Path) -> Result<Output, Failure> {
    Output::at(path).map_err(|error| unwritable(path, &error))
}

fn write(output: &Output, bytes: &[u8]) -> Result<(), Failure> {
    output.write(bytes).map_err(|error| unwritable(output.path(), &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    (format!("{}: cannot be written: {error}", path.display()), 1)
}

fn failure(error: ForecastError) -> Failure {
    let code = if error.is_usage() { 2 } else { 1 };
    (error.to_string(), code)
}

/// The work as a bar on standard error; nothing if that is no terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Bar {
        let template = "{prefix} {bar:30} {pos}/{len} passes{msg}, {elapsed}";
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        Bar(ProgressBar::new(1).with_style(style))
    }
}

impl Watch for Bar {
    fn begin(&mut self, what: &str, part: usize, parts: usize) {
        self.0.set_prefix(format!("[{part}/{parts}] {what}"));
        self.0.set_message("");
        self.0.set_length(1);
        self.0.set_position(0);
        self.0.tick();
    }

    fn passed(&mut self, Progress { done, total, error }: Progress) {
        self.0.set_length(total as u64);
        self.0.set_message(format!(", error {error:.2}"));
        self.0.set_position(done as u64);
    }
}
