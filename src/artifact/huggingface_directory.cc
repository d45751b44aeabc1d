#include "artifact/huggingface_directory.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "artifact/fingerprint.h"
#include "artifact/huggingface_files.h"
#include "artifact/module_names.h"
#include "base/log.h"
#include "base/status.h"
#include "quantization/formats/input_scale.h"
#include "quantization/formats/outlier_columns.h"

namespace pith {
namespace {

// Suffixes that belong to the stored form of a module's weight in any of the known quantizers, never to a module of their own.
constexpr absl::string_view kWeightParts[] = {"weight",
                                              "weight_packed",
                                              "weight_scale",
                                              "weight_zero_point",
                                              "weight_shape",
                                              "weight_g_idx",
                                              "input_scale",
                                              "input_zero_point",
                                              "weight_global_scale",
                                              "input_global_scale",
                                              "weight_scale_inv",
                                              "qweight",
                                              "qzeros",
                                              "scales",
                                              "g_idx",
                                              "SCB",
                                              "weight_format",
                                              kOutlierIndexSuffix,
                                              kOutlierWeightSuffix};

constexpr size_t kMaxNameBytes = 512;

bool IsWeightPart(absl::string_view suffix) {
  return std::find(std::begin(kWeightParts), std::end(kWeightParts), suffix) != std::end(kWeightParts);
}

bool IsFloat(const SafetensorsTensor& tensor) {
  return tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
}

std::string TypeAndShape(const SafetensorsTensor& tensor) { return absl::StrCat(tensor.type, " ", ShapeName(tensor.shape)); }

// "dir/model.safetensors: name": how a message starts.
std::string Where(const ShardedTensor& stored) {
  return absl::StrCat(Printable(stored.file->path(), 500), ": ", Printable(stored.tensor->name));
}

int64_t StoredBytes(const ShardedTensor& stored) { return static_cast<int64_t>(stored.tensor->end - stored.tensor->begin); }

}  // namespace

absl::StatusOr<std::unique_ptr<ArtifactReader>> HuggingFaceDirectory::Open(const std::string& directory) {
  ASSIGN_OR_RETURN(Json config, ReadModelConfig(directory));
  ASSIGN_OR_RETURN(SafetensorsShards shards, SafetensorsShards::Open(directory));
  std::unique_ptr<HuggingFaceDirectory> reader(new HuggingFaceDirectory(directory, std::move(shards)));
  reader->stored_config_ = DumpJson(config);
  reader->config_ = std::move(config);
  reader->format_ = "huggingface";
  const std::string config_path = Printable(JoinPath(directory, "config.json"), 500);
  if (const Json* quantization = FindMember(reader->config_, "quantization_config"); quantization != nullptr) {
    absl::StatusOr<QuantizationConfig> parsed = ParseQuantizationConfig(*quantization);
    if (!parsed.ok()) return Annotate(parsed.status(), absl::StrCat(config_path, ": quantization_config"));
    reader->quantization_ = *std::move(parsed);
    ASSIGN_OR_RETURN(reader->format_, GetString(*quantization, "quant_method", "compressed-tensors"));
  }
  ASSIGN_OR_RETURN(reader->generation_config_, ReadGenerationConfig(directory, reader->config_));
  ASSIGN_OR_RETURN(reader->tokenizer_files_, ReadTokenizerFiles(directory));
  RETURN_IF_ERROR(reader->GroupTensors());
  RETURN_IF_ERROR(reader->AddNotes());
  RETURN_IF_ERROR(reader->CheckPlainTensors());
  RETURN_IF_ERROR(Annotate(reader->CheckHead(), config_path));
  return reader;
}

absl::Status HuggingFaceDirectory::GroupTensors() {
  for (const ShardedTensor& stored : shards_.tensors()) {
    const std::string& tensor_name = stored.tensor->name;
    if (Printable(tensor_name, kMaxNameBytes) != tensor_name) {
      return BadFileError(Where(stored), ": expected a printable name of at most ", kMaxNameBytes, " bytes");
    }
    const auto [module, suffix] = SplitTensorName(tensor_name);
    if (module.empty()) {
      return BadFileError(Where(stored), ": expected a name of the form <module>.<tensor>, found no module");
    }
    if (IsWeightPart(suffix)) {
      modules_[std::string(module)].tensors.emplace_back(std::string(suffix), stored);
    } else {
      plain_names_.push_back(stored.tensor->name);
    }
  }
  std::vector<ModuleInfo> infos;
  for (const auto& [name, module] : modules_) {
    const bool quantized = module.tensors.size() != 1 || module.tensors[0].first != "weight";
    weight_names_.push_back(name);
    infos.push_back({name, std::string(ModuleClassName(name)), quantized});
  }
  std::sort(weight_names_.begin(), weight_names_.end(), ModuleNameLess);
  std::sort(plain_names_.begin(), plain_names_.end(), ModuleNameLess);
  if (quantization_.has_value()) {
    std::sort(infos.begin(), infos.end(), [](const ModuleInfo& a, const ModuleInfo& b) { return ModuleNameLess(a.name, b.name); });
    RETURN_IF_ERROR(Annotate(CheckModules(*quantization_, infos), Printable(JoinPath(path_, "config.json"), 500)));
  }
  for (const std::string& name : weight_names_) RETURN_IF_ERROR(CheckModule(name, &modules_[name]));
  return absl::OkStatus();
}

absl::Status HuggingFaceDirectory::CheckModule(const std::string& name, Module* module) {
  const ShardedTensor& first = module->tensors[0].second;
  if (quantization_.has_value()) {
    ASSIGN_OR_RETURN(module->scheme, FindScheme(*quantization_, name, ModuleClassName(name)));
  }
  if (module->scheme != nullptr) {
    const std::string file = Location(*module);
    ASSIGN_OR_RETURN(const ModuleTensors stored, ViewModule(name, *module));
    const auto [weight, input] = SplitInputTensors(stored);
    const absl::StatusOr<MatrixShape> shape = ReadWeightShape(module->scheme->format, *module->scheme->weights, weight);
    if (!shape.ok()) return Annotate(shape.status(), file);
    module->shape = *shape;
    RETURN_IF_ERROR(Annotate(CheckWeight(module->scheme->format, weight, *module->scheme->weights, *shape), file));
    absl::StatusOr<std::optional<InputQuantization>> read = ReadInputQuantization(input, module->scheme->input_activations);
    if (!read.ok()) return Annotate(read.status(), file);
    module->input = *std::move(read);
    absl::StatusOr<std::vector<int32_t>> columns = ReadOutlierIndex(weight, module->input, *shape);
    if (!columns.ok()) return Annotate(columns.status(), file);
    if (module->input.has_value()) module->input->outlier_columns = *std::move(columns);
    return absl::OkStatus();
  }
  for (const auto& [suffix, stored] : module->tensors) {
    if (suffix == "weight") continue;
    return BadFileError(Where(stored), ": expected only a weight, found a part of a quantized one, but config.json ",
                        quantization_.has_value() ? "leaves this module unquantized" : "has no quantization_config");
  }
  if (!IsFloat(*first.tensor)) {
    return BadFileError(Where(first), ": expected F32, F16 or BF16, found ", TypeAndShape(*first.tensor));
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceDirectory::AddNotes() {
  std::vector<const QuantizationScheme*> seen;
  for (const std::string& name : weight_names_) {
    const Module& module = modules_.at(name);
    if (module.scheme == nullptr || std::find(seen.begin(), seen.end(), module.scheme) != seen.end()) continue;
    seen.push_back(module.scheme);
    ASSIGN_OR_RETURN(const ModuleTensors stored, ViewModule(name, module));
    const std::string note = NoteOnWeight(module.scheme->format, stored, *module.scheme->weights);
    if (note.empty()) continue;
    notes_.push_back(absl::StrCat(name, ": ", note));
    spdlog::warn("{}: {}", Printable(path_, 500), notes_.back());
  }
  return absl::OkStatus();
}

std::string HuggingFaceDirectory::Location(const Module& module) const {
  const SafetensorsFile* file = module.tensors[0].second.file;
  for (const auto& [suffix, stored] : module.tensors) {
    if (stored.file != file) return Printable(path_, 500);
  }
  return Printable(file->path(), 500);
}

absl::Status HuggingFaceDirectory::CheckPlainTensors() const {
  for (const std::string& name : plain_names_) {
    const ShardedTensor stored = shards_.Find(name);
    if (!IsFloat(*stored.tensor)) {
      return BadFileError(Where(stored), ": expected F32, F16 or BF16, found ", TypeAndShape(*stored.tensor),
                          ", which belongs to no weight");
    }
    const auto [module_name, suffix] = SplitTensorName(name);
    if (suffix != "bias") continue;
    const auto module = modules_.find(module_name);
    if (module == modules_.end()) {
      return BadFileError(Where(stored), ": expected a weight beside this bias, found none");
    }
    const Shape& shape = module->second.tensors[0].second.tensor->shape;
    const int64_t out = module->second.scheme != nullptr ? module->second.shape.out : shape.empty() ? 0 : shape[0];
    if (stored.tensor->shape != Shape({out})) {
      return BadFileError(Where(stored), ": expected ", ShapeName({out}), ", found ", ShapeName(stored.tensor->shape));
    }
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceDirectory::CheckHead() {
  if (!HasWeight("model.embed_tokens")) return absl::OkStatus();  // the text half of a larger model, or no language model
  const bool has_head = HasWeight("lm_head");
  ASSIGN_OR_RETURN(const bool tied, GetBool(config_, "tie_word_embeddings", !has_head));
  if (!tied && !has_head) {
    return BadFileError("\"tie_word_embeddings\": expected true since no lm_head.weight is stored, found false");
  }
  config_["tie_word_embeddings"] = tied;
  return absl::OkStatus();
}

std::vector<TensorInfo> HuggingFaceDirectory::Tensors() const {
  std::vector<TensorInfo> infos;
  infos.reserve(shards_.tensors().size());
  for (const ShardedTensor& stored : shards_.tensors()) {
    infos.push_back({stored.tensor->name, stored.tensor->type, stored.tensor->shape, StoredBytes(stored), BaseName(stored.file->path())});
  }
  return infos;
}

std::vector<WeightFile> HuggingFaceDirectory::WeightFiles() const {
  std::vector<WeightFile> files;
  for (const auto& file : shards_.files()) files.push_back({BaseName(file->path()), file->identity()});
  return files;
}

absl::StatusOr<ModuleTensors> HuggingFaceDirectory::ViewModule(const std::string& name, const Module& module) const {
  ModuleTensors tensors{name, {}};
  for (const auto& [suffix, stored] : module.tensors) {
    ASSIGN_OR_RETURN(const TensorView view, stored.file->View(*stored.tensor));
    tensors.tensors.push_back({suffix, view});
  }
  return tensors;
}

absl::StatusOr<TensorInfo> HuggingFaceDirectory::DescribeWeight(absl::string_view name) const {
  const auto it = modules_.find(name);
  if (it == modules_.end()) return BadFileError(Printable(path_, 500), ": ", Printable(name), ": expected a weight, found none");
  const Module& module = it->second;
  const ShardedTensor& first = module.tensors[0].second;
  TensorInfo info{std::string(name), first.tensor->type, first.tensor->shape, 0, BaseName(first.file->path())};
  if (module.scheme != nullptr) {
    info.type = module.scheme->format;
    info.shape = {module.shape.out, module.shape.in};
    const QuantizationArgs& args = *module.scheme->weights;
    info.quantized = QuantizedForm{.bits = args.num_bits,
                                   .type = args.type,
                                   .group_size = args.columns_per_scale(module.shape.in),
                                   .has_zero_point = !args.symmetric,
                                   .input = module.input,
                                   .args = args};
  }
  absl::string_view scale_suffix;
  if (module.scheme != nullptr) {
    ASSIGN_OR_RETURN(const WeightFormat* row, FindWeightFormat(module.scheme->format));
    scale_suffix = row->scale_suffix;
  }
  for (const auto& [suffix, stored] : module.tensors) {
    info.stored_bytes += StoredBytes(stored);
    if (info.quantized.has_value() && suffix == scale_suffix) {
      if (stored.tensor->type == "BF16") info.quantized->scale = DType::kBF16;
      if (stored.tensor->type == "F16") info.quantized->scale = DType::kF16;
    }
  }
  return info;
}

absl::StatusOr<Weight> HuggingFaceDirectory::ReadDense(absl::string_view name, const ShardedTensor& stored) const {
  Weight weight;
  weight.name = std::string(name);
  weight.stored_bytes = StoredBytes(stored);
  ASSIGN_OR_RETURN(TensorView view, stored.file->View(*stored.tensor));
  // The format allows headers of any length, so data may lie at odd addresses.
  if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(ByteSize(view.dtype)) != 0) {
    auto aligned = std::make_shared<Tensor>(view.dtype, view.shape);
    if (weight.stored_bytes > 0) std::memcpy(aligned->data(), view.data, static_cast<size_t>(weight.stored_bytes));
    view = aligned->view();
    weight.storage = std::move(aligned);
  }
  weight.dense = std::move(view);
  return weight;
}

absl::StatusOr<Weight> HuggingFaceDirectory::ReadWeight(absl::string_view name) const {
  const auto it = modules_.find(name);
  if (it == modules_.end()) return BadFileError(Printable(path_, 500), ": ", Printable(name), ": expected a weight, found none");
  const Module& module = it->second;
  if (module.scheme == nullptr) return ReadDense(name, module.tensors[0].second);
  Weight weight;
  weight.name = std::string(name);
  for (const auto& [suffix, stored] : module.tensors) weight.stored_bytes += StoredBytes(stored);
  ASSIGN_OR_RETURN(const ModuleTensors tensors, ViewModule(it->first, module));
  absl::StatusOr<QuantizedTensor> decoded = DecodeWeight(module.scheme->format, SplitInputTensors(tensors).first, *module.scheme->weights,
                                                         module.shape);
  if (!decoded.ok()) return Annotate(decoded.status(), Location(module));
  weight.quantized = *std::move(decoded);
  weight.input = module.input;
  return weight;
}

absl::StatusOr<std::optional<Weight>> HuggingFaceDirectory::ReadTensor(absl::string_view name) const {
  const ShardedTensor stored = shards_.Find(name);
  if (stored.tensor == nullptr) return std::optional<Weight>();
  if (!IsFloat(*stored.tensor)) {
    return BadFileError(Where(stored), ": expected a plain F32, F16 or BF16 tensor, found ", TypeAndShape(*stored.tensor));
  }
  ASSIGN_OR_RETURN(Weight weight, ReadDense(name, stored));
  return std::optional<Weight>(std::move(weight));
}

absl::StatusOr<std::string> HuggingFaceDirectory::Fingerprint() const {
  FingerprintBuilder builder(stored_config_);
  for (const ShardedTensor& stored : shards_.tensors()) {
    builder.AddTensor(stored.tensor->name, stored.tensor->type, stored.tensor->shape, stored.file->Bytes(*stored.tensor));
  }
  return builder.Finish();
}

}  // namespace pith
