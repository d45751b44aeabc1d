"""The HTTP server: bodies, validation, streams, hostile clients, batching that never changes an answer, draining."""
import concurrent.futures
import json
import resource
import signal
import socket
import time

import harness
import tiny_model
from harness import Server, run

# (endpoint, changed fields, status, param). Every one must be answered in the OpenAI error shape, and the server must live on.
BAD_FIELDS = [
    ({"temperature": -1}, "temperature"), ({"temperature": 2.5}, "temperature"), ({"temperature": "hot"}, "temperature"),
    ({"top_p": 0}, "top_p"), ({"top_p": 1.5}, "top_p"), ({"top_k": -2}, "top_k"), ({"min_p": -0.1}, "min_p"), ({"min_p": 2}, "min_p"),
    ({"presence_penalty": 3}, "presence_penalty"), ({"frequency_penalty": -3}, "frequency_penalty"), ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"max_tokens": -1}, "max_tokens"), ({"max_tokens": 1.5}, "max_tokens"), ({"max_tokens": 10 ** 30}, "max_tokens"), ({"max_tokens": 100000}, "max_tokens"),
    ({"n": 0}, "n"), ({"n": 10000}, "n"), ({"n": -1}, "n"), ({"stop": ""}, "stop"), ({"stop": ["a"] * 17}, "stop"), ({"stop": 5}, "stop"), ({"stop": ["x" * 300]}, "stop"),
    ({"logit_bias": {"99999": 1}}, "logit_bias"), ({"logit_bias": {"a": 1}}, "logit_bias"), ({"logit_bias": {"1": 101}}, "logit_bias"), ({"logit_bias": []}, "logit_bias"),
    ({"stream_options": {"include_usage": True}}, "stream_options"), ({"stream": "yes"}, "stream"), ({"seed": "x"}, "seed"), ({"seed": 9223372036854775808.0}, "seed"), ({"seed": 2 ** 63}, "seed"), ({"min_tokens": -1}, "min_tokens"),
    ({"response_format": {"type": "json_object"}}, "response_format"), ({"response_format": 5}, "response_format"),
]
BAD_COMPLETIONS = [({"prompt": None}, "prompt"), ({"prompt": 5}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": ""}, "prompt"), ({"prompt": [[]]}, "prompt"),
                   ({"prompt": [-1]}, "prompt"), ({"prompt": [99999]}, "prompt"), ({"prompt": [1.5]}, "prompt"), ({"prompt": {"a": 1}}, "prompt"),
                   ({"logprobs": 21}, "logprobs"), ({"logprobs": -1}, "logprobs"), ({"suffix": "x"}, "suffix"), ({"best_of": 3}, "best_of")]
BAD_CHATS = [({"messages": None}, "messages"), ({"messages": []}, "messages"), ({"messages": "hi"}, "messages"), ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role"),
             ({"messages": [{"role": "user"}]}, "messages.0.content"), ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content"),
             ({"messages": [5]}, "messages.0.role"), ({"top_logprobs": 2}, "top_logprobs"), ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
             ({"tools": [{"type": "function"}]}, "tools"), ({"max_completion_tokens": -1}, "max_completion_tokens")]


def events(text):
    """The JSON of every SSE frame; checks that the last is [DONE]."""
    frames = [line[len("data: "):] for line in text.split("\n\n") if line]
    assert frames[-1] == "[DONE]", frames[-1]
    return [json.loads(frame) for frame in frames[:-1]]


class ServerCase(harness.Case):
    arguments = []

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(cls.model, *cls.arguments)
        cls.enterClassContext(cls.server)

    def complete(self, **fields):
        return self.server.post("/v1/completions", {"prompt": "Once upon", "max_tokens": 12, "temperature": 0, "ignore_eos": True, **fields})

    def chat(self, **fields):
        return self.server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 12, "temperature": 0, **fields})


class ApiTest(ServerCase):
    def test_completion(self):
        status, body = self.complete(echo=True, logprobs=2)
        self.assertEqual(status, 200)
        self.assertEqual(body["object"], "text_completion")
        self.assertEqual(body["usage"], {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21})
        choice = body["choices"][0]
        self.assertTrue(choice["text"].startswith("Once upon"))
        self.assertEqual(choice["finish_reason"], "length")
        logprobs = choice["logprobs"]
        self.assertEqual([len(logprobs[k]) for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset")], [21] * 4)
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertTrue(all(value <= 0 for value in logprobs["token_logprobs"][1:]))

    def test_token_ids_and_several_prompts(self):
        by_text = self.complete()[1]["choices"][0]["text"]
        ids = list(b"Once upon")
        vocab = {byte: i for i, byte in enumerate(range(256))}
        self.assertEqual(self.complete(prompt=[vocab[b] for b in ids])[1]["choices"][0]["text"], by_text)
        _, body = self.complete(prompt=["Once upon", "Twice"], n=2, temperature=0.8, seed=3)
        self.assertEqual([choice["index"] for choice in body["choices"]], [0, 1, 2, 3])
        alone = self.complete(prompt="Twice", temperature=0.8, seed=3)[1]["choices"][0]["text"]
        self.assertEqual(body["choices"][2]["text"], alone)

    def test_chat(self):
        status, body = self.chat(logprobs=True, top_logprobs=2)
        self.assertEqual(status, 200)
        self.assertEqual(body["object"], "chat.completion")
        self.assertEqual(body["choices"][0]["message"]["role"], "assistant")
        for entry in body["choices"][0]["logprobs"]["content"]:
            self.assertEqual(len(entry["top_logprobs"]), 2)
            self.assertLessEqual(entry["logprob"], 0)

    def test_user_text_never_becomes_a_special_token(self):
        plain = self.chat(messages=[{"role": "user", "content": "x"}], max_tokens=1)[1]["usage"]["prompt_tokens"]
        hostile = self.chat(messages=[{"role": "user", "content": "<|im_end|>"}], max_tokens=1)[1]["usage"]["prompt_tokens"]
        self.assertEqual(hostile - plain, len("<|im_end|>") - 1)

    def test_a_stream_gives_the_text_of_the_whole(self):
        for path, body, text_of in (
                ("/v1/completions", {"prompt": "Once upon", "max_tokens": 12, "temperature": 0, "ignore_eos": True, "n": 2, "logprobs": 1},
                 lambda c: c["text"]),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 12, "temperature": 0},
                 lambda c: c["delta"].get("content", ""))):
            whole = self.server.post(path, body)[1]
            status, headers, text = self.server.request("POST", path, {**body, "stream": True, "stream_options": {"include_usage": True}})
            self.assertEqual(status, 200)
            self.assertTrue(headers["Content-Type"].startswith("text/event-stream"))
            chunks = events(text)
            self.assertEqual(len({chunk["id"] for chunk in chunks}), 1)
            self.assertEqual(chunks[-1]["choices"], [])
            self.assertEqual(chunks[-1]["usage"], whole["usage"])
            self.assertTrue(all(chunk["usage"] is None for chunk in chunks[:-1]))
            for choice in whole["choices"]:
                parts = [c for chunk in chunks for c in chunk["choices"] if c["index"] == choice["index"]]
                self.assertEqual("".join(map(text_of, parts)), choice["text"] if "text" in choice else choice["message"]["content"])
                self.assertEqual([c["finish_reason"] for c in parts if c["finish_reason"]], [choice["finish_reason"]])
        chunks = events(self.server.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, "stream": True})[2])
        self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertTrue(all("usage" not in chunk for chunk in chunks))

    def test_stop_strings_end_the_text_before_them(self):
        text = self.complete(max_tokens=40)[1]["choices"][0]["text"]
        stop = text[10:13]
        expected = text[:text.index(stop)]
        for stream in (False, True):
            if stream:
                chunks = events(self.server.request("POST", "/v1/completions", {
                    "prompt": "Once upon", "max_tokens": 40, "temperature": 0, "ignore_eos": True, "stop": [stop], "stream": True})[2])
                got = "".join(c["choices"][0]["text"] for c in chunks)
                reason = chunks[-1]["choices"][0]["finish_reason"]
            else:
                choice = self.complete(max_tokens=40, stop=stop)[1]["choices"][0]
                got, reason = choice["text"], choice["finish_reason"]
            self.assertEqual((got, reason), (expected, "stop"))

    def test_zero_tokens_and_models(self):
        self.assertEqual(self.complete(max_tokens=0)[1]["choices"][0], {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"})
        listed = self.server.request("GET", "/v1/models")
        self.assertEqual(json.loads(listed[2])["data"][0]["id"], "tiny")
        self.assertEqual(self.server.request("GET", "/v1/models/tiny")[0], 200)
        self.assertEqual(self.complete(model="other")[0], 404)
        self.assertEqual(self.complete(model="tiny")[0], 200)

    def test_bad_fields_are_400_with_their_name(self):
        cases = [("/v1/completions", {"prompt": "x", "max_tokens": 2, **fields}, param) for fields, param in BAD_FIELDS + BAD_COMPLETIONS]
        cases += [("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, **fields}, param) for fields, param in BAD_FIELDS + BAD_CHATS]
        for path, body, param in cases:
            status, reply = self.server.post(path, body)
            self.assertEqual(status, 400, (body, reply))
            self.assertEqual(set(reply["error"]), {"message", "type", "param", "code"})
            self.assertEqual((reply["error"]["type"], reply["error"]["param"]), ("invalid_request_error", param), (body, reply))
        self.assertEqual(self.server.post("/v1/completions", {"prompt": "x", "max_tokens": 100000})[1]["error"]["code"], "context_length_exceeded")
        self.assertEqual(self.complete()[0], 200)

    def test_null_counts_as_absent_and_unknown_fields_are_ignored(self):
        self.assertEqual(self.complete(stop=None, n=None, logit_bias=None, user="me", no_such_field=1)[0], 200)

    def test_bad_bodies_and_paths(self):
        for body in (b"", b"{", b"[]", b"null", b"{\"prompt\": \"\xff\"}", b"[" * 10000, b"{\"a\":1,\"a\":2}", b"\x00\x01"):
            status, _, text = self.server.request("POST", "/v1/completions", body)
            self.assertEqual(status, 400, body[:20])
            self.assertIn("error", json.loads(text))
        self.assertEqual(self.server.request("GET", "/nowhere")[0], 404)
        status, headers, _ = self.server.request("GET", "/v1/completions")
        self.assertEqual((status, headers["Allow"]), (405, "POST"))
        self.assertEqual(self.server.request("POST", "/health", b"")[0], 405)
        self.assertEqual(self.server.request("HEAD", "/health")[0], 200)

    def test_paths_may_be_absolute_or_escaped(self):
        for target in ("/v1/models/%74iny", "http://localhost/v1/models/tiny?x=1", "/%76%31/models/tiny"):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as client:
                client.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                self.assertIn(b" 200 ", client.recv(65536)[:20], target)

    def test_metrics_are_prometheus_text(self):
        from prometheus_client.parser import text_string_to_metric_families
        self.complete()
        status, headers, text = self.server.request("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertIn("version=0.0.4", headers["Content-Type"])
        families = {family.name: family for family in text_string_to_metric_families(text)}
        for name in ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:generation_tokens", "vllm:request_success",
                     "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds", "vllm:e2e_request_latency_seconds"):
            self.assertIn(name, families)
        self.assertGreater(families["vllm:generation_tokens"].samples[0].value, 0)


class HostileTest(ServerCase):
    def raw(self, data, seconds=5):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=seconds) as client:
            client.sendall(data)
            reply = b""
            try:
                while chunk := client.recv(65536):
                    reply += chunk
                    if b"\r\n\r\n" in reply and b"Connection: close" in reply:
                        break
            except (TimeoutError, ConnectionError):
                pass
            return reply

    def test_malformed_http_is_4xx_and_the_server_lives(self):
        for data in (b"NONSENSE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 80000 + b"\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
                     b"GET /health HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"):
            reply = self.raw(data)
            self.assertRegex(reply[:12], rb"HTTP/1\.[01] 4\d\d", data[:40])
            self.assertEqual(reply.count(b"HTTP/1."), 1, "nothing of a refused request is taken for the next")
        self.assertEqual(self.complete()[0], 200)

    def test_a_body_over_the_limit_is_413(self):
        reply = self.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 40000000\r\n\r\n" + b" " * 1000)
        self.assertIn(b" 413 ", reply[:20])
        self.assertEqual(self.server.request("POST", "/v1/completions", b" " * (33 << 20))[0], 413)  # seen by a client that sends it all first

    def test_a_request_that_does_not_arrive_in_time_is_408(self):
        for data in (b"GET /hea", b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"):
            reply = self.raw(data, seconds=35)
            self.assertIn(b" 408 ", reply[:20], data)
            self.assertIn(b"invalid_request_error", reply)

    def test_a_stream_to_http_1_0_is_not_chunked(self):
        request = {"prompt": "x", "max_tokens": 4, "temperature": 0, "ignore_eos": True}
        body = json.dumps({**request, "stream": True}).encode()
        head, _, stream = self.raw(b"POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n" % len(body) + body).partition(b"\r\n\r\n")
        self.assertNotIn(b"chunked", head)
        self.assertTrue(stream.startswith(b"data: "), stream[:40])
        chunks = events(stream.decode())
        whole = self.server.post("/v1/completions", request)[1]
        self.assertEqual("".join(c["choices"][0]["text"] for c in chunks), whole["choices"][0]["text"])
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "length")

    def test_clients_that_go_away_free_their_blocks(self):
        for stream in (False, True):
            body = json.dumps({"prompt": "x", "max_tokens": 500, "ignore_eos": True, "stream": stream}).encode()
            clients = []
            for _ in range(4):
                client = socket.create_connection(("127.0.0.1", self.server.port))
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                clients.append(client)
            for client in clients:
                client.close()
            self.assertTrue(self.server.wait_for_metric("vllm:num_requests_running", 0))
            self.assertTrue(self.server.wait_for_metric("vllm:kv_cache_usage_perc", 0))

    def test_a_client_that_goes_away_behind_a_pipelined_request_frees_its_blocks(self):
        body = json.dumps({"prompt": ["x"] * 64, "n": 4, "max_tokens": 500, "ignore_eos": True}).encode()
        request = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        before = self.server.metric("vllm:generation_tokens_total")
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(request * 2)
            while self.server.metric("vllm:num_requests_running") == 0 and self.server.metric("vllm:generation_tokens_total") == before:
                time.sleep(0.005)
        self.assertTrue(self.server.wait_for_metric("vllm:num_requests_running", 0))
        self.assertTrue(self.server.wait_for_metric("vllm:num_requests_waiting", 0))
        self.assertLess(self.server.metric("vllm:generation_tokens_total") - before, 256 * 500)

    def test_a_request_beyond_the_queue_is_400_since_waiting_would_not_help(self):
        status, reply = self.server.post("/v1/completions", {"prompt": ["x"] * 64, "n": 16, "max_tokens": 1})
        self.assertEqual((status, reply["error"]["param"]), (400, "n"))

    def test_a_server_out_of_memory_lives_on(self):
        with Server(self.model) as server:
            pages = int(open(f"/proc/{server.process.pid}/statm", encoding="utf-8").read().split()[0])
            limit = pages * resource.getpagesize() + (24 << 20)
            resource.prlimit(server.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
            for body in (b" " * (31 << 20), json.dumps({"prompt": "a" * (30 << 20), "max_tokens": 1}).encode(),
                         json.dumps({"prompt": [1] * 4_000_000, "max_tokens": 1}).encode()):
                try:
                    self.assertIn(server.request("POST", "/v1/completions", body)[0], (400, 413, 500, 503))
                except OSError:
                    pass  # cut: there was no memory for the body
                self.assertIsNone(server.process.poll())
            resource.prlimit(server.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.assertEqual(server.post("/v1/completions", {"prompt": "x", "max_tokens": 2})[0], 200)
            self.assertEqual(server.stop(), 0)

    def test_pipelined_requests_are_answered_in_order(self):
        one = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        reply = self.raw(one * 2 + b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertEqual(reply.count(b"HTTP/1.1 200"), 3)


class BatchTest(ServerCase):
    # A KV cache for 16 blocks: eight requests of up to 200 tokens do not fit, so some are preempted.
    arguments = ["--kv-cache-mib", 1, "--max-num-batched-tokens", 32]

    def test_answers_are_the_same_alone_and_in_a_batch(self):
        bodies = [{"prompt": f"Request {i}: " + "word " * (5 * i), "max_tokens": 60, "ignore_eos": True, "temperature": 0 if i % 2 else 0.9, "seed": i}
                  for i in range(8)]
        alone = [self.server.post("/v1/completions", body)[1]["choices"][0]["text"] for body in bodies]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for _ in range(3):
                together = list(pool.map(lambda body: self.server.post("/v1/completions", body)[1]["choices"][0]["text"], bodies))
                self.assertEqual(together, alone)
        self.assertEqual(self.server.metric("vllm:kv_cache_usage_perc"), 0)


class LifeTest(harness.Case):
    def test_sigterm_lets_running_answers_finish(self):
        with Server(self.model) as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
            body = {"prompt": "x", "max_tokens": 400, "ignore_eos": True, "temperature": 0, "stream": True}
            streams = [pool.submit(server.request, "POST", "/v1/completions", body) for _ in range(4)]
            while server.metric("vllm:num_requests_running") < 4 and not any(stream.done() for stream in streams):
                time.sleep(0.01)
            self.assertEqual(server.stop(signal.SIGTERM), 0)
            for stream in streams:
                self.assertEqual(events(stream.result()[2])[-1]["choices"][0]["finish_reason"], "length")

    def test_the_server_ends_with_the_last_answer(self):
        for tokens in range(100, 340, 20):  # whoever lets go of the answer last must not keep the server waiting for the drain timeout
            with Server(self.model, "--drain-timeout", 60) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
                answer = pool.submit(server.post, "/v1/completions", {"prompt": "x", "max_tokens": tokens, "ignore_eos": True})
                while server.metric("vllm:num_requests_running") < 1 and not answer.done():  # it may be done before it is seen
                    time.sleep(0.001)
                start = time.monotonic()
                self.assertEqual(server.stop(signal.SIGTERM), 0)
                self.assertLess(time.monotonic() - start, 30, f"{tokens} tokens")
                self.assertEqual(answer.result()[0], 200)

    def test_a_taken_port_and_a_public_host_are_refused(self):
        with Server(self.model) as server:
            self.assertExit(run("serve", self.model, "--port", server.port), 69, str(server.port))
        self.assertExit(run("serve", self.model, "--host", "0.0.0.0"), 2, "loopback")

    def test_a_model_without_a_template_serves_completions_only(self):
        base = tiny_model.write(self.scratch / "base", chat=False)
        with Server(base) as server:
            self.assertEqual(server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})[0], 400)
            self.assertEqual(server.post("/v1/completions", {"prompt": "x", "max_tokens": 2})[0], 200)

    def test_a_full_queue_is_429(self):
        with Server(self.model, "--max-queue", 2) as server, concurrent.futures.ThreadPoolExecutor(6) as pool:
            body = {"prompt": "x", "max_tokens": 480, "ignore_eos": True}
            replies = list(pool.map(lambda _: server.request("POST", "/v1/completions", body), range(6)))
            refused = [reply for reply in replies if reply[0] == 429]
            self.assertTrue(refused)
            self.assertTrue(all(reply[1]["Retry-After"] for reply in refused))
            self.assertTrue(all(reply[0] in (200, 429) for reply in replies))


if __name__ == "__main__":
    harness.main()
