#include "eval/served_distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sampling/sampler.h"

namespace pith {
namespace {

// The tokens that are served, ascending, with scores whose exponentials are proportional to their probabilities; the largest is 0.
absl::Span<const Candidate> Served(absl::Span<const float> logits, const SamplingParams& params, SamplerScratch& scratch) {
  if (params.greedy()) {
    scratch.candidates.assign(1, {.token = ArgMax(logits), .score = 0});
    return scratch.candidates;
  }
  const auto kept = KeepCandidates(logits, params, scratch);
  CHECK(kept.ok());  // the rows are finite
  return *kept;
}

// The best candidate's score is 0.
double LogNormalizer(absl::Span<const Candidate> candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += std::exp(static_cast<double>(candidate.score));
  return std::log(sum);
}

// log sum exp(logit / temperature)
double LogNormalizer(absl::Span<const float> logits, double temperature) {
  const double largest = static_cast<double>(logits[static_cast<size_t>(ArgMax(logits))]);
  double sum = 0;
  for (const float logit : logits) sum += std::exp((static_cast<double>(logit) - largest) / temperature);
  return largest / temperature + std::log(sum);
}

double TemperedKl(absl::Span<const float> reference, absl::Span<const float> model, double temperature) {
  const double ref = LogNormalizer(reference, temperature), mod = LogNormalizer(model, temperature);
  double kl = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_p = static_cast<double>(reference[i]) / temperature - ref;
    kl += std::exp(log_p) * (log_p - (static_cast<double>(model[i]) / temperature - mod));
  }
  return std::max(0.0, kl);  // rounding of two nearly equal rows
}

// Sums over the union of what is served.
class ServedSums {
 public:
  // A token with its log-probabilities; -infinity where it is not served.
  void Add(double log_p, double log_q) {
    const double p = std::exp(log_p), q = std::exp(log_q);
    result_.total_variation += 0.5 * std::fabs(p - q);
    if (log_p != log_q) {
      const double middle = std::log(0.5 * (p + q));
      if (p > 0) result_.jensen_shannon += 0.5 * p * (log_p - middle);
      if (q > 0) result_.jensen_shannon += 0.5 * q * (log_q - middle);
    }
    if (std::isinf(log_q)) {
      result_.lost_mass += p;
    } else if (std::isinf(log_p)) {
      result_.added_mass += q;
    } else {
      shared_p_ += p;
      shared_q_ += q;
      shared_kl_ += p * (log_p - log_q);
    }
  }

  ServedComparison Finish() const {
    ServedComparison result = result_;
    result.jensen_shannon = std::max(0.0, result.jensen_shannon);
    // sum p/P (log p/P - log q/Q) = sum(p (log p - log q)) / P + log(Q / P)
    if (shared_p_ > 0) result.kl_shared = std::max(0.0, shared_kl_ / shared_p_ + std::log(shared_q_ / shared_p_));
    return result;
  }

 private:
  ServedComparison result_;
  double shared_p_ = 0, shared_q_ = 0, shared_kl_ = 0;
};

}  // namespace

ServedComparison CompareServed(absl::Span<const float> reference, absl::Span<const float> model, const SamplingParams& params,
                               ServedScratch& scratch) {
  CHECK_EQ(reference.size(), model.size());
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const absl::Span<const Candidate> ps = Served(reference, params, scratch.reference);
  const absl::Span<const Candidate> qs = Served(model, params, scratch.model);
  const double normalizer_p = LogNormalizer(ps), normalizer_q = LogNormalizer(qs);
  ServedSums sums;
  for (size_t i = 0, j = 0; i < ps.size() || j < qs.size();) {
    const bool has_p = i < ps.size() && (j == qs.size() || ps[i].token <= qs[j].token);
    const bool has_q = j < qs.size() && (i == ps.size() || qs[j].token <= ps[i].token);
    sums.Add(has_p ? static_cast<double>(ps[i].score) - normalizer_p : kNever,
             has_q ? static_cast<double>(qs[j].score) - normalizer_q : kNever);
    i += has_p ? 1 : 0;
    j += has_q ? 1 : 0;
  }
  ServedComparison result = sums.Finish();
  if (!params.greedy()) result.kl = TemperedKl(reference, model, static_cast<double>(params.temperature));
  return result;
}

}  // namespace pith
