//! The demand series that ship with Rhumb, each with where it comes from.

use crate::series::Series;

/// A shipped series.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// What it is called for short: `azure`.
    pub key: &'static str,
    /// What it is called, with its year and its epoch.
    pub name: &'static str,
    /// What it counts, who recorded it, and under which licence it is passed on.
    pub source: &'static str,
    /// Seconds per epoch.
    pub epoch_seconds: u64,
    /// A day and a week, in epochs.
    pub periods: [usize; 2],
    text: &'static str,
}

impl Shipped {
    /// The series.
    pub fn series(&self) -> Series {
        Series::parse(self.name, self.text, None).expect("shipped series are checked by a test")
    }
}

/// All shipped series.
pub const SHIPPED: [Shipped; 2] = [
    Shipped {
        key: "azure",
        name: "azure2017_vm_creations_5min",
        source: "VM creations of one region, Azure Public Dataset V1 (Cortez et al., SOSP 2017; form of Bergsma et al., SOSP 2021), CC-BY 4.0",
        epoch_seconds: 300,
        periods: [288, 2016],
        text: include_str!("../data/azure2017_vm_creations_5min.csv"),
    },
    Shipped {
        key: "taxi",
        name: "nyc_taxi_30min",
        source: "taxi passengers in New York, Numenta Anomaly Benchmark, MIT; a periodic control",
        epoch_seconds: 1800,
        periods: [48, 336],
        text: include_str!("../data/nyc_taxi_30min.csv"),
    },
];

/// The shipped series called `name`, in full or for short.
pub fn shipped(name: &str) -> Option<Shipped> {
    SHIPPED.into_iter().find(|shipped| shipped.name == name || shipped.key == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_series_is_whole() {
        let of = |name| shipped(name).expect("it ships").series().values().to_vec();
        let azure = of("azure2017_vm_creations_5min");
        assert_eq!((azure.len(), azure.iter().sum::<f64>()), (8_637, 1_870_433.0));
        let taxi = of("taxi");
        assert_eq!((taxi.len(), taxi[0]), (10_320, 10_844.0));
        for Shipped { epoch_seconds, periods, name, .. } in SHIPPED {
            assert_eq!(periods.map(|period| period as u64 * epoch_seconds), [86_400, 604_800], "{name}");
        }
    }
}
