#include "sampling/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/status.h"

namespace pith {
namespace {

// Neighbouring tokens share one Philox block, so a whole row costs half as many.
std::array<double, 2> UniformsOfPair(uint64_t seed, int64_t position, int32_t pair) {
  return UniformOpenPair(seed, static_cast<uint64_t>(position), static_cast<uint64_t>(pair));
}

double GumbelFromUniform(double u) { return -std::log(-std::log(u)); }

// At least exp(x), at most 7 % more, for x in [-kHopelessGap, 0]: 2^y with 1 + f in place of the smaller 2^f, f the fraction of y.
float ExpUpperBound(float x) {
  const float y = x * 1.44269504f + 127.0f;
  return std::bit_cast<float>(static_cast<int32_t>(y * 8388608.0f));
}

// The candidate with the largest score + noise, ties by lower id.
// -log(u) >= 1 - u, so a token can only win while 1 - u < exp(score - best): that spares nearly all tokens their logarithms.
int32_t DrawGumbelMax(absl::Span<const Candidate> candidates, uint64_t seed, int64_t position) {
  constexpr double kMargin = 1.0 + 1e-4;  // covers the rounding of ExpUpperBound and of limit
  int32_t token = -1, pair = -1;
  std::array<double, 2> uniforms = {};
  double best = -std::numeric_limits<double>::infinity();
  double limit = std::numeric_limits<double>::infinity();  // exp(-best)
  for (const Candidate& candidate : candidates) {
    if (candidate.token >> 1 != pair) {
      pair = candidate.token >> 1;
      uniforms = UniformsOfPair(seed, position, pair);
    }
    const double u = uniforms[candidate.token & 1];
    if (1.0 - u > limit * static_cast<double>(ExpUpperBound(candidate.score)) * kMargin) continue;
    const double value = static_cast<double>(candidate.score) + GumbelFromUniform(u);
    if (value <= best) continue;
    best = value;
    limit = std::exp(-best);
    token = candidate.token;
  }
  return token;
}

void AddLogprobs(absl::Span<const float> logits, int count, SampleResult& result) {
  const double normalizer = LogSumExp(logits);
  const auto logprob = [&](float logit) { return static_cast<float>(static_cast<double>(logit) - normalizer); };
  result.logprob = logprob(logits[result.token]);
  std::vector<TokenLogprob>& top = result.top_logprobs;  // holds logits until the end
  const size_t size = std::min(static_cast<size_t>(count), logits.size());
  if (size == 0) return;
  top.reserve(size + 1);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (top.size() == size && !(logits[i] > top.back().logprob)) continue;
    if (std::isnan(logits[i])) continue;
    const auto place = std::upper_bound(top.begin(), top.end(), logits[i], [](float a, const TokenLogprob& b) { return a > b.logprob; });
    top.insert(place, {static_cast<int32_t>(i), logits[i]});
    if (top.size() > size) top.pop_back();
  }
  for (TokenLogprob& entry : top) entry.logprob = logprob(entry.logprob);
}

}  // namespace

double GumbelNoise(uint64_t seed, int64_t position, int32_t token) {
  return GumbelFromUniform(UniformsOfPair(seed, position, token >> 1)[token & 1]);
}

absl::StatusOr<SampleResult> Sample(absl::Span<const float> logits, const SamplingParams& params, const SamplingContext& context,
                                    SamplerScratch& scratch) {
  SampleResult result;
  const absl::Span<const float> processed = ProcessLogits(logits, params, context, scratch);
  if (params.greedy()) {
    result.token = ArgMax(processed);
    if (result.token < 0 || !std::isfinite(processed[result.token])) {
      return BugError("logits of position ", context.position, ": expected a finite largest value, found none");
    }
  } else {
    const auto candidates = KeepCandidates(processed, params, scratch);
    if (!candidates.ok()) return Annotate(candidates.status(), absl::StrCat("position ", context.position));
    result.token = DrawGumbelMax(*candidates, params.seed, context.position);
  }
  if (params.logprobs >= 0) AddLogprobs(logits, params.logprobs, result);
  return result;
}

SampleResult TokenLogprobs(absl::Span<const float> logits, int32_t token, int count) {
  SampleResult result{.token = token};
  AddLogprobs(logits, std::max(0, count), result);
  return result;
}

int32_t ArgMax(absl::Span<const float> values) {
  constexpr size_t kLanes = 16;  // independent maxima, so that the compiler keeps them in vector registers
  float lane[kLanes];
  std::fill_n(lane, kLanes, -std::numeric_limits<float>::infinity());
  const size_t whole = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lane[j] = values[i + j] > lane[j] ? values[i + j] : lane[j];
  }
  float best = -std::numeric_limits<float>::infinity();
  for (size_t j = 0; j < kLanes; ++j) best = std::max(best, lane[j]);
  for (size_t i = whole; i < values.size(); ++i) best = values[i] > best ? values[i] : best;
  if (best == -std::numeric_limits<float>::infinity()) return -1;
  return static_cast<int32_t>(std::find(values.begin(), values.end(), best) - values.begin());
}

double LogSumExp(absl::Span<const float> values) {
  const int32_t best = ArgMax(values);
  if (best < 0) return -std::numeric_limits<double>::infinity();
  const float largest = values[best];
  double sum = 0;
  for (const float value : values) {
    if (!std::isnan(value)) sum += static_cast<double>(std::exp(value - largest));
  }
  return static_cast<double>(largest) + std::log(sum);
}

}  // namespace pith
