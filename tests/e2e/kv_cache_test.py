#!/usr/bin/env python3
"""KV caches that an artifact declares: what pith quantize writes, who reads it, and that the model runs with it."""
import json

import numpy as np

import harness
import tiny_model
from artifact_test import read_safetensors
from harness import run, run_json

TEXT = " ".join(f"The {noun} of {number} threads was {verb} by hand." for number in range(200)
                for noun, verb in (("loom", "woven"), ("sail", "sewn"), ("net", "tied")))
RECIPE = """quant_stage:
  quant_modifiers:
    QuantizationModifier:
      ignore: ["lm_head"]
      scheme: W8A8
      kv_cache_scheme: {num_bits: 8, type: float, strategy: tensor, dynamic: false, symmetric: true}
"""


class KvCacheTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.scratch / "calibration.txt"
        text.write_text(TEXT)
        cls.text = text
        cls.data = ["--calibration", text, "--num-samples", 8, "--sequence-length", 48]
        cls.artifacts = {}
        for name in ("fp8", "fp8-head", "int8"):
            cls.artifacts[name] = cls.scratch / name
            finished = run("quantize", cls.model, "-o", cls.artifacts[name], "--scheme", "W8A8", "--kv-cache", name, *cls.data)
            assert finished.returncode == 0, finished.stderr

    def config(self, artifact):
        return json.loads((artifact / "config.json").read_text())["quantization_config"]

    def scales(self, artifact):
        return {name: values for name, (_, values) in read_safetensors(artifact / "model.safetensors").items()
                if name.endswith((".k_scale", ".v_scale"))}

    def test_scales_are_stored_as_loaders_read_them(self):
        for name, strategy, shape in (("fp8", "tensor", (1,)), ("fp8-head", "attn_head", (2, 1, 1))):
            artifact = self.artifacts[name]
            self.assertEqual(self.config(artifact)["kv_cache_scheme"],
                             {"num_bits": 8, "type": "float", "strategy": strategy, "symmetric": True})
            scales = self.scales(artifact)
            self.assertEqual(sorted(scales), [f"model.layers.{i}.self_attn.{part}_scale" for i in range(2) for part in "kv"])
            reports = {report["name"]: report for report in json.loads((artifact / "report.json").read_text())["kv_scales"]}
            for tensor, values in scales.items():
                self.assertEqual(values.shape, shape)
                module, part = tensor.rsplit(".", 1)
                kind = "key" if part == "k_scale" else "value"
                largest = np.float32(reports[module][f"{kind}_max_abs"])
                largest = largest if strategy == "attn_head" else largest.max(keepdims=True)
                expected = (tiny_model.bf16(largest / np.float32(448)).astype(np.uint32) << 16).view(np.float32)
                np.testing.assert_array_equal(values.ravel(), expected)
                np.testing.assert_array_equal(values.ravel(), np.float32(reports[module][f"{kind}_scales"]))
        self.assertEqual(self.scales(self.artifacts["int8"]), {})
        self.assertEqual(self.config(self.artifacts["int8"])["kv_cache_scheme"],
                         {"num_bits": 8, "type": "int", "strategy": "token", "symmetric": True, "dynamic": True})

    def test_inspect_says_what_is_declared_and_who_reads_it(self):
        for name, line, refusing in (
                ("fp8", "KV cache: declared fp8 static per tensor; scales of 2 layers: keys ", {"llama.cpp"}),
                ("fp8-head", "KV cache: declared fp8 static per attn_head; scales of 2 layers: keys ", {"llama.cpp", "SGLang"}),
                ("int8", "KV cache: declared int8 dynamic per token\n", {"llama.cpp", "SGLang", "vLLM"})):
            shown = run("inspect", self.artifacts[name])
            self.assertExit(shown, 0)
            self.assertIn(line, shown.stdout)
            result = run_json("inspect", self.artifacts[name])
            self.assertEqual({loader for loader, verdict in result["loaders"].items() if not verdict["loads"]}, refusing, name)
            self.assertEqual(result["config_coverage"]["problems"], [])
            self.assertEqual(result["config_coverage"]["by_kv_cache_scheme"], 0 if name == "int8" else 4)
            self.assertEqual(result["kv_cache"]["scheme"], self.config(self.artifacts[name])["kv_cache_scheme"])
            stored = self.scales(self.artifacts[name])
            for layer in result["kv_cache"]["scales"]:
                for key, part in (("keys", "k"), ("values", "v")):
                    values = stored[f"model.layers.{layer['layer']}.self_attn.{part}_scale"]
                    np.testing.assert_array_equal(np.float32(layer[key]), values.ravel())
        self.assertIsNone(run_json("inspect", self.model)["kv_cache"])

    def changed(self, name, artifact, change):
        """A copy of an artifact with other tensors: change(name, values) gives the values to store, None drops them."""
        out = self.scratch / name
        out.mkdir()
        for path in artifact.iterdir():
            if path.name != "pith.json":
                (out / path.name).write_bytes(path.read_bytes())
        tensors = {}
        for tensor, (dtype, values) in read_safetensors(artifact / "model.safetensors").items():
            values = change(tensor, values)
            if values is not None:
                tensors[tensor] = (dtype, tiny_model.bf16(values) if dtype == "BF16" else values)
        tiny_model.write_safetensors(out / "model.safetensors", tensors)
        return out

    def quality(self, artifact, *flags):
        data = ["--data", self.text, "--context", 64, "--limit", 4]
        return run_json("eval", artifact, "--reference", self.model, *data, *flags)["models"][0]

    def test_the_model_runs_with_what_it_declares(self):
        """Scales that are a thousandth of what they should be clip everything: the stored ones are what decides."""
        for name, dtype in (("fp8", "fp8"), ("fp8-head", "fp8"), ("int8", "int8")):
            quality = self.quality(self.artifacts[name])
            self.assertEqual(quality["kv_cache"], dtype)
            self.assertEqual(quality["metrics"], self.quality(self.artifacts[name], "--threads", 1, "--chunk", 7)["metrics"])
            bf16 = self.quality(self.artifacts[name], "--kv-cache-dtype", "bf16")["metrics"]["kl_mean"]["value"]
            self.assertLess(quality["metrics"]["kl_mean"]["value"], bf16 + 0.5)  # random weights attend sharply
        clipped = self.changed("clipped", self.artifacts["fp8"],
                               lambda name, values: values / 1000 if name.endswith(("k_scale", "v_scale")) else values)
        ruined, whole = self.quality(clipped), self.quality(self.artifacts["fp8"])
        self.assertGreater(ruined["metrics"]["kl_mean"]["value"], 4 * whole["metrics"]["kl_mean"]["value"])
        self.assertEqual(self.quality(clipped, "--kv-cache-dtype", "int8")["metrics"],
                         self.quality(self.artifacts["fp8"], "--kv-cache-dtype", "int8")["metrics"])
        with harness.Server(self.artifacts["fp8-head"]) as server:
            self.assertIn('cache_dtype="fp8"', server.request("GET", "/metrics")[2])

    def test_weights_may_stay_as_they_are(self):
        out = self.scratch / "dense"
        shown = run("quantize", self.model, "-o", out, "--scheme", "bf16", "--kv-cache", "fp8", *self.data)
        self.assertExit(shown, 0)
        self.assertIn("kept in BF16; KV cache declared fp8 static per tensor", shown.stdout)
        self.assertEqual(self.config(out)["config_groups"], {})
        before, after = read_safetensors(self.model / "model.safetensors"), read_safetensors(out / "model.safetensors")
        self.assertEqual(set(after) - set(before), set(self.scales(out)))
        for name, (dtype, values) in before.items():
            self.assertEqual((dtype, values.tobytes()), (after[name][0], after[name][1].tobytes()))
        self.assertExit(run("run", out, "The loom", "--max-tokens", 4), 0)
        # Scales are dropped where nothing could declare them, and kept where they can be.
        bf16 = self.scratch / "converted"
        self.assertExit(run("convert", out, "-o", bf16), 0)
        self.assertEqual(self.scales(bf16), {})
        self.assertNotIn("quantization_config", json.loads((bf16 / "config.json").read_text()))
        kept = self.scratch / "kept"
        self.assertExit(run("convert", self.artifacts["fp8-head"], "-o", kept, "--format", "compressed-tensors"), 0)
        self.assertEqual(self.config(kept)["kv_cache_scheme"], self.config(self.artifacts["fp8-head"])["kv_cache_scheme"])
        for name, values in self.scales(self.artifacts["fp8-head"]).items():
            np.testing.assert_array_equal(self.scales(kept)[name], values)

    def test_a_recipe_gives_what_the_flag_gives(self):
        recipe = self.scratch / "recipe.yaml"
        recipe.write_text(RECIPE)
        out = self.scratch / "by-recipe"
        self.assertExit(run("quantize", self.model, "-o", out, "--recipe", recipe, *self.data), 0)
        for name in ("model.safetensors", "config.json"):
            self.assertEqual((out / name).read_bytes(), (self.artifacts["fp8"] / name).read_bytes(), name)
        recipe.write_text("QuantizationModifier: {kv_cache_scheme: {num_bits: 8, type: float, strategy: attn_head}}")
        alone = self.scratch / "alone"
        self.assertExit(run("quantize", self.model, "-o", alone, "--recipe", recipe, *self.data), 0)
        self.assertEqual(self.config(alone)["config_groups"], {})
        self.assertExit(run("quantize", self.model, "-o", self.scratch / "both", "--recipe", recipe, "--kv-cache", "fp8"), 2, "--kv-cache")

    def test_refusals(self):
        out = self.scratch / "never"
        for flags, code, message in ((["--kv-cache", "fp4"], 4, '--kv-cache: KV cache scheme "fp4": not known; known are fp8'),
                                     (["--scheme", "BF16"], 2, "--kv-cache declares a KV cache for it"),
                                     (["--scheme", "BF16", "--kv-cache", "fp8", "--method", "gptq"], 2, "found --method"),
                                     (["--scheme", "BF16", "--kv-cache", "fp8", "--bits-per-weight", 5], 2, "found --bits-per-weight")):
            finished = run("quantize", self.model, "-o", out, *flags, *self.data)
            self.assertExit(finished, code, message)
            self.assertEqual(finished.stderr.count("\n"), 1, finished.stderr)
            self.assertFalse(out.exists())
        broken = self.changed("broken", self.artifacts["fp8"],
                              lambda name, values: None if name == "model.layers.1.self_attn.v_scale" else values)
        self.assertExit(run("run", broken, "abc"), 65, "model.layers.1.self_attn.v_scale: expected a scale")


if __name__ == "__main__":
    harness.main()
