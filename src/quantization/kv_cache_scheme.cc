#include "quantization/kv_cache_scheme.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace pith {
namespace {

using enum QuantizationStrategy;

// THE TABLE.
constexpr KvCacheScheme kKvCacheSchemes[] = {
    {"fp8", "a calibrated scale per layer for keys and one for values", {.type = QuantizationType::kFloat, .strategy = kTensor}},
    {"fp8-head", "calibrated scales per KV head", {.type = QuantizationType::kFloat, .strategy = kAttnHead}},
    {"int8", "scales per token and head, found at run time", {.strategy = kToken, .dynamic = true}},
};

std::string KnownSchemes() {
  return absl::StrJoin(KvCacheSchemes(), ", ", [](std::string* out, const KvCacheScheme& scheme) {
    absl::StrAppend(out, scheme.name, " (", DescribeInput(scheme.args), ")");
  });
}

}  // namespace

absl::Span<const KvCacheScheme> KvCacheSchemes() { return kKvCacheSchemes; }

absl::StatusOr<KvCacheScheme> FindKvCacheScheme(absl::string_view name) {
  for (const KvCacheScheme& scheme : kKvCacheSchemes) {
    if (absl::EqualsIgnoreCase(scheme.name, name)) return scheme;
  }
  return NotSupportedError("KV cache scheme \"", Printable(name, 40), "\": not known; known are ", KnownSchemes());
}

absl::StatusOr<KvCacheScheme> FindKvCacheScheme(const QuantizationArgs& args) {
  for (const KvCacheScheme& scheme : kKvCacheSchemes) {
    if (scheme.args == args) return scheme;
  }
  return NotSupportedError("a KV cache of ", args.symmetric ? "" : "asymmetric ", DescribeInput(args), " is not supported; known are ",
                           KnownSchemes());
}

absl::StatusOr<QuantizationArgs> ParseKvCacheArgs(const Json& json) {
  const Json* strategy = FindMember(json, "strategy");
  const bool by_head = strategy != nullptr && strategy->is_string() &&
                       absl::EqualsIgnoreCase(strategy->get_ref<const std::string&>(), StrategyName(kAttnHead));
  if (!by_head) return ParseQuantizationArgs(json);
  Json rest = json;
  rest["strategy"] = StrategyName(kTensor);  // what the strategies have in common
  ASSIGN_OR_RETURN(QuantizationArgs args, ParseQuantizationArgs(rest));
  args.strategy = kAttnHead;
  const absl::Status valid = Validate(args);
  if (!valid.ok()) return BadFileError(valid.message());
  return args;
}

}  // namespace pith
