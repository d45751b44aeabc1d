#include "compression/importance_collection.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "artifact/gguf_architecture.h"
#include "base/json.h"
#include "base/status.h"
#include "compression/input_observer.h"
#include "compression/input_statistics.h"
#include "compression/layer_inputs.h"
#include "model/layerwise_model.h"

namespace pith {
namespace {

struct ObservedInput {
  std::vector<std::string> matrices;  // GGUF names of those that read it
  std::string module;                 // one of them, as the model calls it
  std::unique_ptr<InputStatistics> statistics;
};

// The collection of one model; a member per step.
class Collector {
 public:
  Collector(const ArtifactReader& reader, const CalibrationData& data, ThreadPool& pool, const CalibrationProgress& progress)
      : reader_(reader), data_(data), pool_(pool), progress_(progress) {}

  absl::Status Open();
  absl::Status Observe(int64_t max_hidden_bytes);
  absl::StatusOr<ImportanceMatrix> Result() const;

 private:
  absl::Status AddInputs(const GgufArchitecture& architecture, int64_t layer, Isa isa);
  absl::Status ObserveBatch(size_t begin, size_t end);
  int64_t HiddenBytes(size_t sequence) const {
    return static_cast<int64_t>(data_.sequences[sequence].size() * sizeof(float)) * model_->config().hidden_size;
  }

  const ArtifactReader& reader_;
  const CalibrationData& data_;
  ThreadPool& pool_;
  const CalibrationProgress& progress_;
  std::unique_ptr<LayerwiseModel> model_;
  std::vector<std::vector<ObservedInput>> layers_;
  int64_t done_ = 0;  // sequences times layers
};

absl::Status Collector::Open() {
  ASSIGN_OR_RETURN(const std::string model_type, GetString(reader_.config(), "model_type"));
  ASSIGN_OR_RETURN(const GgufArchitecture* architecture, FindGgufArchitectureOf(model_type));
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  ASSIGN_OR_RETURN(model_, LayerwiseModel::Create(reader_, {.pool = &pool_, .isa = isa, .max_tokens = data_.longest()}));
  for (int64_t layer = 0; layer < model_->config().num_layers; ++layer) RETURN_IF_ERROR(AddInputs(*architecture, layer, isa));
  return absl::OkStatus();
}

absl::Status Collector::AddInputs(const GgufArchitecture& architecture, int64_t layer, Isa isa) {
  std::vector<ObservedInput>& inputs = layers_.emplace_back();
  for (const LayerInput& input : LayerInputs(model_->config(), model_->weight_map(), layer)) {
    ObservedInput& observed = inputs.emplace_back();
    observed.module = input.consumers.front();
    for (const std::string& consumer : input.consumers) {
      for (const GgufModule& module : architecture.layer) {
        if (model_->weight_map().Layer(layer, module.huggingface) != consumer) continue;
        observed.matrices.push_back(absl::StrCat("blk.", layer, ".", module.gguf, ".weight"));
      }
    }
    ASSIGN_OR_RETURN(const TensorInfo info, reader_.DescribeWeight(observed.module));
    observed.statistics = std::make_unique<InputStatistics>(info.shape[1], StatisticsLevel::kChannels, data_.num_tokens(), isa);
  }
  return absl::OkStatus();
}

absl::Status Collector::Observe(int64_t max_hidden_bytes) {
  const size_t count = data_.sequences.size();
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    int64_t bytes = 0;
    while (end < count && (end == begin || bytes + HiddenBytes(end) <= max_hidden_bytes)) bytes += HiddenBytes(end++);
    RETURN_IF_ERROR(ObserveBatch(begin, end));
  }
  return absl::OkStatus();
}

absl::Status Collector::ObserveBatch(size_t begin, size_t end) {
  std::vector<std::vector<float>> hidden;
  for (size_t i = begin; i < end; ++i) {
    hidden.emplace_back(static_cast<size_t>(HiddenBytes(i)) / sizeof(float));
    RETURN_IF_ERROR(model_->Embed(data_.sequences[i], absl::MakeSpan(hidden.back())));
  }
  const int64_t total = static_cast<int64_t>(layers_.size() * data_.sequences.size());
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    ASSIGN_OR_RETURN(const DecoderLayer weights, model_->LoadLayer(reader_, static_cast<int64_t>(layer)));
    InputObserver observer(pool_);
    for (const ObservedInput& input : layers_[layer]) observer.Add(input.module, input.statistics.get());
    for (size_t i = begin; i < end; ++i) {
      const int64_t length = static_cast<int64_t>(data_.sequences[i].size());
      RETURN_IF_ERROR(model_->RunLayer(weights, length, absl::MakeSpan(hidden[i - begin]), &observer));
      if (progress_) RETURN_IF_ERROR(progress_("collecting", ++done_, total));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportanceMatrix> Collector::Result() const {
  ImportanceMatrix matrix{
      .datasets = data_.files, .chunk_count = static_cast<int64_t>(data_.sequences.size()), .chunk_size = data_.options.sequence_length};
  if (matrix.datasets.empty()) matrix.datasets = {"text of the model itself"};
  for (const std::vector<ObservedInput>& layer : layers_) {
    for (const ObservedInput& input : layer) {
      ImportanceMatrix::Entry entry{.sum_squares = input.statistics->MeanSquare(),
                                    .count = static_cast<float>(input.statistics->num_rows())};
      for (size_t i = 0; i < entry.sum_squares.size(); ++i) {
        entry.sum_squares[i] *= entry.count;
        if (std::isfinite(entry.sum_squares[i])) continue;
        return BadFileError(input.module, ": expected finite inputs, found a sum of squares of ", entry.sum_squares[i], " in column ", i);
      }
      for (const std::string& name : input.matrices) matrix.entries.emplace(name, entry);
    }
  }
  return matrix;
}

}  // namespace

absl::StatusOr<ImportanceMatrix> CollectImportanceMatrix(const ArtifactReader& reader, const CalibrationData& data, ThreadPool& pool,
                                                         const CalibrationProgress& progress, int64_t max_hidden_bytes) {
  Collector collector(reader, data, pool, progress);
  RETURN_IF_ERROR(collector.Open());
  RETURN_IF_ERROR(collector.Observe(max_hidden_bytes));
  return collector.Result();
}

}  // namespace pith
