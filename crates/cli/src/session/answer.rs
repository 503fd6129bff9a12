//! One answer: asked for, shown as it comes, stopped by Ctrl-C.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, bail};
use dynalm_engine::{Event, Finish, FinishReason, Generation, Request, Sampling};

use super::load::Session;
use crate::interrupt;
use crate::settings::Resolved;
use crate::terminal::{Terminal, printable};

/// How to answer.
#[derive(Debug, Clone)]
pub(crate) struct AnswerOptions {
    /// How tokens are picked.
    pub(crate) sampling: Sampling,
    /// Tokens at most.
    pub(crate) max_tokens: Option<usize>,
    /// Texts that end the answer.
    pub(crate) stop: Vec<String>,
    /// Show the answer only when it is complete.
    pub(crate) at_once: bool,
    /// The answer goes to a terminal, so control characters are shown as replacement characters.
    pub(crate) to_terminal: bool,
}

impl AnswerOptions {
    /// The settings of group `SAMPLING`.
    pub(crate) fn new(settings: &Resolved, stop: &[String]) -> AnswerOptions {
        AnswerOptions {
            sampling: sampling(settings),
            max_tokens: settings.count("n_predict"),
            stop: stop.to_vec(),
            at_once: false,
            to_terminal: io::IsTerminal::is_terminal(&io::stdout()),
        }
    }
}

/// Sampling as set.
pub(crate) fn sampling(settings: &Resolved) -> Sampling {
    let default = Sampling::default();
    Sampling {
        temperature: settings.float("temp").unwrap_or(default.temperature),
        top_k: settings.count("top_k").unwrap_or(default.top_k),
        top_p: settings.float("top_p").unwrap_or(default.top_p),
        min_p: settings.float("min_p").unwrap_or(default.min_p),
        repeat_penalty: settings
            .float("repeat_penalty")
            .unwrap_or(default.repeat_penalty),
        seed: settings
            .int("seed")
            .and_then(|seed| u64::try_from(seed).ok()),
        ..default
    }
}

/// What came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The text.
    pub(crate) text: String,
    /// How it ended.
    pub(crate) finish: Finish,
    /// Whether Ctrl-C ended it.
    pub(crate) interrupted: bool,
}

impl Answer {
    /// Asks `session` and writes the answer to standard output.
    ///
    /// # Errors
    /// A prompt longer than the context (with both numbers), a failed step, a closed output.
    pub(crate) fn get(
        session: &Session,
        prompt: Vec<u32>,
        options: &AnswerOptions,
    ) -> anyhow::Result<Answer> {
        let request = Request {
            sampling: options.sampling.clone(),
            max_tokens: options.max_tokens,
            stop: options.stop.clone(),
            ..Request::new(prompt)
        };
        let mut generation = session.engine.submit(request)?;
        let answer = receive(&mut generation, options)?;
        match &answer.finish.reason {
            FinishReason::Failed(why) => bail!("the answer failed: {why}"),
            FinishReason::DeadlineExceeded => bail!("the answer took too long"),
            _ => Ok(answer),
        }
    }
}

fn receive(generation: &mut Generation, options: &AnswerOptions) -> anyhow::Result<Answer> {
    let (_guard, mut pressed) = interrupt::watch();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .context("no runtime")?;
    let mut answer = String::new();
    let mut interrupted = false;
    let finish = runtime.block_on(async {
        loop {
            let event = tokio::select! {
                event = generation.next() => event,
                Ok(()) = pressed.changed(), if !interrupted => {
                    interrupted = true;
                    generation.cancel();
                    continue;
                }
            };
            match event {
                Some(Event::Token(token)) => show(&token.text, &mut answer, options)?,
                Some(Event::Finished(finish)) => {
                    show(&finish.text, &mut answer, options)?;
                    return Ok(finish);
                }
                None => bail!("the engine has stopped"),
            }
        }
    })?;
    end(&answer, options)?;
    Ok(Answer {
        text: answer,
        finish,
        interrupted,
    })
}

fn show(text: &str, answer: &mut String, options: &AnswerOptions) -> io::Result<()> {
    answer.push_str(text);
    if options.at_once || text.is_empty() {
        return Ok(());
    }
    write_text(text, options)
}

fn end(answer: &str, options: &AnswerOptions) -> io::Result<()> {
    if options.at_once {
        write_text(answer, options)?;
    }
    if answer.ends_with('\n') {
        Ok(())
    } else {
        write_text("\n", options)
    }
}

fn write_text(text: &str, options: &AnswerOptions) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if options.to_terminal {
        stdout.write_all(printable(text).as_bytes())?;
    } else {
        stdout.write_all(text.as_bytes())?;
    }
    stdout.flush()
}

/// Times and rates of an answer, on standard error.
pub(crate) fn report_stats(terminal: &Terminal, load_time: Option<Duration>, finish: &Finish) {
    let (usage, timings) = (&finish.usage, &finish.timings);
    let computed = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
    let first_token = timings
        .first_token
        .map_or("-".to_owned(), |time| format!("{:.0} ms", ms(time)));
    // The first token comes out of the prefill.
    let decoded = usage.completion_tokens.saturating_sub(1);
    let mut lines = Vec::new();
    if let Some(time) = load_time {
        lines.push(format!("load     {:.0} ms", ms(time)));
    }
    lines.push(format!(
        "prompt   {} tokens, {} from the cache",
        usage.prompt_tokens, usage.cached_tokens
    ));
    lines.push(format!(
        "prefill  {} tok/s",
        rate(computed, timings.prefill)
    ));
    lines.push(format!("first    {first_token}"));
    lines.push(format!("answer   {} tokens", usage.completion_tokens));
    lines.push(format!("decode   {} tok/s", rate(decoded, timings.decode)));
    terminal.note(&lines.join("\n"));
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn rate(n: usize, time: Duration) -> String {
    if n == 0 || time.is_zero() {
        "-".to_owned()
    } else {
        format!("{:.1}", n as f64 / time.as_secs_f64())
    }
}
