//! What a figure shows, as data: somebody else draws it.

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Joined by a line.
    Line,
    /// Each by itself.
    Points,
}

/// Points with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// In order of x.
    pub points: Vec<(f64, f64)>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What x is, with its unit.
    pub x_label: String,
    /// What y is, with its unit.
    pub y_label: String,
    /// True if equal ratios are equally high; y is above zero then.
    pub log_y: bool,
    /// What is shown.
    pub series: Vec<Series>,
}

impl Chart {
    /// An empty chart.
    pub fn new(title: impl Into<String>, x_label: &str, y_label: &str) -> Chart {
        Chart { title: title.into(), x_label: x_label.into(), y_label: y_label.into(), log_y: false, series: Vec::new() }
    }

    /// The same with a logarithmic y.
    #[must_use]
    pub fn with_log_y(mut self) -> Chart {
        self.log_y = true;
        self
    }

    /// Adds a line.
    pub fn line(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>) {
        self.series.push(Series { name: name.into(), shape: Shape::Line, points });
    }

    /// Adds points.
    pub fn points(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>) {
        self.series.push(Series { name: name.into(), shape: Shape::Points, points });
    }
}
