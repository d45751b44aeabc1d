// Measures models against a reference on a corpus: one streaming pass over all of them, no logits file.
//
// Every window is run through the reference and each model side by side in chunks; each chunk's logits are compared and dropped. Scored are
// the positions of the second half of a window (so that every prediction has context), or all but the first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "eval/corpus.h"
#include "eval/distribution.h"
#include "eval/served_distribution.h"
#include "model/decoder_model.h"

namespace pith {

struct ComparisonOptions {
  bool score_all = false;  // all positions but the first, instead of the second half
  int64_t chunk = 64;      // rows whose logits are held at a time
  // Of the models' caches; nullopt: each model's own. The reference always has its own.
  std::optional<KvDtype> kv_cache_dtype;
  // Settings at which what would be served is compared too. Of each, only temperature, min_p, top_k and top_p count.
  std::vector<SamplingParams> served;
  std::function<absl::Status(int64_t windows_done)> progress;  // an error ends the run; may be empty
};

// Comparisons of one model, token by token, in the corpus's order: what the figures are made from.
struct ScoredToken {
  TokenComparison comparison;
  std::vector<ServedComparison> served;  // one per entry of ComparisonOptions::served
  int64_t window = 0;
  int64_t position = 0;  // of the predicted token in its window
};

// Errors: kInvalidArgument when windows of `context` tokens are longer than the model can run.
absl::Status CheckContext(const DecoderConfig& config, int64_t context);

// One vector per model. Same bits for any number of threads and any chunk. Errors: kInvalidArgument when vocabularies differ in size or a
// window is longer than a model's context; kDataLoss for logits that are not finite (model and position named).
absl::StatusOr<std::vector<std::vector<ScoredToken>>> CompareModels(DecoderModel& reference, absl::Span<DecoderModel* const> models,
                                                                    const Corpus& corpus, const ComparisonOptions& options,
                                                                    ThreadPool& pool);

}  // namespace pith
