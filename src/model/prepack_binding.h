// Weights bound through a prepack cache: taken from its file when that was made of this model by this build, else loaded from the artifact
// and stored for the next start. The cache never decides whether a model loads, nor what it computes.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "model/prepack_cache_options.h"
#include "model/weight_binding.h"

namespace pith {

// Errors: those of BindWeights. What is wrong with the cache goes to `report`.
absl::StatusOr<BoundDecoder> BindWithPrepackCache(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                                  const ComputeContext& context, const std::function<void(int64_t, int64_t)>& progress,
                                                  const PrepackCacheOptions& options, PrepackCacheReport& report);

}  // namespace pith
