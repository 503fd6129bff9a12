//! A loaded model and what is asked of it.

mod answer;
mod load;
mod prompt;

pub(crate) use answer::{Answer, AnswerOptions, report_stats};
pub(crate) use load::{LoadPlan, Session, kv_type, open_file, precheck};
pub(crate) use prompt::Conversation;
