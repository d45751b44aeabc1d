#!/usr/bin/env python3
"""Compares pith's greedy tokens with transformers, position by position, on artifacts in any format that transformers loads.

  compare_transformers.py PITH MODEL...     needs: pip install torch transformers compressed-tensors accelerate (bitsandbytes for int8)

pith continues each prompt greedily; transformers then reads prompt and continuation, and its most likely token at every position is set
beside pith's choice. A different one counts only where transformers' own two best are further apart than MARGIN: the two round activations
in other places, and closer calls are decided by that. A model whose weights were not all loaded counts as a failure.
"""
import json
import subprocess
import sys

import torch
import transformers

PROMPTS = ["The capital of France is", "def fibonacci(n):\n    ", "Once upon a time, in a small village by the sea,",
           "Water boils at 100 degrees Celsius because", "Les trois couleurs primaires sont", "1, 1, 2, 3, 5, 8,"]
TOKENS = 32
MARGIN = 0.5  # natural log


def pith_greedy(pith, path, prompt):
    finished = subprocess.run([pith, "run", path, prompt, "-n", str(TOKENS), "--temperature", "0", "--json", "-", "--quiet"],
                              capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)["tokens"]


def load(path):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16, device_map="cpu", output_loading_info=True)
    problems = {name: sorted(info[name])[:3] for name in ("missing_keys", "unexpected_keys", "mismatched_keys") if info.get(name)}
    return model.eval(), problems


def compare(pith, path):
    name = path.rstrip("/").rsplit("/", 1)[-1]
    try:
        model, problems = load(path)
    except Exception as error:  # whatever a loader refuses with is the result
        print(f"{name}: not loaded: {type(error).__name__}: {str(error).strip().splitlines()[0][:300]}", flush=True)
        return True
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    positions = agree = beyond = 0
    for prompt in PROMPTS:
        ids = tokenizer(prompt)["input_ids"]
        ours = pith_greedy(pith, path, prompt)
        with torch.no_grad():
            logits = model(torch.tensor([ids + ours])).logits[0].float().log_softmax(-1)
        for i, token in enumerate(ours):
            row = logits[len(ids) + i - 1]
            best = int(row.argmax())
            positions += 1
            agree += best == token
            if best != token and float(row[best] - row[token]) > MARGIN:
                beyond += 1
                print(f"  {prompt!r} position {i}: transformers {best}, pith {token}, {float(row[best] - row[token]):.2f} behind")
    print(f"{name}: {agree}/{positions} greedy tokens equal, {beyond} differ by more than {MARGIN}; {problems or 'all weights loaded'}", flush=True)
    return beyond > 0 or bool(problems)


def main():
    pith, *models = sys.argv[1:]
    print(f"transformers {transformers.__version__}, torch {torch.__version__}", flush=True)
    sys.exit(any([compare(pith, path) for path in models]))


if __name__ == "__main__":
    main()
