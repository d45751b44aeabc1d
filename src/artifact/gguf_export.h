// Any readable model as a GGUF file: names, row order and norms as llama.cpp has them, matrices in a type of choice. Codes that a block
// type holds as they are stay so; other quantized weights are quantized again only when that is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/artifact_reader.h"
#include "artifact/conversion.h"
#include "artifact/importance_matrix.h"
#include "base/thread_pool.h"

namespace pith {

// What --type means: the types of the matrices of layers and of the embedding and head. Rows that are not whole blocks take the type that
// stands in for it (gguf_encoding.h). Vectors are F32.
struct GgufMix {
  absl::string_view name;       // "Q4_K_M"
  absl::string_view type;       // of the matrices of layers
  absl::string_view better;     // of attn_v and ffn_down in the first and last eighth of the layers and every third between; empty: `type`
  absl::string_view embedding;  // of the embedding and the head
  uint32_t file_type;           // general.file_type
};

// THE TABLE.
absl::Span<const GgufMix> GgufMixes();
// Errors: kUnimplemented with the known names.
absl::StatusOr<const GgufMix*> FindGgufMix(absl::string_view name);

struct GgufExportOptions {
  std::string mix = "auto";  // auto: codes as they are (Q4_0, Q8_0), dense matrices as BF16
  bool requantize = false;   // quantized weights that the type does not hold as they are may be dequantized and quantized again
  const ImportanceMatrix* importance = nullptr;
  // Where there is none: makes one, at a time when nothing is left that could be refused. May be empty.
  std::function<absl::StatusOr<ImportanceMatrix>()> collect_importance;
  TokenizerFiles tokenizer;  // in the terms of GGUF
  std::string name;          // general.name
  std::function<absl::Status(int64_t done, int64_t total)> progress;
};

// Writes `output`, a new file. The same for any number of threads. Memory: one weight as floats and blocks.
// Errors: kUnimplemented for an architecture, rope_scaling or tokenizer that GGUF files of llama.cpp do not have, and for quantized weights
// that would have to be quantized again (the weight and why); kDataLoss for a module that the architecture does not have or lacks, for
// numbers that are not finite, and for an importance matrix that does not fit; those of GgufWriter and collect_importance.
absl::StatusOr<ConversionReport> ExportGguf(const ArtifactReader& reader, const std::string& output, const GgufExportOptions& options,
                                            ThreadPool& pool);

}  // namespace pith
