// Names of modules and their tensors, as Hugging Face checkpoints give them: "model.layers.3.mlp.down_proj" + "weight".
// Pure functions, thread-safe.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace pith {

// "a.b.weight" -> {"a.b", "weight"}; a name without a dot -> {"", name}.
std::pair<absl::string_view, absl::string_view> SplitTensorName(absl::string_view tensor_name);

// Order in which a model is read: embedding, layers by number (input norm, attention, MLP), final norm, head; other names last.
// Runs of digits compare as numbers, so layer 2 comes before layer 10. A strict weak order, total on distinct names.
bool ModuleNameLess(absl::string_view a, absl::string_view b);

// The class a module would have in transformers, as quantization_config entries name it: "Embedding", "RMSNorm" or "Linear".
// Judged by the name: the container does not say.
absl::string_view ModuleClassName(absl::string_view module_name);

}  // namespace pith
