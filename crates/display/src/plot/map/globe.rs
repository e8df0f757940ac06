//! The globe on a page: outlines of land, a projection, and the shortest way between two points.
//!
//! The projection is equirectangular: a degree has the same height and width everywhere. It shows where places are, not how
//! large countries are.

use std::f64::consts::PI;

/// Outlines of land, a line each: `longitude,latitude …` in tenths of degrees.
const LAND: &str = include_str!("../../../data/land.txt");

/// How many pieces a way between two points is drawn of.
const PIECES: usize = 64;

/// A point in degrees, north and east positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// The part of the globe that a page shows, in degrees: Antarctica has no regions.
pub const SOUTH: f64 = -58.0;
/// Its northern edge.
pub const NORTH: f64 = 80.0;

/// A point on a page of `width` and `height`, from its upper left corner.
pub fn project(point: Point, width: f64, height: f64) -> (f64, f64) {
    ((point.longitude + 180.0) / 360.0 * width, (NORTH - point.latitude.clamp(SOUTH, NORTH)) / (NORTH - SOUTH) * height)
}

/// The outlines of land.
pub fn land() -> impl Iterator<Item = Vec<Point>> {
    let degrees = |tenths: &str| tenths.parse::<f64>().expect("the outlines are whole numbers") / 10.0;
    let point = move |pair: &str| {
        let (longitude, latitude) = pair.split_once(',').expect("a point has two coordinates");
        Point { latitude: degrees(latitude), longitude: degrees(longitude) }
    };
    LAND.lines().filter(|line| !line.starts_with('#')).map(move |line| line.split(' ').map(point).collect())
}

/// The shortest way over the globe, in parts: it is cut where it leaves the page at one side and comes back at the other.
pub fn shortest_way(from: Point, to: Point) -> Vec<Vec<Point>> {
    let (start, end) = (vector(from), vector(to));
    let angle = (0..3).map(|axis| start[axis] * end[axis]).sum::<f64>().clamp(-1.0, 1.0).acos();
    if angle < 1e-6 || PI - angle < 1e-6 {
        return vec![vec![from, to]];
    }
    let at = |piece: usize| {
        let share = piece as f64 / PIECES as f64;
        let (weight, other) = (((1.0 - share) * angle).sin() / angle.sin(), (share * angle).sin() / angle.sin());
        let [x, y, z] = [0, 1, 2].map(|axis| weight * start[axis] + other * end[axis]);
        Point { latitude: z.atan2(x.hypot(y)).to_degrees(), longitude: y.atan2(x).to_degrees() }
    };
    let mut parts: Vec<Vec<Point>> = vec![vec![from]];
    for piece in 1..=PIECES {
        let next = at(piece);
        let part = parts.last_mut().expect("there is a first part");
        let last = *part.last().expect("a part begins with a point");
        if (next.longitude - last.longitude).abs() <= 180.0 {
            part.push(next);
            continue;
        }
        let edge = 180.0_f64.copysign(last.longitude);
        let share = (edge - last.longitude) / (next.longitude + edge.signum() * 360.0 - last.longitude);
        let latitude = last.latitude + share * (next.latitude - last.latitude);
        part.push(Point { latitude, longitude: edge });
        parts.push(vec![Point { latitude, longitude: -edge }, next]);
    }
    parts
}

fn vector(point: Point) -> [f64; 3] {
    let (latitude, longitude) = (point.latitude.to_radians(), point.longitude.to_radians());
    [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn point(latitude: f64, longitude: f64) -> Point {
        Point { latitude, longitude }
    }

    #[test]
    fn the_outlines_lie_on_the_globe() {
        let outlines: Vec<Vec<Point>> = land().collect();
        assert!(outlines.len() > 50 && outlines.iter().all(|outline| outline.len() >= 3));
        assert!(outlines.iter().flatten().all(|point| point.latitude.abs() <= 90.0 && point.longitude.abs() <= 180.0));
    }

    #[test]
    fn a_way_across_the_date_line_leaves_at_one_side_and_comes_back_at_the_other() {
        let parts = shortest_way(point(35.7, 139.7), point(37.4, -122.1));
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[0].last().map(|end| end.longitude), parts[1][0].longitude), (Some(180.0), -180.0));
        assert!(parts.iter().flatten().all(|point| point.latitude > 35.0), "it bends towards the pole");
        assert_eq!(shortest_way(point(37.4, -122.1), point(38.0, -78.5)).len(), 1);
        assert_eq!(shortest_way(point(1.0, 1.0), point(1.0, 1.0)), [[point(1.0, 1.0); 2]]);
    }

    #[test]
    fn the_page_shows_all_longitudes_and_the_inhabited_latitudes() {
        assert_eq!(project(point(NORTH, -180.0), 360.0, 138.0), (0.0, 0.0));
        assert_eq!(project(point(0.0, 0.0), 360.0, 138.0), (180.0, 80.0));
        assert_eq!(project(point(-90.0, 180.0), 360.0, 138.0), (360.0, 138.0));
    }
}
