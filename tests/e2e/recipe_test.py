"""llm-compressor recipes, in the forms its documentation shows, run as they are on a tiny model."""
import json

import harness
import tiny_model
from artifact_test import read_safetensors
from harness import run, run_json

W4A16 = """quant_stage:
  quant_modifiers:
    QuantizationModifier:
      ignore: ["lm_head", "re:.*o_proj", "re:.*vision_tower.*"]
      config_groups:
        group_0:
          targets: ["Linear"]
          input_activations: null
          output_activations: null
          weights:
            num_bits: 4
            type: "int"
            symmetric: true
            strategy: "group"
            group_size: 64
            observer: "mse"
"""
FP8_DYNAMIC = """quant_stage:
  quant_modifiers:
    QuantizationModifier:
      ignore: ["lm_head"]
      config_groups:
        group_0:
          weights: {num_bits: 8, type: "float", symmetric: true, strategy: "channel", dynamic: false}
          input_activations: {num_bits: 8, type: "float", symmetric: true, strategy: "token", dynamic: true}
          targets: ["Linear"]
"""
SMOOTHQUANT_GPTQ = """quant_stage:
  quant_modifiers:
    SmoothQuantModifier:
      smoothing_strength: 0.8
      mappings:
      - - ['re:.*q_proj', 're:.*k_proj', 're:.*v_proj']
        - re:.*input_layernorm
      - - ['re:.*gate_proj', 're:.*up_proj']
        - re:.*post_attention_layernorm
    GPTQModifier:
      targets: ["Linear"]
      ignore: [lm_head]
      scheme: W8A8
      dampening_frac: 0.02
"""
MIXED = """quant_stage:
  quant_modifiers:
    QuantizationModifier:
      ignore: ["lm_head"]
      config_groups:
        group_0:
          weights: {num_bits: 8, type: int, symmetric: true, strategy: group, group_size: 128}
          targets: ["re:.*down_proj.*"]
        group_1:
          weights: {num_bits: 4, type: int, symmetric: true, strategy: group, group_size: 128}
          targets: ["re:.*self_attn.k_proj.*", "re:.*self_attn.o_proj.*", "re:.*self_attn.q_proj.*", "re:.*self_attn.v_proj.*"]
"""
AWQ = """default_stage:
  default_modifiers:
    AWQModifier:
      duo_scaling: true
    QuantizationModifier:
      targets: [Linear]
      ignore: [lm_head]
      scheme: W4A16
"""
PRESET_LIST = "- QuantizationModifier:\n    targets: Linear\n    scheme: W4A16_ASYM\n    ignore: [lm_head]\n    weight_observer: minmax\n"
PRESET_JSON = '{"default_stage": {"default_modifiers": {"QuantizationModifier": {"scheme": {"INT8": ["Linear"]}, "ignore": ["lm_head"]}}}}'


class RecipeTest(harness.Case):
    def setUp(self):
        self.wide = self.scratch / "wide"
        if not self.wide.exists():
            tiny_model.write(self.wide, hidden=128, inter=256, spoil=self.add_head)

    @staticmethod
    def add_head(tensors):
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"][::-1].copy()
        return {"tie_word_embeddings": False}

    def write(self, text, name="recipe.yaml"):
        path = self.scratch / name
        path.write_text(text)
        return path

    def quantize(self, text, *flags, model=None, name="recipe.yaml"):
        """(the artifact, its quantization_config, what went to stderr)"""
        out = self.scratch / f"out-{len(list(self.scratch.iterdir()))}"
        finished = run("quantize", model or self.wide, "-o", out, "--recipe", self.write(text, name), *flags)
        self.assertExit(finished, 0)
        return out, json.loads((out / "config.json").read_text())["quantization_config"], finished.stderr

    def same_as_flags(self, artifact, *flags):
        out = self.scratch / f"flags-{len(list(self.scratch.iterdir()))}"
        self.assertExit(run("quantize", self.wide, "-o", out, *flags), 0)
        for name in ("model.safetensors", "config.json"):
            self.assertEqual((artifact / name).read_bytes(), (out / name).read_bytes(), name)

    def test_a_recipe_gives_what_the_flags_give(self):
        artifact, config, notes = self.quantize(W4A16)
        self.assertEqual(config["ignore"], ["lm_head", "re:.*o_proj"])
        self.assertIn("recipe.yaml: line 4: quant_stage.quant_modifiers.QuantizationModifier.ignore: re:.*vision_tower.* matches no module",
                      notes)
        self.same_as_flags(artifact, "--scheme", "W4A16", "--group-size", "64", "--ignore", "re:.*o_proj")
        artifact, config, notes = self.quantize(PRESET_LIST)
        self.assertEqual(config["config_groups"]["group_0"]["weights"]["group_size"], 128)
        self.assertNotIn("recipe.yaml", notes)
        self.same_as_flags(artifact, "--scheme", "W4A16_ASYM", "--group-size", "128", "--no-clip-search")
        self.same_as_flags(self.quantize(FP8_DYNAMIC)[0], "--scheme", "FP8_DYNAMIC")
        self.same_as_flags(self.quantize(PRESET_JSON, name="recipe.json")[0], "--scheme", "W8A8")

    def test_calibrated_recipes(self):
        text = self.scratch / "text.txt"
        text.write_text("The quick brown fox jumps over the lazy dog. " * 40)
        data = ["--calibration", text, "--num-samples", 4, "--sequence-length", 64]
        artifact, _, notes = self.quantize(SMOOTHQUANT_GPTQ, *data)
        self.assertIn("line 5: quant_stage.quant_modifiers.SmoothQuantModifier.mappings: the inputs of o_proj and down_proj", notes)
        recipe = json.loads((artifact / "pith.json").read_text())["recipe"]
        self.assertEqual([recipe[key] for key in ("scheme", "method", "damping", "activation_order", "smoothing_strength")],
                         ["W8A8", "smoothquant+gptq", 0.02, True, 0.8])
        artifact, _, _ = self.quantize(AWQ, *data)
        self.same_as_flags(artifact, "--scheme", "W4A16", "--method", "awq", "--group-size", 128, *data)

    def test_rotations(self):
        text = ("SpinQuantModifier: {rotations: [R1, R2], transform_type: random-hadamard}\n"
                "QuantizationModifier: {scheme: W4A16, ignore: [lm_head]}\n")
        artifact, config, _ = self.quantize(text, "--seed", "3")
        self.assertEqual(config["ignore"], ["lm_head"])
        self.same_as_flags(artifact, "--scheme", "W4A16", "--method", "rotation", "--group-size", "128", "--seed", "3")
        self.assertExit(run("run", artifact, "abc", "--max-tokens", "2"), 0)
        # Nothing sets a tied head apart where the weights of the final norm are all 1: it is no module to quantize.
        _, config, _ = self.quantize("[SpinQuantModifier, QuantizationModifier: {scheme: W8A8}]", model=self.model)
        self.assertEqual(config["ignore"], ["lm_head"])

    def test_schemes_of_their_own(self):
        artifact, config, _ = self.quantize(MIXED)
        bits = {}
        for name, (dtype, words) in read_safetensors(artifact / "model.safetensors").items():
            if name.endswith("_packed"):
                bits[name.rsplit(".", 2)[1]] = 32 * words.shape[1] // (256 if "down" in name else 128)
        self.assertEqual(bits, {"down_proj": 8, "q_proj": 4, "k_proj": 4, "v_proj": 4, "o_proj": 4})
        self.assertIn("model.layers.1.mlp.gate_proj", config["ignore"])
        self.assertExit(run("run", artifact, "abc", "--max-tokens", "2"), 0)

    def test_the_head_is_quantized_unless_it_is_ignored(self):
        artifact, config, _ = self.quantize("QuantizationModifier: {scheme: W8A16}")
        self.assertEqual(config["ignore"], [])
        self.assertIn("lm_head.weight_packed", read_safetensors(artifact / "model.safetensors"))
        self.assertExit(run("run", artifact, "abc", "--max-tokens", "2"), 0)
        # A tied head is the embedding: nothing to quantize, and the config says so.
        artifact, config, _ = self.quantize("QuantizationModifier: {scheme: W8A8}", model=self.model)
        self.assertEqual(config["ignore"], ["lm_head"])
        self.assertFalse([name for name in read_safetensors(artifact / "model.safetensors") if name.startswith("lm_head")])

    def test_refusals_name_file_line_and_path(self):
        out = self.scratch / "never"
        for text, code, message in (
                ("quant_stage:\n  quant_modifiers:\n    GPTQModifier:\n      dampening_fraction: 0.1\n", 65,
                 'recipe.yaml: line 4: quant_stage.quant_modifiers.GPTQModifier.dampening_fraction: unknown key, nearest is "dampening_f'),
                ("QuantizationModifier:\n  scheme: W4A61\n", 4, "recipe.yaml: line 2: QuantizationModifier.scheme: scheme"),
                ("QuantizationModifier:\n  scheme: W8A8\n  kv_cache_scheme: {num_bits: 8, type: int}\n", 4, "3: QuantizationModifier.kv"),
                ("SpinQuantModifier: {rotations: [R1, R4]}\n", 4, "SpinQuantModifier.rotations: R4 is not supported"),
                ("QuIPModifier: {}\n", 4, "QuIPModifier is not supported (it rotates activations when the model runs)"),
                ("QuantizationModifier: {scheme: W4A16", 65, "recipe.yaml: line 1"),
                ("", 65, "expected stages or modifiers")):
            finished = run("quantize", self.wide, "-o", out, "--recipe", self.write(text))
            self.assertExit(finished, code, message)
            self.assertEqual(finished.stderr.count("\n"), 1, finished.stderr)
            self.assertFalse(out.exists())
        self.assertExit(run("quantize", self.wide, "-o", out, "--recipe", self.scratch / "none.yaml"), 66, "none.yaml")
        path = self.write(PRESET_LIST)
        for flags in (["--scheme", "W4A16"], ["--method", "rtn"], ["--ignore", "lm_head"], ["--group-size", "32"], ["--no-clip-search"],
                      ["--quantize-head", "W8A16"]):
            self.assertExit(run("quantize", self.wide, "-o", out, "--recipe", path, *flags), 2, flags[0], "--recipe")

    def test_errors_of_the_plan_name_the_recipe(self):
        text = "QuantizationModifier:\n  scheme: W8A8\n  ignore: [lm_head, 're:.*v_proj']\n"
        finished = run("quantize", self.wide, "-o", self.scratch / "out", "--recipe", self.write(text))
        self.assertExit(finished, 2, "recipe.yaml: ignore: model.layers.0.self_attn.")
        self.assertNotIn("--ignore", finished.stderr)

    def test_what_changes_nothing_is_noted_unless_quiet(self):
        text = "QuantizationModifier:\n  scheme: W8A8\n  ignore: [lm_head]\n  end: -1\n"
        self.assertIn("recipe.yaml: line 4: QuantizationModifier.end: has no effect here", self.quantize(text)[2])
        finished = run("quantize", self.wide, "-o", self.scratch / "quiet", "--recipe", self.write(text), "--quiet")
        self.assertExit(finished, 0)
        self.assertEqual(finished.stderr, "")
        report = run_json("quantize", self.wide, "-o", self.scratch / "dry", "--recipe", self.write(text), "--dry-run")
        self.assertEqual(report["recipe"]["scheme"], "W8A8")


if __name__ == "__main__":
    harness.main()
