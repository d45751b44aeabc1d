// The token sequences a method is calibrated with, and where they came from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace pith {

struct CalibrationOptions {
  int64_t num_samples = 128;
  int64_t sequence_length = 512;  // tokens of a sample
  uint64_t seed = 0;
};

struct CalibrationData {
  std::string source;                            // path as given
  std::vector<std::vector<int32_t>> sequences;   // each of 2 tokens or more
  std::map<std::string, int64_t> domain_tokens;  // by file, its name without extensions

  int64_t num_tokens() const;
  int64_t longest() const;
  // SHA-256 over the lengths and ids.
  std::string Hash() const;
};

// Texts (.txt, .raw, .utf8: one text each; .jsonl: an object with "text" per line) of a file or a folder, cut into samples of
// sequence_length tokens; what remains of a text shorter than that is one sample where the text is of a .jsonl, else left out. Of all
// samples num_samples are drawn by the seed without replacement, in their order; all, where there are fewer. BOS begins each where the
// tokenizer adds it. Errors: kNotFound, kDataLoss (no UTF-8, bad JSON, no text long enough).
absl::StatusOr<CalibrationData> LoadCalibrationData(const std::string& path, const Tokenizer& tokenizer, const CalibrationOptions& options);

// What the manifest records.
OrderedJson ToJson(const CalibrationData& data);

}  // namespace pith
