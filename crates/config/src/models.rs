//! Forecasting models of quotas: files of `rhumb forecast train`, read and checked once, when the site starts.
//!
//! Each quota follows a copy of its own, which learns from the demand at this site. What it learns is forgotten with the
//! process; the file stays as it was trained.

use rhumb_forecast::load;
use rhumb_quota::config::Predictors;
use rhumb_quota::demand::Predictor;
use rhumb_quota::forecast::Forecast;
use rhumb_quota::name::Name;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A longer file is no model.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The models of a site, by quota.
#[derive(Clone, Default)]
pub struct Models(Arc<BTreeMap<Name, Vec<u8>>>);

impl Models {
    /// Those of `files`; or the quota whose model cannot be had, and why.
    pub fn read<'a>(files: impl Iterator<Item = (&'a str, &'a Path)>) -> Result<Models, (&'a str, String)> {
        let model = |(name, path): (&'a str, &Path)| {
            let quota = Name::new(name).map_err(|refusal| (name, refusal.to_string()))?;
            let bytes = read(path).map_err(|why| (name, format!("{}: {why}", path.display())))?;
            Ok((quota, bytes))
        };
        Ok(Models(Arc::new(files.map(model).collect::<Result<_, _>>()?)))
    }

    /// What makes the predictors of quotas; none if there is no model.
    pub fn predictors(&self) -> Option<Predictors> {
        let models = Arc::clone(&self.0);
        (!models.is_empty()).then(|| {
            let predictor = move |name: &Name| {
                let model = load(models.get(name)?).expect("it was loaded when the site started");
                Some(Box::new(Forecast::new(model)) as Box<dyn Predictor>)
            };
            Arc::new(predictor) as Predictors
        })
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The bytes of a file that holds a model.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot read the model: {error}"))?;
    load(&bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}
