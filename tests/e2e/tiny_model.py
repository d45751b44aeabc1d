"""Writes tiny seeded Hugging Face model directories: a llama of two layers over a byte-level vocabulary without merges."""
import json
import struct
from pathlib import Path

import numpy as np

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_alphabet():
    """GPT-2's printable stand-in of every byte, by byte."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    codes, fresh = {byte: byte for byte in printable}, 256
    for byte in range(256):
        if byte not in codes:
            codes[byte] = fresh
            fresh += 1
    return [chr(codes[byte]) for byte in range(256)]


def bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write_safetensors(path, tensors):
    """tensors: name -> (dtype name, numpy array)."""
    header, offset = {}, 0
    for name, (dtype, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, array in tensors.values():
            file.write(array.tobytes())


def weights(rng, hidden, inter, layers, heads, kv_heads, vocab):
    head = hidden // heads
    draw = lambda *shape: rng.standard_normal(shape, np.float32) * (2.0 / np.sqrt(shape[-1]))
    tensors = {"model.embed_tokens.weight": draw(vocab, hidden) * 4, "model.norm.weight": np.ones(hidden, np.float32)}
    for i in range(layers):
        prefix = f"model.layers.{i}."
        for name, shape in {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (kv_heads * head, hidden),
                            "self_attn.v_proj": (kv_heads * head, hidden), "self_attn.o_proj": (hidden, hidden),
                            "mlp.gate_proj": (inter, hidden), "mlp.up_proj": (inter, hidden), "mlp.down_proj": (hidden, inter)}.items():
            tensors[prefix + name + ".weight"] = draw(*shape)
        tensors[prefix + "input_layernorm.weight"] = np.ones(hidden, np.float32)
        tensors[prefix + "post_attention_layernorm.weight"] = np.ones(hidden, np.float32)
    return tensors


def write(directory, seed=1, hidden=64, inter=128, layers=2, heads=4, kv_heads=2, context=512, chat=True, spoil=None):
    """spoil(tensors) may change the f32 weights before they are written; a dict it returns replaces config entries."""
    directory = Path(directory)
    directory.mkdir(parents=True)
    vocab = {token: i for i, token in enumerate(byte_alphabet() + SPECIAL)}
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "intermediate_size": inter,
              "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": hidden // heads,
              "vocab_size": len(vocab), "max_position_embeddings": context, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
              "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "bfloat16", "attention_bias": False, "mlp_bias": False,
              "bos_token_id": 256, "eos_token_id": 256}
    tensors = weights(np.random.default_rng(seed), hidden, inter, layers, heads, kv_heads, len(vocab))
    config.update((spoil(tensors) if spoil else None) or {})
    write_safetensors(directory / "model.safetensors", {name: ("BF16", bf16(tensors[name])) for name in sorted(tensors)})
    added = [{"id": vocab[token], "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for token in SPECIAL]
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                 "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                 "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                           "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []}}
    tokenizer_config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL[0], "eos_token": SPECIAL[0]}
    if chat:
        tokenizer_config["chat_template"] = CHAT_TEMPLATE
    for name, content in {"config": config, "tokenizer": tokenizer, "tokenizer_config": tokenizer_config,
                          "generation_config": {"bos_token_id": 256, "eos_token_id": [256, 258]}}.items():
        (directory / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    return directory
