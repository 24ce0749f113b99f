//! The metrics as they are exposed, read back: handles only write, and one reader of one format serves Prometheus and the
//! page alike.

/// A line of the text format: a series and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample<'a> {
    pub(super) name: &'a str,
    labels: &'a str,
    pub(super) value: f64,
}

impl<'a> Sample<'a> {
    /// A label's value. None of ours has a quote or a comma in it: routes, words and numbers.
    pub(super) fn label(&self, name: &str) -> Option<&'a str> {
        self.labels.split("\",").find_map(|pair| {
            let (label, value) = pair.split_once("=\"")?;
            (label == name).then(|| value.trim_end_matches('"'))
        })
    }

    /// A label that is a number.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.label(name)?.parse().ok()
    }
}

/// Every sample of a text; lines that are none (help, types) are passed over.
pub(super) fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let value = value.parse().ok()?;
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}')?),
            None => (series, ""),
        };
        Some(Sample { name, labels, value })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels() {
        let text = "# HELP a_total Words.\n# TYPE a_total counter\na_total 7\n\n\
                    b_total{route=\"/likes/{item}/users/{user}\",method=\"GET\",status=\"200\"} 12\n\
                    c_bucket{partition=\"3\",le=\"+Inf\"} 1.5\nbroken\n";
        let found: Vec<_> = samples(text).collect();
        assert_eq!(
            found.iter().map(|sample| (sample.name, sample.value)).collect::<Vec<_>>(),
            [("a_total", 7.0), ("b_total", 12.0), ("c_bucket", 1.5)]
        );
        assert_eq!(found[0].label("route"), None);
        assert_eq!(found[1].label("route"), Some("/likes/{item}/users/{user}"));
        assert_eq!((found[1].label("method"), found[1].label("status")), (Some("GET"), Some("200")));
        assert_eq!((found[2].number("partition"), found[2].label("le")), (Some(3), Some("+Inf")));
    }
}
