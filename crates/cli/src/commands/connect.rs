//! `rhumb connect`: psql, with all that it takes.

use super::fail;
use super::place::FOLDER;
use clap::Args as ClapArgs;
use rhumb_config::{Config, Setup};
use rhumb_node::forming::{CONFIG_FILE, certificates};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Open psql at the site of a folder that `rhumb init` or `rhumb join` made.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb connect
  rhumb connect --dir /var/lib/rhumb -- -c 'SHOW REGIONS'

psql is told the site's name and address, to verify its certificate, and which certificate to show: the administrator's, or the site's
own where there is none. `--print` shows that as variables of the environment, for other clients of libpq.")]
pub struct Args {
    /// The folder of the site.
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    dir: PathBuf,
    /// Print the variables instead.
    #[arg(long)]
    print: bool,
    /// Arguments of psql.
    #[arg(value_name = "ARGUMENTS", last = true)]
    arguments: Vec<OsString>,
}

/// Becomes psql.
pub fn run(args: &Args) -> ExitCode {
    let folder = std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone());
    let setup = match Config::load(&folder.join(CONFIG_FILE)) {
        Ok(setup) => setup,
        Err(error) => return fail(error, 2),
    };
    let variables = variables(&setup, &folder);
    if args.print {
        variables.iter().for_each(|(name, value)| println!("export {name}='{}'", value.replace('\'', "'\\''")));
        return ExitCode::SUCCESS;
    }
    let error = Command::new("psql").envs(variables).args(&args.arguments).exec();
    fail(format!("psql cannot be run: {error}"), 1)
}

fn variables(setup: &Setup, folder: &std::path::Path) -> Vec<(&'static str, String)> {
    let ip = if setup.sql.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { setup.sql.ip() };
    let mut variables = vec![("PGPORT", setup.sql.port().to_string()), ("PGDATABASE", "rhumb".to_owned()), ("PGUSER", "root".to_owned())];
    match setup.tls.as_ref().and_then(|tls| tls.names.get(&setup.site)) {
        Some(name) => {
            let files = certificates(folder);
            let shown = |path: PathBuf| path.display().to_string();
            variables.extend([
                ("PGHOST", name.to_string()),
                ("PGHOSTADDR", ip.to_string()),
                ("PGSSLMODE", "verify-full".to_owned()),
                ("PGSSLROOTCERT", shown(files.authorities)),
                ("PGSSLCERT", shown(files.certificate)),
                ("PGSSLKEY", shown(files.key)),
            ]);
        }
        None => variables.push(("PGHOST", ip.to_string())),
    }
    variables
}
