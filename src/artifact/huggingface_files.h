// The small files of a Hugging Face model directory: config.json, generation_config.json and the tokenizer's.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "base/json.h"

namespace pith {

// config.json: an object with a model_type. Where it has no quantization_config, that of a file of its own, as older quantizers wrote it
// (quantize_config.json of GPTQ, quant_config.json of AWQ), takes its place. Errors: kNotFound, saying what the directory holds instead;
// kDataLoss.
absl::StatusOr<Json> ReadModelConfig(const std::string& directory);

// generation_config.json, or {"bos_token_id", "eos_token_id"} of the config when there is none. Errors: kDataLoss.
absl::StatusOr<Json> ReadGenerationConfig(const std::string& directory, const Json& config);

// Contents of the tokenizer's files that exist. Errors: kDataLoss for a file that is too large or no JSON (an LFS pointer, a web page).
absl::StatusOr<TokenizerFiles> ReadTokenizerFiles(const std::string& directory);

// Names of the files that travel unchanged with a model: generation_config.json, tokenizer, chat template, licence and notice.
// Only those that exist, sorted. Errors: kNotFound, kAborted.
absl::StatusOr<std::vector<std::string>> SideFileNames(const std::string& directory);

}  // namespace pith
