//! The chat: lines in, answers out, until `/bye` or Ctrl-D. It works at a terminal and on a pipe.

mod command;
mod input;
mod saved;

use anyhow::Context;

use self::command::{Command, HELP};
use self::input::{Input, Line};
use crate::app::App;
use crate::args::TalkArgs;
use crate::session::{Answer, AnswerOptions, Conversation, Session, report_stats};
use crate::settings::{self, Origin, Setting};
use crate::terminal;

/// A chat in progress.
struct Chat<'a> {
    app: &'a mut App,
    session: Session,
    conversation: Conversation,
    raw: bool,
    stop: Vec<String>,
    at_once: bool,
    verbose: bool,
    last: Option<Answer>,
}

/// Whether the chat goes on.
enum Next {
    Go,
    Leave,
}

/// Chats until the user leaves.
///
/// # Errors
/// Only what makes going on pointless: a closed output, a failed engine. What one answer or one command gets wrong is said,
/// and the chat goes on.
pub(crate) fn run(app: &mut App, session: Session, talk: &TalkArgs) -> anyhow::Result<()> {
    let mut input = Input::open(&app.paths)?;
    if input.is_terminal() {
        app.terminal.note(&format!(
            "{}: /help lists what can be typed, Ctrl-D leaves",
            session.name
        ));
    }
    let mut chat = Chat {
        session,
        conversation: Conversation::new(talk.system.clone()),
        raw: talk.raw,
        stop: talk.stop.clone(),
        at_once: talk.no_stream,
        verbose: talk.verbose,
        last: None,
        app,
    };
    loop {
        let outcome = match input.next()? {
            Line::End => return Ok(()),
            Line::Interrupted => Ok(Next::Go),
            Line::Text(text) => chat.take(&text),
        };
        match outcome {
            Ok(Next::Go) => {}
            Ok(Next::Leave) => return Ok(()),
            Err(error) if crate::exit::is_closed_pipe(&error) => return Err(error),
            Err(error) => chat.app.terminal.note(&format!("{error:#}")),
        }
    }
}

impl Chat<'_> {
    fn take(&mut self, text: &str) -> anyhow::Result<Next> {
        if text.trim().is_empty() {
            return Ok(Next::Go);
        }
        match Command::parse(text)? {
            None => self.say(text)?,
            Some(Command::Bye) => return Ok(Next::Leave),
            Some(command) => self.obey(command)?,
        }
        Ok(Next::Go)
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        self.conversation.push("user", text);
        let asked = self.answer();
        if asked.is_err() {
            // A question that could not be asked must not be in the way of the next one.
            self.conversation.turns.pop();
        }
        asked
    }

    fn answer(&mut self) -> anyhow::Result<()> {
        let tokens = self.conversation.tokens(&self.session, self.raw)?;
        let mut options = AnswerOptions::new(&self.app.settings, &self.stop);
        options.at_once = self.at_once;
        let answer = Answer::get(&self.session, tokens, &options)?;
        self.conversation.push("assistant", answer.text.clone());
        if self.verbose {
            report_stats(&self.app.terminal, None, &answer.finish);
        }
        self.last = Some(answer);
        Ok(())
    }

    fn obey(&mut self, command: Command<'_>) -> anyhow::Result<()> {
        match command {
            Command::Bye => {}
            Command::Help => terminal::line(HELP)?,
            Command::Set(name, value) => self.set(name, value)?,
            Command::Show(what) => self.show(what)?,
            Command::System(text) => {
                self.conversation.system = (!text.is_empty()).then(|| text.to_owned());
                self.app
                    .terminal
                    .note("the system message holds from the next answer on");
            }
            Command::Clear => {
                self.conversation.turns.clear();
                self.app.terminal.note("the conversation is forgotten");
            }
            Command::Save(name) => {
                let path = saved::save(&self.app.paths, name, &self.conversation)?;
                self.app
                    .terminal
                    .note(&format!("saved as {}", path.display()));
            }
            Command::Load(name) => {
                self.conversation = saved::load(&self.app.paths, name)?;
                self.app
                    .terminal
                    .note(&format!("{} turns", self.conversation.turns.len()));
            }
            Command::Regen => self.regenerate()?,
            Command::Stats => match &self.last {
                Some(answer) => report_stats(
                    &self.app.terminal,
                    Some(self.session.load_time),
                    &answer.finish,
                ),
                None => self.app.terminal.note("there is no answer yet"),
            },
        }
        Ok(())
    }

    fn regenerate(&mut self) -> anyhow::Result<()> {
        let turns = &mut self.conversation.turns;
        let former = turns.pop_if(|turn| turn.role == "assistant");
        anyhow::ensure!(
            turns.last().is_some_and(|turn| turn.role == "user"),
            "there is nothing to answer anew"
        );
        let asked = self.answer();
        if asked.is_err() {
            self.conversation.turns.extend(former);
        }
        asked
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match (name, value) {
            ("verbose", "") => self.verbose = true,
            ("quiet", "") => self.verbose = false,
            ("raw", on) => self.raw = on != "off",
            ("stop", "") => self.stop.clear(),
            ("stop", text) => self.stop.push(text.to_owned()),
            ("system", text) => self.conversation.system = Some(text.to_owned()),
            _ => {
                let setting = command::sampling_setting(name)?;
                let value = setting
                    .kind
                    .parse(value)
                    .map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
                self.app.settings.set(setting, value, Origin::Chat);
            }
        }
        Ok(())
    }

    fn show(&self, what: &str) -> anyhow::Result<()> {
        match what {
            "" | "parameters" => {
                for setting in sampling_settings() {
                    terminal::line(&self.parameter(setting))?;
                }
            }
            "info" => self.show_info()?,
            "system" => terminal::line(self.conversation.system.as_deref().unwrap_or("-"))?,
            "template" => {
                let source = self
                    .session
                    .template
                    .as_ref()
                    .map_or("-", |template| template.source());
                terminal::line(&terminal::printable(source))?;
            }
            "history" => {
                for turn in &self.conversation.turns {
                    terminal::line(&terminal::printable(&format!(
                        "{}: {}",
                        turn.role, turn.content
                    )))?;
                }
            }
            other => anyhow::bail!(
                "/show {other}: known are info, parameters, system, template, history"
            ),
        }
        Ok(())
    }

    fn parameter(&self, setting: &Setting) -> String {
        let settings = &self.app.settings;
        format!(
            "{:<15} {:<6} {}",
            setting.key,
            settings.shown(setting),
            settings.origin(setting.key)
        )
    }

    fn show_info(&self) -> anyhow::Result<()> {
        let info = self.session.engine.info();
        let lines = [
            format!("model         {}", self.session.name),
            format!("architecture  {}", info.arch),
            format!("quantization  {}", self.session.quantization),
            format!("parameters    {}", terminal::count(info.n_params)),
            format!(
                "context       {} of {} tokens",
                info.n_ctx, info.n_ctx_train
            ),
            format!("kernels       {} on {} threads", info.isa, info.threads),
        ];
        terminal::line(&terminal::printable(&lines.join("\n"))).context("no output")
    }
}

/// The sampling settings, as `/set` and `/show` know them.
fn sampling_settings() -> &'static [Setting] {
    settings::SAMPLING
}
