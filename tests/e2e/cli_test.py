"""The subcommands: results, exit codes, determinism, and what is left behind after a refusal."""
import csv
import io
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import harness
import tiny_model
from harness import PITH, interrupted, run, run_json

COMMANDS = ["pull", "convert", "inspect", "quantize", "eval", "run", "chat", "serve", "bench", "profile"]


class HelpTest(harness.Case):
    def test_every_command_explains_itself(self):
        overview = run("--help")
        self.assertExit(overview, 0)
        for command in COMMANDS:
            self.assertIn(command, overview.stdout)
            page = run(command, "--help")
            self.assertExit(page, 0)
            for flag in ("--json", "--quiet", "--threads", "--log-level", "Example"):
                self.assertIn(flag, page.stdout, command)

    def test_the_documents_name_every_command_and_no_flag_that_is_not_there(self):
        pages = "".join(run(command, "--help").stdout for command in COMMANDS)
        listed = re.findall(r"(?m)^  (\w+) ", run("--help").stdout.split("Subcommands:", 1)[1])
        documents = {name: (harness.ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("cli.md", "data_path.md", "pull.md")}
        self.assertEqual(sorted(listed), sorted(COMMANDS))
        for command in COMMANDS:
            self.assertIn(f"`pith {command} ", documents["cli.md"])
        for name, text in documents.items():
            for flag in sorted(set(re.findall(r"`[^`]*?(--[a-z][a-z0-9-]*)", text))):
                self.assertRegex(pages, rf"(?m)[ ,]{flag}\b", f"docs/{name}")

    def test_usage_errors_are_exit_2(self):
        for arguments in ([], ["nonsense"], ["run"], ["run", self.model, "x", "--no-such-flag"], ["run", self.model, "x", "--threads", "0"],
                          ["run", self.model, "x", "--temperature", "3"], ["quantize", self.model]):
            self.assertExit(run(*arguments), 2)


class RunTest(harness.Case):
    def tokens(self, *arguments):
        return run_json("run", self.model, "Once upon a time", "-n", 24, "--ignore-eos", *arguments)["tokens"]

    def test_tokens_do_not_depend_on_threads_or_chunks(self):
        for sampling in (["--temperature", 0], ["--temperature", 0.9, "--seed", 7, "--top-p", 0.9]):
            expected = self.tokens(*sampling, "--threads", 1)
            self.assertEqual(len(expected), 24)
            for arguments in (["--threads", 2], ["--prefill-chunk", 1], ["--prefill-chunk", 7], ["--threads", 2, "--prefill-chunk", 3]):
                self.assertEqual(self.tokens(*sampling, *arguments), expected, arguments)
        self.assertNotEqual(self.tokens("--temperature", 0.9, "--seed", 1), self.tokens("--temperature", 0.9, "--seed", 2))

    def test_text_goes_to_stdout_and_everything_else_to_stderr(self):
        finished = run("run", self.model, "abc", "-n", 4)
        self.assertExit(finished, 0, "TTFT", "TPOT")
        self.assertTrue(finished.stdout.startswith("abc"))
        self.assertEqual(run("run", self.model, "abc", "-n", 4, "--quiet").stderr, "")

    def test_the_prompt_may_come_from_standard_input(self):
        self.assertEqual(run_json("run", self.model, "-n", 4, input="abc\n")["prompt"], "abc")

    def test_a_full_stdout_is_no_success(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            finished = subprocess.run([PITH, "run", self.model, "abc", "-n", "4"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertExit(finished, 74, "stdout")

    def test_a_forced_instruction_set_is_used(self):
        for isa in ("scalar", "avx2"):
            environment = {**os.environ, "PITH_FORCE_ISA": isa}
            kernels = {t["isa"] for t in run_json("inspect", self.model, env=environment)["tensors"]}
            self.assertEqual(kernels, {isa})
        self.assertExit(run("run", self.model, "x", env={**os.environ, "PITH_FORCE_ISA": "sse9"}), 2, "PITH_FORCE_ISA")

    def test_avx_vnni_is_used_where_it_is_and_refused_where_not(self):
        artifact = self.scratch / "w4a16"
        self.assertExit(run("quantize", self.model, "-o", artifact, "--scheme", "W4A16"), 0)
        environments = {isa: {**os.environ, "PITH_FORCE_ISA": isa} for isa in ("avx2", "avx2_vnni")}
        if " avx_vnni" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            self.assertExit(run("inspect", artifact, env=environments["avx2_vnni"]), 69, "PITH_FORCE_ISA", "avx2_vnni")
            self.skipTest("this CPU has no AVX-VNNI")
        tensors = run_json("inspect", artifact, env=environments["avx2_vnni"])["tensors"]
        self.assertEqual({t["isa"] for t in tensors if "_w4g_" in t["kernel"]}, {"avx2_vnni"})
        self.assertEqual({t["isa"] for t in tensors if "_w4g_" not in t["kernel"]}, {"avx2"})
        tokens = [run_json("run", artifact, "abc", "-n", 16, "--ignore-eos", env=e)["tokens"] for e in environments.values()]
        self.assertEqual(*tokens)

    def test_the_kv_cache_takes_every_format(self):
        texts = {d: run_json("run", self.model, "abc", "-n", 8, "--ignore-eos", "--kv-cache-dtype", d)["text"] for d in ("auto", "bf16", "int8", "fp8")}
        self.assertEqual(texts["auto"], texts["bf16"])
        memory = run_json("inspect", self.model)["memory"]["kv_bytes_per_token"]
        self.assertEqual(set(memory), {"bf16", "int8", "fp8"})
        self.assertExit(run("run", self.model, "abc", "--kv-cache-dtype", "int4"), 2, "kv-cache-dtype")

    def test_ctrl_c_ends_with_130(self):
        process = subprocess.Popen([PITH, "chat", self.model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)


class QuantizeTest(harness.Case):
    def test_every_scheme_and_grouping_gives_an_artifact_that_runs(self):
        for scheme in ("W8A16", "W4A16", "W4A16_ASYM"):
            for group_size in ("auto", "channel", "tensor", "32"):
                out = self.scratch / f"{scheme}-{group_size}"
                report = run_json("quantize", self.model, "-o", out, "--scheme", scheme, "--group-size", group_size)["report"]
                self.assertEqual(len(report["layers"]), 14)
                limit = {"W8A16": 0.02, "W4A16": 0.5, "W4A16_ASYM": 0.5}[scheme]
                self.assertLess(max(layer["relative_error"] for layer in report["layers"]), limit)
                quality = run_json("eval", out, "--reference", self.model, "--data", self.text(), "--context", 64)["models"][0]["metrics"]
                self.assertGreater(quality["kl_mean"]["value"], 0)
                self.assertLess(quality["kl_mean"]["value"], 0.1 if scheme == "W8A16" else 20)

    def text(self):
        path = self.scratch / "text.txt"
        if not path.exists():
            path.write_text("The loom stood by the window, and she wove all day long. " * 12, encoding="utf-8")
        return path

    def test_activations_are_chosen_at_load(self):
        out = self.scratch / "activations"
        run_json("quantize", self.model, "-o", out)
        for name, shown in (("auto", "int16 dynamic"), ("int16", "int16 dynamic"), ("int8", "int8 dynamic"),
                            ("llm-int8", "int16 dynamic"), ("bf16", "bf16")):
            tensors = run_json("inspect", out, "--activations", name)["tensors"]
            self.assertEqual({t["activation"] for t in tensors if "mlp" in t["name"]}, {shown})
        self.assertExit(run("inspect", out, "--activations", "int4"), 2, "--activations")

    def test_outliers_are_kept_apart_where_codes_have_a_byte_each(self):
        out = self.scratch / "outliers"
        run_json("quantize", self.model, "-o", out, "--scheme", "W8A16")
        tensors = run_json("inspect", out, "--activations", "llm-int8")["tensors"]
        self.assertEqual({t["activation"] for t in tensors if "mlp" in t["name"]}, {"int8 dynamic per token, outliers from 6 in f32"})
        report = run_json("eval", out, "--reference", self.model, "--data", self.text(), "--context", 64, "--activations", "llm-int8")
        self.assertLess(report["models"][0]["metrics"]["kl_mean"]["value"], 0.1)

    def test_auto_says_which_group_size_it_took(self):
        finished = run("quantize", self.model, "-o", self.scratch / "auto", "--dry-run")
        self.assertExit(finished, 0)
        self.assertIn("groups of 64 (auto", finished.stdout)

    def test_a_dry_run_writes_nothing_and_forecasts_every_byte(self):
        out = self.scratch / "dry"
        plan = run_json("quantize", self.model, "-o", out, "--dry-run")["plan"]
        self.assertIn("model.layers.0.mlp.down_proj.weight_packed ", run("quantize", self.model, "-o", out, "--dry-run").stdout)
        self.assertEqual(list(self.scratch.glob("dry*")), [])
        self.assertEqual(plan["output_bytes"], sum(tensor["bytes"] for tensor in plan["tensors"]))
        self.assertExit(run("quantize", self.model, "-o", self.model, "--dry-run"), 73, "output")
        run_json("quantize", self.model, "-o", out)
        size = (out / "model.safetensors").stat().st_size
        header = 8 + int.from_bytes((out / "model.safetensors").read_bytes()[:8], "little")
        self.assertEqual(plan["output_bytes"], size - header)

    def test_a_dry_run_says_what_the_run_will_take(self):
        out = self.scratch / "forecast"
        for flags, phases in ([], ["checking", "quantizing"]), (["--method", "gptq", "--num-samples", 4, "--sequence-length", 32],
                                                                ["calibration", "checking", "quantizing"]):
            result = run_json("quantize", self.model, "-o", out, "--dry-run", *flags)
            estimate = result["estimate"]
            self.assertEqual([phase["name"] for phase in estimate["phases"]], phases)
            self.assertAlmostEqual(estimate["seconds"], sum(phase["seconds"] for phase in estimate["phases"]))
            self.assertEqual(estimate["peak_memory_bytes"], max(phase["peak_memory_bytes"] for phase in estimate["phases"]))
            self.assertGreater(estimate["disk_bytes"]["total"], result["plan"]["output_bytes"])
            self.assertEqual(estimate["disk_bytes"]["hidden_states"] > 0, "calibration" in phases)
            self.assertIn("estimate: ", run("quantize", self.model, "-o", out, "--dry-run", *flags).stdout)
            report = run_json("quantize", self.model, "-o", self.scratch / f"forecast-{len(phases)}", *flags)["report"]
            self.assertEqual([phase["name"] for phase in report["phases"]], phases)
            self.assertGreater(report["peak_memory_bytes"], 0)
        self.assertFalse(out.exists())

    def test_the_same_bytes_for_any_number_of_threads(self):
        hashes = []
        for threads in (1, 2):
            out = self.scratch / f"threads-{threads}"
            run_json("quantize", self.model, "-o", out, "--threads", threads)
            hashes.append(json.loads((out / "pith.json").read_text())["files"]["model.safetensors"]["sha256"])
        self.assertEqual(hashes[0], hashes[1])

    def test_refusals_leave_nothing_behind(self):
        out = self.scratch / "refused"
        refused = [
            (["quantize", self.model, "-o", out, "--group-size", "48"], 2, "48"),
            (["quantize", self.model, "-o", out, "--scheme", "W3A7"], 4, "W4A16"),
            (["quantize", self.model, "-o", out, "--method", "magic"], 4, "rtn"),
            (["quantize", self.model, "-o", self.model], 73, "tiny"),
            (["quantize", self.scratch / "nowhere", "-o", out], 66, "nowhere"),
            (["quantize", self.model, "-o", "/proc/nowhere/out"], 73, "/proc/nowhere"),
            (["quantize", self.model, "-o", out, "--ignore", "re:("], 2, "re:("),
            (["quantize", self.model, "-o", out, "--ignore", "re:.*k_proj"], 2, "serving engines fuse q_proj, k_proj, v_proj"),
            (["quantize", self.model, "-o", out, "--ignore", "model.layers.0.mlp.downproj"], 2, "matches none"),
        ]
        before = sorted(p.name for p in self.scratch.iterdir())
        for arguments, code, message in refused:
            self.assertExit(run(*arguments), code, message)
        self.assertEqual(sorted(p.name for p in self.scratch.iterdir()), before)

    def test_weights_that_are_not_finite_are_named(self):
        def spoil(tensors):
            tensors["model.layers.1.mlp.up_proj.weight"][3, 5] = float("nan")
        model = tiny_model.write(self.scratch / "nan", spoil=spoil)
        self.assertExit(run("quantize", model, "-o", self.scratch / "nan-out"), 65, "model.layers.1.mlp.up_proj", "nan", str(3 * 64 + 5))
        self.assertExit(run("run", model, "x"), 65, "model.layers.1.mlp.up_proj")
        self.assertFalse((self.scratch / "nan-out").exists())

    def test_models_that_cannot_be_run_are_refused(self):
        cases = {
            "unknown architecture": (lambda t: {"model_type": "mamba"}, 4, "llama"),
            "absurd layer count": (lambda t: {"num_hidden_layers": 1 << 40}, 65, "num_hidden_layers"),
            "missing tensor": (lambda t: t.pop("model.layers.0.mlp.up_proj.weight") is None or {}, 65, "up_proj"),
            "wrong shape": (lambda t: t.update({"model.layers.0.mlp.up_proj.weight": t["model.layers.0.mlp.down_proj.weight"]}) or {}, 65, "up_proj"),
        }
        for name, (spoil, code, message) in cases.items():
            model = tiny_model.write(self.scratch / name.replace(" ", "-"), spoil=spoil)
            self.assertExit(run("run", model, "x"), code, message)

    def test_a_truncated_file_is_refused(self):
        model = tiny_model.write(self.scratch / "truncated")
        weights = model / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-100])
        for command in (["run", model, "x"], ["inspect", model], ["quantize", model, "-o", self.scratch / "truncated-out"]):
            self.assertExit(run(*command), 65, "model.safetensors")

    def test_interrupting_leaves_nothing_behind(self):
        big = tiny_model.write(self.scratch / "big", hidden=1024, inter=4096, layers=3, heads=16, kv_heads=8)
        out = self.scratch / "interrupted"
        partials = lambda: [path.name for path in self.scratch.iterdir() if ".partial-" in path.name]
        code, errors = interrupted(signal.SIGINT, partials, out, "quantize", big, "-o", out, "--threads", "1")
        self.assertEqual(code, 130, errors)
        self.assertFalse(out.exists())
        self.assertEqual(partials(), [])


class EvalTest(harness.Case):
    def test_a_model_against_itself_is_exactly_zero_and_bits_do_not_depend_on_threads(self):
        text = self.scratch / "text.txt"
        text.write_text("It rained on the roof of the mill. " * 40, encoding="utf-8")
        out = self.scratch / "w4"
        run_json("quantize", self.model, "-o", out, "--scheme", "W4A16")
        results = [run_json("eval", self.model, out, "--reference", self.model, "--data", text, "--context", 64, "--threads", threads, "--chunk", chunk)
                   for threads, chunk in ((1, 64), (2, 64), (2, 5))]
        metrics = results[0]["models"][0]["metrics"]
        self.assertEqual((metrics["kl_mean"]["value"], metrics["kl_max"]["value"], metrics["ppl_ratio"]["value"]), (0, 0, 1))
        for result in results[1:]:
            self.assertEqual(result["models"], results[0]["models"])
        quantized = results[0]["models"][1]["metrics"]
        self.assertGreater(quantized["kl_mean"]["value"], 0)
        low, high = quantized["kl_mean"]["ci95"]
        self.assertTrue(low <= quantized["kl_mean"]["value"] <= high)
        self.assertEqual(results[0]["schema_version"], 1)

    def test_slices_and_jsonl(self):
        folder = self.scratch / "slices"
        folder.mkdir()
        (folder / "prose.txt").write_text("The river rose in the night. " * 20, encoding="utf-8")
        (folder / "code.jsonl").write_text("\n".join(json.dumps({"text": f"for i in range({i}): print(i)"}) for i in range(9)), encoding="utf-8")
        result = run_json("eval", self.model, "--reference", self.model, "--data", folder, "--context", 64, "--limit", 3)
        self.assertEqual(list(result["models"][0]["slices"]), ["code", "prose"])
        self.assertEqual(result["windows"], 6)

    def test_built_in_slices_and_what_is_served(self):
        out = self.scratch / "served"
        run_json("quantize", self.model, "-o", out, "--scheme", "W4A16")
        flags = ("--reference", self.model, "--context", 64, "--limit", 2, "--temperature", "0,0.7", "--top-p", 0.9, "--worst", 3)
        result = run_json("eval", self.model, out, *flags)
        self.assertEqual(result["data"], "built-in slices")
        same, quantized = result["models"]
        self.assertEqual(list(quantized["slices"]), ["code", "math", "multilingual", "prose"])
        self.assertEqual([served["temperature"] for served in quantized["metrics"]["served"]], [0, 0.7])
        self.assertEqual([served["total_variation_mean"]["value"] for served in same["metrics"]["served"]], [0, 0])
        greedy, sampled = quantized["slices"]["code"]["served"]
        self.assertNotIn("kl_mean", greedy)
        self.assertGreater(sampled["total_variation_mean"]["value"], 0)
        self.assertAlmostEqual(greedy["total_variation_mean"]["value"], 1 - quantized["slices"]["code"]["same_top"]["value"])
        worst = [token["kl"] for token in quantized["worst_tokens"]]
        self.assertEqual(worst, sorted(worst, reverse=True))
        self.assertEqual((len(worst), worst[0]), (3, quantized["metrics"]["kl_max"]["value"]))
        table = run("eval", out, *flags)
        self.assertExit(table, 0, "")
        self.assertIn("total variation", table.stdout)
        for flag, value in (("--temperature", "3"), ("--temperature", "x"), ("--top-p", "0"), ("--top-k", "-1")):
            self.assertExit(run("eval", out, "--reference", self.model, flag, value), 2, flag)

    def test_bad_data_is_refused(self):
        for name, content, code in (("short.txt", b"short", 65), ("bad.txt", b"\xff\xfe" * 500, 65), ("bad.jsonl", b"{\"text\": 1}\n", 65), ("data.parquet", b"x", 65)):
            (self.scratch / name).write_bytes(content)
            self.assertExit(run("eval", self.model, "--reference", self.model, "--data", self.scratch / name, "--context", 64), code, name)
        self.assertExit(run("eval", self.model, "--reference", self.model, "--data", self.scratch / "absent.txt"), 66, "absent.txt")


class BenchTest(harness.Case):
    def test_rows_and_limits(self):
        result = run_json("bench", self.model, "--prompt", 16, "--gen", 4, "--repeat", 2, "--batch", "1,2")
        self.assertEqual([row["test"] for row in result["rows"]], ["pp16", "tg4", "pp16 b2", "tg4 b2"])
        for row in result["rows"]:
            self.assertGreater(row["median_ts"], 0)
            self.assertGreater(row["roofline_share"], 0)
        for limits in result["limits"]:
            self.assertGreater(limits["read_gb_per_s"], 0)

    def test_depth_threads_and_curve(self):
        result = run_json("bench", self.model, "-p", 8, "-n", 2, "-d", "0,32", "-t", "1,2", "-r", 1)
        self.assertEqual([(row["n_threads"], row["test"]) for row in result["rows"]],
                         [(threads, test) for threads in (1, 2) for test in ("pp8", "tg2", "pp8 @ d32", "tg2 @ d32")])
        self.assertEqual([limits["threads"] for limits in result["limits"]], [1, 2])
        curve = run_json("bench", self.model, "-n", 1, "--curve", "-r", 1)
        self.assertEqual([row["batch"] for row in curve["rows"]], [1, 2, 3, 4, 5, 6, 8, 16, 32])
        self.assertTrue(all(row["n_prompt"] == 0 for row in curve["rows"]))
        self.assertExit(run("bench", self.model, "-p", 512, "-d", 64), 2, "max_position_embeddings")
        self.assertExit(run("bench", self.model, "-p", 0, "-n", 0), 2, "at least one test")

    def test_verification_rows(self):
        result = run_json("bench", self.model, "--verify", "--rows", "1,4", "-r", 1)
        self.assertEqual([(row["test"], row["verify"], row["n_prompt"]) for row in result["rows"]], [("verify1", True, 1), ("verify4", True, 4)])

    def test_a_number_of_threads_is_measured_once(self):
        cpus = len(os.sched_getaffinity(0))
        result = run_json("bench", self.model, "-p", 0, "-n", 1, "-t", f"0,1,{cpus},1", "-r", 1)
        self.assertEqual([row["n_threads"] for row in result["rows"]], [cpus, 1] if cpus > 1 else [1])

    def test_rows_are_printed_as_they_come_and_whole_when_interrupted(self):
        model = tiny_model.write(self.scratch / "long", context=1 << 18)
        for form in ("md", "csv", "json", "jsonl"):
            process = subprocess.Popen([PITH, "bench", str(model), "-p", "8", "-n", "200000", "-r", "1", "-q", "-o", form],
                                       stdout=subprocess.PIPE, text=True)
            text = ""
            while "pp8" not in text or (form == "json" and "read_gb_per_s" not in text):
                text += process.stdout.readline()
            process.send_signal(signal.SIGINT)
            text += process.stdout.read()  # communicate() would leave out what readline() has read ahead
            process.stdout.close()
            self.assertEqual(process.wait(60), 130)
            if form in ("json", "jsonl"):
                rows = json.loads(text) if form == "json" else [json.loads(line) for line in text.splitlines()]
                self.assertEqual([row["test"] for row in rows], ["pp8"])
                self.assertTrue(all(isinstance(ns, int) for ns in (rows[0]["avg_ns"], rows[0]["stddev_ns"], *rows[0]["samples_ns"])))
            else:
                self.assertEqual(len(text.splitlines()), 3 if form == "md" else 2, text)

    def test_outputs_of_llama_bench(self):
        def output(form):
            finished = run("bench", self.model, "-p", 8, "-n", 2, "-r", 2, "-o", form)
            self.assertExit(finished, 0)
            return finished.stdout
        rows = list(csv.DictReader(io.StringIO(output("csv"))))
        array, lines = json.loads(output("json")), [json.loads(line) for line in output("jsonl").splitlines()]
        columns = ["build_commit", "cpu_info", "backends", "model_filename", "model_type", "model_size", "model_n_params", "n_threads", "n_prompt",
                   "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts"]
        for form in (rows, array, lines):
            self.assertEqual([(int(row["n_prompt"]), int(row["n_gen"])) for row in form], [(8, 0), (0, 2)])
            for column in columns:
                self.assertIn(column, form[0])
        self.assertEqual(len(array[0]["samples_ns"]), 2)
        self.assertIn("| tg2 |", output("md"))


class InspectTest(harness.Case):
    def check(self, model):
        result = run_json("inspect", model)
        memory = result["memory"]
        for part, resident in memory["actual"].items():
            self.assertLessEqual(abs(memory["forecast"][part] - resident), 0.01 * resident, (model, part))
        self.assertEqual(memory["actual"]["total"], memory["resident_weight_bytes"])
        return result

    def test_forecast_and_actual_agree_for_every_scheme(self):
        for scheme, group_size in (("W8A16", "auto"), ("W4A16", "channel"), ("W4A16_ASYM", "32")):
            out = self.scratch / f"inspected-{scheme}"
            run_json("quantize", self.model, "-o", out, "--scheme", scheme, "--group-size", group_size)
            memory = self.check(out)["memory"]
            self.assertEqual(sum(memory["stored"].values()) - memory["stored"]["total"], memory["stored"]["total"])
            self.assertGreater(memory["workspace"]["bytes"], 0)

    def test_every_tensor_declares_its_path_and_a_tied_head_says_so(self):
        result = self.check(self.model)
        keys = {"name", "shape", "scheme", "stored_bits", "scale_dtype", "group_size", "packing", "activation", "accumulator", "output", "kernel", "isa",
                "refused"}
        for tensor in result["tensors"]:
            self.assertLessEqual(keys, set(tensor), tensor["name"])
            self.assertNotIn("", tensor.values(), tensor["name"])
        embedding = next(tensor for tensor in result["tensors"] if tensor["name"] == "model.embed_tokens")
        self.assertEqual((embedding["scheme"], embedding["activation"], embedding["accumulator"]), ("BF16", None, None))
        self.assertEqual([tensor["tied_to"] for tensor in result["tensors"] if tensor["tied_to"]], ["model.embed_tokens"])
        finished = run("inspect", self.model)
        self.assertIn("tied to model.embed_tokens", finished.stdout)
        self.assertNotIn(" 0.000 ", finished.stdout)
        for part in ("attention", "mlp", "embedding", "lm_head", "norms", "total"):
            self.assertRegex(finished.stdout, rf"(?m)^{part} ")

    def test_memory_of_a_real_model_is_what_the_system_sees(self):
        models = [path for path in harness.real_models() if "smollm2" in str(path).lower()]
        if not models:
            self.skipTest("scripts/get_models smollm2 fetches it")
        memory = self.check(models[0])["memory"]
        self.assertGreater(memory["process_bytes"], 0.98 * memory["resident_weight_bytes"])
        self.assertLess(memory["process_bytes"], 1.15 * memory["resident_weight_bytes"])


class ProfileTest(harness.Case):
    OPERATORS = ["embedding", "norm", "qkv", "rope_kv", "attention", "o", "gate_up", "down", "lm_head"]

    def test_operators_add_up_and_are_compared_with_bf16(self):
        out = self.scratch / "profiled"
        run_json("quantize", self.model, "-o", out, "--scheme", "W4A16")
        result = run_json("profile", out, "-p", 32, "-n", 4, "-b", 2, "-r", 2)
        self.assertEqual([(phase["phase"], phase["passes"], phase["rows_per_pass"]) for phase in result["phases"]],
                         [("prefill", 1, 64), ("decode", 4, 2)])
        for phase in result["phases"]:
            self.assertEqual([operator["name"] for operator in phase["operators"]], self.OPERATORS)
            total = phase["total"]
            self.assertAlmostEqual(sum(operator["seconds"] for operator in phase["operators"]), total["seconds"], places=9)
            self.assertEqual(sum(operator["weight_bytes"] for operator in phase["operators"]), total["weight_bytes"])
            self.assertEqual(phase["bf16_source"], "measured")
            self.assertGreater(phase["bytes_saved_per_pass"], 0)
            self.assertIn("in BF16", phase["sentence"])
        self.assertGreater(result["limits"]["read_gb_per_s"], 0)
        estimated = run_json("profile", out, "-p", 0, "-n", 2, "-r", 1, "--bf16", "estimated")["phases"]
        self.assertEqual([(phase["phase"], phase["bf16_source"]) for phase in estimated], [("decode", "estimated")])
        self.assertEqual(run_json("profile", out, "-p", 8, "-n", 0, "-r", 1, "--bf16", "off")["phases"][0]["bf16_source"], "none")
        int8 = run_json("profile", out, "-p", 8, "-n", 2, "-r", 1, "--bf16", "off", "--kv-cache-dtype", "int8")
        self.assertEqual(int8["kv_cache_dtype"], "int8")
        attention = [op for op in int8["phases"][-1]["operators"] if op["name"] == "attention"]
        self.assertIn("_int8_", attention[0]["kernel"])

    def test_inspect_and_profile_agree_on_what_is_emulated(self):
        out = self.scratch / "emulated"
        run_json("quantize", self.model, "-o", out, "--scheme", "W4A16")
        for isa in ("scalar", "avx2", None):
            env = {**os.environ, "PITH_FORCE_ISA": isa} if isa else os.environ
            declared = {t["kernel"]: t["emulated"] for t in run_json("inspect", out, "--activations", "bf16", env=env)["tensors"]}
            if isa:
                self.assertEqual({text for kernel, text in declared.items() if kernel.startswith("gemm_bf16_")}, {"bf16 as f32"})
            measured = run_json("profile", out, "--activations", "bf16", "-p", 0, "-n", 1, "-r", 1, "--bf16", "off", env=env)["phases"][0]["operators"]
            for operator in measured:
                if operator["kernel"] in declared:
                    self.assertEqual(operator["emulated"], declared[operator["kernel"]] is not None, operator)
            attention = next(operator for operator in measured if operator["name"] == "attention")
            self.assertEqual(attention["emulated"], not attention["kernel"].endswith("__amx"), attention)

    def test_a_bf16_model_has_nothing_to_compare(self):
        finished = run("profile", self.model, "-p", 8, "-n", 2, "-r", 1)
        self.assertExit(finished, 0)
        self.assertIn("the weights are BF16", finished.stdout)
        self.assertIn("gate_up", finished.stdout)

    def test_layers_and_trace(self):
        trace = self.scratch / "trace.json"
        phase = run_json("profile", self.model, "-p", 0, "-n", 1, "-r", 1, "--layers", "--trace", trace)["phases"][0]
        self.assertEqual([operator["layer"] for operator in phase["operators"] if operator["name"] == "qkv"], [0, 1])
        events = json.loads(trace.read_text())["traceEvents"]
        complete = [event for event in events if event["ph"] == "X"]
        self.assertEqual(len(complete), 1 + 2 * 8 + 2)
        for event, following in zip(complete, complete[1:]):
            self.assertLessEqual(event["ts"] + event["dur"], following["ts"] + 0.002)
        self.assertExit(run("profile", self.model, "-p", 0, "-n", 0), 2, "--prompt, --gen")
        self.assertExit(run("profile", self.model, "-p", 512, "-n", 1), 2, "max_position_embeddings")
        self.assertExit(run("profile", self.model, "-p", 1, "-n", 0, "-r", 1, "--trace", "/proc/nowhere/t"), 73, "/proc/nowhere")


if __name__ == "__main__":
    harness.main()
