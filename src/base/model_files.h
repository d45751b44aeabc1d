// Names of the small files of a published model: what is fetched with the weights and travels with an artifact. Constant data.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

// Beside config.json and the weights: generation config, tokenizer, chat template.
absl::Span<const absl::string_view> SideFileTable();

// Files of their own in which older quantizers said what config.json says now, and the quant_method they stand for.
struct QuantizationFile {
  absl::string_view name, method;
};
absl::Span<const QuantizationFile> QuantizationFileTable();

// Licences and notices, which come under many endings: LICENSE, LICENSE.txt, USE_POLICY.md, ...
bool IsLegalText(absl::string_view name);

}  // namespace pith
