"""Shows that scripts/bench_vs.py reads what the engines print, takes turns, skips what is missing, and computes ratios. No peer needed."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts", "bench_vs.py")

spec = importlib.util.spec_from_file_location("bench_vs", SCRIPT)
bench_vs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench_vs)


def row(prompt, gen, **speeds):
    return {"n_prompt": prompt, "n_gen": gen, "n_depth": 0, **speeds}


class Engine:
    def __init__(self, name, results, log):
        self.label, self.results, self.log = name, list(results), log

    def measure(self):
        self.log.append(self.label)
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


class Parsing(unittest.TestCase):
    def test_rows_of_llama_bench_and_of_pith(self):
        self.assertEqual(bench_vs.parse_rows(json.dumps([row(512, 0, avg_ts=300.5), row(0, 128, avg_ts=40)])), {"pp": 300.5, "tg": 40})
        self.assertEqual(bench_vs.parse_rows(json.dumps([row(512, 0, avg_ts=1, median_ts=2), row(512, 128, avg_ts=9), row(0, 8, avg_ts=3)])),
                         {"pp": 2, "tg": 3})

    def test_numbers_may_be_text(self):
        self.assertEqual(bench_vs.parse_rows(json.dumps([row("512", "0", avg_ts="300"), row("0", "128", avg_ts="40")])), {"pp": 300, "tg": 40})

    def test_a_missing_row_is_an_error(self):
        for rows in ([], [row(512, 0, avg_ts=1)], [row(0, 0, avg_ts=1)]):
            with self.assertRaisesRegex(bench_vs.PeerError, "expected one prefill and one decode row"):
                bench_vs.parse_rows(json.dumps(rows))

    def test_a_worker_may_chatter_before_its_result(self):
        self.assertEqual(bench_vs.parse_worker("loading {\n{\"pp\": 1, \"tg\": 2}\nllama\n{\"pp\": 3, \"tg\": 4.5}\n"), {"pp": 3, "tg": 4.5})
        with self.assertRaisesRegex(bench_vs.PeerError, "none"):
            bench_vs.parse_worker("nothing\n")


class Measuring(unittest.TestCase):
    def test_engines_take_turns(self):
        log = []
        engines = {name: Engine(name, [{"pp": i, "tg": 10 * i} for i in (1, 2)], log) for name in ("a", "b")}
        samples = bench_vs.measure_in_turn(engines, 2, self.fail)
        self.assertEqual(log, ["a", "b", "a", "b"])
        self.assertEqual(samples, {name: {"pp": [1, 2], "tg": [10, 20]} for name in ("a", "b")})

    def test_an_engine_that_fails_is_left_out_with_its_reason(self):
        log, messages = [], []
        engines = {"a": Engine("a", [{"pp": 1, "tg": 1}] * 2, log), "b": Engine("b", [{"pp": 1, "tg": 1}, bench_vs.PeerError("refuses Q5_0")], log)}
        self.assertEqual(list(bench_vs.measure_in_turn(engines, 2, messages.append)), ["a"])
        self.assertEqual(messages, ["left out: b: refuses Q5_0"])

    def test_ratios_of_medians(self):
        text = bench_vs.table({"pith": {"pp": [90, 100, 500], "tg": [50, 60, 70]}, "peer": {"pp": [50, 40, 60], "tg": [30, 20, 40]}}, 512, 128)
        self.assertIn("| engine | pp512 t/s | tg128 t/s |", text)
        self.assertIn("| pith | 100.0 | 60.0 | 1.00 | 1.00 |", text)
        self.assertIn("| peer | 50.0 | 30.0 | 2.00 | 2.00 |", text)

    def test_a_failing_program_is_named_with_its_last_line(self):
        with self.assertRaisesRegex(bench_vs.PeerError, "exit 3: the end"):
            bench_vs.run([sys.executable, "-c", "import sys; print('x\\nthe end', file=sys.stderr); sys.exit(3)"])

    def test_a_missing_package_is_a_reason(self):
        options = types.SimpleNamespace(python=sys.executable, model="m", pith="/nonexistent")
        bench_vs.PACKAGES["no_such_package"] = "None"
        self.addCleanup(bench_vs.PACKAGES.pop, "no_such_package")
        self.assertIn("no package", bench_vs.Package(options, "no_such_package").missing())
        self.assertIn("--llama-bench", bench_vs.LlamaBench(options, "").missing())
        self.assertEqual(bench_vs.LlamaBench(options, "/nonexistent/llama-bench -rtr 1").missing(), "/nonexistent/llama-bench: no such program")
        self.assertIsNone(bench_vs.LlamaBench(options, "sh -rtr 1").missing())  # found on the path
        self.assertIn("no such file", bench_vs.Pith(options).missing())


    def test_engines_that_share_a_name_are_told_apart_by_their_paths(self):
        options = types.SimpleNamespace(model="m", pith="p")
        llama = lambda command: bench_vs.LlamaBench(options, command)
        engines = [bench_vs.Pith(options), bench_vs.Pith(options, "/a/w4/"), bench_vs.Pith(options, "/b/w4"), llama("/x/bin/llama-bench"),
                   llama("/y/bin/llama-bench"), llama("/y/bin/llama-bench -rtr 1")]
        self.assertEqual(bench_vs.names_of(engines), ["pith", "pith (a/w4)", "pith (b/w4)", "x/bin/llama-bench", "y/bin/llama-bench",
                                                      "llama-bench -rtr 1"])
        with self.assertRaisesRegex(ValueError, "found pith .*w4.* twice"):
            bench_vs.names_of([bench_vs.Pith(options, "/a/w4"), bench_vs.Pith(options, "/a/w4/")])


class Program(unittest.TestCase):
    def fake(self, folder, name, prefill, decode):
        path = os.path.join(folder, name)
        rows = json.dumps([row(512, 0, avg_ts=prefill), row(0, 128, avg_ts=decode)])
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncat <<'END'\n{rows}\nEND\n")
        os.chmod(path, 0o755)
        return path

    def test_from_end_to_end_with_several_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, SCRIPT, "model.gguf", "--pith", self.fake(folder, "pith", 200, 80), "--also", folder + "/w4/",
                       "--llama-bench", self.fake(folder, "llama-bench", 100, 20), "--llama-bench", self.fake(folder, "ik", 50, 40) + " -rtr 1",
                       "--python", "/nonexistent/python", "--repeat", "2", "--threads", "2"]
            finished = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("| pith (w4) | 200.0 | 80.0 | 1.00 | 1.00 |", finished.stdout)
        self.assertIn("| llama-bench | 100.0 | 20.0 | 2.00 | 4.00 |", finished.stdout)
        self.assertIn("| ik -rtr 1 | 50.0 | 40.0 | 4.00 | 2.00 |", finished.stdout)
        for package in bench_vs.PACKAGES.values():
            self.assertIn(f"skipped: {package}", finished.stderr)

    def test_senseless_arguments_are_refused_before_the_work(self):
        for arguments in (["--repeat", "0"], ["--prompt", "-1"], ["--llama-bench", "nope \"x"], ["--also", "w4", "--also", "w4/"]):
            finished = subprocess.run([sys.executable, SCRIPT, "m", *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(finished.returncode, 2, finished.stderr)
            self.assertNotIn("Traceback", finished.stderr)

    def test_without_pith_there_is_nothing_to_compare(self):
        finished = subprocess.run([sys.executable, SCRIPT, "m", "--pith", "/nonexistent/pith"], capture_output=True, text=True, check=False)
        self.assertEqual(finished.returncode, 1)
        self.assertIn("skipped: pith", finished.stderr)


if __name__ == "__main__":
    unittest.main()
