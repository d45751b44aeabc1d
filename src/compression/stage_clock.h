// Sorts the time that a decoder layer takes in the pipeline by what was done in it, so that a trial with little data says what more will
// take (run_estimate.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace pith {

// Time by the clock on the wall and of all CPUs together; also a moment of both.
struct Cost {
  double seconds = 0, cpu_seconds = 0;
};
inline Cost operator+(const Cost& a, const Cost& b) { return {a.seconds + b.seconds, a.cpu_seconds + b.cpu_seconds}; }
inline Cost operator-(const Cost& a, const Cost& b) { return {a.seconds - b.seconds, a.cpu_seconds - b.cpu_seconds}; }
inline Cost operator*(double factor, const Cost& cost) { return {factor * cost.seconds, factor * cost.cpu_seconds}; }

// Of this process. Thread-safe.
Cost CostNow();
// Of none: zero.
Cost MeanCost(absl::Span<const Cost> costs);
// Differences of noisy times.
Cost AtLeastZero(const Cost& cost);

// What a decoder layer costs: once, and per token of the three kinds of passes over the data.
struct LayerCost {
  Cost once, observe, advance_measured, advance;
};

// Takes the moments of a stage: one behind each sequence that is observed, one behind each module, and one behind each sequence that goes
// through the quantized layer. Not thread-safe.
class StageClock {
 public:
  void Begin(const Cost& now);
  void Mark(int64_t modules, const Cost& now);  // `modules`: as the pipeline says it of its progress
  void End(const Cost& now) { end_ = now; }
  Cost Whole() const { return end_ - begin_; }

  // `lengths`: tokens of the sequences, of which the first `num_measured` went through the dense layer beside the quantized one. The first
  // sequence pays for what is done once, so others say what a token costs. All is `once` where there are too few to tell.
  LayerCost Split(absl::Span<const int64_t> lengths, int64_t num_measured) const;

 private:
  Cost begin_, end_;
  std::vector<Cost> marks_;
  int64_t modules_ = 0;
};

}  // namespace pith
