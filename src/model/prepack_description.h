// What a prepack cache holds beside the prepacked bytes: every matrix of a model, by which kernel and for which problem it was prepacked,
// and how its parts are stored in the artifact. One JSON text; it comes from a file that anyone may have written, so it is parsed as such.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/data_path.h"
#include "nn/prepacked_weight.h"

namespace pith {

// One Linear, or a table of bf16 rows.
struct PrepackedLayer {
  std::vector<TensorDataPath> parts;      // name and what the stored form decides; the rest is empty
  std::vector<PrepackedMatrix> matrices;  // without bytes; of a table none
};

// By the name of the first part: "model.layers.0.self_attn.q_proj".
using PrepackDescription = std::map<std::string, PrepackedLayer>;

std::string MakePrepackDescription(const PrepackDescription& layers);

// Errors: kDataLoss naming the layer, the field, the expectation and the finding. What is returned is in range field by field and made of
// printable text; whether it fits a model and its kernels is for Linear::FromPrepacked to say.
absl::StatusOr<PrepackDescription> ParsePrepackDescription(absl::string_view text);

}  // namespace pith
