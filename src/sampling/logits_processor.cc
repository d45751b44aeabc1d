#include "sampling/logits_processor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/status.h"
#include "sampling/sampler.h"

namespace pith {
namespace {

// Scores lie in [-kHopelessGap, 0]; selection first counts them in buckets of this width and sorts only the bucket of the cut.
constexpr float kBucketsPerUnit = 64.0f;
constexpr int kNumBuckets = static_cast<int>(kHopelessGap * kBucketsPerUnit) + 1;

int Bucket(float score) { return static_cast<int>(-score * kBucketsPerUnit); }

// Descending score, ties by ascending id: the order in which top-k and top-p count.
bool Before(const Candidate& a, const Candidate& b) { return a.score != b.score ? a.score > b.score : a.token < b.token; }

// Keeps the shortest prefix of the candidates, in the order of Before, whose weights sum to at least `share` of their total plus `amount`.
// Everything stays when no prefix does. Moves the kept ones to the front, ids ascending as before, and returns how many there are.
template <typename Weight>
size_t KeepPrefix(absl::Span<Candidate> candidates, SamplerScratch& scratch, double share, double amount, Weight weight) {
  scratch.mass.assign(kNumBuckets, 0.0);
  for (const Candidate& candidate : candidates) scratch.mass[Bucket(candidate.score)] += weight(candidate.score);
  double total = 0;
  for (const double mass : scratch.mass) total += mass;
  const double target = share * total + amount;
  double sum = 0;
  int cut_bucket = 0;
  while (cut_bucket < kNumBuckets && sum + scratch.mass[cut_bucket] < target) sum += scratch.mass[cut_bucket++];
  if (cut_bucket == kNumBuckets) return candidates.size();

  scratch.boundary.clear();
  for (const Candidate& candidate : candidates) {
    if (Bucket(candidate.score) == cut_bucket) scratch.boundary.push_back(candidate);
  }
  std::sort(scratch.boundary.begin(), scratch.boundary.end(), Before);
  Candidate last = scratch.boundary.back();
  for (const Candidate& candidate : scratch.boundary) {
    sum += weight(candidate.score);
    if (sum < target) continue;
    last = candidate;
    break;
  }
  const auto end = std::remove_if(candidates.begin(), candidates.end(), [&last](const Candidate& c) { return Before(last, c); });
  return static_cast<size_t>(end - candidates.begin());
}

// Fills the front of scratch.candidates with all tokens whose score reaches `floor`, ids ascending; returns how many.
size_t CollectCandidates(absl::Span<const float> logits, float largest, float inverse_temperature, float floor, SamplerScratch& scratch) {
  if (scratch.candidates.size() < logits.size()) scratch.candidates.resize(logits.size());
  size_t kept = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float score = (logits[i] - largest) * inverse_temperature;
    scratch.candidates[kept] = {static_cast<int32_t>(i), score};
    kept += score >= floor ? 1 : 0;  // false for NaN
  }
  return kept;
}

}  // namespace

void TokenCounts::AddPrompt(absl::Span<const int32_t> tokens) {
  for (const int32_t token : tokens) counts_[token].in_prompt = true;
}

void TokenCounts::AddOutput(int32_t token) { ++counts_[token].in_output; }

void TokenCounts::RemoveOutput(int32_t token) {
  const auto it = counts_.find(token);
  CHECK(it != counts_.end() && it->second.in_output > 0);
  if (--it->second.in_output == 0 && !it->second.in_prompt) counts_.erase(it);
}

void ApplyLogitBias(absl::Span<float> logits, const SamplingParams& params) {
  for (const auto& [token, bias] : params.logit_bias) logits[token] += bias;
}

void ApplyBans(absl::Span<float> logits, absl::Span<const int32_t> banned) {
  for (const int32_t token : banned) logits[token] = -std::numeric_limits<float>::infinity();
}

void ApplyPenalties(absl::Span<float> logits, const SamplingParams& params, const TokenCounts& history) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const auto& [token, count] : history.counts()) {
    float logit = logits[token];
    if (!std::isfinite(logit)) continue;
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (count.in_output > 0) logit -= params.frequency_penalty * static_cast<float>(count.in_output) + params.presence_penalty;
    logits[token] = std::clamp(logit, -kLargest, kLargest);  // an extreme penalty must not look like a corrupted row
  }
}

absl::Span<const float> ProcessLogits(absl::Span<const float> logits, const SamplingParams& params, const SamplingContext& context,
                                      SamplerScratch& scratch) {
  const bool penalize = params.has_penalties() && context.history != nullptr;
  if (params.logit_bias.empty() && context.banned.empty() && !penalize) return logits;
  scratch.logits.assign(logits.begin(), logits.end());
  ApplyLogitBias(absl::MakeSpan(scratch.logits), params);
  ApplyBans(absl::MakeSpan(scratch.logits), context.banned);
  if (penalize) ApplyPenalties(absl::MakeSpan(scratch.logits), params, *context.history);
  return scratch.logits;
}

absl::StatusOr<absl::Span<const Candidate>> KeepCandidates(absl::Span<const float> logits, const SamplingParams& params,
                                                           SamplerScratch& scratch) {
  CHECK(!params.greedy());
  const int32_t best = ArgMax(logits);
  if (best < 0 || !std::isfinite(logits[best])) {
    return BugError("logits: expected a finite largest value among ", logits.size(), ", found ", best < 0 ? "none" : "infinity");
  }
  const float floor = std::max(-kHopelessGap, std::log(params.min_p));
  size_t kept = CollectCandidates(logits, logits[best], 1.0f / params.temperature, floor, scratch);
  const auto candidates = [&] { return absl::MakeSpan(scratch.candidates.data(), kept); };
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < kept) {
    kept = KeepPrefix(candidates(), scratch, 0.0, params.top_k, [](float) { return 1.0; });
  }
  if (params.top_p < 1.0f) {
    kept = KeepPrefix(candidates(), scratch, params.top_p, 0.0, [](float score) { return static_cast<double>(std::exp(score)); });
  }
  return candidates();
}

}  // namespace pith
