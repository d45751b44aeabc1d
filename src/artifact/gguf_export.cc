#include "artifact/gguf_export.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "artifact/gguf_export_metadata.h"
#include "artifact/module_names.h"
#include "base/status.h"
#include "quantization/formats/gguf_encoding.h"

namespace pith {
namespace {

// THE TABLE. Narrow types keep the embedding and the head in a wider one, as llama.cpp does.
constexpr GgufMix kMixes[] = {
    {"BF16", "BF16", "", "BF16", 32},       {"F16", "F16", "", "F16", 1},       {"Q8_0", "Q8_0", "", "Q8_0", 7},
    {"Q4_0", "Q4_0", "", "Q6_K", 2},        {"Q4_1", "Q4_1", "", "Q6_K", 3},    {"Q4_K_S", "Q4_K", "", "Q6_K", 14},
    {"Q4_K_M", "Q4_K", "Q6_K", "Q6_K", 15}, {"Q5_K_S", "Q5_K", "", "Q6_K", 16}, {"Q5_K_M", "Q5_K", "Q6_K", "Q6_K", 17},
    {"Q6_K", "Q6_K", "", "Q6_K", 18},
};

constexpr GgufMix kAuto = {"auto", "BF16", "", "BF16", 32};
constexpr int64_t kRowsPerTask = 16;

// One tensor of the file and the Hugging Face tensor it is made of.
struct ExportedTensor {
  std::string gguf, name;  // full names
  const GgufType* type = nullptr;
  Shape shape;
  int64_t interleaved_heads = 0;  // > 0: heads whose rows are stored in pairs
  bool plus_one = false;
  bool packed = false;  // codes as they are
};

bool WantsBetterType(int64_t layer, int64_t num_layers) {
  return layer < num_layers / 8 || layer >= 7 * num_layers / 8 || (layer - num_layers / 8) % 3 == 2;
}

// The export of one model; a member per step.
class Exporter {
 public:
  Exporter(const ArtifactReader& reader, const GgufExportOptions& options, const GgufMix& mix, ThreadPool& pool)
      : reader_(reader), options_(options), mix_(mix), pool_(pool), importance_(options.importance) {}

  absl::Status Plan();
  absl::StatusOr<GgufWriter> CreateWriter(const std::string& output) const;
  absl::Status CollectImportance();
  absl::Status WriteTensors(GgufWriter& writer);
  const ConversionReport& report() const { return report_; }

 private:
  absl::Status AddTensor(const std::string& gguf, const std::string& name, absl::string_view wanted, ExportedTensor tensor);
  absl::Status AddModule(const GgufModule& module, int64_t layer);
  absl::Status ChooseMatrixType(const std::string& module, const TensorInfo& info, absl::string_view wanted, ExportedTensor& tensor) const;
  absl::Status CheckLeftovers() const;
  absl::StatusOr<std::vector<uint8_t>> Encode(const ExportedTensor& tensor, const Weight& weight) const;
  absl::StatusOr<Weight> Read(const ExportedTensor& tensor) const;

  const ArtifactReader& reader_;
  const GgufExportOptions& options_;
  const GgufMix& mix_;
  ThreadPool& pool_;
  const ImportanceMatrix* importance_;  // null: none
  std::optional<ImportanceMatrix> collected_;
  const GgufArchitecture* architecture_ = nullptr;
  GgufSizes sizes_;
  std::vector<ExportedTensor> tensors_;
  absl::flat_hash_set<std::string> used_;  // full Hugging Face names
  std::vector<float> rope_frequencies_;
  ConversionReport report_;
};

// The row of the file that holds row `row` of the Hugging Face tensor.
int64_t FileRow(const ExportedTensor& tensor, int64_t row) {
  return tensor.interleaved_heads > 0 ? InterleavedGgufRow(row, tensor.shape[0] / tensor.interleaved_heads) : row;
}

absl::Status Exporter::ChooseMatrixType(const std::string& module, const TensorInfo& info, absl::string_view wanted,
                                        ExportedTensor& tensor) const {
  const bool automatic = mix_.name == kAuto.name;
  const int64_t in = info.shape[1];
  if (info.quantized.has_value() && automatic) wanted = info.quantized->bits == 4 ? "Q4_0" : "Q8_0";
  ASSIGN_OR_RETURN(const GgufType* type, FindWritableGgufType(wanted));
  tensor.type = &GgufTypeForRows(*type, in);
  if (!info.quantized.has_value()) return absl::OkStatus();
  const QuantizedForm& form = *info.quantized;
  const bool outliers = form.input.has_value() && !form.input->outlier_columns.empty();
  const char* refusal = form.has_min || form.unit_size > 0 ? "expected codes with a scale per group, found minimums or units"
                        : outliers                         ? "expected codes alone, found outlier columns beside them"
                                   : RefuseGgufPacking(*tensor.type, form.bits, form.type, form.group_size, !form.has_zero_point);
  tensor.packed = refusal == nullptr;
  if (tensor.packed || options_.requantize) {
    if (!tensor.packed && automatic) tensor.type = &GgufTypeForRows(**FindWritableGgufType("BF16"), in);
    return absl::OkStatus();
  }
  return NotSupportedError(module, ": ", tensor.type->name, ": ", refusal, "; quantizing it again has to be asked for (--requantize)");
}

absl::Status Exporter::AddTensor(const std::string& gguf, const std::string& name, absl::string_view wanted, ExportedTensor tensor) {
  tensor.gguf = gguf;
  tensor.name = name;
  const auto [module, suffix] = SplitTensorName(name);
  if (suffix == "weight") {
    if (!reader_.HasWeight(module)) return BadFileError(name, ": expected a weight of the architecture, found none");
    ASSIGN_OR_RETURN(const TensorInfo info, reader_.DescribeWeight(module));
    if (info.shape != tensor.shape) return BadFileError(name, ": expected ", ShapeName(tensor.shape), ", found ", ShapeName(info.shape));
    if (tensor.shape.size() == 2) {
      RETURN_IF_ERROR(ChooseMatrixType(std::string(module), info, wanted, tensor));
    }
  }
  if (tensor.type == nullptr) {
    ASSIGN_OR_RETURN(tensor.type, FindWritableGgufType("F32"));
  }
  used_.insert(name);
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status Exporter::AddModule(const GgufModule& module, int64_t layer) {
  const std::string gguf = absl::StrCat("blk.", layer, ".", module.gguf),
                    name = absl::StrCat("model.layers.", layer, ".", module.huggingface);
  const int64_t out = SideLength(module.out, sizes_), in = SideLength(module.in, sizes_);
  const bool vector = module.in == GgufSide::kNone;
  ExportedTensor tensor{.shape = vector ? Shape{out} : Shape{out, in}};
  tensor.interleaved_heads = module.interleaved_heads ? out / sizes_.head_dim : 0;
  tensor.plus_one = vector && architecture_->norm_plus_one;
  const bool better = !mix_.better.empty() && (module.gguf == "attn_v" || module.gguf == "ffn_down") &&
                      WantsBetterType(layer, sizes_.num_layers);
  RETURN_IF_ERROR(AddTensor(gguf + ".weight", name + ".weight", better ? mix_.better : mix_.type, tensor));
  const std::string bias_name = name + ".bias";
  ASSIGN_OR_RETURN(const std::optional<Weight> bias, reader_.ReadTensor(bias_name));
  if (!bias.has_value()) {
    return module.bias == GgufBias::kRequired ? BadFileError(bias_name, ": expected a tensor of the architecture, found none")
                                              : absl::OkStatus();
  }
  if (module.bias == GgufBias::kNever)
    return NotSupportedError(bias_name, ": expected none for a GGUF file of this architecture, found one");
  if (bias->dense->shape != Shape{out}) {
    return BadFileError(bias_name, ": expected ", ShapeName({out}), ", found ", ShapeName(bias->dense->shape));
  }
  return AddTensor(gguf + ".bias", bias_name, "", {.shape = {out}, .interleaved_heads = tensor.interleaved_heads});
}

absl::Status Exporter::Plan() {
  ASSIGN_OR_RETURN(const std::string model_type, GetString(reader_.config(), "model_type"));
  ASSIGN_OR_RETURN(architecture_, FindGgufArchitectureOf(model_type));
  if (!reader_.HasWeight("model.embed_tokens")) return BadFileError("model.embed_tokens.weight: expected a weight, found none");
  ASSIGN_OR_RETURN(const TensorInfo embedding, reader_.DescribeWeight("model.embed_tokens"));
  ASSIGN_OR_RETURN(sizes_, ReadConfigSizes(reader_.config(), embedding.shape[0]));
  const Shape matrix = {sizes_.vocab_size, sizes_.hidden_size};
  RETURN_IF_ERROR(AddTensor("token_embd.weight", "model.embed_tokens.weight", mix_.embedding, {.shape = matrix}));
  for (int64_t layer = 0; layer < sizes_.num_layers; ++layer) {
    for (const GgufModule& module : architecture_->layer) RETURN_IF_ERROR(AddModule(module, layer));
  }
  RETURN_IF_ERROR(
      AddTensor("output_norm.weight", "model.norm.weight", "", {.shape = {sizes_.hidden_size}, .plus_one = architecture_->norm_plus_one}));
  if (reader_.HasWeight("lm_head")) {
    RETURN_IF_ERROR(AddTensor("output.weight", "lm_head.weight", mix_.embedding, {.shape = matrix}));
  }
  ASSIGN_OR_RETURN(rope_frequencies_, MakeRopeFrequencies(reader_.config(), sizes_.head_dim));
  report_.num_tensors = static_cast<int64_t>(tensors_.size()) + (rope_frequencies_.empty() ? 0 : 1);
  return CheckLeftovers();
}

absl::Status Exporter::CheckLeftovers() const {
  for (const std::string& module : reader_.WeightNames()) {
    const std::string name = absl::StrCat(module, ".weight");
    if (!used_.contains(name)) return BadFileError(name, ": expected only tensors of the architecture, found this one");
  }
  for (const std::string& name : reader_.PlainTensorNames()) {
    if (!used_.contains(name) && !IsKvScale(name)) return BadFileError(name, ": expected only tensors of the architecture, found this one");
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufWriter> Exporter::CreateWriter(const std::string& output) const {
  uint32_t file_type = mix_.file_type;
  if (mix_.name == kAuto.name) {  // that of most blocks
    for (const GgufMix& mix : kMixes) {
      const bool found = std::any_of(tensors_.begin(), tensors_.end(),
                                     [&](const ExportedTensor& tensor) { return tensor.packed && tensor.type->name == mix.type; });
      if (found) file_type = mix.file_type;
    }
  }
  ASSIGN_OR_RETURN(const GgufMetadataWriter metadata,
                   MakeExportMetadata(reader_.config(), options_.name, *architecture_, sizes_, options_.tokenizer, file_type));
  std::vector<GgufTensorSpec> specs;
  if (!rope_frequencies_.empty()) {
    ASSIGN_OR_RETURN(const GgufType* f32, FindWritableGgufType("F32"));
    specs.push_back({"rope_freqs.weight", f32, {static_cast<int64_t>(rope_frequencies_.size())}});
  }
  for (const ExportedTensor& tensor : tensors_) specs.push_back({tensor.gguf, tensor.type, tensor.shape});
  return GgufWriter::Create(output, metadata, std::move(specs));
}

absl::StatusOr<Weight> Exporter::Read(const ExportedTensor& tensor) const {
  const auto [module, suffix] = SplitTensorName(tensor.name);
  if (suffix == "weight") return reader_.ReadWeight(module);
  ASSIGN_OR_RETURN(std::optional<Weight> weight, reader_.ReadTensor(tensor.name));
  if (!weight.has_value()) return BugError(tensor.name, ": expected a tensor that was there, found none");
  return *std::move(weight);
}

absl::StatusOr<std::vector<uint8_t>> Exporter::Encode(const ExportedTensor& tensor, const Weight& weight) const {
  // A vector without interleaving is one row; rows are what is moved about.
  const bool one_row = tensor.shape.size() == 1 && tensor.interleaved_heads == 0;
  const int64_t rows = one_row ? 1 : tensor.shape[0], in = one_row ? tensor.shape[0] : tensor.shape.size() == 2 ? tensor.shape[1] : 1;
  ASSIGN_OR_RETURN(const int64_t row_bytes, GgufRowBytes(*tensor.type, in));
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * row_bytes));
  if (tensor.packed) {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> packed, PackGgufBlocks(*tensor.type, *weight.quantized));
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(bytes.data() + FileRow(tensor, row) * row_bytes, packed.data() + row * row_bytes, static_cast<size_t>(row_bytes));
    }
    return bytes;
  }
  std::vector<float> importance;
  if (importance_ != nullptr && !tensor.type->is_float()) {
    ASSIGN_OR_RETURN(importance, importance_->Importance(tensor.gguf, in));
  }
  std::mutex mutex;
  absl::Status failure;
  pool_.ParallelForDynamic(rows, kRowsPerTask, [&](int64_t begin, int64_t end, int) {
    std::vector<float> values(static_cast<size_t>(in));
    for (int64_t row = begin; row < end; ++row) {
      absl::Status status;
      if (weight.quantized.has_value()) {
        weight.quantized->DequantizeRow(row, absl::MakeSpan(values));
      } else {
        const TensorView& view = *weight.dense;
        status = ConvertToFloat(TensorView{view.dtype, {in}, view.data + row * in * ByteSize(view.dtype)}, absl::MakeSpan(values));
      }
      if (tensor.plus_one) {
        for (float& value : values) value += 1.0f;
      }
      uint8_t* out = bytes.data() + FileRow(tensor, row) * row_bytes;
      if (status.ok()) status = EncodeGgufRow(*tensor.type, values, importance, absl::MakeSpan(out, static_cast<size_t>(row_bytes)));
      if (status.ok()) continue;
      const std::lock_guard lock(mutex);
      failure.Update(Annotate(status, absl::StrCat(tensor.name, " row ", row)));
    }
  });
  if (!failure.ok()) return failure;
  return bytes;
}

absl::Status Exporter::CollectImportance() {
  if (importance_ != nullptr || !options_.collect_importance) return absl::OkStatus();
  ASSIGN_OR_RETURN(collected_, options_.collect_importance());
  importance_ = &*collected_;
  return absl::OkStatus();
}

absl::Status Exporter::WriteTensors(GgufWriter& writer) {
  if (!rope_frequencies_.empty()) {
    RETURN_IF_ERROR(writer.Write("rope_freqs.weight",
                                 {reinterpret_cast<const uint8_t*>(rope_frequencies_.data()), rope_frequencies_.size() * sizeof(float)}));
  }
  int64_t done = 0;
  for (const ExportedTensor& tensor : tensors_) {
    ASSIGN_OR_RETURN(const Weight weight, Read(tensor));
    absl::StatusOr<std::vector<uint8_t>> bytes = Encode(tensor, weight);
    if (!bytes.ok()) return Annotate(bytes.status(), tensor.name);
    RETURN_IF_ERROR(writer.Write(tensor.gguf, *bytes));
    report_.input_bytes += weight.stored_bytes;
    if (options_.progress) RETURN_IF_ERROR(options_.progress(++done, static_cast<int64_t>(tensors_.size())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const GgufMix> GgufMixes() { return kMixes; }

absl::StatusOr<const GgufMix*> FindGgufMix(absl::string_view name) {
  if (name == kAuto.name) return &kAuto;
  for (const GgufMix& mix : kMixes) {
    if (absl::EqualsIgnoreCase(mix.name, name)) return &mix;
  }
  const auto append_name = [](std::string* out, const GgufMix& mix) { absl::StrAppend(out, mix.name); };
  return NotSupportedError("GGUF type \"", Printable(name, 40), "\": not supported; known are auto ",
                           absl::StrJoin(kMixes, " ", append_name));
}

absl::StatusOr<ConversionReport> ExportGguf(const ArtifactReader& reader, const std::string& output, const GgufExportOptions& options,
                                            ThreadPool& pool) {
  ASSIGN_OR_RETURN(const GgufMix* mix, FindGgufMix(options.mix));
  Exporter exporter(reader, options, *mix, pool);
  RETURN_IF_ERROR(Annotate(exporter.Plan(), reader.path()));
  ASSIGN_OR_RETURN(GgufWriter writer, exporter.CreateWriter(output));
  RETURN_IF_ERROR(exporter.CollectImportance());
  RETURN_IF_ERROR(exporter.WriteTensors(writer));
  RETURN_IF_ERROR(writer.Commit());
  ConversionReport report = exporter.report();
  report.output_bytes = static_cast<int64_t>(writer.file_size());
  return report;
}

}  // namespace pith
