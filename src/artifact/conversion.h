// Conversions between containers and stored formats. Any readable model to a dense BF16 Hugging Face directory: every weight is dequantized
// to f32 and rounded to bf16.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "artifact/artifact_writer.h"

namespace pith {

struct ConversionOptions {
  // Made from TokenizerFiles by the tokenizer module for a GGUF source; empty: the source directory's own files are copied.
  std::string tokenizer_json, tokenizer_config_json;
  std::string pith_version;  // for the manifest
  int64_t max_shard_bytes = 5'000'000'000;
  // Called after each tensor; a status that is not OK (CheckInterrupted) ends the conversion with it. May be empty.
  std::function<absl::Status(int64_t done, int64_t total)> progress;
};

struct ConversionReport {
  int64_t num_tensors = 0;
  int64_t input_bytes = 0;   // stored tensors read
  int64_t output_bytes = 0;  // files written
};

// Writes `output`, a new directory: config.json (without quantization_config), generation_config.json, tokenizer files, safetensors with
// Hugging Face names, pith.json. A head the source does not store stays tied; one it stores is written. Memory: one weight at a time.
// Errors: those of ArtifactWriter; kDataLoss for a weight that is not finite, or beyond the range of bf16 (tensor and index named).
absl::StatusOr<ConversionReport> ConvertToHuggingFace(const ArtifactReader& reader, const std::string& output,
                                                      const ConversionOptions& options);

// Steps that conversions to directories share (stored_conversion.h).

// Scales of a quantized KV cache: they mean nothing without the quantization_config that declares them.
bool IsKvScale(absl::string_view tensor_name);

// Writes a weight as BF16 under a declared name. Errors: kDataLoss as above; those of ArtifactWriter.
absl::Status WriteAsBf16(const std::string& tensor_name, const Weight& weight, ArtifactWriter& writer);

// `config` as config.json, then the files of the options and those that travel unchanged with the model.
absl::Status WriteConversionFiles(const ArtifactReader& reader, const Json& config, const ConversionOptions& options,
                                  ArtifactWriter& writer);

}  // namespace pith
