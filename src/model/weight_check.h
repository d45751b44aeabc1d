// Whether an artifact holds the weights its config asks for, from the headers of its files alone.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "artifact/artifact_reader.h"
#include "model/decoder_config.h"
#include "model/weight_map.h"

namespace pith {

// Names and shapes of every matrix and norm of the decoder, and that it holds no others: a weight of a layer that the config does not
// count, or of a module that its architecture does not have, would be left out silently. No weight is read. Errors: kDataLoss naming the
// first tensor that is missing, misshapen or not asked for.
absl::Status CheckWeights(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map);

// The same for an artifact whose architecture its config names. Errors: also those of FindArchitecture and MakeWeightMap.
absl::Status CheckWeights(const ArtifactReader& reader, const DecoderConfig& config);

// The same for any artifact: one whose architecture is not known here, or whose config asks for what is not supported, passes unchecked.
absl::Status CheckKnownWeights(const ArtifactReader& reader);

// Full names of the tensors of which nothing is known here and which no decoder reads. Those of other parts of a checkpoint (a vision
// tower) and those known to change nothing (rotary frequencies, cache scales, the copy of a tied head) are not among them. Empty for an
// artifact that CheckWeights could not check.
std::vector<std::string> UnusedTensors(const ArtifactReader& reader);

}  // namespace pith
