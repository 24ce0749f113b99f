//! A chart of lines over two logarithmic axes: the sides are a hundredfold apart, and each should be read.

use super::plots::label;
use super::svg::Svg;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
/// Where the lines are; the names stand to the right of it.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 396.0;
const NAME_HEIGHT: f64 = 22.0;

pub struct Chart {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
}

pub struct Axis {
    /// What it shows, with its unit.
    pub label: &'static str,
    /// Where it is marked; `None` for 1, 2 and 5 of every power of ten.
    pub ticks: Option<Vec<f64>>,
}

pub struct Line {
    pub name: String,
    /// Which of the colors of `svg.rs`.
    pub color: usize,
    pub is_dashed: bool,
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// The drawing, or `None` where there is nothing to draw.
    pub fn svg(mut self) -> Option<String> {
        // Nothing has no logarithm: a side that did nothing in a run has a gap there.
        self.lines.iter_mut().for_each(|line| line.points.retain(|(x, y)| *x > 0.0 && *y > 0.0));
        self.lines.retain(|line| !line.points.is_empty());
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x = Scale::new(points().map(|point| point.0), self.x.ticks.clone(), (LEFT, RIGHT))?;
        let y = Scale::new(points().map(|point| point.1), self.y.ticks.clone(), (BOTTOM, TOP))?;

        let mut svg = Svg::new(WIDTH, HEIGHT, &self.title);
        svg.text((LEFT, 28.0), "title", "start", &self.title);
        for tick in &x.ticks {
            svg.line("grid", (x.at(*tick), TOP), (x.at(*tick), BOTTOM));
            svg.text((x.at(*tick), BOTTOM + 20.0), "tick", "middle", &label(*tick));
        }
        for tick in &y.ticks {
            svg.line("grid", (LEFT, y.at(*tick)), (RIGHT, y.at(*tick)));
            svg.text((LEFT - 8.0, y.at(*tick) + 4.0), "tick", "end", &label(*tick));
        }
        svg.text((f64::midpoint(LEFT, RIGHT), BOTTOM + 46.0), "label", "middle", self.x.label);
        svg.upright((20.0, f64::midpoint(TOP, BOTTOM)), self.y.label);
        for line in &self.lines {
            let places: Vec<_> = line.points.iter().map(|point| (x.at(point.0), y.at(point.1))).collect();
            svg.polyline(line.color, line.is_dashed, &places);
        }
        self.names(&mut svg, &y);
        Some(svg.end())
    }

    /// The names, each as near as can be to where its line ends.
    fn names(&self, svg: &mut Svg, y: &Scale) {
        let ends = self.lines.iter().filter_map(|line| Some((line, y.at(line.points.last()?.1))));
        let mut ends: Vec<_> = ends.collect();
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let room = NAME_HEIGHT * ends.len() as f64;
        let mut free = TOP;
        for (index, (line, end)) in ends.iter().enumerate() {
            // As low as leaves room for those that follow.
            let lowest = TOP + (BOTTOM - TOP).max(room) - NAME_HEIGHT * (ends.len() - index - 1) as f64;
            let place = end.min(lowest).max(free);
            free = place + NAME_HEIGHT;
            svg.polyline(line.color, line.is_dashed, &[(RIGHT + 14.0, place), (RIGHT + 42.0, place)]);
            svg.text((RIGHT + 50.0, place + 4.0), "name", "start", &line.name);
        }
    }
}

/// From values to places, by their logarithms.
struct Scale {
    from: f64,
    to: f64,
    places: (f64, f64),
    ticks: Vec<f64>,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, ticks: Option<Vec<f64>>, places: (f64, f64)) -> Option<Self> {
        let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        let ticks = ticks.unwrap_or_else(|| round_numbers(least, most));
        let from = ticks.iter().copied().fold(least, f64::min);
        // One value alone has no range.
        let to = ticks.iter().copied().fold(most, f64::max).max(from * 1.01);
        Some(Self { from, to, places, ticks })
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value / self.from).log10() / (self.to / self.from).log10();
        self.places.0 + part * (self.places.1 - self.places.0)
    }
}

/// 1, 2 and 5 of every power of ten, from the last one below `least` to the first one above `most`; powers of ten alone where
/// that would be too many to read.
fn round_numbers(least: f64, most: f64) -> Vec<f64> {
    let powers = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let is_wide = powers.clone().count() > 5;
    let steps: &[f64] = if is_wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all: Vec<f64> =
        powers.flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power))).collect();
    let first = all.iter().rposition(|number| *number <= least).unwrap_or(0);
    let last = all.iter().position(|number| *number >= most).unwrap_or(all.len() - 1);
    all[first..=last].to_vec()
}
