#!/usr/bin/env python3
"""pith quantize with calibration data, as a user runs it: what is reported, and what a kill leaves."""

import json
import signal
import tempfile
from pathlib import Path

import harness
import numpy as np
import tiny_model
from harness import run, run_json

TEXT = " ".join(f"The {noun} of {number} threads was {verb} by hand." for number in range(400)
                for noun, verb in (("loom", "woven"), ("sail", "sewn"), ("net", "tied")))


class CompressionTest(harness.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=self.scratch)
        self.addCleanup(folder.cleanup)
        self.scratch = Path(folder.name)
        self.model = tiny_model.write(self.scratch / "model", hidden=128, inter=256, layers=6)
        self.text = self.scratch / "calibration.txt"
        self.text.write_text(TEXT)
        self.flags = ["--method", "awq+gptq", "--calibration", self.text, "--num-samples", 24, "--sequence-length", 48]

    def files(self, directory):
        return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}

    def test_the_report_names_layers_blocks_and_data(self):
        out = self.scratch / "out"
        result = run_json("quantize", self.model, "-o", out, *self.flags)
        report = json.loads((out / "report.json").read_text())
        self.assertEqual(len(report["layers"]), 42)
        self.assertEqual([block["layer"] for block in report["blocks"]], list(range(6)))
        self.assertEqual(len(report["scaled_inputs"]), 24)
        self.assertEqual({key: value for key, value in result["report"].items() if key in report},
                         {key: value for key, value in report.items() if key != "schema_version"})
        manifest = json.loads((out / "pith.json").read_text())
        self.assertEqual(manifest["recipe"]["method"], "awq+gptq")
        self.assertEqual(manifest["recipe"]["calibration"]["samples"], 24)
        self.assertEqual(len(manifest["calibration_sha256"]), 64)
        self.assertExit(run("run", out, "The loom", "--max-tokens", 4), 0)
        self.assertFalse((self.scratch / "out.unfinished").exists())

    def test_a_killed_run_is_resumed_to_the_same_bytes(self):
        whole, killed = self.scratch / "whole", self.scratch / "killed"
        self.assertExit(run("quantize", self.model, "-o", whole, *self.flags), 0)
        for layer in (0, 2, 3):
            done = self.scratch / "killed.unfinished" / f"stage-{layer:05d}.json"
            code, errors = harness.interrupted(signal.SIGKILL, done.exists, killed, "quantize", self.model, "-o", killed, *self.flags, "--resume")
            self.assertEqual(code, -signal.SIGKILL, errors)
            self.assertFalse(killed.exists())
        refused = run("quantize", self.model, "-o", killed, *self.flags)
        self.assertExit(refused, 73, "--resume continues it")
        other = run("quantize", self.model, "-o", killed, *self.flags, "--resume", "--no-clip-search")
        self.assertExit(other, 73, "recipe.clip_search.grid was 100 and is 1")
        # Known before the model has written a word, or the text is read.
        sampled = run("quantize", self.model, "-o", killed, *self.flags[:2], "--num-samples", 24, "--sequence-length", 48, "--resume")
        self.assertExit(sampled, 73, 'recipe.calibration.source was "files" and is "model"')
        self.assertNotIn("sampling", sampled.stderr)
        self.assertExit(run("quantize", self.model, "-o", killed, *self.flags, "--dry-run"), 73, "--resume continues it")
        self.assertExit(run("quantize", self.model, "-o", killed, *self.flags, "--resume", "--threads", 1), 0)
        self.assertEqual(self.files(killed), self.files(whole))

    def test_embeddings_and_bits_are_spent_as_asked(self):
        out = self.scratch / "bits"
        result = run_json("quantize", self.model, "-o", out, "--calibration", self.text, "--num-samples", 8, "--sequence-length", 48,
                          "--bits-per-weight", 5.5, "--quantize-embeddings", "W8A16")
        sensitivities = json.loads((out / "report.json").read_text())["sensitivities"]
        self.assertEqual(len(sensitivities), 24)
        self.assertEqual(sensitivities[0]["modules"], [f"model.layers.0.self_attn.{part}_proj" for part in "qkv"])
        self.assertTrue(all(entry["kl"] >= 0 and entry["expected_kl"] <= entry["kl"] * 1.01 for entry in sensitivities))
        self.assertEqual([phase["name"] for phase in result["report"]["phases"]], ["calibration", "measuring", "checking", "quantizing"])
        told = run("quantize", self.model, "-o", self.scratch / "told-bits", "--calibration", self.text, "--num-samples", 8,
                   "--sequence-length", 48, "--bits-per-weight", 5.5, "--log-level", "info")
        self.assertExit(told, 0, "KL alone", "model.layers.5.mlp.down_proj")
        schemes = {override["scheme"] for override in result["recipe"]["overrides"]}
        self.assertIn("W8A16", schemes)
        layers = [layer for layer in result["report"]["layers"] if layer["name"].startswith("model.layers.")]
        self.assertEqual({layer["bits"] for layer in layers} - {4, 8}, set())
        self.assertEqual(next(layer["bits"] for layer in result["report"]["layers"] if layer["name"] == "model.embed_tokens"), 8)
        self.assertExit(run("run", out, "The loom", "--max-tokens", 4), 0)
        few = run("quantize", self.model, "-o", self.scratch / "few", "--calibration", self.text, "--bits-per-weight", 3)
        self.assertExit(few, 2, "--bits-per-weight 3")

    def test_llm_int8_keeps_the_outliers_that_calibration_found(self):
        def spoil(tensors):
            for layer in range(3):
                tensors[f"model.layers.{layer}.input_layernorm.weight"][[5, 77]] = 100

        model = tiny_model.write(self.scratch / "outliers", hidden=128, inter=256, layers=3, spoil=spoil)
        flags = ["--calibration", self.text, "--num-samples", 8, "--sequence-length", 48]
        made = {"W8A8": [], "LLM_INT8": [], "columns": flags}
        for name, more in made.items():
            scheme = "W8A8" if name == "W8A8" else "LLM_INT8"
            self.assertExit(run("quantize", model, "-o", self.scratch / name, "--scheme", scheme, "--no-clip-search", *more), 0)
        report = json.loads((self.scratch / "columns" / "report.json").read_text())
        columns = {layer["name"]: layer.get("outlier_columns", []) for layer in report["layers"]}
        for layer in range(3):
            for part in "qkv":
                self.assertLessEqual({5, 77}, set(columns[f"model.layers.{layer}.self_attn.{part}_proj"]))
        configs = {name: json.loads((self.scratch / name / "config.json").read_text())["quantization_config"] for name in made}
        self.assertEqual(configs["LLM_INT8"], {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_threshold": 6.0,
                                               "llm_int8_skip_modules": ["lm_head"]})
        self.assertEqual(configs["columns"], {**configs["LLM_INT8"], "llm_int8_outlier_columns": "stored"})
        inspected = run_json("inspect", self.scratch / "columns")
        self.assertEqual(inspected["data_path"], "LLM_INT8/int8")
        for tensor in inspected["tensors"]:
            self.assertEqual(tensor["outlier_columns"], columns.get(tensor["name"], []), tensor["name"])
        self.assertFalse(inspected["loaders"]["vLLM"]["loads"])
        self.assertTrue(inspected["loaders"]["transformers"]["loads"])
        text = run("inspect", self.scratch / "columns").stdout
        self.assertIn("int8 dynamic per token, outlier columns in bf16", text)
        self.assertIn(" outlier columns\n", text)
        at_run_time = run_json("inspect", self.scratch / "LLM_INT8")
        self.assertEqual({t["activation"] for t in at_run_time["tensors"] if "_proj" in t["name"]},
                         {"int8 dynamic per token, outliers from 6 in f32"})
        self.assertTrue(at_run_time["loaders"]["vLLM"]["loads"])
        result = run_json("eval", *[self.scratch / name for name in made], "--reference", model, "--data", self.text, "--context", 64,
                          "--limit", 6)
        w8a8, found, fixed = (entry["metrics"]["kl_mean"]["value"] for entry in result["models"])
        self.assertLess(found, w8a8)
        self.assertLess(fixed, w8a8)
        plain = self.scratch / "plain"
        self.assertExit(run("convert", self.scratch / "columns", "-o", plain, "--format", "bnb-int8"), 0)
        self.assertNotIn("llm_int8_outlier_columns", (plain / "config.json").read_text())
        refused = run("convert", self.scratch / "columns", "-o", self.scratch / "ct", "--format", "compressed-tensors")
        self.assertExit(refused, 4, "expected no outlier columns")
        self.assertExit(run("run", self.scratch / "columns", "The loom", "--max-tokens", 4), 0)
        refused = run("quantize", model, "-o", self.scratch / "gptq", "--scheme", "LLM_INT8", "--method", "gptq", *flags)
        self.assertExit(refused, 4, "expected rtn or llm_int8")
        refused = run("quantize", model, "-o", self.scratch / "rotated", "--scheme", "LLM_INT8", "--method", "rotation")
        self.assertExit(refused, 4, "--method rotation: expected rtn or llm_int8")

    def tied_model(self, **sizes):
        """Whose head is set apart by a rotation: the weights of the final norm are not all 1."""
        def spoil(tensors):
            tensors["model.norm.weight"] = np.linspace(0.5, 2, 128, dtype=np.float32)

        return tiny_model.write(self.scratch / "tied", hidden=128, inter=256, spoil=spoil, **sizes)

    def tensors_of(self, artifact):
        content = (artifact / "model.safetensors").read_bytes()
        header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
        return {name: {"dtype": entry["dtype"], "shape": entry["shape"], "bytes": entry["data_offsets"][1] - entry["data_offsets"][0]}
                for name, entry in header.items() if name != "__metadata__"}

    def test_a_rotated_run_is_forecast_and_resumed_to_the_same_bytes(self):
        model, whole, killed = self.tied_model(layers=6), self.scratch / "whole", self.scratch / "killed"
        flags = ["--method", "rotation+gptq", *self.flags[2:], "--quantize-head", "W4A16", "--kv-cache", "fp8"]
        dry = run_json("quantize", model, "-o", whole, *flags, "--dry-run")
        self.assertEqual([phase["name"] for phase in dry["estimate"]["phases"]], ["calibration", "checking", "quantizing"])
        made = run_json("quantize", model, "-o", whole, *flags, "--threads", 2)
        planned = {entry.pop("name"): entry for entry in dry["plan"]["tensors"]}
        self.assertEqual(planned, self.tensors_of(whole))
        self.assertIn("lm_head.weight_packed", planned)
        self.assertEqual(made["report"]["output_bytes"], sum(entry["bytes"] for entry in planned.values()))
        self.assertEqual(len(made["report"]["kv_scales"]), 6)
        for layer in (1, 3, 5):  # behind the last the head is left
            done = self.scratch / "killed.unfinished" / f"stage-{layer:05d}.json"
            code, errors = harness.interrupted(signal.SIGKILL, done.exists, killed, "quantize", model, "-o", killed, *flags, "--resume")
            self.assertEqual(code, -signal.SIGKILL, errors)
        self.assertExit(run("quantize", model, "-o", killed, *flags, "--resume", "--threads", 1), 0)
        self.assertEqual(self.files(killed), self.files(whole))
        self.assertExit(run("run", killed, "The loom", "--max-tokens", 4), 0)

    def test_a_rotation_says_what_an_untied_head_costs(self):
        model = self.tied_model(layers=2)
        out, head = self.scratch / "rotated", 128 * 2 * len(json.loads((model / "tokenizer.json").read_text())["model"]["vocab"])
        dry = run_json("quantize", model, "-o", out, "--method", "rotation", "--scheme", "W8A16", "--dry-run")["plan"]
        self.assertEqual(dry["untied_head_bytes"], head)
        told = run("quantize", model, "-o", out, "--method", "rotation", "--scheme", "W8A16", "--dry-run")
        self.assertExit(told, 0)
        self.assertIn("with a head that was tied to the embedding and takes", told.stdout)
        told = run("quantize", model, "-o", out, "--method", "rotation", "--scheme", "W8A16")
        self.assertExit(told, 0)
        self.assertIn("with a head that was tied to the embedding and takes", told.stdout)
        report = json.loads((out / "report.json").read_text())
        self.assertEqual(report["rotation"], {"residual": True, "heads": True, "random_signs": True, "untied_head_bytes": head})
        self.assertEqual(report["output_bytes"], dry["output_bytes"])
        self.assertEqual({entry.pop("name"): entry for entry in dry["tensors"]}, self.tensors_of(out))
        self.assertFalse(json.loads((out / "config.json").read_text())["tie_word_embeddings"])
        kept = run_json("eval", out, "--reference", model, "--data", self.text, "--context", 64, "--limit", 4)
        self.assertLess(kept["models"][0]["metrics"]["kl_mean"]["value"], 0.05)
        small = run_json("quantize", model, "-o", self.scratch / "small", *self.flags[2:], "--method", "rotation+gptq",
                         "--quantize-head", "W8A16")
        told = run("quantize", model, "-o", self.scratch / "told", "--method", "rotation", "--quantize-head", "W8A16")
        self.assertRegex(told.stdout, r"takes 33\.\d kB in W8A16 as a matrix of its own")
        self.assertLess(small["report"]["output_bytes"], report["output_bytes"])
        self.assertGreater(small["report"]["layers"][-1]["output_error_vs_rtn"], 0)
        # Nothing sets the head apart where the final norm's weights are all 1.
        plain = run_json("quantize", self.model, "-o", self.scratch / "plain", "--method", "rotation", "--dry-run")["plan"]
        self.assertEqual(plain["untied_head_bytes"], 0)

    def test_warnings_are_told_and_strict_refuses_them(self):
        def spoil(tensors):
            tensors["model.layers.2.input_layernorm.weight"][5] = 0  # q, k and v never see this channel

        model = tiny_model.write(self.scratch / "dead", hidden=128, inter=256, layers=3, spoil=spoil)
        flags = ["--method", "gptq", *self.flags[2:]]
        told = run("quantize", model, "-o", self.scratch / "told", *flags)
        self.assertExit(told, 0, "model.layers.2.self_attn.q_proj: 1 input channel was always 0")
        warnings = json.loads((self.scratch / "told" / "report.json").read_text())["warnings"]
        self.assertEqual(len(warnings), 3)
        self.assertExit(run("quantize", model, "-o", self.scratch / "strict", *flags, "--strict"), 3, "expected a run without warnings, found 3")
        self.assertTrue((self.scratch / "strict" / "config.json").exists())


if __name__ == "__main__":
    harness.main()
