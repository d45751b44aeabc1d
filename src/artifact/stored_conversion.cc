#include "artifact/stored_conversion.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "artifact/artifact_writer.h"
#include "artifact/module_names.h"
#include "base/file.h"
#include "base/status.h"
#include "quantization/formats/format_table.h"
#include "quantization/quant_method.h"

namespace pith {
namespace {

// THE TABLE.
constexpr StoredTarget kTargets[] = {
    {"compressed-tensors", "", "every scheme"},
    {"gptq", "gptq", "GPTQ version 1: symmetric weights of 2, 3, 4 or 8 bits per group or channel"},
    {"gptq_v2", "gptq_v2", "GPTQ version 2: the same, with or without zero points"},
    {"awq", "awq", "AWQ GEMM: 4 bits per group or channel"},
    {"bnb-int8", "bitsandbytes", "bitsandbytes LLM.int8: 8 bits per channel"},
    {"fp8-block", "fp8-block", "fp8 per block"},
};

constexpr absl::string_view kInputScale = "input_scale";

// A weight that stays quantized.
struct QuantizedModule {
  std::string name;
  MatrixShape shape;
  std::string format;  // of the format table
  QuantizationArgs args;
  std::optional<InputQuantization> input;
};

std::optional<QuantizationArgs> InputArgs(const QuantizedModule& module) {
  return module.input.has_value() ? std::optional<QuantizationArgs>(module.input->args) : std::nullopt;
}

bool SameScheme(const QuantizedModule& a, const QuantizedModule& b) {
  return a.format == b.format && a.args == b.args && InputArgs(a) == InputArgs(b);
}

absl::StatusOr<QuantizationArgs> ArgsOf(const TensorInfo& info) {
  const QuantizedForm& form = *info.quantized;
  if (form.args.has_value()) return *form.args;
  if (form.has_min || form.unit_size > 0) {
    return NotSupportedError(info.name, ": expected codes with a scale and a zero point per group, found ",
                             form.has_min ? "minimums" : "units", " (", info.type, "); convert to bf16 and quantize that");
  }
  QuantizationArgs args{.num_bits = form.bits, .type = form.type, .symmetric = !form.has_zero_point};
  args.strategy = form.group_size < info.shape[1] ? QuantizationStrategy::kGroup : QuantizationStrategy::kChannel;
  if (args.strategy == QuantizationStrategy::kGroup) args.group_size = static_cast<int>(form.group_size);
  return args;
}

// The format of compressed-tensors that its readers expect for such a weight.
absl::string_view CompressedTensorsFormat(const QuantizationArgs& args, bool quantized_input) {
  if (args.type == QuantizationType::kFloat) return quantized_input ? "float-quantized" : "naive-quantized";
  return quantized_input ? "int-quantized" : "pack-quantized";
}

// LLM.int8 quantizes activations per token as W8A8 does, and loaders of fp8 blocks those of FP8_BLOCK; the others hold weights alone.
bool ImpliesInput(absl::string_view format, const QuantizationArgs& input, const QuantizationArgs& weights) {
  if (!input.dynamic) return false;
  if (format == "bitsandbytes") return input.type == QuantizationType::kInt && input.strategy == QuantizationStrategy::kToken;
  return format == "fp8-block" && input.strategy == QuantizationStrategy::kGroup && input.group_size == weights.block_cols;
}

// The conversion of one model; a member per step.
class StoredConverter {
 public:
  StoredConverter(const ArtifactReader& reader, const StoredTarget& target, const ConversionOptions& options, ArtifactWriter& writer)
      : reader_(reader), target_(target), options_(options), writer_(writer) {}

  absl::Status Plan();
  absl::Status DeclareTensors();
  absl::Status WriteTensors();
  absl::Status WriteFiles();
  const ConversionReport& report() const { return report_; }

 private:
  absl::Status PlanQuantized(const TensorInfo& info);
  absl::Status CheckOneScheme() const;
  absl::StatusOr<QuantizationConfig> MakeConfig() const;
  absl::StatusOr<QuantizationConfig> MakeCompressedTensorsConfig() const;
  absl::Status WriteQuantized(const QuantizedModule& module, Weight weight);
  absl::Status WriteDense(const std::string& tensor_name, const Weight& weight);
  absl::Status Advance(const Weight& weight);
  // Dense tensors of a GGUF file have been widened on their way there.
  DType DenseType(DType stored) const { return reader_.format() == "gguf" ? DType::kBF16 : stored; }

  const ArtifactReader& reader_;
  const StoredTarget& target_;
  const ConversionOptions& options_;
  ArtifactWriter& writer_;
  std::vector<QuantizedModule> quantized_;
  std::vector<std::string> dense_;  // modules
  std::vector<std::string> plain_;  // tensors
  ConversionReport report_;
  int64_t done_ = 0;
};

absl::Status StoredConverter::PlanQuantized(const TensorInfo& info) {
  QuantizedModule module{.name = info.name, .shape = {info.shape[0], info.shape[1]}, .input = info.quantized->input};
  ASSIGN_OR_RETURN(module.args, ArgsOf(info));
  const bool compressed_tensors = target_.weight_format.empty();
  if (module.input.has_value() && module.input->args.outlier_threshold > 0) {
    if (!module.input->outlier_columns.empty() && target_.weight_format != "bitsandbytes") {
      return NotSupportedError(info.name, ": expected no outlier columns for ", target_.name, ", found ",
                               module.input->outlier_columns.size(), "; bnb-int8 leaves them out and bf16 keeps them");
    }
    module.input.reset();  // LLM.int8() is how loaders of bitsandbytes run the weights; other formats have no word for it
  }
  if (compressed_tensors) {
    module.format = std::string(CompressedTensorsFormat(module.args, module.input.has_value()));
  } else {
    module.format = std::string(target_.weight_format);
    if (module.input.has_value() && !ImpliesInput(module.format, module.input->args, module.args)) {
      return NotSupportedError(info.name, ": expected unquantized activations for ", target_.name, ", found ",
                               DescribeInput(module.input->args));
    }
    module.input.reset();
    if (ModuleClassName(info.name) != "Linear") {
      return NotSupportedError(info.name, ": expected no quantized ", ModuleClassName(info.name), " for ", target_.name, ", found one");
    }
    if (info.name == "lm_head" && target_.weight_format != "gptq" && target_.weight_format != "gptq_v2") {
      return NotSupportedError("lm_head: expected an unquantized head for ", target_.name, ", found a quantized one");
    }
    if (module.format == "awq") module.args.symmetric = false;  // the middle becomes the zero point
  }
  const auto tensors = PlanWeight(module.format, module.args, module.shape, info.quantized->scale);
  if (!tensors.ok()) return NotSupportedError(info.name, ": ", tensors.status().message());
  quantized_.push_back(std::move(module));
  return absl::OkStatus();
}

absl::Status StoredConverter::Plan() {
  for (const std::string& name : reader_.WeightNames()) {
    ASSIGN_OR_RETURN(const TensorInfo info, reader_.DescribeWeight(name));
    if (info.quantized.has_value()) {
      RETURN_IF_ERROR(PlanQuantized(info));
    } else {
      dense_.push_back(name);
    }
  }
  for (const std::string& name : reader_.PlainTensorNames()) {
    if (!IsKvScale(name) || target_.weight_format.empty()) plain_.push_back(name);
  }
  if (quantized_.empty()) {
    return NotSupportedError(Printable(reader_.path(), 500), ": expected quantized weights for ", target_.name,
                             ", found a dense model; quantize it first");
  }
  return CheckOneScheme();
}

absl::Status StoredConverter::CheckOneScheme() const {
  if (target_.weight_format.empty()) return absl::OkStatus();
  for (const QuantizedModule& module : quantized_) {
    if (SameScheme(module, quantized_[0])) continue;
    return NotSupportedError(module.name, ": expected the bits, groups and symmetry of ", quantized_[0].name, ", since ", target_.name,
                             " has one scheme for all, found others");
  }
  return absl::OkStatus();
}

absl::StatusOr<QuantizationConfig> StoredConverter::MakeCompressedTensorsConfig() const {
  QuantizationConfig config;
  std::vector<const QuantizedModule*> firsts;
  for (const QuantizedModule& module : quantized_) {
    size_t g = 0;
    while (g < firsts.size() && !SameScheme(*firsts[g], module)) ++g;
    if (g == firsts.size()) {
      firsts.push_back(&module);
      QuantizationScheme scheme{std::string(PresetName(module.args, InputArgs(module))), module.format, module.args, InputArgs(module)};
      config.groups.push_back({absl::StrCat("group_", g), {}, std::move(scheme)});
    }
    config.groups[g].targets.push_back(ModulePattern::Literal(module.name));
  }
  // One scheme for all: as artifacts are usually written.
  const bool linear = std::all_of(quantized_.begin(), quantized_.end(),
                                  [](const QuantizedModule& module) { return ModuleClassName(module.name) == "Linear"; });
  if (config.groups.size() == 1 && linear) config.groups[0].targets = {ModulePattern::Literal("Linear")};
  config.format = config.groups[0].scheme.format;
  for (const QuantizationGroup& group : config.groups) {
    if (group.scheme.format != config.format) config.format = "mixed-precision";
  }
  if (const Json* source = FindMember(reader_.config(), "quantization_config"); source != nullptr) {
    ASSIGN_OR_RETURN(const QuantizationConfig parsed, ParseQuantizationConfig(*source));
    config.kv_cache_scheme = parsed.kv_cache_scheme;
  }
  return config;
}

absl::StatusOr<QuantizationConfig> StoredConverter::MakeConfig() const {
  QuantizationConfig config;
  absl::StatusOr<ModulePattern> (*skip)(absl::string_view) = nullptr;
  if (target_.weight_format.empty()) {
    ASSIGN_OR_RETURN(config, MakeCompressedTensorsConfig());
  } else {
    ASSIGN_OR_RETURN(config, MakeMethodConfig(target_.weight_format, quantized_[0].args, {}));
    ASSIGN_OR_RETURN(const WeightFormat* row, FindWeightFormat(target_.weight_format));
    skip = row->method->skip;
  }
  // A tied head is a Linear too.
  std::vector<std::string> kept = {"lm_head"};
  for (const std::string& name : dense_) {
    if (name != "lm_head" && ModuleClassName(name) == "Linear") kept.push_back(name);
  }
  const bool head = std::any_of(quantized_.begin(), quantized_.end(), [](const auto& module) { return module.name == "lm_head"; });
  if (head) kept.erase(kept.begin());
  for (const std::string& name : kept) {
    if (skip == nullptr) {
      config.ignore.push_back(ModulePattern::Literal(name));
    } else {
      ASSIGN_OR_RETURN(ModulePattern pattern, skip(name));
      config.ignore.push_back(std::move(pattern));
    }
  }
  return config;
}

absl::Status StoredConverter::DeclareTensors() {
  std::vector<TensorSpec> specs;
  for (const QuantizedModule& module : quantized_) {
    const absl::StatusOr<TensorInfo> info = reader_.DescribeWeight(module.name);
    RETURN_IF_ERROR(info.status());
    ASSIGN_OR_RETURN(const auto stored, PlanWeight(module.format, module.args, module.shape, info->quantized->scale));
    for (const StoredTensorSpec& spec : stored) specs.push_back({absl::StrCat(module.name, ".", spec.suffix), spec.dtype, spec.shape});
    if (module.input.has_value() && !module.input->args.dynamic) {
      specs.push_back({absl::StrCat(module.name, ".", kInputScale), DType::kF32, {1}});
    }
  }
  for (const std::string& name : dense_) {
    ASSIGN_OR_RETURN(const Weight weight, reader_.ReadWeight(name));
    specs.push_back({absl::StrCat(name, ".weight"), DenseType(weight.dense->dtype), weight.dense->shape});
  }
  for (const std::string& name : plain_) {
    ASSIGN_OR_RETURN(const std::optional<Weight> tensor, reader_.ReadTensor(name));
    if (!tensor.has_value()) return BugError(name, ": expected a tensor that was listed, found none");
    specs.push_back({name, DenseType(tensor->dense->dtype), tensor->dense->shape});
  }
  report_.num_tensors = static_cast<int64_t>(specs.size());
  return writer_.DeclareTensors(std::move(specs));
}

absl::Status StoredConverter::WriteDense(const std::string& tensor_name, const Weight& weight) {
  if (DenseType(weight.dense->dtype) != weight.dense->dtype) return WriteAsBf16(tensor_name, weight, writer_);
  return writer_.WriteTensor(tensor_name, weight.dense->bytes());
}

absl::Status StoredConverter::WriteQuantized(const QuantizedModule& module, Weight weight) {
  QuantizedTensor& tensor = *weight.quantized;
  tensor.outlier_column.clear();  // codes stand in for them
  tensor.outlier_weight.clear();
  if (!module.args.symmetric && tensor.zero_point.empty()) {
    tensor.zero_point.assign(tensor.scale.size(), static_cast<uint8_t>(tensor.default_zero_point()));
  }
  absl::StatusOr<std::vector<StoredTensor>> stored = EncodeWeight(module.format, tensor, module.args);
  if (!stored.ok()) return Annotate(stored.status(), module.name);
  for (const StoredTensor& part : *stored) {
    RETURN_IF_ERROR(writer_.WriteTensor(absl::StrCat(module.name, ".", part.suffix), part.tensor.view().bytes()));
  }
  if (!module.input.has_value() || module.input->args.dynamic) return absl::OkStatus();
  const float scale = module.input->static_scale;
  return writer_.WriteTensor(absl::StrCat(module.name, ".", kInputScale), {reinterpret_cast<const uint8_t*>(&scale), sizeof(scale)});
}

absl::Status StoredConverter::Advance(const Weight& weight) {
  report_.input_bytes += weight.stored_bytes;
  const int64_t total = static_cast<int64_t>(quantized_.size() + dense_.size() + plain_.size());
  ++done_;
  return options_.progress ? options_.progress(done_, total) : absl::OkStatus();
}

absl::Status StoredConverter::WriteTensors() {
  for (const QuantizedModule& module : quantized_) {
    ASSIGN_OR_RETURN(Weight weight, reader_.ReadWeight(module.name));
    RETURN_IF_ERROR(Advance(weight));
    RETURN_IF_ERROR(WriteQuantized(module, std::move(weight)));
  }
  for (const std::string& name : dense_) {
    ASSIGN_OR_RETURN(const Weight weight, reader_.ReadWeight(name));
    RETURN_IF_ERROR(WriteDense(absl::StrCat(name, ".weight"), weight));
    RETURN_IF_ERROR(Advance(weight));
  }
  for (const std::string& name : plain_) {
    ASSIGN_OR_RETURN(const std::optional<Weight> tensor, reader_.ReadTensor(name));
    RETURN_IF_ERROR(WriteDense(name, *tensor));
    RETURN_IF_ERROR(Advance(*tensor));
  }
  return absl::OkStatus();
}

absl::Status StoredConverter::WriteFiles() {
  ASSIGN_OR_RETURN(const QuantizationConfig quantization, MakeConfig());
  Json config = reader_.config();
  config["quantization_config"] = ToJson(quantization);
  return WriteConversionFiles(reader_, config, options_, writer_);
}

}  // namespace

absl::Span<const StoredTarget> StoredTargets() { return kTargets; }

absl::StatusOr<const StoredTarget*> FindStoredTarget(absl::string_view name) {
  for (const StoredTarget& target : kTargets) {
    if (target.name == name) return &target;
  }
  const auto append_name = [](std::string* out, const StoredTarget& target) { absl::StrAppend(out, target.name); };
  return NotSupportedError("format \"", Printable(name, 60), "\": not supported; known are ", absl::StrJoin(kTargets, " ", append_name));
}

absl::StatusOr<ConversionReport> ConvertStored(const ArtifactReader& reader, const StoredTarget& target, const std::string& output,
                                               const ConversionOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactWriter> writer,
                   ArtifactWriter::Create(output, {.source_path = reader.path(), .max_shard_bytes = options.max_shard_bytes}));
  StoredConverter converter(reader, target, options, *writer);
  RETURN_IF_ERROR(converter.Plan());
  RETURN_IF_ERROR(converter.DeclareTensors());
  RETURN_IF_ERROR(converter.WriteTensors());
  RETURN_IF_ERROR(converter.WriteFiles());
  Manifest manifest;
  manifest.pith_version = options.pith_version;
  ASSIGN_OR_RETURN(manifest.source_fingerprint, reader.Fingerprint());
  manifest.recipe = {{"method", "convert"}, {"format", std::string(target.name)}};
  RETURN_IF_ERROR(writer->Commit(std::move(manifest)).status());
  ConversionReport report = converter.report();
  report.output_bytes = static_cast<int64_t>(writer->bytes_written());
  return report;
}

}  // namespace pith
