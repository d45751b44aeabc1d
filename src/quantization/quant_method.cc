#include "quantization/quant_method.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace pith {
namespace {

// \Q...\E: PCRE2 takes what lies between literally.
constexpr absl::string_view kBefore = "re:.*\\Q", kAfter = "\\E";

std::string Found(const Json& value) { return Printable(DumpJson(value), 60); }

}  // namespace

absl::StatusOr<ModulePattern> MatchPartOfName(absl::string_view part) {
  if (part.empty() || absl::StrContains(part, "\\")) {
    return BadFileError("expected a part of a module name, found \"", Printable(part, 60), "\"");
  }
  return ModulePattern::Parse(absl::StrCat(kBefore, part, kAfter));
}

std::string PartOfName(const ModulePattern& pattern) {
  absl::string_view text = pattern.text();
  if (absl::ConsumePrefix(&text, kBefore) && absl::ConsumeSuffix(&text, kAfter)) return std::string(text);
  return pattern.text();
}

absl::StatusOr<std::vector<std::string>> GetTexts(const Json& object, absl::string_view key, const std::vector<std::string>& absent) {
  const Json* list = FindMember(object, key);
  if (list == nullptr) return absent;
  std::vector<std::string> texts;
  if (!list->is_array()) return BadFileError("\"", key, "\": expected a list of names, found ", Found(*list));
  for (const Json& entry : *list) {
    if (!entry.is_string()) return BadFileError("\"", key, "\": expected a list of names, found ", Found(entry), " in it");
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

Json SkippedParts(const QuantizationConfig& config) {
  Json parts = Json::array();
  for (const ModulePattern& pattern : config.ignore) parts.push_back(PartOfName(pattern));
  return parts;
}

absl::StatusOr<QuantizationConfig> MakeMethodConfig(absl::string_view format, const QuantizationArgs& weights,
                                                    const std::vector<std::string>& skipped) {
  QuantizationScheme scheme;
  scheme.format = std::string(format);
  scheme.weights = weights;
  scheme.name = std::string(PresetName(scheme.weights, std::nullopt));
  ASSIGN_OR_RETURN(QuantizationConfig config, MakeQuantizationConfig(scheme, {}));
  for (const std::string& part : skipped) {
    ASSIGN_OR_RETURN(ModulePattern pattern, MatchPartOfName(part));
    config.ignore.push_back(std::move(pattern));
  }
  return config;
}

absl::StatusOr<QuantizationArgs> GroupedArgs(int64_t bits, int64_t group_size, bool symmetric) {
  if (group_size == 0 || group_size < -1) {
    return BadFileError("group size: expected a positive size, or -1 for one scale per channel, found ", group_size);
  }
  QuantizationArgs args{.num_bits = static_cast<int>(bits), .symmetric = symmetric};
  args.strategy = group_size > 0 ? QuantizationStrategy::kGroup : QuantizationStrategy::kChannel;
  args.group_size = group_size > 0 ? static_cast<int>(group_size) : 0;
  return args;
}

int64_t GroupSizeOrMinusOne(const QuantizationArgs& args) { return args.strategy == QuantizationStrategy::kGroup ? args.group_size : -1; }

}  // namespace pith
