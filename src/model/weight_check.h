// Whether an artifact holds the weights its config asks for, from the headers of its files alone.
#pragma once

#include "absl/status/status.h"
#include "artifact/artifact_reader.h"
#include "model/decoder_config.h"
#include "model/weight_map.h"

namespace pith {

// Names and shapes of every matrix and norm of the decoder. No weight is read. Errors: kDataLoss naming the first tensor that is missing or
// misshapen.
absl::Status CheckWeights(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map);

// The same for an artifact whose architecture its config names. Errors: also those of FindArchitecture and MakeWeightMap.
absl::Status CheckWeights(const ArtifactReader& reader, const DecoderConfig& config);

// The same for any artifact: one whose architecture is not known here, or whose config asks for what is not supported, passes unchecked.
absl::Status CheckKnownWeights(const ArtifactReader& reader);

}  // namespace pith
