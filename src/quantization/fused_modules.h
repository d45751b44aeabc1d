// Which linear modules serving engines run as one: they read the same input, and must be quantized alike. Constant data and pure functions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

struct FusedModules {
  absl::string_view block;                    // "self_attn": where a decoder layer has them
  absl::string_view name;                     // "qkv_proj": of the whole
  absl::Span<const absl::string_view> parts;  // "q_proj", "k_proj", "v_proj"
};

// THE TABLE. Source: `packed_modules_mapping` of the models of vLLM and SGLang.
absl::Span<const FusedModules> FusedModuleTable();

// The name of the whole that a module is a part of, by the last part of its name: "model.layers.3.self_attn.qkv_proj" of
// "model.layers.3.self_attn.k_proj". A module that is no part of one keeps its name.
std::string FusedModuleName(absl::string_view module);

}  // namespace pith
