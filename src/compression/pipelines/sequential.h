// Quantizes a model decoder layer by decoder layer, each on what reaches it through the layers quantized before it: the sequential
// pipeline of GPTQ (Frantar et al. 2022, arXiv 2210.17323, section 5) and llm-compressor.
//
// Per layer: the dense layer runs over all sequences while the inputs of its linear modules are observed; scales of channels are searched
// and folded; the modules are quantized; the quantized layer runs over the sequences to make the input of the next. Memory: one layer,
// dense and quantized, statistics of its inputs, one sequence, and the outputs of the sequences that errors are measured on. Static scales
// of a KV cache are those of the keys and values of that second run, which itself has a bf16 cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compression/calibration_data.h"
#include "compression/hidden_states.h"
#include "compression/kv_cache_scales.h"
#include "compression/layer_inputs.h"
#include "compression/modifier.h"
#include "compression/overlay_reader.h"
#include "compression/scaled_layer.h"
#include "compression/stage.h"
#include "model/layerwise_model.h"

namespace pith {

// At most so many sequences are run through the dense model beside the quantized one, to measure errors.
constexpr int64_t kMeasuredSequences = 16;

struct SequentialParts {
  const ArtifactReader& reader;
  const CompressionPlan& plan;
  const CalibrationData& data;
  InputScaler* scaler;  // null: none
  WeightQuantizer& quantizer;
  ThreadPool& pool;
  // Where hidden states are kept: a path for a name.
  std::function<std::string(const std::string& name)> file;
  int64_t max_measured = kMeasuredSequences;  // fewer where errors are of no interest
  int64_t first_layer = 0;                    // which gets the embedded sequences; another than the first to try a layer
};

// Not thread-safe. What `parts` refers to must outlive it.
class SequentialPipeline {
 public:
  // Errors: those of LayerwiseModel.
  static absl::StatusOr<std::unique_ptr<SequentialPipeline>> Create(const SequentialParts& parts);

  // Embeds all sequences, or (num_done > 0) takes the hidden states over that a run with so many layers done left.
  absl::Status Begin(int64_t num_done);
  // Layers in order. When it returns, the hidden states behind the layer are in their files, those before it still there.
  absl::StatusOr<StageResult> RunStage(const Stage& stage, const CompressionProgress& progress);
  // Whether the method codes it for what reaches it: a head, tied or not, that gets integer codes.
  bool CodesHead(const PlannedModule& module) const;
  // Codes such a head for what the final norm makes of the last hidden states there are. A second call codes for what the first observed.
  // Of the matrix the first `module.out` rows count. Calls `progress` after each sequence, when the matrix is read, and at the end.
  absl::StatusOr<StageResult> RunHead(const PlannedModule& module, const CompressionProgress& progress);
  // The stage is saved: hidden states before it are no longer needed.
  void StageSaved(int64_t layer);

 private:
  SequentialPipeline(const SequentialParts& parts, StatisticsLevel level, Isa isa, std::unique_ptr<LayerwiseModel> model);

  struct Observed;  // an input and its statistics

  std::string HiddenPath(int64_t layer) const;
  std::string DensePath(int64_t layer) const;
  absl::StatusOr<HiddenStatesReader> OpenHidden(int64_t layer) const;
  absl::StatusOr<HiddenStatesReader> OpenDense(int64_t layer) const;
  int64_t num_measured() const;
  absl::Status Observe(int64_t index, const DecoderLayer& layer, std::vector<Observed>& inputs, const CompressionProgress& progress);
  absl::Status ObserveHead(const CompressionProgress& progress);
  absl::Status ScaleInputs(std::vector<Observed>& inputs, ScaledLayer& scaled, StageResult& result);
  absl::Status QuantizeStage(const Stage& stage, std::vector<Observed>& inputs, const ScaledLayer& scaled,
                             const CompressionProgress& progress, StageResult& result);
  absl::Status Copy(const TensorSpec& spec, const ScaledLayer& scaled, StageResult& result);
  // `observer` (null: none) sees the quantized layer at work.
  absl::Status Advance(int64_t index, const DecoderLayer& dense, const DecoderLayer& quantized, LayerObserver* observer,
                       const CompressionProgress& progress, StageResult& result);
  absl::Status AddKvScales(int64_t layer, const KvRange& range, StageResult& result);

  const SequentialParts parts_;
  const StatisticsLevel level_;
  const Isa isa_;
  std::unique_ptr<LayerwiseModel> model_;
  std::vector<int64_t> lengths_;
  int64_t reached_ = 0;  // the layer whose inputs are the last that there are; the number of layers: the head's
  OverlayReader quantized_;
  std::vector<std::vector<float>> local_;  // outputs of the dense layer on the measured sequences, from the input of the quantized one
  std::vector<float> hidden_;              // one sequence
  std::unique_ptr<InputStatistics> head_statistics_;
};

}  // namespace pith
