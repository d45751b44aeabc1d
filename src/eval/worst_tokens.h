// The positions at which a model is furthest from its reference: what a reader wants to look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pith {

struct WorstToken {
  double kl = 0;         // nats
  int64_t document = 0;  // in the corpus
  int64_t window = 0;    // in the corpus
  int64_t position = 0;  // of the predicted token in its window
  int32_t next_token = 0;
  int32_t reference_top = 0, model_top = 0;  // most likely tokens

  friend bool operator==(const WorstToken&, const WorstToken&) = default;
};

// Keeps the `capacity` tokens with the largest KL of all that were added, in O(log capacity) each. Of equals the earlier in the corpus is
// kept, so the result does not depend on the order of adding. Not thread-safe.
class WorstTokens {
 public:
  explicit WorstTokens(size_t capacity) : capacity_(capacity) {}

  void Add(const WorstToken& token);
  std::vector<WorstToken> Descending() const;

 private:
  size_t capacity_;
  std::vector<WorstToken> heap_;  // the least bad in front
};

}  // namespace pith
