// What a KV cache can be declared as in an artifact (kv_cache_scheme of quantization_config), and the table of those that are written.
// Source: compressed-tensors `kv_cache_scheme`; docs/methods/kv_cache.md.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "quantization/quantization_args.h"

namespace pith {

struct KvCacheScheme {
  absl::string_view name;  // "fp8-head"
  absl::string_view summary;
  QuantizationArgs args;

  // Whether its scales are stored, and so have to be calibrated.
  bool NeedsCalibration() const { return !args.dynamic; }
};

// THE TABLE of schemes that are written: fp8, fp8-head, int8. All functions are pure and thread-safe.
absl::Span<const KvCacheScheme> KvCacheSchemes();
// Errors: kUnimplemented with the known names.
absl::StatusOr<KvCacheScheme> FindKvCacheScheme(absl::string_view name);
// The scheme with these arguments. Errors: kUnimplemented with the known ones.
absl::StatusOr<KvCacheScheme> FindKvCacheScheme(const QuantizationArgs& args);

// The arguments of kv_cache_scheme as they stand in a file: as ParseQuantizationArgs, and attn_head (a scale per KV head) besides.
absl::StatusOr<QuantizationArgs> ParseKvCacheArgs(const Json& json);

}  // namespace pith
