#include "model/decoder_model.h"

#include <array>
#include <new>
#include <set>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/declared_kv_cache.h"
#include "model/forward_pass.h"
#include "model/key_centers.h"
#include "model/pass_profile.h"
#include "model/prepack_binding.h"
#include "model/weight_binding.h"
#include "model/weight_map.h"

namespace pith {
namespace {

class LoadedDecoderModel : public DecoderModel {
 public:
  LoadedDecoderModel(DecoderConfig config, ComputeContext context)
      : config_(std::move(config)), context_(std::move(context)), workspace_(config_, context_.pool->num_threads()) {
    for (int dtype = 0; dtype < kNumKvDtypes; ++dtype) {
      attention_[static_cast<size_t>(dtype)] = SelectAttention(static_cast<KvDtype>(dtype), config_.head_dim, context_.isa);
    }
  }

  absl::Status Bind(const ArtifactReader& reader, const LoadOptions& options);

  const DecoderConfig& config() const override { return config_; }
  KvCacheSpec MakeKvSpec(int64_t num_blocks) const override {
    return {.num_layers = config_.num_layers,
            .num_kv_heads = config_.num_kv_heads,
            .head_dim = config_.head_dim,
            .num_blocks = num_blocks,
            .dtype = declared_kv_.dtype};
  }
  const std::vector<TensorDataPath>& data_path() const override { return decoder_.data_path; }
  std::string DataPathName() const override;
  int64_t resident_weight_bytes() const override;
  int64_t workspace_bytes() const override { return workspace_.bytes(); }
  absl::Status Forward(const ForwardBatch& batch, KvStorage& kv, absl::Span<float> logits) override;
  void SetObserver(LayerObserver* observer) override { observer_ = observer; }
  void SetProfiler(Profiler* profiler) override { profiler_ = profiler; }

 private:
  void Run(const ForwardBatch& batch, KvStorage& kv, float* logits);
  void SetPositions(const ForwardBatch& batch);

  const DecoderConfig config_;
  const ComputeContext context_;
  std::array<AttentionSelection, kNumKvDtypes> attention_;  // by KvDtype
  DeclaredKvCache declared_kv_;
  std::vector<std::vector<float>> key_centers_;  // by layer; empty: none
  BoundDecoder decoder_;
  Workspace workspace_;
  LayerObserver* observer_ = nullptr;
  Profiler* profiler_ = nullptr;
};

absl::Status LoadedDecoderModel::Bind(const ArtifactReader& reader, const LoadOptions& options) {
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config_.model_type));
  ASSIGN_OR_RETURN(const WeightMap map, MakeWeightMap(reader, architecture->norms));
  ASSIGN_OR_RETURN(declared_kv_, ReadDeclaredKvCache(reader, config_, map));
  ASSIGN_OR_RETURN(key_centers_, ReadKeyCenters(reader, config_, map));
  PrepackCacheReport ignored;
  PrepackCacheReport& report = options.prepack_report != nullptr ? *options.prepack_report : ignored;
  ASSIGN_OR_RETURN(decoder_, BindWithPrepackCache(reader, config_, map, context_, options.progress, options.prepack_cache, report));
  return absl::OkStatus();
}

std::string LoadedDecoderModel::DataPathName() const {
  std::set<std::string> schemes, activations;
  for (size_t i = 1; i + 1 < decoder_.data_path.size(); ++i) {  // without embedding and head
    schemes.insert(decoder_.data_path[i].scheme);
    const std::string& activation = decoder_.data_path[i].activation;  // "int16" of "int16 dynamic"
    activations.insert(activation.substr(0, activation.find(' ')));
  }
  return absl::StrCat(absl::StrJoin(schemes, "+"), "/", absl::StrJoin(activations, "+"));
}

int64_t LoadedDecoderModel::resident_weight_bytes() const {
  int64_t bytes = decoder_.embedding.resident_bytes() + decoder_.head.resident_bytes();
  for (const DecoderLayer& layer : decoder_.layers) bytes += layer.resident_bytes();
  return bytes;
}

void LoadedDecoderModel::SetPositions(const ForwardBatch& batch) {
  std::vector<int32_t>& positions = workspace_.positions();
  positions.clear();
  int64_t end = 0;
  for (const SequenceSlice& slice : batch.sequences) {
    for (int64_t r = 0; r < slice.num_rows; ++r) positions.push_back(static_cast<int32_t>(slice.first_position + r));
    end = std::max(end, slice.first_position + slice.num_rows);
  }
  decoder_.rotary->Reserve(end);
  if (decoder_.rotary_local != nullptr) decoder_.rotary_local->Reserve(end);
}

void LoadedDecoderModel::Run(const ForwardBatch& batch, KvStorage& kv, float* logits) {
  const int64_t logits_rows = static_cast<int64_t>(batch.logits_rows.size());
  workspace_.Reserve(batch.num_rows());
  SetPositions(batch);
  std::vector<AttentionPlan> plans = PlanAttention(batch, config_, context_.pool->num_threads());
  for (const AttentionPlan& plan : plans) workspace_.ReserveAttentionStates(plan.state_floats);
  ForwardPass pass{context_, config_, batch, kv, workspace_, attention_[static_cast<size_t>(kv.spec().dtype)], plans, observer_, profiler_};
  if (kv.spec().dtype == declared_kv_.dtype && !declared_kv_.scales.empty()) pass.kv_scales = &declared_kv_.scales;
  if (kv.spec().dtype != KvDtype::kBf16 && !key_centers_.empty()) pass.key_centers = &key_centers_;
  if (profiler_ != nullptr) profiler_->BeginPass();
  decoder_.embedding.Run(context_, batch.token_ids, config_.embedding_scale, workspace_.hidden(), config_.hidden_size);
  ProfileEmbedding(pass, decoder_.embedding);
  for (const DecoderLayer& layer : decoder_.layers) RunDecoderLayer(layer, pass);
  if (logits_rows == 0) return;
  workspace_.normed().Prepare(decoder_.head.projection().formats(), logits_rows, config_.hidden_size, observer_ != nullptr);
  decoder_.head.Normalize(context_, workspace_.hidden(), batch.logits_rows, workspace_.normed());
  ProfileNorm(pass, kNoLayer, logits_rows);
  if (observer_ != nullptr) {
    observer_->OnLinearInput(decoder_.data_path.back().name, workspace_.normed().bf16(), logits_rows, config_.hidden_size);
  }
  decoder_.head.Run(context_, workspace_.normed(), logits_rows, logits);
  ProfileLinear(pass, "lm_head", kNoLayer, decoder_.head.projection(), logits_rows);
}

absl::Status LoadedDecoderModel::Forward(const ForwardBatch& batch, KvStorage& kv, absl::Span<float> logits) {
  RETURN_IF_ERROR(ValidateBatch(batch, config_, kv.spec(), static_cast<int64_t>(logits.size())));
  try {
    Run(batch, kv, logits.data());
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError("forward pass of ", batch.num_rows(), " rows: could not allocate its buffers");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DecoderModel>> DecoderModel::Load(const ArtifactReader& reader, const LoadOptions& options) {
  CHECK(options.pool != nullptr);
  absl::StatusOr<DecoderConfig> config = ParseDecoderConfig(reader.config());
  if (!config.ok()) return Annotate(config.status(), reader.path());
  try {
    auto model = std::make_unique<LoadedDecoderModel>(*std::move(config),
                                                      MakeComputeContext(options.pool, options.isa, options.weight_only_activation));
    const absl::Status bound = model->Bind(reader, options);
    if (!bound.ok()) return Annotate(bound, reader.path());
    return model;
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError(reader.path(), ": could not allocate memory for the weights");
  }
}

}  // namespace pith
