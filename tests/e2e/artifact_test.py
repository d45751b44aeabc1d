"""Quantized artifacts as other software reads them: a small reader of compressed-tensors in numpy, and the safetensors package."""
import json
import sys

import harness
import numpy as np
from harness import run, run_json

try:
    from safetensors import safe_open
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def read_safetensors(path):
    """name -> (dtype, array); bf16 as f32. By hand, because numpy has no bf16."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        raw = data[begin:end]
        kind = {"BF16": np.uint16, "I32": np.int32, "I64": np.int64, "I8": np.int8, "F32": np.float32}[entry["dtype"]]
        array = np.frombuffer(raw, kind).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = (entry["dtype"], array)
    return tensors


def unpack(words, bits, count):
    """Codes of each row of int32 words, little end first, without the offset 2^(bits-1)."""
    stream = np.unpackbits(words.astype("<i4").view(np.uint8), axis=1, bitorder="little")[:, :count * bits]
    return (stream.reshape(words.shape[0], count, bits) << np.arange(bits)).sum(axis=2) - (1 << (bits - 1))


def dequantize(module, tensors, args):
    out, width = (int(side) for side in tensors[module + ".weight_shape"][1])
    bits = args["num_bits"]
    codes = unpack(tensors[module + ".weight_packed"][1], bits, width)
    scale = tensors[module + ".weight_scale"][1]
    zero = np.zeros(scale.shape, np.int64)  # [1] per tensor
    if not args["symmetric"]:
        stored = tensors[module + ".weight_zero_point"]
        zero = stored[1].astype(np.int64) if stored[0] == "I8" else unpack(stored[1].T.copy(), bits, out).T
    if scale.ndim == 1:
        return ((codes - zero.reshape(())).astype(np.float32) * scale[0]).astype(np.float32)
    group = width // scale.shape[1]
    return (codes - np.repeat(zero, group, axis=1)).astype(np.float32) * np.repeat(scale, group, axis=1)


class ArtifactTest(harness.Case):
    def quantize(self, scheme, group_size):
        out = self.scratch / f"{scheme}-{group_size}"
        if not out.exists():
            run_json("quantize", self.model, "-o", out, "--scheme", scheme, "--group-size", group_size)
        return out

    def test_the_weights_are_what_the_config_says(self):
        for scheme in ("W8A16", "W4A16", "W4A16_ASYM"):
            for group_size in ("auto", "16", "channel", "tensor"):
                out = self.quantize(scheme, group_size)
                group = json.loads((out / "config.json").read_text())["quantization_config"]["config_groups"]["group_0"]
                stored = read_safetensors(out / "model.safetensors")
                original = read_safetensors(self.model / "model.safetensors")
                dense = self.scratch / f"dense-{scheme}-{group_size}"
                self.assertExit(run("convert", out, "-o", dense), 0)
                ours = read_safetensors(dense / "model.safetensors")
                for name in [n for n in original if "_proj" in n]:
                    ours_f32 = dequantize(name.removesuffix(".weight"), stored, group["weights"])
                    bits = ours_f32.view(np.uint32)
                    as_bf16 = (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)
                    np.testing.assert_array_equal(as_bf16, ours[name][1], name)
                    error = np.linalg.norm(ours_f32 - original[name][1]) / np.linalg.norm(original[name][1])
                    self.assertLess(error, 0.02 if scheme == "W8A16" else 0.5)
                    self.assertGreater(error, 0)

    def test_the_config_has_the_smallest_key_set(self):
        config = json.loads((self.quantize("W4A16", "auto") / "config.json").read_text())["quantization_config"]
        self.assertEqual(set(config), {"config_groups", "format", "ignore", "quant_method", "quantization_status"})
        self.assertEqual((config["quant_method"], config["format"], config["ignore"]), ("compressed-tensors", "pack-quantized", ["lm_head"]))
        group = config["config_groups"]["group_0"]
        self.assertEqual(group["targets"], ["Linear"])
        self.assertEqual({k: group["weights"][k] for k in ("num_bits", "type", "symmetric", "strategy", "group_size")},
                         {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 64})

    def test_side_files_are_byte_identical(self):
        out = self.quantize("W4A16", "auto")
        for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            self.assertEqual((out / name).read_bytes(), (self.model / name).read_bytes(), name)

    def test_the_safetensors_package_reads_it(self):
        path = self.quantize("W8A16", "auto") / "model.safetensors"
        ours = read_safetensors(path)
        with safe_open(path, framework="numpy") as file:
            self.assertEqual(set(file.keys()), set(ours))
            for name in file.keys():
                if ours[name][0] != "BF16":  # numpy has none
                    np.testing.assert_array_equal(file.get_tensor(name), ours[name][1], name)
            self.assertEqual(file.get_tensor("model.layers.0.mlp.up_proj.weight_packed").shape, (128, 16))

    def test_the_manifest_hashes_every_file(self):
        import hashlib
        out = self.quantize("W4A16", "auto")
        dense = self.scratch / "converted"
        self.assertExit(run("convert", self.model, "-o", dense), 0)
        version = run("--version").stdout.split()[1]
        for directory in (out, dense):
            self.assertEqual(json.loads((directory / "pith.json").read_text())["pith_version"], version)
        manifest = json.loads((out / "pith.json").read_text())
        names = {path.name for path in out.iterdir()} - {"pith.json", "README.md"}
        self.assertEqual(set(manifest["files"]), names)
        for name, entry in manifest["files"].items():
            self.assertEqual(hashlib.sha256((out / name).read_bytes()).hexdigest(), entry["sha256"], name)
        self.assertEqual(len(manifest["source"]["fingerprint"]), 64)
        self.assertEqual(manifest["recipe"]["scheme"], "W4A16")
        self.assertEqual(manifest["data_path"][0], {"name": "model.layers.0.self_attn.q_proj", "scheme": "W4A16", "stored_bits": 4.25,
                                                    "scale_dtype": "BF16", "group_size": 64, "packing": "pack-quantized"})


if __name__ == "__main__":
    harness.main()
