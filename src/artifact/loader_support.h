// Which of the usual programs can load an artifact, and what stops the others: a table of rules over what is stored.
// The rules are those of the sources of vLLM, SGLang, transformers with compressed-tensors, and llama.cpp (docs/formats/artifact.md says
// which parts); they are about formats, not about whether an architecture or a device is supported.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "artifact/artifact_reader.h"

namespace pith {

// A kind of quantized weight in an artifact.
struct StoredKind {
  std::string format;  // of the format table: "pack-quantized", "gptq"; or a GGUF type
  QuantizationArgs args;
  std::optional<QuantizationArgs> input;
  bool operator==(const StoredKind&) const = default;
};

// What the rules look at.
struct LoadFacts {
  std::string container;          // ArtifactReader::format()
  std::vector<StoredKind> kinds;  // distinct; empty in a dense model and of a GGUF file
  bool quantized_embedding = false, quantized_head = false;
  std::optional<QuantizationArgs> kv_cache;
  bool fused_parts_differ = false;  // q/k/v or gate/up of different schemes
};

struct LoaderVerdict {
  absl::string_view loader;            // "vLLM"
  std::vector<std::string> obstacles;  // empty: it loads the artifact
};

// Reads no weights. Errors: those of ArtifactReader::DescribeWeight.
absl::StatusOr<LoadFacts> ReadLoadFacts(const ArtifactReader& reader);

// One verdict per loader, always in the same order. Pure, thread-safe.
std::vector<LoaderVerdict> JudgeLoaders(const LoadFacts& facts);

// "loads in vLLM, transformers; not in SGLang (...), llama.cpp (...)"
std::string DescribeVerdicts(const std::vector<LoaderVerdict>& verdicts);

}  // namespace pith
