#include "artifact/loader_support.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "artifact/module_names.h"
#include "base/status.h"
#include "quantization/quantization_config.h"

namespace pith {
namespace {

enum Loader : unsigned { kVllm = 1, kSglang = 2, kTransformers = 4, kLlamaCpp = 8 };
constexpr unsigned kServers = kVllm | kSglang;

constexpr std::pair<Loader, absl::string_view> kLoaders[] = {
    {kVllm, "vLLM"}, {kSglang, "SGLang"}, {kTransformers, "transformers"}, {kLlamaCpp, "llama.cpp"}};

bool IsInt(const StoredKind& kind) { return kind.args.type == QuantizationType::kInt; }
bool IsWeightOnlyInt(const StoredKind& kind) { return IsInt(kind) && !kind.input.has_value(); }
bool IsCompressed(const StoredKind& kind) { return absl::EndsWith(kind.format, "-quantized"); }

// A rule about the kinds of weights: what of a kind stops the loaders; empty when it does not.
struct KindRule {
  unsigned loaders;
  std::string (*obstacle)(const StoredKind& kind);
};

// A rule about the artifact as a whole.
struct Rule {
  unsigned loaders;
  std::string (*obstacle)(const LoadFacts& facts);
};

// THE TABLES.
constexpr Rule kRules[] = {
    {kLlamaCpp, [](const LoadFacts& facts) -> std::string { return facts.container == "gguf" ? "" : "it loads GGUF files only"; }},
    {kServers | kTransformers,
     [](const LoadFacts& facts) -> std::string {
       return facts.quantized_embedding && facts.container != "gguf" ? "quantized embeddings" : "";
     }},
    {kServers,
     [](const LoadFacts& facts) -> std::string {
       return facts.quantized_head && facts.container == "compressed-tensors" ? "a quantized lm_head" : "";
     }},
    {kServers,
     [](const LoadFacts& facts) -> std::string {
       const bool refused = facts.kv_cache.has_value() && facts.kv_cache->type != QuantizationType::kFloat;
       return refused ? absl::StrCat("int", facts.kv_cache->num_bits, " KV cache as a checkpoint scheme (fp8 alone is known)") : "";
     }},
    {kSglang,
     [](const LoadFacts& facts) -> std::string {
       const bool refused = facts.kv_cache.has_value() && facts.kv_cache->strategy == QuantizationStrategy::kAttnHead;
       return refused ? "KV cache scales per head (those per tensor are known)" : "";
     }},
    {kServers,
     [](const LoadFacts& facts) -> std::string {
       return facts.fused_parts_differ ? "different schemes in q/k/v or gate/up, which are fused" : "";
     }},
};

constexpr KindRule kKindRules[] = {
    {kTransformers,
     [](const StoredKind& kind) -> std::string {
       const bool refused = kind.format == "pack-quantized" && !kind.args.symmetric;
       return refused ? "packed zero points (compressed-tensors 0.20 expects them unpacked)" : "";
     }},
    {kSglang,
     [](const StoredKind& kind) -> std::string {
       const bool refused = IsCompressed(kind) && IsWeightOnlyInt(kind) && !kind.args.symmetric;
       return refused ? absl::StrCat("asymmetric ", kind.args.num_bits, "-bit weights under compressed-tensors") : "";
     }},
    {kServers,
     [](const StoredKind& kind) -> std::string {
       const bool refused = IsInt(kind) && kind.args.num_bits != 4 && kind.args.num_bits != 8;
       return refused ? absl::StrCat(kind.args.num_bits, "-bit weights (4 and 8 are known)") : "";
     }},
    {kServers,
     [](const StoredKind& kind) -> std::string {
       const bool refused = IsCompressed(kind) && IsWeightOnlyInt(kind) && kind.args.strategy == QuantizationStrategy::kTensor;
       return refused ? "one scale for a whole matrix of weight-only integers" : "";
     }},
    {kServers,
     [](const StoredKind& kind) -> std::string {
       const int size = kind.args.group_size;
       const bool refused = IsWeightOnlyInt(kind) && size > 0 && size != 32 && size != 64 && size != 128;
       return refused ? absl::StrCat("groups of ", size, " (kernels exist for 32, 64 and 128)") : "";
     }},
    {kServers,
     [](const StoredKind& kind) -> std::string {
       const bool refused = IsWeightOnlyInt(kind) && IsCompressed(kind) && kind.format != "pack-quantized";
       return refused ? absl::StrCat("weight-only integers stored as ", kind.format) : "";
     }},
    {kServers,
     [](const StoredKind& kind) -> std::string {
       const bool grouped = kind.args.strategy == QuantizationStrategy::kGroup || !kind.args.symmetric;
       if (!IsInt(kind) || !kind.input.has_value()) return "";
       if (kind.args.num_bits != 8) return absl::StrCat(kind.args.num_bits, "-bit weights with int8 activations");
       return grouped ? "int8 activations with weights that are not symmetric per channel or tensor" : "";
     }},
    {kServers,
     [](const StoredKind& kind) -> std::string {
       return !IsInt(kind) && kind.args.strategy == QuantizationStrategy::kGroup ? "fp8 weights per group" : "";
     }},
    {kSglang,
     [](const StoredKind& kind) -> std::string {
       const bool refused = IsCompressed(kind) && !IsInt(kind) && kind.args.strategy == QuantizationStrategy::kBlock;
       return refused ? "fp8 blocks under compressed-tensors (those of quant_method fp8 are known)" : "";
     }},
};

void AddOnce(std::string obstacle, std::vector<std::string>& obstacles) {
  if (obstacle.empty() || std::find(obstacles.begin(), obstacles.end(), obstacle) != obstacles.end()) return;
  obstacles.push_back(std::move(obstacle));
}

}  // namespace

absl::StatusOr<LoadFacts> ReadLoadFacts(const ArtifactReader& reader) {
  LoadFacts facts{.container = reader.format()};
  std::vector<ModuleInfo> modules;
  for (const std::string& name : reader.WeightNames()) {
    ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(name));
    modules.push_back({name, std::string(ModuleClassName(name)), info.quantized.has_value()});
    if (!info.quantized.has_value()) continue;
    facts.quantized_embedding |= modules.back().class_name == "Embedding";
    facts.quantized_head |= name == "lm_head";
    if (!info.quantized->args.has_value()) continue;
    StoredKind kind{info.type, *info.quantized->args, std::nullopt};
    if (info.quantized->input.has_value()) kind.input = info.quantized->input->args;
    if (std::find(facts.kinds.begin(), facts.kinds.end(), kind) == facts.kinds.end()) facts.kinds.push_back(std::move(kind));
  }
  const Json* stored = FindMember(reader.config(), "quantization_config");
  if (stored == nullptr) return facts;
  ASSIGN_OR_RETURN(const QuantizationConfig config, ParseQuantizationConfig(*stored));
  facts.kv_cache = config.kv_cache_scheme;
  facts.fused_parts_differ = !CheckFusedModules(config, modules).ok();
  return facts;
}

std::vector<LoaderVerdict> JudgeLoaders(const LoadFacts& facts) {
  std::vector<LoaderVerdict> verdicts;
  for (const auto& [loader, name] : kLoaders) {
    LoaderVerdict verdict{name, {}};
    for (const Rule& rule : kRules) {
      if ((rule.loaders & loader) != 0) AddOnce(rule.obstacle(facts), verdict.obstacles);
    }
    for (const KindRule& rule : kKindRules) {
      if ((rule.loaders & loader) == 0) continue;
      for (const StoredKind& kind : facts.kinds) AddOnce(rule.obstacle(kind), verdict.obstacles);
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::string DescribeVerdicts(const std::vector<LoaderVerdict>& verdicts) {
  std::vector<std::string> yes, no;
  for (const LoaderVerdict& verdict : verdicts) {
    if (verdict.obstacles.empty()) {
      yes.emplace_back(verdict.loader);
    } else {
      no.push_back(absl::StrCat(verdict.loader, " (", absl::StrJoin(verdict.obstacles, "; "), ")"));
    }
  }
  return absl::StrCat("loads in ", yes.empty() ? "none of the known loaders" : absl::StrJoin(yes, ", "),
                      no.empty() ? "" : absl::StrCat("; not in ", absl::StrJoin(no, ", ")));
}

}  // namespace pith
