#include "eval/worst_tokens.h"

#include <algorithm>
#include <tuple>

namespace pith {
namespace {

bool Worse(const WorstToken& a, const WorstToken& b) {
  return std::make_tuple(-a.kl, a.window, a.position) < std::make_tuple(-b.kl, b.window, b.position);
}

}  // namespace

void WorstTokens::Add(const WorstToken& token) {
  if (capacity_ == 0) return;
  if (heap_.size() == capacity_) {
    if (!Worse(token, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), Worse);
    heap_.pop_back();
  }
  heap_.push_back(token);
  std::push_heap(heap_.begin(), heap_.end(), Worse);
}

std::vector<WorstToken> WorstTokens::Descending() const {
  std::vector<WorstToken> sorted = heap_;
  std::sort(sorted.begin(), sorted.end(), Worse);
  return sorted;
}

}  // namespace pith
