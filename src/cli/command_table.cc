#include "cli/command.h"

namespace pith {

// Defined in the files of their names.
CommandFunction SetupPull(CLI::App& app);
CommandFunction SetupConvert(CLI::App& app);
CommandFunction SetupInspect(CLI::App& app);
CommandFunction SetupQuantize(CLI::App& app);
CommandFunction SetupEval(CLI::App& app);
CommandFunction SetupRun(CLI::App& app);
CommandFunction SetupChat(CLI::App& app);
CommandFunction SetupServe(CLI::App& app);
CommandFunction SetupBench(CLI::App& app);
CommandFunction SetupProfile(CLI::App& app);

namespace {

constexpr Command kCommands[] = {
    {"pull", "fetch a model from a Hugging Face hub into the cache that other tools share",
     "Examples:\n  pith pull HuggingFaceTB/SmolLM2-135M-Instruct\n  pith run HuggingFaceTB/SmolLM2-135M-Instruct \"Once upon\"\n"
     "  pith pull Qwen/Qwen2.5-0.5B-Instruct-GGUF --include '*q4_k_m.gguf'",
     SetupPull},
    {"convert", "rewrite a model in another format: bf16, compressed-tensors, GPTQ, AWQ, bitsandbytes, fp8 blocks, GGUF",
     "Examples:\n  pith convert SmolLM2-135M-Instruct.Q4_1.gguf -o smollm2-bf16\n"
     "  pith convert smollm2-bf16 -o smollm2-q4_k_m.gguf --format gguf --type Q4_K_M --calibration texts/\n"
     "  pith convert smollm2-bf16 -o smollm2-imatrix.gguf --format imatrix --calibration texts/",
     SetupConvert},
    {"inspect", "show the data path of every tensor and where the bytes go",
     "Examples:\n  pith inspect smollm2-w4a16\n  pith inspect smollm2-w4a16 --json - | jq '.memory'", SetupInspect},
    {"quantize", "write a smaller artifact that vLLM and SGLang also load",
     "Examples:\n  pith quantize smollm2-bf16 -o smollm2-w4a16 --scheme W4A16\n"
     "  pith quantize smollm2-bf16 -o smollm2-w8a16 --scheme W8A16 --group-size channel --dry-run",
     SetupQuantize},
    {"eval", "measure quality against a reference: KL divergence, same-top rate, perplexity ratio",
     "Examples:\n  pith eval smollm2-w4a16 --reference smollm2-bf16 --data wiki.test.raw --limit 24\n"
     "  pith eval smollm2-w4a16 --reference smollm2-bf16 --gate gate.toml --attach --html report.html",
     SetupEval},
    {"run", "complete one prompt",
     "Examples:\n  pith run smollm2-bf16 \"The capital of France is\"\n  echo \"Once upon\" | pith run smollm2-bf16", SetupRun},
    {"chat", "talk to a model in the terminal", "Example:\n  pith chat smollm2-w4a16 --temperature 0.2", SetupChat},
    {"serve", "serve a model over the OpenAI HTTP API", "Example:\n  pith serve smollm2-w4a16 --port 8080", SetupServe},
    {"bench", "prefill and decode speed beside the limits of this machine",
     "Examples:\n  pith bench smollm2-w4a16 -p 512 -n 128 -d 0,4096\n  pith bench smollm2-w4a16 --curve -t 1,2\n"
     "  pith bench smollm2-w4a16 --verify -o jsonl",
     SetupBench},
    {"profile", "where the time of a pass goes, operator by operator, and whether the saved bytes became saved time",
     "Examples:\n  pith profile smollm2-w4a16 --prompt 512 --gen 32\n  pith profile smollm2-w4a16 --trace trace.json --layers",
     SetupProfile},
};

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }

}  // namespace pith
