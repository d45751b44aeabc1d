#!/usr/bin/env python3
"""Runs pith and the peers that are installed on the same model, in turn, and prints the ratios of their medians.

usage: scripts/bench_vs.py MODEL.gguf [--pith PATH] [--also ARTIFACT]... [--llama-bench COMMAND]... [--python PYTHON] [--prompt N] [--gen N]
                           [--threads T] [--repeat R]

Peers: llama.cpp or ik_llama.cpp as a program (--llama-bench, with flags of its own: "PATH -rtr 1") or llama.cpp as a Python package
(xllamacpp, llama_cpp), OpenVINO GenAI (openvino_genai). The packages are looked for in the interpreter given by --python. --also: the same
model in a form that only pith reads. Each sample is a process of its own, so that no engine's threads disturb another's; loading is not timed.
A missing peer is skipped with a message. Speeds compare only within one run on one machine.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = {"xllamacpp": "llama.cpp (xllamacpp)", "llama_cpp": "llama.cpp (llama-cpp-python)", "openvino_genai": "OpenVINO GenAI"}


class PeerError(Exception):
    pass


def parse_rows(text):
    """{"pp": tokens/s, "tg": tokens/s} of the JSON array that `pith bench -o json` and `llama-bench -o json` print."""
    speeds = {}
    for row in json.loads(text):
        prompt, gen = int(row["n_prompt"]), int(row["n_gen"])
        if (prompt > 0) == (gen > 0):
            continue  # both after each other: no test of ours
        speeds["pp" if prompt > 0 else "tg"] = float(row.get("median_ts", row["avg_ts"]))
    if set(speeds) != {"pp", "tg"}:
        raise PeerError(f"expected one prefill and one decode row, found {sorted(speeds) or 'none'}")
    return speeds


def parse_worker(text):
    """The last line of a worker's output; the libraries print what they like before it."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise PeerError("expected a result, found none")
    result = json.loads(lines[-1])
    return {"pp": float(result["pp"]), "tg": float(result["tg"])}


def run(command):
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        message = (finished.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerError(f"{os.path.basename(command[0])}: exit {finished.returncode}: {message[:200]}")
    return finished.stdout


def last_parts(path, parts):
    return os.sep.join(path.split(os.sep)[-parts:])


class Pith:
    def __init__(self, options, model=None):
        self.options, self.model = options, model or options.model
        self.path = model and os.path.normpath(model)

    def name(self, parts):
        """With the last `parts` parts of the path that tells it from others of its kind."""
        return f"pith ({last_parts(self.path, parts)})" if self.path else "pith"

    def missing(self):
        return None if os.path.exists(self.options.pith) else f"{self.options.pith}: no such file (run make)"

    def measure(self):
        o = self.options
        return parse_rows(run([o.pith, "bench", self.model, "-q", "-p", str(o.prompt), "-n", str(o.gen), "-r", "1", "-t", str(o.threads), "-o", "json"]))


class LlamaBench:
    """llama-bench of llama.cpp or a fork: `command` is its path and flags of its own."""

    def __init__(self, options, command):
        self.options, self.command = options, shlex.split(command)
        self.path = self.command and os.path.normpath(shutil.which(self.command[0]) or self.command[0])

    def name(self, parts):
        return " ".join([last_parts(self.path, parts), *self.command[1:]]) if self.command else "llama-bench"

    def missing(self):
        if not self.command:
            return "no --llama-bench given"
        return None if os.path.exists(self.path) else f"{self.command[0]}: no such program"

    def measure(self):
        o = self.options
        return parse_rows(run([self.path, *self.command[1:], "-m", o.model, "-p", str(o.prompt), "-n", str(o.gen), "-r", "1", "-t", str(o.threads), "-o", "json"]))


class Package:
    """An engine behind a Python package, driven by this script as a worker in the interpreter that has it."""

    def __init__(self, options, package):
        self.options, self.package = options, package

    def name(self, _):
        return PACKAGES[self.package]

    def missing(self):
        probe = [self.options.python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{self.package}') is None)"]
        try:
            found = subprocess.run(probe, capture_output=True, check=False).returncode == 0
        except OSError as error:
            return str(error)
        return None if found else f"{self.options.python} has no package {self.package}"

    def measure(self):
        o = self.options
        return parse_worker(run([o.python, os.path.abspath(__file__), o.model, "--worker", self.package, "--prompt", str(o.prompt), "--gen", str(o.gen),
                                 "--threads", str(o.threads)]))


def token_ids(count):
    """Ordinary ids of any vocabulary, the same for every engine."""
    return [1000 + (i * 7919) % 20000 for i in range(count)]


def work_xllamacpp(o):
    import urllib.request

    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = o.model
    params.n_ctx = o.prompt + o.gen + 64
    params.n_parallel = 1
    params.cpuparams.n_threads = o.threads
    params.cpuparams_batch.n_threads = o.threads
    server = xllamacpp.Server(params)

    def complete(prompt, gen):
        body = {"prompt": prompt, "n_predict": gen, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
        request = urllib.request.Request(server.listening_address + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=3600) as reply:
            return json.loads(reply.read())["timings"]

    complete(token_ids(8), 2)
    return {"pp": complete(token_ids(o.prompt), 1)["prompt_per_second"], "tg": complete(token_ids(1), o.gen + 1)["predicted_per_second"]}


def work_llama_cpp(o):
    import llama_cpp
    llama = llama_cpp.Llama(o.model, n_ctx=o.prompt + o.gen + 64, n_batch=512, n_threads=o.threads, n_threads_batch=o.threads, verbose=False)

    def seconds(ids, at_a_time):
        llama.reset()
        start = time.perf_counter()
        for i in range(0, len(ids), at_a_time):
            llama.eval(ids[i:i + at_a_time])
        return time.perf_counter() - start

    seconds(token_ids(8), 4)
    return {"pp": o.prompt / seconds(token_ids(o.prompt), 512), "tg": o.gen / seconds(token_ids(o.gen), 1)}


def work_openvino_genai(o):
    import numpy
    import openvino
    import openvino_genai
    pipe = openvino_genai.LLMPipeline(o.model, "CPU", INFERENCE_NUM_THREADS=o.threads)

    def generate(prompt, gen):
        ids = numpy.array([token_ids(prompt)], numpy.int64)
        inputs = openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))
        config = openvino_genai.GenerationConfig(max_new_tokens=gen, min_new_tokens=gen, ignore_eos=True, do_sample=False)
        return pipe.generate(inputs, config).perf_metrics

    generate(8, 2)
    return {"pp": 1e3 * o.prompt / generate(o.prompt, 1).get_ttft().mean, "tg": 1e3 / generate(1, o.gen + 1).get_tpot().mean}


WORKERS = {"xllamacpp": work_xllamacpp, "llama_cpp": work_llama_cpp, "openvino_genai": work_openvino_genai}


def names_of(engines):
    """A name for each engine; those that would share one are told apart by more of their paths. ValueError when nothing tells them apart."""
    def name_of(engine):
        for parts in range(1, 64):
            name = engine.name(parts)
            if [other.name(parts) for other in engines].count(name) == 1:
                return name
        raise ValueError(f"expected engines that differ, found {name} twice")
    return [name_of(engine) for engine in engines]


def measure_in_turn(engines, repeat, report):
    """{name: {"pp": [...], "tg": [...]}}, one sample of every engine after the other, `repeat` times. `engines`: by name. One that fails is
    left out."""
    samples = {name: {"pp": [], "tg": []} for name in engines}
    for _ in range(repeat):
        for name, engine in engines.items():
            if name not in samples:
                continue
            try:
                for test, speed in engine.measure().items():
                    samples[name][test].append(speed)
            except (PeerError, OSError, ValueError, KeyError) as error:
                report(f"left out: {name}: {error}")
                del samples[name]
    return samples


def table(samples, prompt, gen):
    """Medians, and how many times as fast the first engine is."""
    first = next(iter(samples))
    medians = {name: {test: statistics.median(values) for test, values in tests.items()} for name, tests in samples.items()}
    lines = [f"| engine | pp{prompt} t/s | tg{gen} t/s | {first} / engine, prefill | decode |", "|---|---:|---:|---:|---:|"]
    for name, speed in medians.items():
        ratios = [medians[first][test] / speed[test] for test in ("pp", "tg")]
        lines.append(f"| {name} | {speed['pp']:.1f} | {speed['tg']:.1f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    return "\n".join(lines)


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, found {text!r}")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--pith", default=os.path.join(ROOT, "build/release/pith"))
    parser.add_argument("--also", action="append", default=[], metavar="ARTIFACT", help="the same model in another form, for pith alone; repeatable")
    parser.add_argument("--llama-bench", action="append", default=[], metavar="COMMAND",
                        help="path of a llama-bench, with flags of its own; repeatable")
    parser.add_argument("--python", default=sys.executable, help="interpreter whose packages are tried")
    parser.add_argument("--prompt", type=positive, default=512)
    parser.add_argument("--gen", type=positive, default=128)
    parser.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeat", type=positive, default=5)
    parser.add_argument("--worker", choices=sorted(WORKERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print("\n" + json.dumps(WORKERS[options.worker](options)), flush=True)
        return
    report = lambda message: print(message, file=sys.stderr, flush=True)
    try:
        candidates = [Pith(options), *(Pith(options, model) for model in options.also),
                      *(LlamaBench(options, command) for command in options.llama_bench or [""]), *(Package(options, package) for package in PACKAGES)]
        names = names_of(candidates)
    except ValueError as error:
        parser.error(str(error))
    engines = {}
    for name, engine in zip(names, candidates):
        reason = engine.missing()
        if reason is None:
            engines[name] = engine
        else:
            report(f"skipped: {name}: {reason}")
    if "pith" not in engines:
        sys.exit(1)
    samples = measure_in_turn(engines, options.repeat, report)
    if "pith" not in samples:
        sys.exit(1)
    print(f"{os.path.basename(options.model)}, {options.threads} threads, medians of {options.repeat} interleaved samples, "
          f"{time.strftime('%Y-%m-%d', time.gmtime())}\n")
    print(table(samples, options.prompt, options.gen))


if __name__ == "__main__":
    main()
