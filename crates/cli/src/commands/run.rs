//! `dynalm run`: one answer, or the chat.

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};

use crate::app::App;
use crate::args::{LaterArgs, RunArgs, TalkArgs};
use crate::chat;
use crate::exit::{Interrupted, usage};
use crate::session::{Answer, AnswerOptions, Conversation, LoadPlan, Session, report_stats};

/// A prompt from a pipe is read up to here; no context is this long.
const MAX_PROMPT_BYTES: u64 = 64 << 20;

/// Answers a prompt; chats where there is none and a person sits at the terminal.
pub(crate) fn run(app: &mut App, args: &RunArgs) -> anyhow::Result<()> {
    refuse_later(&args.talk.later)?;
    let prompt = prompt_of(args)?;
    let session = open(app, &args.model, &args.talk)?;
    match prompt {
        None => chat::run(app, session, &args.talk),
        Some(prompt) => answer(app, &session, &args.talk, prompt),
    }
}

/// Flags that are planned are refused by name.
///
/// # Errors
/// Wrong usage, where one was given.
pub(crate) fn refuse_later(later: &LaterArgs) -> anyhow::Result<()> {
    let given = [
        ("--grammar", &later.grammar),
        ("--json-schema", &later.json_schema),
        ("--spec", &later.spec),
    ];
    match given.iter().find(|(_, value)| value.is_some()) {
        Some((flag, _)) => Err(usage(format!("{flag} is not supported yet"))),
        None => Ok(()),
    }
}

/// Resolves, fetches and loads the model.
pub(crate) fn open(app: &mut App, model: &str, talk: &TalkArgs) -> anyhow::Result<Session> {
    let model = app.model(model)?;
    app.recommend(&model);
    let mut plan = LoadPlan::new(&app.settings);
    // One person: no more sequences than this one, so that the cache is not sized for a crowd.
    plan.engine.max_sequences = 1;
    let session = Session::open(app, &model, plan)?;
    if session.template.is_none() && !talk.raw {
        app.terminal
            .note("this model has no chat template: the prompt is continued as it is");
    }
    Ok(session)
}

fn prompt_of(args: &RunArgs) -> anyhow::Result<Option<String>> {
    let is_piped = !std::io::stdin().is_terminal();
    match args.prompt.as_slice() {
        [] if !is_piped => Ok(None),
        [] => read_pipe().map(Some),
        [dash] if dash == "-" => read_pipe().map(Some),
        words => Ok(Some(words.join(" "))),
    }
}

fn read_pipe() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_PROMPT_BYTES)
        .read_to_string(&mut text)
        .context("cannot read the prompt from standard input")?;
    if text.trim().is_empty() {
        bail!(usage("there is no prompt: standard input is empty"));
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn answer(app: &App, session: &Session, talk: &TalkArgs, prompt: String) -> anyhow::Result<()> {
    let mut conversation = Conversation::new(talk.system.clone());
    conversation.push("user", prompt);
    let tokens = conversation.tokens(session, talk.raw)?;
    let mut options = AnswerOptions::new(&app.settings, &talk.stop);
    options.at_once = talk.no_stream;
    let answer = Answer::get(session, tokens, &options)?;
    if talk.verbose {
        report_stats(&app.terminal, Some(session.load_time), &answer.finish);
    }
    if answer.interrupted {
        return Err(Interrupted(String::new()).into());
    }
    Ok(())
}
