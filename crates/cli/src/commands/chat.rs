//! `dynalm chat`.

use crate::app::App;
use crate::args::ChatArgs;
use crate::chat;
use crate::commands::run::{open, refuse_later};

/// Loads the model and hands over to the chat.
pub(crate) fn run(app: &mut App, args: &ChatArgs) -> anyhow::Result<()> {
    refuse_later(&args.talk.later)?;
    let session = open(app, &args.model, &args.talk)?;
    chat::run(app, session, &args.talk)
}
