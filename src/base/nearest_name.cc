#include "base/nearest_name.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/ascii.h"

namespace pith {

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const bool equal = absl::ascii_tolower(a[i]) == absl::ascii_tolower(b[j]);
      const int substituted = diagonal + (equal ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

absl::string_view NearestName(absl::string_view name, absl::Span<const absl::string_view> names) {
  absl::string_view nearest;
  int best = std::numeric_limits<int>::max();
  for (const absl::string_view candidate : names) {
    const int distance = EditDistance(name.substr(0, 64), candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace pith
