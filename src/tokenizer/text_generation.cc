#include "tokenizer/text_generation.h"

#include <algorithm>
#include <utility>

namespace pith {

std::string StopMatcher::Append(absl::string_view piece) {
  if (stopped_ || piece.empty()) return "";
  held_.append(piece.data(), piece.size());
  size_t earliest = std::string::npos;
  for (const std::string& stop : stops_) earliest = std::min(earliest, held_.find(stop));
  if (earliest != std::string::npos) {
    stopped_ = true;
    return held_.substr(0, earliest);
  }
  size_t keep = 0;  // the longest suffix that begins a stop string
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length) {
      if (held_.compare(held_.size() - length, length, stop, 0, length) == 0) keep = length;
    }
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return shown;
}

std::string StopMatcher::Finish() { return stopped_ ? "" : std::exchange(held_, ""); }

}  // namespace pith
