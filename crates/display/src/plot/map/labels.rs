//! Where labels stand on a map: beside their marks, farther off where it is crowded, and not over each other.

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// Its left edge.
    pub left: f64,
    /// Its upper edge.
    pub top: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// A label to be placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// The point that it belongs to.
    pub mark: (f64, f64),
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// How far from its mark a label may stand, in pixels, in the order in which that is tried.
const DISTANCES: [f64; 12] = [9.0, 14.0, 20.0, 28.0, 38.0, 50.0, 64.0, 80.0, 98.0, 118.0, 140.0, 170.0];
/// Directions that are tried at each distance: right and left first.
const DIRECTIONS: [(f64, f64); 12] = [
    (1.0, 0.0),
    (-1.0, 0.0),
    (0.87, -0.5),
    (0.87, 0.5),
    (-0.87, -0.5),
    (-0.87, 0.5),
    (0.5, -0.87),
    (0.5, 0.87),
    (-0.5, -0.87),
    (-0.5, 0.87),
    (0.0, -1.0),
    (0.0, 1.0),
];
/// Kept free around a label.
const AROUND: f64 = 1.0;

impl Rectangle {
    /// The area that two rectangles share.
    pub fn shared(&self, other: &Rectangle) -> f64 {
        let along = (self.left + self.width).min(other.left + other.width) - self.left.max(other.left);
        let down = (self.top + self.height).min(other.top + other.height) - self.top.max(other.top);
        along.max(0.0) * down.max(0.0)
    }

    /// The point of the rectangle nearest to another.
    pub fn nearest(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (x.clamp(self.left, self.left + self.width), y.clamp(self.top, self.top + self.height))
    }

    fn lies_within(&self, (width, height): (f64, f64)) -> bool {
        self.left >= 0.0 && self.top >= 0.0 && self.left + self.width <= width && self.top + self.height <= height
    }
}

/// Where each of `labels` stands on a page of `size`, those before it first. No two
/// share a point, nor a label and any of the `marks`, as long as there is room; else they share as little as possible.
pub fn place(labels: &[Label], marks: &[Rectangle], size: (f64, f64)) -> Vec<Rectangle> {
    let mut taken: Vec<Rectangle> = marks.to_vec();
    labels
        .iter()
        .map(|label| {
            let mut best: Option<(f64, Rectangle)> = None;
            for candidate in candidates(label).filter(|candidate| candidate.lies_within(size)) {
                let shared: f64 = taken.iter().map(|other| other.shared(&candidate)).sum();
                if best.is_none_or(|(least, _)| shared < least) {
                    best = Some((shared, candidate));
                }
                if shared == 0.0 {
                    break;
                }
            }
            let first = || candidates(label).next().expect("there are directions");
            let chosen = best.map_or_else(first, |(_, candidate)| candidate);
            taken.push(chosen);
            chosen
        })
        .collect()
}

/// All rectangles around its mark that a label may take, the nearest first.
fn candidates(label: &Label) -> impl Iterator<Item = Rectangle> {
    let Label { mark: (x, y), width, height } = *label;
    let (width, height) = (width + 2.0 * AROUND, height + 2.0 * AROUND);
    DISTANCES.into_iter().flat_map(move |distance| {
        DIRECTIONS.into_iter().map(move |(right, down)| {
            let (x, y) = (x + right * distance, y + down * distance);
            // The edge that faces the mark is the one nearest to it.
            let left = x - width * (1.0 - right.signum() * f64::from(right != 0.0)) / 2.0;
            let top = y - height * (1.0 - down) / 2.0;
            Rectangle { left, top, width, height }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_alone_stands_to_the_right_of_its_mark() {
        let label = |x| Label { mark: (x, 50.0), width: 30.0, height: 10.0 };
        let placed = place(&[label(50.0)], &[], (200.0, 100.0));
        assert_eq!(placed, [Rectangle { left: 59.0, top: 44.0, width: 32.0, height: 12.0 }]);
        let at_the_edge = place(&[label(190.0)], &[], (200.0, 100.0));
        assert!(at_the_edge[0].left + at_the_edge[0].width <= 181.0);
    }

    #[test]
    fn labels_of_a_crowd_do_not_share_a_point() {
        let mark = |n: u32| (400.0 + f64::from(n % 4) * 12.0, 200.0 + f64::from(n / 4) * 10.0);
        let labels: Vec<Label> = (0..14).map(|n| Label { mark: mark(n), width: 80.0, height: 12.0 }).collect();
        let around = |label: &Label| Rectangle { left: label.mark.0 - 4.0, top: label.mark.1 - 4.0, width: 8.0, height: 8.0 };
        let marks: Vec<Rectangle> = labels.iter().map(around).collect();
        let placed = place(&labels, &marks, (864.0, 430.0));
        for (index, label) in placed.iter().enumerate() {
            assert!(placed[..index].iter().chain(&marks).all(|other| other.shared(label) == 0.0), "{index}: {placed:?}");
        }
    }
}
