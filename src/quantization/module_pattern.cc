#include "quantization/module_pattern.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr Regex::Options kLimits = {.anchored = true, .max_heap_bytes = 16u << 20};

}  // namespace

absl::StatusOr<ModulePattern> ModulePattern::Parse(absl::string_view text) {
  if (text.empty()) return BadFileError("module pattern: expected a name or re:<expression>, found an empty text");
  if (text.size() > kLimits.max_bytes) {
    return BadFileError("module pattern: expected at most ", kLimits.max_bytes, " bytes, found ", text.size());
  }
  ModulePattern pattern = Literal(text);
  absl::string_view expression = text;
  if (!absl::ConsumePrefix(&expression, "re:")) return pattern;

  absl::StatusOr<Regex> regex = Regex::Compile(expression, kLimits);
  if (!regex.ok()) return Annotate(regex.status(), absl::StrCat("module pattern \"", Printable(text), "\""));
  pattern.regex_ = *std::move(regex);
  return pattern;
}

ModulePattern ModulePattern::Literal(absl::string_view name) {
  ModulePattern pattern;
  pattern.text_ = std::string(name);
  return pattern;
}

absl::StatusOr<ModulePattern::Match> ModulePattern::Matches(absl::string_view module_name, absl::string_view class_name) const {
  if (!regex_.has_value()) return text_ == module_name ? Match::kName : text_ == class_name ? Match::kClass : Match::kNone;
  const absl::StatusOr<std::optional<Regex::Match>> match = regex_->Find(module_name);
  if (!match.ok()) return Annotate(match.status(), absl::StrCat("module pattern: matching \"", Printable(module_name), "\""));
  return match->has_value() ? Match::kRegex : Match::kNone;
}

}  // namespace pith
