//! The few shapes of a chart, as SVG. Its colors suit a light page and, where the reader's is dark, a dark one.

use std::fmt::Write;

/// By the number of a line's color: on light, on dark. Told apart by those who see few colors, too.
const COLORS: [(&str, &str); 7] = [
    ("#0b5fa5", "#63b3ff"),
    ("#6b7280", "#a3abb8"),
    ("#9a8a6a", "#cbbb97"),
    ("#c2410c", "#ff8f57"),
    ("#00745a", "#3fcf9f"),
    ("#7a9a00", "#c3de4a"),
    ("#a02c7d", "#f07cc8"),
];

pub struct Svg(String);

impl Svg {
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut style = "text{font-family:system-ui,sans-serif;fill:#1f2328}.page{fill:#ffffff}.grid{stroke:#d5dae0}\
            .title{font-size:17px;font-weight:600}.tick{font-size:12px}.label{font-size:13px}.name{font-size:13px}\
            polyline{fill:none;stroke-width:2.2;stroke-linejoin:round}.dashed{stroke-dasharray:5 4;stroke-width:1.6}"
            .to_owned();
        let mut dark = "text{fill:#e6edf3}.page{fill:#0d1117}.grid{stroke:#30363d}".to_owned();
        for (number, (light_color, dark_color)) in COLORS.iter().enumerate() {
            let rule =
                |color: &str| format!("polyline.c{number}{{stroke:{color}}}circle.c{number}{{fill:{color}}}");
            style += &rule(light_color);
            dark += &rule(dark_color);
        }
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
            <title>{}</title>\n\
            <style>{style}@media (prefers-color-scheme:dark){{{dark}}}</style>\n\
            <rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n",
            escaped(title)
        ))
    }

    pub fn text(&mut self, (x, y): (f64, f64), class: &str, anchor: &str, text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// A label that is read from below.
    pub fn upright(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text class=\"label\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\">{text}</text>"
        ));
    }

    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.push(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// Points that are joined, and a dot on each.
    pub fn polyline(&mut self, color: usize, is_dashed: bool, places: &[(f64, f64)]) {
        let joined: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (joined, dashed) = (joined.join(" "), if is_dashed { " dashed" } else { "" });
        self.push(format_args!("<polyline class=\"c{color}{dashed}\" points=\"{joined}\"/>"));
        let radius = if is_dashed { 2.2 } else { 3.4 };
        for (x, y) in places {
            self.push(format_args!(
                "<circle class=\"c{color}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"
            ));
        }
    }

    pub fn end(mut self) -> String {
        self.0 += "</svg>\n";
        self.0
    }

    fn push(&mut self, shape: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{shape}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
