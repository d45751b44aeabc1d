"""What `pith convert` writes, as other software reads it: numpy decoders of each layout, and the packages safetensors and gguf."""
import json
import sys

import harness
import numpy as np
import tiny_model
from harness import run, run_json

try:
    import gguf
    from safetensors import safe_open
except ImportError as error:
    print(f"skipped: {error} (scripts/setup --python installs the tests' packages)")
    sys.exit(77)

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def read_safetensors(directory):
    """name -> array, bf16 as f32."""
    data = (directory / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    kinds = {"BF16": np.uint16, "F16": np.float16, "I32": np.int32, "I64": np.int64, "I8": np.int8, "U8": np.uint8, "F32": np.float32}
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = (array.astype(np.uint32) << 16).view(np.float32) if entry["dtype"] == "BF16" else array
    return tensors


def config_of(directory):
    return json.loads((directory / "config.json").read_text())["quantization_config"]


def fields(words, bits):
    """Fields of each row of int32 words, little end first."""
    stream = np.unpackbits(np.ascontiguousarray(words).astype("<i4").view(np.uint8), axis=1, bitorder="little")
    return (stream.reshape(words.shape[0], -1, bits).astype(np.int64) << np.arange(bits)).sum(axis=2)


def gptq_weight(tensors, module, config):
    q = fields(tensors[module + ".qweight"].T.copy(), config["bits"]).T  # [in, out]
    zero = fields(tensors[module + ".qzeros"], config["bits"])
    if config["checkpoint_format"] == "gptq":
        zero = (zero + 1) % (1 << config["bits"])
    group = tensors[module + ".g_idx"]
    scale = tensors[module + ".scales"].astype(np.float32)
    return ((q - zero[group]).astype(np.float32) * scale[group]).T


def awq_weight(tensors, module, config):
    def unpack(words):
        nibbles = fields(words, 4).reshape(words.shape[0], -1, 8)
        columns = np.empty_like(nibbles)
        columns[:, :, AWQ_ORDER] = nibbles
        return columns.reshape(words.shape[0], -1)
    q, zero = unpack(tensors[module + ".qweight"]), unpack(tensors[module + ".qzeros"])
    size = config["group_size"] if config["group_size"] > 0 else q.shape[0]
    scale = tensors[module + ".scales"].astype(np.float32)
    return ((q - np.repeat(zero, size, axis=0)).astype(np.float32) * np.repeat(scale, size, axis=0)).T


def bnb_weight(tensors, module, _config):
    return tensors[module + ".weight"].astype(np.float32) * (tensors[module + ".SCB"] / np.float32(127))[:, None]


def to_bf16(array):
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


def one_more_token(tensors):
    """A row of the embedding for a token that a merge makes: GGUF vocabularies have merges."""
    embedding = tensors["model.embed_tokens.weight"]
    tensors["model.embed_tokens.weight"] = np.concatenate([embedding, embedding[:1]])
    return {"vocab_size": len(embedding) + 1}


class InteropTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = tiny_model.write(cls.scratch / "wide", hidden=256, inter=512, spoil=one_more_token)
        path = cls.model / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        tokenizer["model"]["vocab"]["ab"] = json.loads((cls.model / "config.json").read_text())["vocab_size"] - 1
        tokenizer["model"]["merges"] = ["a b"]
        path.write_text(json.dumps(tokenizer))

    def quantize(self, scheme, group_size):
        out = self.scratch / f"{scheme}-{group_size}"
        if not out.exists():
            run_json("quantize", self.model, "-o", out, "--scheme", scheme, "--group-size", group_size)
        return out

    def convert(self, source, target, *flags):
        out = self.scratch / f"{source.name}-as-{target}{'-'.join(flags)}"
        if not out.exists():
            self.assertExit(run("convert", source, "-o", out, "--format", target, *flags), 0)
        return out

    def test_stored_formats_are_what_other_readers_expect(self):
        cases = [("W4A16", "16", "gptq", gptq_weight), ("W4A16", "16", "gptq_v2", gptq_weight), ("W4A16", "16", "awq", awq_weight),
                 ("W4A16_ASYM", "16", "gptq_v2", gptq_weight), ("W4A16_ASYM", "16", "awq", awq_weight),
                 ("W8A16", "channel", "gptq", gptq_weight), ("W8A16", "channel", "bnb-int8", bnb_weight),
                 ("W8A8", "channel", "bnb-int8", bnb_weight)]
        for scheme, group_size, target, decode in cases:
            with self.subTest(scheme=scheme, target=target):
                source = self.quantize(scheme, group_size)
                out = self.convert(source, target)
                stored, config = read_safetensors(out), config_of(out)
                dense = read_safetensors(self.convert(source, "bf16"))
                again = read_safetensors(self.convert(out, "bf16"))
                for name, expected in dense.items():
                    np.testing.assert_array_equal(again[name], expected, name)
                    if "_proj" not in name or not name.endswith(".weight"):
                        continue
                    weight = decode(stored, name.removesuffix(".weight"), config)
                    np.testing.assert_array_equal(to_bf16(weight), expected, name)
                with safe_open(out / "model.safetensors", "np") as file:
                    self.assertEqual(set(file.keys()), set(stored))
                self.assertEqual((out / "tokenizer.json").read_bytes(), (source / "tokenizer.json").read_bytes())
                self.assertExit(run("run", out, "a b c", "-n", "2"), 0)

    def test_what_a_format_cannot_hold_is_refused(self):
        out = self.scratch / "refused"
        cases = [(self.quantize("W4A16_ASYM", "16"), "gptq", "found zero points"), (self.quantize("W8A16", "16"), "awq", "awq"),
                 (self.quantize("W4A16", "16"), "bnb-int8", "bitsandbytes"), (self.model, "gptq", "quantize it first"),
                 (self.quantize("W4A16", "16"), "gguf", "--requantize")]
        for source, target, message in cases:
            self.assertExit(run("convert", source, "-o", out, "--format", target), 4, message)
            self.assertFalse(out.exists())
        self.assertExit(run("convert", self.model, "-o", out, "--format", "exl2"), 2)
        self.assertExit(run("convert", self.model, "-o", out, "--type", "Q8_0"), 2, "--format gguf only")

    def test_gguf_files_load_in_the_gguf_package(self):
        sources = [(self.model, kind) for kind in ("BF16", "F16", "Q8_0", "Q4_0", "Q4_1", "Q4_K_M", "Q5_K_S", "Q6_K")]
        for source, kind in sources + [(self.quantize("W4A16", "32"), "auto")]:
            with self.subTest(source=source.name, kind=kind):
                out = self.convert(source, "gguf", "--type", kind)
                reader = gguf.GGUFReader(out)
                self.assertEqual(reader.fields["general.architecture"].contents(), "llama")
                self.assertEqual(len(reader.fields["tokenizer.ggml.tokens"].data),
                                 reader.fields["llama.vocab_size"].contents())
                ours = read_safetensors(self.convert(out, "bf16"))
                heads = {"attn_q": reader.fields["llama.attention.head_count"].contents(),
                         "attn_k": reader.fields["llama.attention.head_count_kv"].contents()}
                names = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
                hf = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
                      "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
                      "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
                for tensor in reader.tensors:
                    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
                    part = tensor.name.split(".")
                    name = names.get(tensor.name) or f"model.layers.{part[1]}.{hf[part[2]]}.{part[3]}"
                    if len(part) > 2 and part[2] in heads:  # pairs back to halves
                        n = heads[part[2]]
                        values = values.reshape(n, values.shape[0] // n // 2, 2, -1).swapaxes(1, 2).reshape(values.shape)
                    np.testing.assert_array_equal(to_bf16(values), ours[name].reshape(values.shape), tensor.name)
                self.assertExit(run("run", out, "a b c", "-n", "2"), 0)
        packed = {t.name: t for t in gguf.GGUFReader(self.convert(self.quantize("W4A16", "32"), "gguf", "--type", "auto")).tensors}
        self.assertEqual(packed["blk.0.ffn_up.weight"].tensor_type, gguf.GGMLQuantizationType.Q4_0)

    def test_importance_matrices(self):
        dat, new = self.scratch / "i.dat", self.scratch / "i.gguf"
        width = json.loads((self.model / "config.json").read_text())["hidden_size"]
        name = b"blk.0.attn_q.weight"
        sums = np.linspace(0, 2, width, dtype="<f4")
        ints = lambda *values: np.array(values, "<i4").tobytes()
        dat.write_bytes(ints(1, len(name)) + name + ints(2, width) + sums.tobytes() + ints(3, 5) + b"a.txt")
        self.assertEqual(run_json("convert", dat, "-o", new, "--format", "imatrix")["matrices"], 1)
        reader = gguf.GGUFReader(new)
        tensors = {t.name: t.data for t in reader.tensors}
        np.testing.assert_array_equal(tensors["blk.0.attn_q.weight.in_sum2"].reshape(-1), sums)
        self.assertEqual(tensors["blk.0.attn_q.weight.counts"].item(), 2)
        self.assertEqual(reader.fields["general.type"].contents(), "imatrix")
        files = [self.scratch / f"weighted-{i}.gguf" for i in range(3)]
        for out, flags in zip(files, ([], ["--imatrix", dat], ["--imatrix", new])):
            self.assertExit(run("convert", self.model, "-o", out, "--format", "gguf", "--type", "Q4_0", *flags), 0)
        plain, old_form, new_form = (file.read_bytes() for file in files)
        self.assertEqual(old_form, new_form)
        self.assertNotEqual(plain, old_form)
        dat.write_bytes(dat.read_bytes()[:-20])
        self.assertExit(run("convert", self.model, "-o", self.scratch / "x.gguf", "--format", "gguf", "--imatrix", dat), 65, "i.dat")

    def test_importance_matrices_of_calibration_data(self):
        text = self.scratch / "calibration.txt"
        text.write_text("The nets were tied by hand, knot after knot, while the tide went out. " * 40)
        flags = ["--calibration", text, "--num-samples", "6", "--sequence-length", "32"]
        new, old = self.scratch / "own.gguf", self.scratch / "own.dat"
        result = run_json("convert", self.model, "-o", new, "--format", "imatrix", *flags)
        layers = json.loads((self.model / "config.json").read_text())["num_hidden_layers"]
        self.assertEqual(result["matrices"], 7 * layers)
        self.assertEqual(result["calibration"]["tokens"], 6 * 32)
        tensors = {t.name: t.data for t in gguf.GGUFReader(new).tensors}
        self.assertEqual(len(tensors), 2 * 7 * layers)
        self.assertEqual(tensors["blk.0.ffn_down.weight.counts"].item(), 6 * 32)
        np.testing.assert_array_equal(tensors["blk.0.attn_q.weight.in_sum2"], tensors["blk.0.attn_v.weight.in_sum2"])
        self.assertExit(run("convert", new, "-o", old, "--format", "imatrix-dat"), 0)
        self.assertEqual(old.read_bytes()[:4], np.array([7 * layers], "<i4").tobytes())
        self.assertExit(run("convert", new, "-o", old, "--format", "imatrix-dat"), 73, "expected no such file yet")
        sampled = run_json("convert", self.model, "-o", self.scratch / "self.gguf", "--format", "imatrix", "--num-samples", "2",
                           "--sequence-length", "24")
        self.assertEqual(sampled["calibration"]["source"], "model")
        outs = {}
        for name, given in (("plain", []), ("file", ["--imatrix", new]), ("collected", flags)):
            outs[name] = self.scratch / f"own-{name}.gguf"
            self.assertExit(run("convert", self.model, "-o", outs[name], "--format", "gguf", "--type", "Q4_K_S", *given), 0)
        self.assertEqual(outs["file"].read_bytes(), outs["collected"].read_bytes())
        self.assertNotEqual(outs["file"].read_bytes(), outs["plain"].read_bytes())
        for given, message in ((["--format", "gguf", "--type", "BF16"], "a --type of quantized blocks"), (["--format", "awq"], "gguf or imatrix"),
                               (["--format", "gguf", "--type", "Q4_0", "--imatrix", new], "found both")):
            self.assertExit(run("convert", self.model, "-o", self.scratch / "x", *given, *flags), 2, message)
        self.assertExit(run("convert", new, "-o", self.scratch / "x", "--format", "imatrix", *flags), 2, "with an importance matrix")

    def test_a_sentencepiece_tokenizer_json_becomes_scores(self):
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁t", "he", "▁the", "▁", "t", "h", "e"]

        def rows(tensors):
            tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"][:1].repeat(len(tokens) + 2, 0)
            return {"vocab_size": len(tokens) + 2, "bos_token_id": 1, "eos_token_id": 2}

        model = tiny_model.write(self.scratch / "pieces", hidden=256, inter=512, spoil=rows, chat=False)
        replace = lambda old, new: {"type": "Replace", "pattern": {"String": old}, "content": new}
        tokenizer = {"version": "1.0", "added_tokens": [{"id": i, "content": tokens[i], "special": True, "normalized": False} for i in range(3)],
                     "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")]},
                     "pre_tokenizer": None, "post_processor": None,
                     "decoder": {"type": "Sequence", "decoders": [replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                                                                  {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
                     "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
                               "vocab": {token: i for i, token in enumerate(tokens)}, "merges": ["▁ t", "h e", "▁t he"]}}
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        (model / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))
        out = self.convert(model, "gguf", "--type", "BF16")
        fields = gguf.GGUFReader(out).fields
        self.assertEqual(fields["tokenizer.ggml.model"].contents(), "llama")
        self.assertEqual(fields["tokenizer.ggml.tokens"].contents(), [*tokens, "[PAD266]", "[PAD267]"])
        self.assertEqual(fields["tokenizer.ggml.scores"].contents()[259:263], [0, -1, -2, -3])
        self.assertEqual(fields["tokenizer.ggml.token_type"].contents(), [2, 3, 3, *[6] * 256, *[1] * 7, 5, 5])
        self.assertTrue(fields["tokenizer.ggml.add_space_prefix"].contents())
        self.assertFalse(fields["tokenizer.ggml.add_bos_token"].contents())
        prompt = ["the then", "-n", "4"]
        self.assertEqual(run_json("run", out, *prompt)["tokens"], run_json("run", model, *prompt)["tokens"])
        tokenizer["model"]["merges"].pop()
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        self.assertExit(run("convert", model, "-o", self.scratch / "x.gguf", "--format", "gguf"), 4, 'would be "▁t" "he", found none')

    def test_inspect_says_who_loads_it(self):
        result = run_json("inspect", self.quantize("W4A16", "32"))
        self.assertTrue(result["loaders"]["vLLM"]["loads"])
        self.assertFalse(result["loaders"]["llama.cpp"]["loads"])
        self.assertEqual(result["config_coverage"]["problems"], [])
        self.assertIn("loads in vLLM, SGLang, transformers", run("inspect", self.quantize("W4A16", "32")).stdout)
        asymmetric = run_json("inspect", self.quantize("W4A16_ASYM", "32"))
        self.assertIn("asymmetric", asymmetric["loaders"]["SGLang"]["obstacles"][0])


if __name__ == "__main__":
    harness.main()
