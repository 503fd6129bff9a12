"""The official `openai` package as a client of the real binary.

Starts `dynalm serve` on a free port and talks to it as an application would. Needs only the `openai` package:

    DYNALM_BIN=target/release/dynalm DYNALM_TEST_MODEL=model.gguf python scripts/clients/test_openai.py

Without a model the tests are skipped, and say so.
"""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

import openai

BINARY = os.environ.get("DYNALM_BIN", "target/release/dynalm")
MODEL = os.environ.get("DYNALM_TEST_MODEL", "")
KEY = "test-key"
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """One `dynalm serve`, ready when constructed."""

    def __init__(self, *flags):
        self.port = free_port()
        command = [BINARY, "serve", MODEL, "--host", "127.0.0.1", "--port", str(self.port), "--api-key", KEY]
        self.process = subprocess.Popen([*command, "--metrics", *flags])
        self.wait_until_ready()

    def wait_until_ready(self):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}")
            try:
                if self.get("/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError("the server is not ready after 120 s")

    def get(self, path):
        headers = {"Authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        text = self.get("/metrics")[1]
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE).group(1))

    def client(self, key=KEY):
        return openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key=key, max_retries=0, timeout=120)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=60)


def eventually(holds, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


@unittest.skipUnless(MODEL, "DYNALM_TEST_MODEL names no model")
class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = cls.server.client()
        cls.model = cls.client.models.list().data[0].id

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def chat(self, messages=None, **options):
        settings = {"model": self.model, "messages": messages or QUESTION, "temperature": 0, "max_tokens": 32}
        return self.client.chat.completions.create(**{**settings, **options})

    def test_models_are_listed(self):
        models = self.client.models.list()
        self.assertEqual(models.object, "list")
        model = self.client.models.retrieve(models.data[0].id)
        self.assertEqual(model.id, models.data[0].id)
        self.assertGreater(model.meta["n_ctx_train"], 0)

    def test_chat_answers(self):
        answer = self.chat()
        self.assertIn("Paris", answer.choices[0].message.content)
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertGreaterEqual(answer.usage.prompt_tokens_details.cached_tokens, 0)
        self.assertTrue(answer.system_fingerprint)
        self.assertEqual(answer.timings["predicted_n"], answer.usage.completion_tokens)

    def test_chat_streams_the_same_text(self):
        whole = self.chat()
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
        self.assertEqual([reason for reason in reasons if reason], [whole.choices[0].finish_reason])

    def test_the_streaming_helper_works(self):
        settings = {"model": self.model, "messages": QUESTION, "temperature": 0, "max_tokens": 16}
        with self.client.chat.completions.stream(**settings) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, self.chat(max_tokens=16).choices[0].message.content)

    def test_completions_answer_and_stream(self):
        settings = {"model": self.model, "prompt": "The capital of France is", "temperature": 0, "max_tokens": 8}
        whole = self.client.completions.create(**settings)
        self.assertIn("Paris", whole.choices[0].text)
        pieces = [chunk.choices[0].text for chunk in self.client.completions.create(stream=True, **settings)]
        self.assertEqual("".join(pieces), whole.choices[0].text)
        echoed = self.client.completions.create(echo=True, **settings)
        self.assertEqual(echoed.choices[0].text, settings["prompt"] + whole.choices[0].text)
        both = self.client.completions.create(**{**settings, "prompt": [settings["prompt"]] * 2})
        self.assertEqual([choice.text for choice in both.choices], [whole.choices[0].text] * 2)

    def test_eight_clients_at_once(self):
        expected = self.chat().choices[0].message.content
        answers = [None] * 8

        def ask(index):
            chunks = self.server.client().chat.completions.create(
                model=self.model, messages=QUESTION, temperature=0, max_tokens=32, stream=True
            )
            answers[index] = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

        threads = [threading.Thread(target=ask, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [expected] * 8)

    def test_stop_strings_end_an_answer(self):
        text = self.chat(max_tokens=24).choices[0].message.content
        word = text.split()[-1]
        stopped = self.chat(max_tokens=24, stop=[word])
        self.assertEqual(stopped.choices[0].finish_reason, "stop")
        self.assertEqual(stopped.choices[0].message.content, text[: text.index(word)])
        pieces = self.chat(max_tokens=24, stop=[word], stream=True)
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in pieces)
        self.assertEqual(streamed, stopped.choices[0].message.content)

    def test_limits_end_an_answer(self):
        answer = self.chat(messages=[{"role": "user", "content": "Count from one to fifty."}], max_tokens=5)
        self.assertEqual((answer.choices[0].finish_reason, answer.usage.completion_tokens), ("length", 5))

    def test_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=3, max_tokens=4)
        content = answer.choices[0].logprobs.content
        self.assertTrue(1 <= len(content) <= 4)
        for token in content:
            self.assertLessEqual(token.logprob, 0)
            self.assertEqual(len(token.top_logprobs), 3)
            self.assertEqual(token.top_logprobs[0].token, token.token)
        legacy = self.client.completions.create(model=self.model, prompt="One, two,", max_tokens=3, logprobs=2, temperature=0)
        # An end token is counted but is no part of the text.
        self.assertIn(legacy.usage.completion_tokens - len(legacy.choices[0].logprobs.tokens), (0, 1))

    def test_several_choices_and_seeds(self):
        options = {"n": 3, "seed": 11, "temperature": 1.0, "max_tokens": 12}
        first = [choice.message.content for choice in self.chat(**options).choices]
        second = [choice.message.content for choice in self.chat(**options).choices]
        self.assertEqual(first, second)
        self.assertEqual(len(first), 3)

    def test_an_answer_goes_on_from_its_beginning(self):
        messages = [*QUESTION, {"role": "assistant", "content": "The capital of France is"}]
        self.assertIn("Paris", self.chat(messages=messages, max_tokens=8).choices[0].message.content)

    def test_faults_are_the_right_exceptions(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=-1)
        self.assertEqual((caught.exception.param, caught.exception.type), ("temperature", "invalid_request_error"))
        with self.assertRaises(openai.BadRequestError):
            self.chat(messages=[{"role": "robot", "content": "x"}])
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(messages=[{"role": "user", "content": "word " * 200_000}])
        self.assertEqual(caught.exception.type, "exceed_context_size_error")
        self.assertGreater(caught.exception.body["n_prompt_tokens"], caught.exception.body["n_ctx"])
        with self.assertRaises(openai.NotFoundError):
            self.chat(model="no-such-model")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("no-such-model")
        with self.assertRaises(openai.AuthenticationError):
            self.server.client(key="wrong").models.list()
        with self.assertRaises(openai.InternalServerError) as caught:
            self.client.embeddings.create(model=self.model, input="x")
        self.assertEqual((caught.exception.status_code, caught.exception.type), (501, "not_supported_error"))

    def test_leaving_a_stream_frees_its_place(self):
        ended = self.server.metric('dynalm_requests_total{outcome="cancelled"}')
        messages = [{"role": "user", "content": "Tell a very long story about the sea."}]
        stream = self.chat(messages=messages, max_tokens=4000, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        self.assertEqual(self.server.metric("llamacpp:requests_processing"), 1)
        stream.close()
        eventually(lambda: self.server.metric("llamacpp:requests_processing") == 0, "the engine is free")
        self.assertEqual(self.server.metric('dynalm_requests_total{outcome="cancelled"}'), ended + 1)


@unittest.skipUnless(MODEL, "DYNALM_TEST_MODEL names no model")
class Drain(unittest.TestCase):
    def test_sigterm_lets_a_stream_end(self):
        server = Server()
        self.addCleanup(server.stop)
        client = server.client()
        model = client.models.list().data[0].id
        stream = client.chat.completions.create(
            model=model, messages=QUESTION, temperature=0, max_tokens=200, stream=True, extra_body={"ignore_eos": True}
        )
        chunks = [next(iter(stream))]
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: server.get("/health")[0] == 503, "readiness says no")
        with self.assertRaises(openai.InternalServerError) as caught:
            client.chat.completions.create(model=model, messages=QUESTION)
        self.assertEqual(caught.exception.status_code, 503)
        self.assertEqual(json.loads(caught.exception.response.text)["error"]["type"], "unavailable_error")
        chunks.extend(stream)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "length")
        self.assertEqual(server.process.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
