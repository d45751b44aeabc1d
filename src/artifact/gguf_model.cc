#include "artifact/gguf_model.h"

#include <algorithm>
#include <cstring>

#include "artifact/fingerprint.h"
#include "artifact/gguf_config.h"
#include "artifact/gguf_tokenizer.h"
#include "artifact/module_names.h"
#include "base/status.h"

namespace pith {
namespace {

// Rows of `row_size` elements put back into Hugging Face's order.
template <typename T> std::vector<T> RestoreRows(const std::vector<T>& rows, int64_t num_rows, int64_t head_dim) {
  std::vector<T> restored(rows.size());
  if (rows.empty()) return restored;
  const int64_t row_size = static_cast<int64_t>(rows.size()) / num_rows;
  for (int64_t row = 0; row < num_rows; ++row) {
    std::copy_n(rows.begin() + InterleavedGgufRow(row, head_dim) * row_size, row_size, restored.begin() + row * row_size);
  }
  return restored;
}

std::string LayerName(absl::string_view prefix, int64_t layer, absl::string_view module) {
  return absl::StrCat(prefix, layer, ".", module);
}

absl::Status CheckNotSplit(const GgufMetadata& metadata) {
  ASSIGN_OR_RETURN(const int64_t count, metadata.GetInt("split.count", 0, 65535, 0));
  if (count > 1) return NotSupportedError("split.count: expected one file, found a model split into ", count, " (merge it first)");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArtifactReader>> GgufModel::Open(const std::string& path) {
  ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(path));
  absl::StatusOr<std::unique_ptr<GgufModel>> model = Make(std::move(file));
  if (!model.ok()) return Annotate(model.status(), Printable(path, 500));
  (*model)->path_ = path;
  return *std::move(model);
}

absl::StatusOr<std::unique_ptr<GgufModel>> GgufModel::Make(GgufFile file) {
  std::unique_ptr<GgufModel> model(new GgufModel(std::move(file)));
  const GgufMetadata& metadata = model->file_.metadata();
  RETURN_IF_ERROR(CheckNotSplit(metadata));
  ASSIGN_OR_RETURN(const std::string name, metadata.GetString("general.architecture"));
  ASSIGN_OR_RETURN(const GgufArchitecture* architecture, FindGgufArchitecture(name));
  ASSIGN_OR_RETURN(const GgufSizes sizes, ReadGgufSizes(model->file_, *architecture));
  RETURN_IF_ERROR(model->MapTensors(*architecture, sizes));
  ASSIGN_OR_RETURN(model->tokenizer_files_, ReadGgufTokenizer(metadata, sizes.vocab_size));
  ASSIGN_OR_RETURN(model->config_, MakeGgufConfig(model->file_, *architecture, sizes, model->tokenizer_files_));
  ASSIGN_OR_RETURN(model->generation_config_, MakeGgufGenerationConfig(metadata, model->tokenizer_files_));
  model->format_ = "gguf";
  return model;
}

absl::Status GgufModel::MapTensors(const GgufArchitecture& architecture, const GgufSizes& sizes) {
  const Shape matrix = {sizes.vocab_size, sizes.hidden_size};
  RETURN_IF_ERROR(AddEntry("token_embd.weight", "model.embed_tokens.weight", matrix, {}));
  RETURN_IF_ERROR(AddEntry("output_norm.weight", "model.norm.weight", {sizes.hidden_size}, {.minus_one = architecture.norm_plus_one}));
  if (file_.Find("output.weight") != nullptr) RETURN_IF_ERROR(AddEntry("output.weight", "lm_head.weight", matrix, {}));
  for (int64_t layer = 0; layer < sizes.num_layers; ++layer) {
    for (const GgufModule& module : architecture.layer) RETURN_IF_ERROR(MapModule(architecture, sizes, layer, module));
  }
  for (const auto& [name, entry] : entries_) {
    const auto [module, suffix] = SplitTensorName(name);
    if (suffix == "weight") {
      weight_names_.emplace_back(module);
    } else {
      bias_names_.push_back(name);
    }
  }
  std::sort(weight_names_.begin(), weight_names_.end(), ModuleNameLess);
  std::sort(bias_names_.begin(), bias_names_.end(), ModuleNameLess);
  return CheckLeftovers();
}

absl::Status GgufModel::MapModule(const GgufArchitecture& architecture, const GgufSizes& sizes, int64_t layer, const GgufModule& module) {
  const std::string gguf_name = LayerName("blk.", layer, module.gguf);
  const std::string name = LayerName("model.layers.", layer, module.huggingface);
  const int64_t out = SideLength(module.out, sizes), in = SideLength(module.in, sizes);
  const bool vector = module.in == GgufSide::kNone;
  Entry entry;
  entry.interleaved_heads = module.interleaved_heads ? out / sizes.head_dim : 0;
  entry.minus_one = vector && architecture.norm_plus_one;
  RETURN_IF_ERROR(AddEntry(gguf_name + ".weight", name + ".weight", vector ? Shape{out} : Shape{out, in}, entry));
  if (module.bias == GgufBias::kNever) return absl::OkStatus();
  if (module.bias == GgufBias::kOptional && file_.Find(gguf_name + ".bias") == nullptr) return absl::OkStatus();
  return AddEntry(gguf_name + ".bias", name + ".bias", {out}, entry);
}

absl::Status GgufModel::AddEntry(const std::string& gguf_name, const std::string& name, const Shape& shape, Entry entry) {
  entry.tensor = file_.Find(gguf_name);
  if (entry.tensor == nullptr) return BadFileError(gguf_name, ": expected a tensor ", ShapeName(shape), ", found none");
  if (entry.tensor->shape != shape)
    return BadFileError(gguf_name, ": expected ", ShapeName(shape), ", found ", ShapeName(entry.tensor->shape));
  if (shape.size() == 1 && !entry.tensor->type->is_float()) {
    return BadFileError(gguf_name, ": expected a vector of F32, F16 or BF16, found ", entry.tensor->type->name);
  }
  entries_.emplace(name, entry);
  mapped_.emplace(gguf_name, name);
  return absl::OkStatus();
}

absl::Status GgufModel::CheckLeftovers() const {
  std::string first;
  int leftovers = 0;
  for (const GgufTensor& tensor : file_.tensors()) {
    // rope_freqs.weight becomes rope_scaling of the config.
    if (mapped_.contains(tensor.name) || tensor.name == "rope_freqs.weight") continue;
    if (leftovers++ == 0) first = tensor.name;
  }
  if (leftovers == 0) return absl::OkStatus();
  return BadFileError("tensor \"", Printable(first), "\": expected only tensors of the architecture, found this one",
                      leftovers == 1 ? "" : absl::StrCat(" and ", leftovers - 1, " more"));
}

std::vector<TensorInfo> GgufModel::Tensors() const {
  std::vector<TensorInfo> infos;
  const std::string file = BaseName(file_.path());
  for (const GgufTensor& tensor : file_.tensors()) {
    infos.push_back({tensor.name, std::string(tensor.type->name), tensor.shape, static_cast<int64_t>(tensor.size), file});
  }
  return infos;
}

std::vector<WeightFile> GgufModel::WeightFiles() const { return {{BaseName(file_.path()), file_.identity()}}; }

bool GgufModel::HasWeight(absl::string_view name) const { return entries_.contains(absl::StrCat(name, ".weight")); }

absl::StatusOr<TensorInfo> GgufModel::DescribeWeight(absl::string_view name) const {
  const auto it = entries_.find(absl::StrCat(name, ".weight"));
  if (it == entries_.end()) return BadFileError(Printable(path_, 500), ": ", Printable(name), ": expected a weight, found none");
  const Entry& entry = it->second;
  const absl::string_view type = entry.minus_one ? DTypeName(DType::kF32) : entry.tensor->type->name;
  TensorInfo info{std::string(name), std::string(type), entry.tensor->shape, static_cast<int64_t>(entry.tensor->size),
                  BaseName(file_.path())};
  const GgufType& gguf = *entry.tensor->type;
  if (gguf.is_float()) return info;
  info.quantized = QuantizedForm{.bits = gguf.bits,
                                 .group_size = gguf.group_size,
                                 .has_min = gguf.has_min,
                                 .scale = gguf.dtype,
                                 .unit_size = gguf.scale_unit_offset >= 0 ? gguf.block_elements : 0};
  return info;
}

absl::StatusOr<Weight> GgufModel::ReadDense(const Entry& entry) const {
  const GgufTensor& tensor = *entry.tensor;
  Weight weight;
  TensorView view{tensor.type->dtype, tensor.shape, file_.Bytes(tensor).data()};
  if (entry.minus_one) {
    auto restored = std::make_shared<Tensor>(DType::kF32, tensor.shape);
    RETURN_IF_ERROR(ConvertToFloat(view, restored->as<float>()));
    for (float& value : restored->as<float>()) value -= 1.0f;
    weight.storage = std::move(restored);
  } else if (entry.interleaved_heads > 0) {
    auto restored = std::make_shared<Tensor>(view.dtype, tensor.shape);
    const int64_t rows = tensor.shape[0], row_bytes = view.num_bytes() / rows, head_dim = rows / entry.interleaved_heads;
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(restored->data() + row * row_bytes, view.data + InterleavedGgufRow(row, head_dim) * row_bytes,
                  static_cast<size_t>(row_bytes));
    }
    weight.storage = std::move(restored);
  } else if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(ByteSize(view.dtype)) != 0) {  // general.alignment may be 1
    auto aligned = std::make_shared<Tensor>(view.dtype, tensor.shape);
    std::memcpy(aligned->data(), view.data, tensor.size);
    weight.storage = std::move(aligned);
  }
  weight.dense = weight.storage != nullptr ? weight.storage->view() : view;
  return weight;
}

absl::StatusOr<Weight> GgufModel::ReadEntry(absl::string_view name, const Entry& entry) const {
  const GgufTensor& tensor = *entry.tensor;
  Weight weight;
  if (tensor.type->is_float()) {
    ASSIGN_OR_RETURN(weight, ReadDense(entry));
  } else {
    absl::StatusOr<QuantizedTensor> decoded = DecodeGgufBlocks(*tensor.type, file_.Bytes(tensor), tensor.shape[0], tensor.shape[1]);
    if (!decoded.ok()) return Annotate(decoded.status(), absl::StrCat(Printable(path_, 500), ": ", tensor.name));
    if (entry.interleaved_heads > 0) {
      const int64_t head_dim = decoded->out / entry.interleaved_heads;
      decoded->code = RestoreRows(decoded->code, decoded->out, head_dim);
      decoded->scale = RestoreRows(decoded->scale, decoded->out, head_dim);
      decoded->zero_point = RestoreRows(decoded->zero_point, decoded->out, head_dim);
      decoded->min = RestoreRows(decoded->min, decoded->out, head_dim);
      decoded->scale_unit = RestoreRows(decoded->scale_unit, decoded->out, head_dim);
      decoded->min_unit = RestoreRows(decoded->min_unit, decoded->out, head_dim);
    }
    weight.quantized = *std::move(decoded);
  }
  weight.name = std::string(name);
  weight.stored_bytes = static_cast<int64_t>(tensor.size);
  return weight;
}

absl::StatusOr<Weight> GgufModel::ReadWeight(absl::string_view name) const {
  const auto it = entries_.find(absl::StrCat(name, ".weight"));
  if (it == entries_.end()) return BadFileError(Printable(path_, 500), ": ", Printable(name), ": expected a weight, found none");
  return ReadEntry(name, it->second);
}

absl::StatusOr<std::optional<Weight>> GgufModel::ReadTensor(absl::string_view name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return std::optional<Weight>();
  if (!it->second.tensor->type->is_float()) {
    return BadFileError(Printable(path_, 500), ": ", Printable(name), ": expected a plain tensor, found ", it->second.tensor->type->name);
  }
  ASSIGN_OR_RETURN(Weight weight, ReadEntry(name, it->second));
  return std::optional<Weight>(std::move(weight));
}

absl::StatusOr<std::string> GgufModel::Fingerprint() const {
  std::string configuration;
  const auto append_number = [&](uint64_t value) { configuration.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (const auto& [key, value] : file_.metadata().values()) {
    append_number(key.size());
    absl::StrAppend(&configuration, key);
    append_number(static_cast<uint64_t>(value.type));
    append_number(value.type == GgufValueType::kArray ? static_cast<uint64_t>(value.element_type) : 0);
    append_number(value.raw.size());
    absl::StrAppend(&configuration, value.raw);
  }
  FingerprintBuilder builder(configuration);
  std::vector<const GgufTensor*> sorted;
  for (const GgufTensor& tensor : file_.tensors()) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(), [](const GgufTensor* a, const GgufTensor* b) { return a->name < b->name; });
  for (const GgufTensor* tensor : sorted) builder.AddTensor(tensor->name, tensor->type->name, tensor->shape, file_.Bytes(*tensor));
  return builder.Finish();
}

}  // namespace pith
