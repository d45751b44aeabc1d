// A decoder-only transformer loaded from an artifact, ready to run: weights prepacked for the chosen kernels.
//
//   ASSIGN_OR_RETURN(auto model, DecoderModel::Load(*reader, {.pool = &pool, .isa = isa}));
//   ASSIGN_OR_RETURN(KvStorage kv, KvStorage::Create(model->MakeKvSpec(num_blocks)));
//   RETURN_IF_ERROR(model->Forward(batch, kv, logits));
//
// Row invariance: the logits of a token are the same bits whatever else is in the batch, wherever its prefill was cut into chunks, and
// however many threads run. One Forward at a time (it uses the model's workspace and pool); different models may run side by side.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "artifact/artifact_reader.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kv_cache/kv_storage.h"
#include "model/decoder_config.h"
#include "model/forward_batch.h"
#include "model/layer_observer.h"
#include "model/prepack_cache_options.h"
#include "nn/compute_context.h"
#include "nn/data_path.h"
#include "nn/profiler.h"

namespace pith {

struct LoadOptions {
  ThreadPool* pool = nullptr;                                 // borrowed; must outlive the model
  Isa isa = Isa::kScalar;                                     // usually SelectIsa()
  WeightOnlyActivation weight_only_activation;                // see ComputeContext
  std::function<void(int64_t done, int64_t total)> progress;  // tensors loaded; may be empty; called by any thread, one at a time
  PrepackCacheOptions prepack_cache;                          // none without a directory
  PrepackCacheReport* prepack_report = nullptr;               // what became of it; null: nobody asks
};

class DecoderModel {
 public:
  virtual ~DecoderModel() = default;

  // Errors: those of ParseDecoderConfig; kDataLoss for missing or misshapen tensors and for NaN/Inf in weights (tensor and index named).
  static absl::StatusOr<std::unique_ptr<DecoderModel>> Load(const ArtifactReader& reader, const LoadOptions& options);

  virtual const DecoderConfig& config() const = 0;
  // In the cache format the artifact declares (kv_cache_scheme), bf16 without one; Forward takes a cache of any format. In that of the
  // artifact keys and values are stored with its static scales, where it has any.
  virtual KvCacheSpec MakeKvSpec(int64_t num_blocks) const = 0;
  // The same in a format of the caller's; nullopt: the artifact's.
  KvCacheSpec KvSpecAs(std::optional<KvDtype> dtype, int64_t num_blocks) const {
    KvCacheSpec spec = MakeKvSpec(num_blocks);
    spec.dtype = dtype.value_or(spec.dtype);
    return spec;
  }
  virtual const std::vector<TensorDataPath>& data_path() const = 0;
  // A short name of the whole path, for evidence: "W4A16/int16", "BF16/bf16", "Q4_K+Q6_K/int8".
  virtual std::string DataPathName() const = 0;
  virtual int64_t resident_weight_bytes() const = 0;
  // Of the buffers that passes so far have worked in: they grow to the largest pass and stay. 0: a model without any.
  virtual int64_t workspace_bytes() const { return 0; }

  // Runs the batch: appends keys and values to `kv` at the rows' positions and writes logits [logits_rows, vocab_size] f32.
  // `logits` has room for exactly that. Errors: kInvalidArgument for token ids or positions out of range.
  virtual absl::Status Forward(const ForwardBatch& batch, KvStorage& kv, absl::Span<float> logits) = 0;

  // Also hands the layer inputs to `observer` (nullptr: none) while running. See layer_observer.h.
  virtual void SetObserver(LayerObserver* observer) = 0;
  // Also records time and work of every operator in `profiler` (nullptr: none) while running. See nn/profiler.h.
  virtual void SetProfiler(Profiler* profiler) = 0;
};

}  // namespace pith
