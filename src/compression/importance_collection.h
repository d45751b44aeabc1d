// Importance matrices of llama.cpp from calibration data: the mean squares of what flows into each linear layer of the decoder, by which
// `pith convert --format gguf` and llama.cpp's own quantizer weigh the errors of columns.
//
// As llama-imatrix does without --process-output, the head and the embedding have no entry. Statistics are those of the model as it is:
// nothing is quantized on the way.
#pragma once

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "artifact/importance_matrix.h"
#include "base/thread_pool.h"
#include "compression/calibration_data.h"
#include "compression/self_sampling.h"

namespace pith {

// Entries under the GGUF names of the matrices ("blk.0.attn_q.weight"), each counting all tokens; `data` are its chunks. Sequences run
// layer by layer, as many of them at a time as have hidden states of `max_hidden_bytes` together (at least one): the bits do not depend on
// it, nor on the number of threads. Memory: those, one layer, and 24 bytes per column. Progress: ("collecting", sequences times layers).
// Errors: those of LayerwiseModel; kUnimplemented for an architecture without GGUF names; kDataLoss for an input that is not finite; those
// of `progress`.
absl::StatusOr<ImportanceMatrix> CollectImportanceMatrix(const ArtifactReader& reader, const CalibrationData& data, ThreadPool& pool,
                                                         const CalibrationProgress& progress, int64_t max_hidden_bytes = int64_t{1} << 30);

}  // namespace pith
