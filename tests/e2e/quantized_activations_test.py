"""Schemes with quantized activations, end to end: stored bytes against numpy, the declared data path, quality, and artifacts made by hand."""
import json
import shutil

import harness
import numpy as np
import tiny_model
from harness import run, run_json

INT8_TOKEN = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}


def read_safetensors(path):
    """name -> (dtype, array); bf16 and fp8 as their bits."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    kinds = {"BF16": np.uint16, "I8": np.int8, "F8_E4M3": np.uint8, "F32": np.float32}
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = (entry["dtype"], np.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"]))
    return tensors


def emulation(layer):
    """What stands in for fp8: bf16 where the row's instruction set has a product of it."""
    return "fp8 as bf16" if layer["isa"] in ("avx512_vnni", "amx") else "fp8 as f32"


def f32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(values):
    """Through bf16, to nearest even."""
    return f32(tiny_model.bf16(values))


def e4m3(codes):
    """The values of e4m3fn codes 0 to 0x7E."""
    exponent, mantissa = codes >> 3, codes & 7
    return np.where(exponent == 0, mantissa * 2.0 ** -9, (8 + mantissa) * 2.0 ** (exponent - 10.0))


def to_e4m3(values):
    """The nearest code, ties to the even one, saturating."""
    grid = e4m3(np.arange(0x7F))
    magnitude = np.abs(values.astype(np.float64))
    low = np.clip(np.searchsorted(grid, magnitude, side="right") - 1, 0, 0x7D)
    below, above = magnitude - grid[low], grid[low + 1] - magnitude
    code = np.where((above < below) | ((above == below) & (low % 2 == 1)), low + 1, low)
    return (code | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


class QuantizedActivationsTest(harness.Case):
    def quantize(self, scheme, *flags):
        out = self.scratch / "-".join([scheme, *map(str, flags)])
        if not out.exists():
            run_json("quantize", self.model, "-o", out, "--scheme", scheme, *flags)
        return out

    def text(self):
        path = self.scratch / "text.txt"
        path.write_text("The loom stood by the window, and she wove all day long. " * 12, encoding="utf-8")
        return path

    def group_of(self, out):
        config = json.loads((out / "config.json").read_text())["quantization_config"]
        return config["format"], config["config_groups"]["group_0"]

    def layers(self, out):
        return [t for t in run_json("inspect", out)["tensors"] if "_proj" in t["name"]]

    def quality(self, out, threads=2):
        result = run_json("eval", out, "--reference", self.model, "--data", self.text(), "--context", 64, "--threads", threads)
        return result["models"][0]

    def test_w8a8_stores_what_numpy_computes(self):
        out = self.quantize("W8A8", "--no-clip-search")
        self.assertEqual(self.group_of(out), ("int-quantized", {
            "targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"},
            "input_activations": INT8_TOKEN}))
        stored, original = read_safetensors(out / "model.safetensors"), read_safetensors(self.model / "model.safetensors")
        for name in [n for n in original if "_proj" in n]:
            weight = f32(original[name][1])
            scale = rounded(np.abs(weight).max(axis=1, keepdims=True) / np.float32(127.5))
            self.assertEqual(stored[name + "_scale"][0], "BF16")
            np.testing.assert_array_equal(f32(stored[name + "_scale"][1]), scale, name)
            np.testing.assert_array_equal(stored[name][1], np.clip(np.rint(weight / scale), -128, 127).astype(np.int8), name)

    def test_fp8_stores_what_numpy_computes(self):
        out = self.quantize("FP8_DYNAMIC")
        file_format, group = self.group_of(out)
        self.assertEqual(file_format, "float-quantized")
        self.assertEqual(group["weights"], {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"})
        self.assertEqual(group["input_activations"], {**INT8_TOKEN, "type": "float"})
        stored, original = read_safetensors(out / "model.safetensors"), read_safetensors(self.model / "model.safetensors")
        for name in [n for n in original if "_proj" in n]:
            weight = f32(original[name][1])
            scale = rounded(np.abs(weight).max(axis=1, keepdims=True) / np.float32(448))
            self.assertEqual(stored[name][0], "F8_E4M3")
            np.testing.assert_array_equal(f32(stored[name + "_scale"][1]), scale, name)
            np.testing.assert_array_equal(stored[name][1], to_e4m3(weight / scale), name)
            dense = self.scratch / "fp8-dense"
            if not dense.exists():
                self.assertExit(run("convert", out, "-o", dense), 0)
            values = e4m3(stored[name][1] & 0x7F) * np.where(stored[name][1] & 0x80, -1, 1)
            expected = tiny_model.bf16((values.astype(np.float32) * scale).astype(np.float32))
            np.testing.assert_array_equal(read_safetensors(dense / "model.safetensors")[name][1], expected, name)

    def test_a_block_scheme_wants_whole_blocks(self):
        refused = self.scratch / "refused"
        self.assertExit(run("quantize", self.model, "-o", refused, "--scheme", "FP8_BLOCK"), 4, "model.layers.0.", "whole blocks of 128")
        self.assertFalse(refused.exists())
        wide = tiny_model.write(self.scratch / "wide", hidden=128, inter=256, layers=1)
        out = self.scratch / "block"
        run_json("quantize", wide, "-o", out, "--scheme", "FP8_BLOCK")
        stored = read_safetensors(out / "model.safetensors")
        self.assertEqual(stored["model.layers.0.mlp.gate_proj.weight_scale"][1].shape, (2, 1))
        self.assertEqual(stored["model.layers.0.self_attn.k_proj.weight_scale"][1].shape, (1, 1))
        self.assertEqual(self.group_of(out)[1]["weights"]["block_structure"], [128, 128])
        for layer in self.layers(out):
            self.assertEqual(layer["activation"], "bf16 (declared fp8 dynamic per group of 128)")
            self.assertEqual((layer["group_size"], layer["emulated"]), (128, emulation(layer)))
            self.assertTrue(any("no kernel multiplies" in reason for reason in layer["refused"]))
        self.assertEqual(run_json("inspect", out)["data_path"], "FP8_BLOCK/bf16")
        self.assertExit(run("run", out, "The loom", "--max-tokens", 4), 0)

    def test_static_scales_come_from_calibration(self):
        """Without a file the model writes its own text; scales are those of the inputs, one per module, the same for q, k and v."""
        for scheme in ("FP8", "W8A8_STATIC"):
            out = self.scratch / f"static-{scheme}"
            self.assertExit(run("quantize", self.model, "-o", out, "--scheme", scheme, "--num-samples", 4, "--sequence-length", 16), 0)
            stored = read_safetensors(out / "model.safetensors")
            scales = {name: values for name, (_, values) in stored.items() if name.endswith(".input_scale")}
            self.assertEqual(len(scales), len([name for name in stored if name.endswith(".weight_scale")]))
            for name, values in scales.items():
                self.assertEqual(values.shape, (1,), name)
            q, k = (scales[f"model.layers.0.self_attn.{name}_proj.input_scale"] for name in "qk")
            self.assertEqual(q.tobytes(), k.tobytes())
            self.assertExit(run("run", out, "The loom", "--max-tokens", 4), 0)

    def test_inspect_declares_the_path(self):
        for scheme, activation, packing, accumulator, kernel in (
                ("W8A8", "int8 dynamic per token", "int-quantized", "int32", "gemm_int8_w8g_f32__"),
                ("W4A8", "int8 dynamic per row and group of 32", "int-quantized", "int32", "gemm_int8_w4g_f32__"),
                ("FP8_DYNAMIC", "fp8 dynamic per token", "float-quantized", "f32", "gemm_fp8_f8g_f32__")):
            out = self.quantize(scheme, *(["--group-size", 32] if scheme == "W4A8" else []))
            for layer in self.layers(out):
                self.assertEqual((layer["activation"], layer["packing"]), (activation, packing))
                self.assertTrue(layer["accumulator"].startswith(accumulator), layer["accumulator"])
                self.assertTrue(layer["kernel"].startswith(kernel), layer["kernel"])
                self.assertEqual(layer["emulated"], emulation(layer) if scheme == "FP8_DYNAMIC" else None)
            path = f"{scheme}/{activation.split()[0]}"
            self.assertEqual(run_json("inspect", out)["data_path"], path)
            self.assertEqual(run_json("inspect", out, "--activations", "bf16")["data_path"], path)
        self.assertIn(f"(emulated: {emulation(layer)})", run("inspect", out).stdout)

    def test_forecast_and_resident_agree(self):
        for scheme in ("W8A8", "W4A8", "FP8_DYNAMIC"):
            memory = run_json("inspect", self.quantize(scheme))["memory"]
            self.assertAlmostEqual(memory["forecast"]["total"] / memory["actual"]["total"], 1, delta=0.01)

    def test_quality_is_finite_and_the_same_for_any_number_of_threads(self):
        for scheme, limit in (("W8A8", 0.5), ("W4A8", 20), ("FP8_DYNAMIC", 2)):
            one, two = (self.quality(self.quantize(scheme), threads) for threads in (1, 2))
            self.assertEqual(one["metrics"], two["metrics"])
            self.assertGreater(one["metrics"]["kl_mean"]["value"], 0)
            self.assertLess(one["metrics"]["kl_mean"]["value"], limit)

    def with_static_scales(self, name, scale_of, scheme="W8A8"):
        """An artifact with input_scale tensors: scale_of(module) -> float."""
        source, out = self.quantize(scheme), self.scratch / name
        shutil.copytree(source, out)
        config = json.loads((out / "config.json").read_text())
        group = config["quantization_config"]["config_groups"]["group_0"]
        group["input_activations"] = {**group["input_activations"], "strategy": "tensor", "dynamic": False}
        (out / "config.json").write_text(json.dumps(config))
        tensors = dict(read_safetensors(source / "model.safetensors"))
        for weight in [n for n in tensors if n.endswith("_proj.weight")]:
            module = weight.removesuffix(".weight")
            tensors[module + ".input_scale"] = ("BF16", tiny_model.bf16(np.array([scale_of(module)], np.float32)))
        tiny_model.write_safetensors(out / "model.safetensors", tensors)
        return out

    def test_a_static_artifact_runs(self):
        # Of what a norm or the attention gives, few values are clamped; v_proj has a scale apart from q_proj and k_proj.
        scales = {"v_proj": 0.0625, "o_proj": 0.0625, "down_proj": 0.25}
        out = self.with_static_scales("static", lambda module: scales.get(module.rsplit(".")[-1], 0.03125))
        for layer in self.layers(out):
            self.assertEqual(layer["activation"], "int8 static per tensor")
        self.assertEqual(run_json("inspect", out)["data_path"], "W8A8_STATIC/int8")
        quality = self.quality(out)
        self.assertLess(quality["metrics"]["kl_mean"]["value"], 2)
        self.assertEqual(quality["metrics"], self.quality(out, threads=1)["metrics"])
        self.assertExit(run("run", out, "The loom", "--max-tokens", 4), 0)

    def test_a_static_fp8_artifact_runs(self):
        out = self.with_static_scales("static-fp8", lambda module: 0.125, scheme="FP8_DYNAMIC")
        for layer in self.layers(out):
            self.assertEqual((layer["activation"], layer["emulated"]), ("fp8 static per tensor", emulation(layer)))
        self.assertEqual(run_json("inspect", out)["data_path"], "FP8/fp8")  # whatever weights share a scale
        quality = self.quality(out)
        self.assertLess(quality["metrics"]["kl_mean"]["value"], 2)
        self.assertEqual(quality["metrics"], self.quality(out, threads=1)["metrics"])

    def test_a_broken_static_scale_is_named(self):
        out = self.with_static_scales("nan", lambda module: float("nan") if module.endswith("1.mlp.up_proj") else 0.03125)
        self.assertExit(run("inspect", out), 65, "model.layers.1.mlp.up_proj.input_scale", "finite positive scale")
        tensors = read_safetensors(out / "model.safetensors")
        del tensors["model.layers.1.mlp.up_proj.input_scale"]
        tiny_model.write_safetensors(out / "model.safetensors", tensors)
        self.assertExit(run("inspect", out), 65, "model.layers.1.mlp.up_proj.input_scale", "found no such tensor")


if __name__ == "__main__":
    harness.main()
