//! A report as lines for a person.

use std::fmt::Write;

use crate::{Report, Spread};

/// The report as aligned lines. An em dash stands for what was not measured.
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    let (model, machine) = (&report.model, &report.machine);
    let _ = writeln!(
        text,
        "model      {} ({}, {:.0} M parameters, {:.1} MB)",
        model.name,
        model.arch,
        model.n_params as f64 / 1e6,
        model.file_bytes as f64 / 1e6
    );
    let _ = writeln!(
        text,
        "machine    {}, {} on {} threads",
        machine.cpu, machine.isa, machine.threads
    );
    let _ = writeln!(
        text,
        "int8 peak  {}",
        scaled(machine.int8_peak, 1e9, "G multiply-adds/s")
    );
    let _ = writeln!(
        text,
        "bandwidth  {}",
        scaled(machine.read_bandwidth, 1e9, "GB/s read")
    );
    let _ = writeln!(text, "load       {:.0} ms", report.load_ms);
    let _ = writeln!(
        text,
        "memory     {} loaded, {} at most",
        megabytes(report.resident_bytes),
        megabytes(report.peak_resident_bytes)
    );
    let _ = writeln!(
        text,
        "\n{:<26}{:>12}  {:>16}  {:>8}",
        "", "median", "range", "of limit"
    );
    for result in &report.prefill {
        row(
            &mut text,
            &format!("prefill {} tokens, tok/s", result.n_tokens),
            &result.tok_s,
            result.int8_share,
        );
    }
    for result in &report.decode {
        let users = if result.users == 1 {
            String::new()
        } else {
            format!(", {} users", result.users)
        };
        row(
            &mut text,
            &format!("decode{users}, tok/s"),
            &result.tok_s,
            result.bandwidth_share,
        );
    }
    for result in &report.first_token {
        row(
            &mut text,
            &format!("first token after {}, ms", result.n_tokens),
            &result.ms,
            None,
        );
    }
    text
}

fn row(text: &mut String, name: &str, spread: &Spread, share: Option<f64>) {
    let range = format!("{:.1} - {:.1}", spread.min, spread.max);
    let share = share.map_or("\u{2014}".to_owned(), |share| {
        format!("{:.0} %", share * 100.0)
    });
    let _ = writeln!(
        text,
        "{name:<26}{:>12.1}  {range:>16}  {share:>8}",
        spread.median
    );
}

fn scaled(spread: Option<Spread>, unit: f64, name: &str) -> String {
    spread.map_or("\u{2014}".to_owned(), |spread| {
        format!(
            "{:.1} {name} ({:.1} - {:.1})",
            spread.median / unit,
            spread.min / unit,
            spread.max / unit
        )
    })
}

fn megabytes(bytes: Option<u64>) -> String {
    bytes.map_or("\u{2014}".to_owned(), |bytes| {
        format!("{:.0} MB", bytes as f64 / 1e6)
    })
}
