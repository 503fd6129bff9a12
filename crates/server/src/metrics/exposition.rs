//! The Prometheus text format.

use std::fmt::Write as _;

use dynalm_engine::{Histogram, LATENCY_BOUNDS};

/// A text being written.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    /// A counter of one series.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "counter");
        self.sample(name, &[], value);
    }

    /// A gauge of one series.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.sample(name, &[], value);
    }

    /// Begins a metric of several series, to be followed by [`Exposition::sample`].
    pub(super) fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One series.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        self.labels(labels);
        let _ = writeln!(self.text, " {value}");
    }

    /// A histogram in seconds with the engine's buckets.
    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        let bucket = format!("{name}_bucket");
        let mut cumulated = 0;
        for (count, bound) in histogram.counts.iter().zip(LATENCY_BOUNDS) {
            cumulated += count;
            self.sample(&bucket, &[("le", &bound.to_string())], cumulated as f64);
        }
        self.sample(&bucket, &[("le", "+Inf")], histogram.count as f64);
        self.sample(&format!("{name}_sum"), &[], histogram.sum);
        self.sample(&format!("{name}_count"), &[], histogram.count as f64);
    }

    /// The finished text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn labels(&mut self, labels: &[(&str, &str)]) {
        if labels.is_empty() {
            return;
        }
        self.text.push('{');
        for (index, (name, value)) in labels.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.text, "{comma}{name}=\"{value}\"");
        }
        self.text.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_have_labels_and_values_escaped() {
        let mut text = Exposition::default();
        text.head("x", "Help.", "counter");
        text.sample("x", &[("a", "q\"\\\n"), ("b", "c")], 2.0);
        assert_eq!(
            text.finish(),
            "# HELP x Help.\n# TYPE x counter\nx{a=\"q\\\"\\\\\\n\",b=\"c\"} 2\n"
        );
    }

    #[test]
    fn buckets_are_cumulated() {
        let mut histogram = Histogram::default();
        for seconds in [0.0005, 0.002, 100.0] {
            histogram.observe(seconds);
        }
        let mut text = Exposition::default();
        text.histogram("t", "Help.", &histogram);
        let text = text.finish();
        assert!(text.contains("t_bucket{le=\"0.001\"} 1\n"), "{text}");
        assert!(text.contains("t_bucket{le=\"60\"} 2\n"), "{text}");
        assert!(text.contains("t_bucket{le=\"+Inf\"} 3\n"), "{text}");
        assert!(text.contains("t_count 3\n"), "{text}");
    }
}
