#include "eval/tasks/task_item.h"

#include <algorithm>
#include <iterator>

namespace pith {
namespace {

// In the order of MatchKind.
constexpr absl::string_view kNames[] = {"exact", "contains", "contains_all", "regex", "number", "code", "choice", "continuation"};

}  // namespace

absl::string_view MatchName(MatchKind kind) { return kNames[static_cast<int>(kind)]; }

std::optional<MatchKind> MatchFromName(absl::string_view name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<MatchKind>(found - std::begin(kNames));
}

absl::Span<const absl::string_view> MatchNames() { return kNames; }

bool IsScoredByLikelihood(MatchKind kind) { return kind == MatchKind::kChoice || kind == MatchKind::kContinuation; }

}  // namespace pith
