#!/usr/bin/env python3
"""What the Python packages say about a tokenizer, for the C++ tests to compare with.

  tokenizer_oracle.py vocabulary MODEL.gguf OUT.json       tokenizer metadata of a GGUF file           (package gguf)
  tokenizer_oracle.py encode TOKENIZER.json IN.json OUT.json                                           (package tokenizers)
      IN   [{"text": "...", "repeat": n, "add_special_tokens": bool, "parse_special": bool}, ...]  (text * n is encoded; n defaults to 1)
      OUT  [{"ids": [...], "decoded": "...", "decoded_special": "..."}, ...]
"""
import json
import sys


def vocabulary(model_path, out_path):
    from gguf import GGUFReader

    fields = GGUFReader(model_path).fields
    field = lambda key, default=None: fields[key].contents() if key in fields else default
    ggml = lambda key, default=None: field("tokenizer.ggml." + key, default)
    json.dump({
        "model": ggml("model"), "pre": ggml("pre", ""), "tokens": ggml("tokens"), "scores": ggml("scores", []),
        "token_types": ggml("token_type", []), "merges": ggml("merges", []), "bos_id": ggml("bos_token_id", -1),
        "eos_id": ggml("eos_token_id", -1), "unk_id": ggml("unknown_token_id", -1), "pad_id": ggml("padding_token_id", -1),
        "eot_id": ggml("eot_token_id", -1), "add_bos": ggml("add_bos_token"), "add_eos": ggml("add_eos_token"),
        "add_space_prefix": ggml("add_space_prefix"), "chat_template": field("tokenizer.chat_template", ""),
    }, open(out_path, "w", encoding="utf-8"))


def encode(tokenizer_path, in_path, out_path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    results = []
    for case in json.load(open(in_path, encoding="utf-8")):
        tokenizer.encode_special_tokens = not case.get("parse_special", False)
        text = case["text"] * case.get("repeat", 1)
        ids = tokenizer.encode(text, add_special_tokens=case.get("add_special_tokens", False)).ids
        results.append({"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True),
                        "decoded_special": tokenizer.decode(ids, skip_special_tokens=False)})
    json.dump(results, open(out_path, "w", encoding="utf-8"))


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "vocabulary":
        vocabulary(*arguments)
    elif command == "encode":
        encode(*arguments)
    else:
        sys.exit(f"{command}: expected vocabulary or encode")


if __name__ == "__main__":
    main()
