#include "sampling/sampling_params.h"

#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"

namespace pith {
namespace {

absl::Status CheckRange(absl::string_view field, float value, float low, float high, bool low_included = true) {
  if (value <= high && (low_included ? value >= low : value > low)) return absl::OkStatus();
  return FieldError(field, "expected a number in ", low_included ? "[" : "(", low, ", ", high, "], found ", value);
}

absl::Status CheckCounts(const SamplingParams& params) {
  if (params.top_k < -1) return FieldError("top_k", "expected at least -1 (-1 and 0: off), found ", params.top_k);
  if (params.min_tokens < 0) return FieldError("min_tokens", "expected at least 0, found ", params.min_tokens);
  if (params.logprobs < -1 || params.logprobs > kMaxTopLogprobs) {
    return FieldError("logprobs", "expected at most ", kMaxTopLogprobs, ", found ", params.logprobs);
  }
  return absl::OkStatus();
}

absl::Status CheckLogitBias(const SamplingParams& params, int64_t vocab_size) {
  absl::flat_hash_set<int32_t> seen;
  for (const auto& [token, bias] : params.logit_bias) {
    if (token < 0 || token >= vocab_size) {
      return FieldError("logit_bias", "expected token ids in [0, ", vocab_size, "), found ", token);
    }
    if (!(bias >= -100.0f && bias <= 100.0f)) {
      return FieldError("logit_bias", "token ", token, ": expected a number in [-100, 100], found ", bias);
    }
    if (!seen.insert(token).second) return FieldError("logit_bias", "token ", token, ": expected one value, found two");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const SamplingParams& params, int64_t vocab_size) {
  RETURN_IF_ERROR(CheckRange("temperature", params.temperature, 0.0f, 2.0f));
  RETURN_IF_ERROR(CheckRange("top_p", params.top_p, 0.0f, 1.0f, /*low_included=*/false));
  RETURN_IF_ERROR(CheckRange("min_p", params.min_p, 0.0f, 1.0f));
  RETURN_IF_ERROR(CheckRange("presence_penalty", params.presence_penalty, -2.0f, 2.0f));
  RETURN_IF_ERROR(CheckRange("frequency_penalty", params.frequency_penalty, -2.0f, 2.0f));
  if (!(params.repetition_penalty > 0.0f) || !std::isfinite(params.repetition_penalty)) {
    return FieldError("repetition_penalty", "expected a finite number above 0, found ", params.repetition_penalty);
  }
  RETURN_IF_ERROR(CheckCounts(params));
  return CheckLogitBias(params, vocab_size);
}

}  // namespace pith
