#!/usr/bin/env python3
"""Makes tests/golden/models: tiny random checkpoints with the logits an independent implementation gives for them.

  make_golden_models.py [OUT_DIR]          needs: pip install torch transformers safetensors   (made with the versions in golden.json)

Weights are bf16. Logits come from the transformers library in f32 on the CPU (eager attention), so the only rounding that separates
it from pith is that of pith's bf16 activations and KV cache; tests/conformance/architectures_golden_test.cc has the error model.
One deviation: Gemma's embedding scale is rounded to bf16, as it is when the published bf16 checkpoints run.
Seeds are searched so that greedy decoding has a clear margin at every step and does not just repeat a token.
"""
import json, os, sys

import torch
import transformers
from safetensors.torch import save_file

PROMPT, GREEDY, POSITIONS = 40, 12, [0, 1, 7, 9, 24, 39]
COMMON = {"vocab_size": 128, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu", "dtype": "bfloat16",
          "bos_token_id": 1, "eos_token_id": 2}
LLAMA = {**COMMON, "model_type": "llama", "architectures": ["LlamaForCausalLM"], "head_dim": 16, "rope_theta": 10000.0}
GEMMA = {k: v for k, v in COMMON.items() if k != "hidden_act"}
VARIANTS = {
    "llama_llama3": {**LLAMA, "tie_word_embeddings": False,
                     "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                      "original_max_position_embeddings": 64}},
    "llama_linear": {**LLAMA, "head_dim": None, "num_key_value_heads": 4, "tie_word_embeddings": True,
                     "rope_scaling": {"type": "linear", "factor": 4.0}},
    "llama_yarn_bias": {**LLAMA, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True,
                        "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                                            "original_max_position_embeddings": 32, "beta_fast": 4.0, "beta_slow": 1.0}},
    "qwen2_window": {**COMMON, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "rope_theta": 1000000.0,
                     "tie_word_embeddings": False, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
    "qwen3": {**COMMON, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 24, "tie_word_embeddings": True,
              "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}},
    "gemma3": {**GEMMA, "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "hidden_size": 40, "num_hidden_layers": 7,
               "num_key_value_heads": 1, "head_dim": 16, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 24,
               "sliding_window": 8, "sliding_window_pattern": 6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
               "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "tie_word_embeddings": True},
}


def random_weights(model, config, generator):
    """Replaces every parameter by bf16 values whose size keeps signals near 1, with scores spread enough for attention to be sharp."""
    gemma = config["model_type"] == "gemma3_text"
    state = {}
    for name, parameter in model.state_dict().items():
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("norm.weight") or "layernorm" in name:
            value = 0.3 * noise + (0.0 if gemma else 1.0)
        elif name.endswith(".bias"):
            value = 0.3 * noise
        elif "embed_tokens" in name:
            value = noise / (parameter.shape[1] ** 0.5 if config["tie_word_embeddings"] else 1.0)  # or a token would predict itself
        else:
            value = noise * (1.7 if "q_proj" in name or "k_proj" in name else 1.0) / parameter.shape[1] ** 0.5
        state[name] = value.to(torch.bfloat16).contiguous()
    return state


def run(directory, config, seed):
    """Logits, greedy continuation and its smallest margin in units of the logits' standard deviation."""
    generator = torch.Generator().manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(directory), attn_implementation="eager",
                                                          dtype=torch.float32).eval()
    state = random_weights(model, config, generator)
    missing, unexpected = model.load_state_dict({k: v.float() for k, v in state.items()}, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    if config["model_type"] == "gemma3_text":
        scale = torch.tensor(config["hidden_size"] ** 0.5).to(torch.bfloat16).float()
        model.model.embed_tokens.embed_scale.copy_(scale)
    tokens = torch.randint(0, config["vocab_size"], (PROMPT,), generator=generator).tolist()
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
        spread, greedy, margin = logits.std().item(), [], float("inf")
        for _ in range(GREEDY):
            top = model(torch.tensor([tokens + greedy])).logits[0, -1].topk(2)
            greedy.append(top.indices[0].item())
            margin = min(margin, ((top.values[0] - top.values[1]) / spread).item())
    return state, tokens, logits, greedy, margin


def write_multimodal_twin(out, text_config, golden):
    """The same text model as a multimodal checkpoint describes it; its weights are those of gemma3 (golden.json: weights_of)."""
    directory = os.path.join(out, "gemma3_multimodal")
    os.makedirs(directory, exist_ok=True)
    config = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "text_config": text_config,
              "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 8}}
    with open(os.path.join(directory, "config.json"), "w") as f:
        json.dump(config, f, indent=1)
        f.write("\n")
    with open(os.path.join(directory, "golden.json"), "w") as f:
        json.dump({**golden, "weights_of": "gemma3"}, f)
        f.write("\n")


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "golden", "models")
    torch.set_num_threads(1)
    for variant, config in VARIANTS.items():
        directory = os.path.join(out, variant)
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "config.json"), "w") as f:
            json.dump(config, f, indent=1)
            f.write("\n")
        for seed in range(1, 1000):
            state, tokens, logits, greedy, margin = run(directory, config, seed)
            if margin > 0.12 and len(set(greedy)) >= 5:
                break
        save_file(state, os.path.join(directory, "model.safetensors"), metadata={"format": "pt"})
        golden = {"made_with": {"torch": torch.__version__, "transformers": transformers.__version__, "seed": seed},
                  "tokens": tokens, "positions": POSITIONS, "logits_std": logits.std().item(),
                  "logits": [[float(f"{x:.7g}") for x in logits[p].tolist()] for p in POSITIONS], "greedy": greedy, "greedy_margin": margin}
        with open(os.path.join(directory, "golden.json"), "w") as f:
            json.dump(golden, f)
            f.write("\n")
        if variant == "gemma3":
            write_multimodal_twin(out, config, golden)
        print(f"{variant}: seed {seed}, logits std {golden['logits_std']:.3f}, greedy margin {margin:.3f} std")


if __name__ == "__main__":
    main()
