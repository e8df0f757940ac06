//! What stands in the SVG.

use super::*;

fn line(name: &str, points: &[(f64, f64)]) -> Line {
    Line { name: name.into(), points: points.to_vec(), joined: true }
}

fn chart(lines: Vec<Line>) -> LineChart {
    let (x, y) = (Axis::linear("time (s)"), Axis::linear("requests (1/s)"));
    LineChart { title: "Throughput".into(), x, y, lines, references: Vec::new() }
}

/// How often `part` stands in `svg`.
fn count(svg: &str, part: &str) -> usize {
    svg.matches(part).count()
}

/// All texts, in the order in which they are drawn.
fn texts(svg: &str) -> Vec<&str> {
    let bodies = svg.split("<text ").skip(1).map(|rest| rest.split_once('>').and_then(|(_, body)| body.split_once("</text>")));
    bodies.map(|body| body.expect("a text is closed").0.trim()).collect()
}

#[test]
fn a_line_chart_shows_title_legend_axes_and_lines() {
    let chart = chart(vec![line("one", &[(0.0, 1.0), (10.0, 4.0)]), line("two", &[(0.0, 2.0), (5.0, 3.0), (10.0, 2.0)])]);
    let svg = chart.to_svg().expect("good data");
    assert!(svg.starts_with("<svg width=\"900\" height=\"520\" viewBox=\"0 0 7200 4160\""), "{}", &svg[..80]);
    assert_eq!(texts(&svg)[..3], ["Throughput", "one", "two"]);
    for text in ["time (s)", "requests (1/s)", "0", "2", "4", "6", "8", "10"] {
        assert!(texts(&svg).contains(&text), "{text}: {:?}", texts(&svg));
    }
    assert_eq!((count(&svg, "<circle"), count(&svg, "fill=\"#D55E00\"")), (5, 3));
    // In the legend and in the plot.
    assert_eq!((count(&svg, "stroke=\"#0072B2\""), count(&svg, "stroke=\"#D55E00\"")), (2, 2));
    assert_eq!(chart.to_svg(), Ok(svg));
}

#[test]
fn what_is_written_is_escaped() {
    let svg = LineChart { title: "a < b & \"c\"".into(), ..chart(vec![line("<script>", &[(0.0, 1.0)])]) }.to_svg().expect("good data");
    assert_eq!(texts(&svg)[..2], ["a &lt; b &amp; &quot;c&quot;", "&lt;script&gt;"]);
}

#[test]
fn references_are_named_in_the_margin_and_widen_the_axis() {
    let reference = |label: &str, y| Reference { label: label.into(), y };
    let mut chart = chart(vec![line("one", &[(0.0, 0.1), (1.0, 0.2)])]);
    let dashes = |svg: &str| count(svg, "stroke=\"#222222\" stroke-width=\"10\"");
    assert_eq!(dashes(&chart.to_svg().expect("good data")), 0);
    chart.references = vec![reference("paper: 0.43", 0.43)];
    let svg = chart.to_svg().expect("good data");
    assert!(texts(&svg).contains(&"paper: 0.43") && texts(&svg).contains(&"0.5"), "{:?}", texts(&svg));
    assert!(dashes(&svg) > 20, "{}", dashes(&svg));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let error = |chart: LineChart| chart.to_svg().map_err(|error| error.to_string());
    let refused = |message: &str| Err(message.to_owned());
    assert_eq!(error(chart(vec![])), refused("the plot `Throughput` has nothing to show; give it a series with a point"));
    assert_eq!(error(chart(vec![line("one", &[])])), refused("`one` has no points; leave it out of the plot"));
    let nan = chart(vec![line("one", &[(0.0, 1.0), (1.0, f64::NAN)])]);
    assert_eq!(error(nan), refused("`one`, point 2: NaN is not a number of at most 1e15"));
    let log = LineChart { y: Axis::log("ms"), ..chart(vec![line("one", &[(0.0, 0.0)])]) };
    assert_eq!(error(log), refused("`one`, point 1: 0 has no place on a logarithmic axis; values there are above zero"));
    let many = (0..8).map(|number| line(&number.to_string(), &[(0.0, 0.0)])).collect();
    assert_eq!(error(chart(many)), refused("8 series in one plot; colours can be told apart up to 7"));
}

/// The name of a series, and value and mark of each bar.
type Told<'a> = (&'a str, &'a [(Option<f64>, Option<f64>)]);

fn bars(series: &[Told<'_>]) -> BarChart {
    let bars = |bars: &[(Option<f64>, Option<f64>)]| bars.iter().map(|(value, mark)| Bar { value: *value, mark: *mark }).collect();
    BarChart {
        title: "Errors".into(),
        y: "share".into(),
        groups: vec!["ARIMA(3,0,3) season".into(), "LSTM".into()],
        series: series.iter().map(|(name, of)| Bars { name: (*name).into(), bars: bars(of) }).collect(),
        mark: "paper".into(),
        decimals: 2,
    }
}

#[test]
fn a_bar_chart_shows_a_bar_per_group_and_series_with_its_mark() {
    let of = [("azure", &[(Some(0.963), Some(0.5)), (Some(0.82), None)][..]), ("taxi", &[(None, None), (Some(0.47), Some(0.21))][..])];
    let svg = bars(&of).to_svg().expect("good data");
    assert_eq!(texts(&svg)[..4], ["Errors", "azure", "taxi", "paper"]);
    for text in ["share", "0.96", "0.82", "0.47", "ARIMA(3,0,3) season", "LSTM"] {
        assert!(texts(&svg).contains(&text), "{text}: {:?}", texts(&svg));
    }
    // Bars and the box in the legend; two marks and theirs.
    assert_eq!((count(&svg, "fill=\"#0072B2\""), count(&svg, "fill=\"#D55E00\"")), (3, 2));
    assert_eq!(count(&svg, "stroke=\"#222222\" stroke-width=\"24\""), 3);
}

#[test]
fn a_bar_chart_that_cannot_be_drawn_is_refused() {
    let error = |series: &[Told<'_>]| bars(series).to_svg().map_err(|error| error.to_string());
    let empty = Err("the plot `Errors` has nothing to show; give it a series with a point".to_owned());
    assert_eq!(error(&[]), empty);
    assert_eq!(error(&[("azure", &[(None, Some(1.0)), (None, None)])]), empty);
    assert_eq!(error(&[("azure", &[(Some(1.0), None)])]), Err("`azure` has 1 bars, but there are 2 groups; give it one for each".into()));
    let infinite = [(Some(1.0), None), (Some(1.0), Some(f64::INFINITY))];
    assert_eq!(error(&[("azure", &infinite)]), Err("`azure`, point 2: inf is not a number of at most 1e15".into()));
}
