// The token sequences a method is calibrated with, and where they came from: files, or the model itself (self_sampling.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "compression/model_text.h"

namespace pith {

struct CalibrationOptions {
  int64_t num_samples = 128;      // >= 1
  int64_t sequence_length = 512;  // tokens of a sample, >= 2
  uint64_t seed = 0;
};

struct CalibrationData {
  std::vector<std::string> files;                // names without folders, in the order they were read; empty: sampled from the model
  CalibrationOptions options;                    // as asked; there may be fewer samples than that
  std::vector<std::vector<int32_t>> sequences;   // each of 2 tokens or more, at most options.sequence_length
  std::map<std::string, int64_t> domain_tokens;  // sum to num_tokens()

  int64_t num_tokens() const;
  int64_t longest() const;
  // SHA-256 over the lengths and ids.
  std::string Hash() const;
};

// Errors: kInvalidArgument for options out of their ranges.
absl::Status Validate(const CalibrationOptions& options);

// Samples of the texts of files, or of all files of folders (not of folders in them) that end in .txt, .raw, .utf8 (one text each) or
// .jsonl (on each line an object with "messages", "text" or "content", the first of these that is there). Texts are cut into samples of
// sequence_length tokens. What remains of one is left out, but a line of a .jsonl that is shorter than a sample is a sample of its own. BOS
// stands before every sample where the tokenizer adds it, and counts as one of its tokens; conversations have what their template writes.
// Of all samples num_samples are drawn by the seed without replacement, and kept in their order; all, where there are fewer. Domains are
// the names of files up to the first dot. Memory: the drawn samples and, at a time, one file's mapping and the ids of 1 MiB of text or of
// one line.
// Errors: kNotFound; kInvalidArgument for options, and for a path that is given twice; kUnimplemented for other extensions, and for
// conversations where the model has no chat template; kDataLoss (no UTF-8, bad JSON, a conversation that the template refuses: file and
// line named; no text long enough); kCancelled after an interrupt.
absl::StatusOr<CalibrationData> LoadCalibrationData(absl::Span<const std::string> paths, const ModelText& model_text,
                                                    const CalibrationOptions& options);

// What the manifest records; no paths.
OrderedJson ToJson(const CalibrationData& data);
// What of it is known before the data are there.
OrderedJson KnownJson(const CalibrationOptions& options, bool from_files);

}  // namespace pith
