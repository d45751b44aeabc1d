#include "base/model_files.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace pith {
namespace {

constexpr absl::string_view kSideFiles[] = {"generation_config.json",
                                            "tokenizer.json",
                                            "tokenizer_config.json",
                                            "special_tokens_map.json",
                                            "added_tokens.json",
                                            "tokenizer.model",
                                            "vocab.json",
                                            "merges.txt",
                                            "chat_template.jinja",
                                            "chat_template.json"};
constexpr QuantizationFile kQuantizationFiles[] = {{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}};
constexpr absl::string_view kLegalPrefixes[] = {"LICENSE", "LICENCE", "NOTICE", "USE_POLICY", "COPYING"};

}  // namespace

absl::Span<const absl::string_view> SideFileTable() { return kSideFiles; }
absl::Span<const QuantizationFile> QuantizationFileTable() { return kQuantizationFiles; }

bool IsLegalText(absl::string_view name) {
  return std::any_of(std::begin(kLegalPrefixes), std::end(kLegalPrefixes),
                     [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

}  // namespace pith
