#!/usr/bin/env python3
"""Compares pith's most likely tokens with llama.cpp's greedy choice, position by position, on GGUF models.

  compare_llama_cpp.py PITH MODEL.gguf...        needs: pip install xllamacpp (llama.cpp with its server, prebuilt)

llama.cpp continues each prompt greedily. pith is then asked for one token after every prefix of that continuation, so that both see
the same context at every position. A different choice counts only where llama.cpp's own two best tokens are further apart than MARGIN:
it rounds activations to 8 bits and ours to bf16, so closer calls are decided by rounding.
"""
import json
import socket
import subprocess
import sys
import time
import urllib.request

import xllamacpp

PROMPTS = ["The capital of France is", "def fibonacci(n):\n    ", "Once upon a time, in a small village by the sea,",
           "Water boils at 100 degrees Celsius because", "Les trois couleurs primaires sont", "#include <stdio.h>\nint main() {",
           "1, 1, 2, 3, 5, 8,", "The opposite of hot is"]
TOKENS = 64
MARGIN = 1.0  # natural log


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.loads(reply.read())


def llama_greedy(server, ids):
    """[(token, log-probability gap to the second)] of llama.cpp's continuation."""
    reply = post(server + "/completion", {"prompt": ids, "n_predict": TOKENS, "temperature": 0, "n_probs": 2, "cache_prompt": False,
                                       "return_tokens": True, "post_sampling_probs": False})
    steps = []
    for entry in reply["completion_probabilities"]:
        top = entry["top_logprobs"]
        steps.append((entry["id"], top[0]["logprob"] - top[1]["logprob"]))
    return steps


def compare(pith, path):
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = 2048
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    llama = xllamacpp.Server(params)  # lives to the end of this function
    llama_url = llama.listening_address
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ours = subprocess.Popen([pith, "serve", path, "--port", str(port), "--quiet", "--ctx-size", "2048"])
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(url + "/health", timeout=1)
            break
        except OSError:
            time.sleep(0.1)
    positions = agree = beyond = 0
    try:
        for prompt in PROMPTS:
            ids = post(llama_url + "/tokenize", {"content": prompt, "add_special": True})["tokens"]
            steps = llama_greedy(llama_url, ids)
            all_ids = ids + [token for token, _ in steps]
            for i, (token, gap) in enumerate(steps):
                reply = post(url + "/v1/completions", {"prompt": all_ids[:len(ids) + i], "max_tokens": 1, "temperature": 0, "ignore_eos": True, "logprobs": 1,
                                                       "return_tokens_as_token_ids": True})
                chosen = reply["choices"][0]["logprobs"]["tokens"][0]
                same = chosen == f"token_id:{token}"
                positions += 1
                agree += same
                if not same and gap > MARGIN:
                    beyond += 1
                    print(f"  {prompt!r} position {i}: llama.cpp {token} by {gap:.2f}, pith {chosen}")
    finally:
        ours.terminate()
        ours.wait()
    print(f"{path.rsplit('/', 1)[-1]}: {agree}/{positions} greedy tokens equal, {beyond} differ by more than {MARGIN}", flush=True)
    return beyond


def main():
    pith, *models = sys.argv[1:]
    if len(models) == 1:
        sys.exit(1 if compare(pith, models[0]) else 0)
    # llama.cpp does not start a second server in one process.
    sys.exit(max(subprocess.run([sys.executable, __file__, pith, model], check=False).returncode for model in models))


if __name__ == "__main__":
    main()
