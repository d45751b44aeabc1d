#include "eval/tasks/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace pith {
namespace {

constexpr size_t kLongestWord = 64;  // what is longer is no misspelt name, and the distance is quadratic

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

absl::string_view NearestName(absl::string_view word, absl::Span<const absl::string_view> names) {
  if (word.size() > kLongestWord) return "";
  absl::string_view nearest;
  size_t least = kLongestWord + 1;
  for (const absl::string_view name : names) {
    const size_t distance = EditDistance(word, name);
    if (distance >= least || 2 * distance > std::max(word.size(), name.size())) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace pith
