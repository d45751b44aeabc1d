// How one tensor (weights, activations or KV cache) is quantized, in the words of compressed-tensors.
// Source: compressed-tensors `QuantizationArgs`; docs/formats/compressed_tensors.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/json.h"

namespace pith {

enum class QuantizationType { kInt, kFloat };
enum class QuantizationStrategy { kTensor, kChannel, kGroup, kBlock, kToken, kAttnHead };  // the last of KV caches alone

absl::string_view StrategyName(QuantizationStrategy strategy);  // "tensor", "channel", ...

struct QuantizationArgs {
  int num_bits = 8;                                // 1..8
  QuantizationType type = QuantizationType::kInt;  // kFloat: 8 bits = e4m3fn
  bool symmetric = true;
  QuantizationStrategy strategy = QuantizationStrategy::kTensor;
  int group_size = 0;                  // > 0 with kGroup only; 0 with kGroup in a preset: "auto"
  int block_rows = 0, block_cols = 0;  // with kBlock only
  bool dynamic = false;                // activations: scales at run time
  // Activations, > 0: LLM.int8(). Magnitudes from this on, its outliers, stay out of the codes. They are found value by value at run time,
  // or with fixed_outliers are the channels that the artifact lists, whatever their values. No words of compressed-tensors.
  float outlier_threshold = 0;
  bool fixed_outliers = false;

  // Largest and smallest signed code: [-2^(b-1), 2^(b-1)-1].
  int min_code() const { return -(1 << (num_bits - 1)); }
  int max_code() const { return (1 << (num_bits - 1)) - 1; }
  // Neighbouring columns of an `in` wide row that share a scale.
  int64_t columns_per_scale(int64_t in) const {
    return strategy == QuantizationStrategy::kGroup ? group_size : strategy == QuantizationStrategy::kBlock ? block_cols : in;
  }
  bool operator==(const QuantizationArgs&) const = default;
};

// What a layer's input is quantized to before it is multiplied, where the artifact says so.
struct InputQuantization {
  QuantizationArgs args;
  float static_scale = 0;                     // of every row and group; with args.dynamic: 0
  std::vector<int32_t> outlier_columns = {};  // with args.fixed_outliers: the channels, ascending; may be none
  bool operator==(const InputQuantization&) const = default;
};

// Rejects combinations that mean nothing (a group strategy without a size, token without dynamic, 3-bit float, ...).
// Errors: kInvalidArgument with a sentence that says which.
absl::Status Validate(const QuantizationArgs& args);

// Whether a layer's input can be declared so: symmetric, per tensor with a static scale, or with scales at run time.
// Errors: kUnimplemented naming what else it is; those of Validate.
absl::Status ValidateInput(const QuantizationArgs& args);

// "int8 dynamic per token", "fp8 static per tensor", "fp8 dynamic per group of 128", "int8 dynamic per token, outliers from 6 apart".
std::string DescribeInput(const QuantizationArgs& args);

// From and to the JSON of quantization_config. Reading follows the published defaults for absent keys (strategy from group_size)
// and refuses unknown keys (kDataLoss with the key) but for the known newer ones that change nothing when null.
absl::StatusOr<QuantizationArgs> ParseQuantizationArgs(const Json& json);
absl::Span<const absl::string_view> QuantizationArgsKeys();  // every key it knows
Json ToJson(const QuantizationArgs& args);                   // the smallest key set that every published reader accepts

}  // namespace pith
