// Calibration data without a file: text that the model writes itself. Its activations are those of its own distribution of texts, in the
// domains and languages it knows, and through its chat template when it has one.
//
// Every sample is sequence_length tokens of text drawn at temperature 1 from the whole distribution (no top-k, top-p or min-p). A sample
// begins with a start of sample_starts.h; where the model ends its text, or begins another (BOS), the next start follows in the same
// sequence. With a chat template every other sample, the first included, is a chat: a user's message as the template renders it, and the
// model's answer. Which starts a sample has depends on the seed and its number, and a drawn token on the row of logits and
// UniformOpen(seed, number of the sample, position of the token). With the row invariance of the model that makes samples the same for any
// number of threads and any batch, and the first n of m samples the samples of n. Instruction sets differ: logits do.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "artifact/artifact_reader.h"
#include "base/resource_use.h"
#include "base/thread_pool.h"
#include "compression/calibration_data.h"
#include "compression/model_text.h"
#include "model/decoder_model.h"

namespace pith {

// Told of tensors ("loading") and tokens ("sampling") done, by one thread at a time, not always the caller's; an error ends the work with
// it. May be empty.
using CalibrationProgress = std::function<absl::Status(absl::string_view phase, int64_t done, int64_t total)>;

// Domains: those of the starts, with "chat/" before them in chats; all tokens of a sample count, those of the starts too.
// Memory: the weights as `pith run` holds them, keys and values of the samples that are decoded together (at most 1 GiB, or one sample's),
// and their logits (at most 128 rows of vocab_size floats). All of it is given back before this returns.
// Errors: those of DecoderModel::Load, of BlockPool and KvStorage for memory, and of `progress`; kInvalidArgument for options out of range
// or a sequence_length above max_position_embeddings; kDataLoss for a tokenizer with more ids than the model, and for a chat template that
// refuses a user's message; kInternal for logits of which none is finite.
absl::StatusOr<CalibrationData> SampleCalibrationData(const ArtifactReader& reader, const ModelText& model_text,
                                                      const CalibrationOptions& options, ThreadPool& pool,
                                                      const CalibrationProgress& progress);

// The same from a model in memory, with at most `max_sequences` samples decoded together. `pool` is the model's.
absl::StatusOr<CalibrationData> SampleFromModel(DecoderModel& model, const ModelText& model_text, const CalibrationOptions& options,
                                                int64_t max_sequences, ThreadPool& pool, const CalibrationProgress& progress);

// What SampleCalibrationData would take, beforehand: the model is loaded, a few passes are timed at both ends of the samples, and the
// memory of the whole is taken. Times suppose that texts are as long as samples; a model that ends them early is a little quicker. Errors:
// as above.
absl::StatusOr<ResourceUse> EstimateSampling(const ArtifactReader& reader, const ModelText& model_text, const CalibrationOptions& options,
                                             ThreadPool& pool, const CalibrationProgress& progress);

// Stands in for sampled data where only their amount matters: ids at random, below `vocab_size`.
CalibrationData RandomCalibrationData(const CalibrationOptions& options, int64_t vocab_size);

}  // namespace pith
