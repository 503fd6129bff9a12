//! Stop strings, end tokens, limits, deadlines, faults: each ends a request in its own way, and only that request.

mod support;

use std::time::{Duration, Instant};

use dynalm_engine::fake_model::FakeModel;
use dynalm_engine::{EngineConfig, FinishReason, Request, Sampling, StopCause, SubmitError};
use support::{END, MARK, VOCAB_SIZE, ask, engine, greedy, read, reciter, talker};

fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

fn word(text: &str) -> FinishReason {
    FinishReason::Stop(StopCause::Word(text.into()))
}

#[test]
fn an_end_token_ends_the_answer_and_is_not_shown() {
    let engine = engine(reciter(2, bytes("Hi!")), EngineConfig::default());
    let answer = ask(&engine, greedy(&[1, 2], 100));
    assert_eq!(answer.text, "Hi!");
    assert_eq!(
        answer.finish.reason,
        FinishReason::Stop(StopCause::EndToken)
    );
    assert_eq!(answer.ids(), bytes("Hi!"));
    let usage = answer.finish.usage;
    assert_eq!(
        (usage.prompt_tokens, usage.completion_tokens),
        (2, 4),
        "the end token counts"
    );
}

#[test]
fn control_tokens_show_when_asked_for() {
    let tokens = vec![u32::from(b'a'), MARK, u32::from(b'b')];
    let engine = engine(reciter(1, tokens), EngineConfig::default());
    let request = greedy(&[1], 100);
    assert_eq!(ask(&engine, request.clone()).text, "ab");
    let shown = ask(
        &engine,
        Request {
            special_tokens_in_text: true,
            ..request
        },
    );
    assert_eq!(shown.text, "a<|mark|>b<|end|>");
}

#[test]
fn ignored_end_tokens_are_not_chosen() {
    let engine = engine(reciter(1, bytes("Hi!")), EngineConfig::default());
    let answer = ask(
        &engine,
        Request {
            ignore_eos: true,
            ..greedy(&[1], 20)
        },
    );
    assert_eq!(answer.finish.reason, FinishReason::Length);
    assert_eq!(answer.tokens.len(), 20);
    assert!(!answer.ids().contains(&END));
}

#[test]
fn a_stop_string_across_tokens_is_held_back_and_removed() {
    let engine = engine(
        reciter(1, bytes("one\n\nUser: two")),
        EngineConfig::default(),
    );
    let answer = ask(
        &engine,
        Request {
            stop: vec!["\n\nUser:".into(), "never".into()],
            ..greedy(&[1], 100)
        },
    );
    assert_eq!(answer.text, "one");
    assert_eq!(answer.finish.reason, word("\n\nUser:"));
    assert_eq!(
        answer.finish.usage.completion_tokens, 10,
        "no token after the stop string"
    );
    assert!(answer.tokens.iter().all(|event| !event.text.contains('\n')));
}

#[test]
fn text_that_only_began_like_a_stop_string_comes_with_the_end() {
    let engine = engine(reciter(1, bytes("wait ST")), EngineConfig::default());
    let answer = ask(
        &engine,
        Request {
            stop: vec!["STOP".into()],
            ..greedy(&[1], 100)
        },
    );
    assert_eq!(answer.text, "wait ST");
    assert_eq!(answer.finish.text, "ST");
    assert_eq!(
        answer.finish.reason,
        FinishReason::Stop(StopCause::EndToken)
    );
}

#[test]
fn characters_are_never_split() {
    let engine = engine(reciter(1, bytes("né€𝄞")), EngineConfig::default());
    let answer = ask(&engine, greedy(&[1], 100));
    assert_eq!(answer.text, "né€𝄞");
    let texts: Vec<&str> = answer
        .tokens
        .iter()
        .map(|event| event.text.as_str())
        .collect();
    assert_eq!(texts, ["n", "", "é", "", "", "€", "", "", "", "𝄞"]);
    // Cut off in the middle of a character.
    let cut = ask(&engine, greedy(&[1], 2));
    assert_eq!(
        (cut.text.as_str(), cut.finish.reason),
        ("n\u{fffd}", FinishReason::Length)
    );
}

#[test]
fn limits_end_with_length() {
    let engine = engine(
        talker(2),
        EngineConfig {
            context_len: Some(40),
            ..EngineConfig::default()
        },
    );
    let answer = ask(&engine, greedy(&[1, 2, 3], 7));
    assert_eq!(
        (answer.tokens.len(), answer.finish.reason),
        (7, FinishReason::Length)
    );
    let unlimited = Request {
        max_tokens: None,
        ..greedy(&[1, 2, 3], 0)
    };
    let full = ask(&engine, unlimited);
    assert_eq!(
        (full.tokens.len(), full.finish.reason),
        (37, FinishReason::Length),
        "the context ends it"
    );
    let none = ask(&engine, greedy(&[1, 2, 3], 0));
    assert_eq!(
        (none.tokens.len(), none.finish.reason),
        (0, FinishReason::Length)
    );
    assert_eq!(
        engine.submit(greedy(&[1; 40], 1)).err(),
        Some(SubmitError::PromptTooLong {
            n_prompt_tokens: 40,
            n_ctx: 40
        })
    );
    assert_eq!(ask(&engine, greedy(&[1; 39], 9)).tokens.len(), 1);
}

#[test]
fn a_deadline_ends_a_request_running_or_queued() {
    let model = talker(64).delay(Duration::from_millis(1));
    let engine = engine(
        model,
        EngineConfig {
            max_sequences: 1,
            ..EngineConfig::default()
        },
    );
    let running = engine.submit(greedy(&[1], 2000)).expect("accepted");
    let late = Request {
        deadline: Some(Instant::now()),
        ..greedy(&[2], 10)
    };
    let answer = ask(&engine, late);
    assert_eq!(answer.finish.reason, FinishReason::DeadlineExceeded);
    assert!(answer.tokens.is_empty());
    drop(running);
    let soon = Request {
        deadline: Some(Instant::now() + Duration::from_millis(50)),
        ..greedy(&[2], 2000)
    };
    let answer = ask(&engine, soon);
    assert_eq!(answer.finish.reason, FinishReason::DeadlineExceeded);
    assert!(!answer.tokens.is_empty() && answer.tokens.len() < 2000);
    assert_eq!(engine.stats().requests.deadline, 2);
}

#[test]
fn a_panic_ends_the_step_s_sequences_and_the_engine_goes_on() {
    let model = talker(64).panic_on(200).fail_on(201);
    let engine = engine(model, EngineConfig::default());
    let alone = ask(&engine, greedy(&[1, 2], 20)).text;
    for (token, message) in [(200, "panicked"), (201, "failed")] {
        let FinishReason::Failed(found) = ask(&engine, greedy(&[token], 5)).finish.reason else {
            panic!("must fail");
        };
        assert!(
            found.contains(message) && found.contains(&token.to_string()),
            "{found}"
        );
        assert_eq!(ask(&engine, greedy(&[1, 2], 20)).text, alone);
    }
    let stats = engine.stats();
    assert_eq!(
        (
            stats.requests.failed,
            stats.failed_steps,
            stats.kv_blocks_used
        ),
        (2, 2, 0)
    );
}

#[test]
fn a_sequence_that_was_not_in_the_broken_step_survives_it() {
    // One row a step: the short prefill and the poisoned one are never in a step together.
    let config = EngineConfig {
        max_sequences: 1,
        max_step_rows: 1,
        prefill_chunk: 1,
        ..EngineConfig::default()
    };
    let engine = engine(talker(64).panic_on(200), config);
    let poisoned = engine.submit(greedy(&[200], 5)).expect("accepted");
    let waiting = engine.submit(greedy(&[1, 2], 5)).expect("accepted");
    assert!(matches!(
        read(poisoned).finish.reason,
        FinishReason::Failed(_)
    ));
    assert_eq!(read(waiting).finish.reason, FinishReason::Length);
}

#[test]
fn logits_that_allow_no_token_fail_the_one_request() {
    let everything: Vec<u32> = (0..VOCAB_SIZE as u32).collect();
    let engine = engine(
        FakeModel::new(VOCAB_SIZE, 8).never(&everything),
        EngineConfig::default(),
    );
    let FinishReason::Failed(message) = ask(&engine, greedy(&[1], 5)).finish.reason else {
        panic!("must fail")
    };
    assert!(message.contains("no token"), "{message}");
    assert_eq!(engine.stats().kv_blocks_used, 0);
}

#[test]
fn a_full_queue_refuses_at_once_and_takes_again_later() {
    let model = talker(64).delay(Duration::from_millis(1));
    let engine = engine(
        model,
        EngineConfig {
            max_sequences: 1,
            max_queue: 2,
            ..EngineConfig::default()
        },
    );
    let accepted: Vec<_> = (0..3)
        .map(|_| engine.submit(greedy(&[1], 30)).expect("accepted"))
        .collect();
    for _ in 0..100 {
        assert_eq!(
            engine.submit(greedy(&[1], 30)).err(),
            Some(SubmitError::QueueFull { limit: 2 })
        );
    }
    for generation in accepted {
        assert_eq!(read(generation).finish.reason, FinishReason::Length);
    }
    assert_eq!(ask(&engine, greedy(&[1], 2)).tokens.len(), 2);
    let requests = engine.stats().requests;
    assert_eq!(
        (
            requests.accepted,
            requests.refused_queue_full,
            requests.length
        ),
        (4, 100, 4)
    );
}

#[test]
fn draining_refuses_new_ones_and_lets_the_others_finish() {
    let engine = engine(talker(64), EngineConfig::default());
    let running = engine.submit(greedy(&[1], 100)).expect("accepted");
    engine.drain();
    assert_eq!(
        engine.submit(greedy(&[1], 1)).err(),
        Some(SubmitError::Draining)
    );
    assert_eq!(read(running).finish.reason, FinishReason::Length);
    assert!(engine.is_idle());
}

#[test]
fn logprobs_come_with_each_token() {
    let engine = engine(talker(64), EngineConfig::default());
    let request = Request {
        logprobs: Some(3),
        sampling: Sampling {
            seed: Some(1),
            temperature: 1.0,
            ..Sampling::default()
        },
        ..greedy(&[1, 2], 5)
    };
    let answer = ask(&engine, request);
    assert_eq!(answer.tokens.len(), 5);
    for event in &answer.tokens {
        let logprob = event.logprob.as_ref().expect("was asked for");
        assert_eq!(logprob.top.len(), 3);
        assert!(logprob.logprob <= logprob.top[0].logprob && logprob.top[0].logprob < 0.0);
    }
    assert!(ask(&engine, greedy(&[1], 1)).tokens[0].logprob.is_none());
}

#[test]
fn events_can_be_awaited() {
    let engine = engine(reciter(1, bytes("Hi")), EngineConfig::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let n_events = runtime.block_on(async {
        let mut generation = engine.submit(greedy(&[1], 100)).expect("accepted");
        let mut n_events = 0;
        while generation.next().await.is_some() {
            n_events += 1;
        }
        n_events
    });
    assert_eq!(n_events, 3);
}

#[test]
fn timings_add_up() {
    let model = talker(64).delay(Duration::from_millis(3));
    let engine = engine(model, EngineConfig::default());
    let began = Instant::now();
    let timings = ask(&engine, greedy(&[1], 4)).finish.timings;
    assert!(
        timings.prefill >= Duration::from_millis(3) && timings.decode >= Duration::from_millis(9)
    );
    assert!(timings.queue + timings.prefill + timings.decode <= began.elapsed());
    assert_eq!(timings.first_token, Some(timings.queue + timings.prefill));
    let stats = engine.stats();
    assert_eq!(
        (
            stats.time_to_first_token.count,
            stats.inter_token.count,
            stats.queue_wait.count
        ),
        (1, 3, 1)
    );
    assert_eq!(stats.step_time.count, 4);
}
