#include "artifact/conversion.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 20;

// Rounds to bf16 and writes the elements of one tensor as they come.
class Bf16Stream {
 public:
  Bf16Stream(ArtifactWriter& writer, std::string name) : writer_(writer), name_(std::move(name)) {}

  absl::Status Append(absl::Span<const float> values) {
    const size_t begin = buffer_.size();
    buffer_.resize(begin + values.size());
    bool finite = true;
    for (size_t i = 0; i < values.size(); ++i) {
      buffer_[begin + i] = ToBfloat16(values[i]);
      finite &= IsFinite(buffer_[begin + i]);
    }
    if (!finite) return NotFinite(values, begin);
    return static_cast<int64_t>(buffer_.size()) >= kChunkElements ? Flush() : absl::OkStatus();
  }

  absl::Status Flush() {
    RETURN_IF_ERROR(writer_.WriteTensorPart(name_, static_cast<uint64_t>(element_) * sizeof(bfloat16),
                                            {reinterpret_cast<const uint8_t*>(buffer_.data()), buffer_.size() * sizeof(bfloat16)}));
    element_ += static_cast<int64_t>(buffer_.size());
    buffer_.clear();
    return absl::OkStatus();
  }

 private:
  static bool IsFinite(bfloat16 x) { return (x.bits & 0x7F80) != 0x7F80; }

  // Names the first of `values`, whose roundings begin at buffer_[begin].
  absl::Status NotFinite(absl::Span<const float> values, size_t begin) const {
    size_t i = 0;
    while (IsFinite(buffer_[begin + i])) ++i;
    return BadFileError(name_, "[", element_ + static_cast<int64_t>(begin + i),
                        "]: expected a finite number within the range of bf16, found ", values[i]);
  }

  ArtifactWriter& writer_;
  std::string name_;
  std::vector<bfloat16> buffer_;
  int64_t element_ = 0;  // index of the first element in the buffer
};

absl::Status WriteQuantized(const QuantizedTensor& weight, Bf16Stream& stream) {
  std::vector<float> row(static_cast<size_t>(weight.in));
  for (int64_t o = 0; o < weight.out; ++o) {
    weight.DequantizeRow(o, absl::MakeSpan(row));
    RETURN_IF_ERROR(stream.Append(row));
  }
  return stream.Flush();
}

absl::Status WriteDense(const TensorView& view, Bf16Stream& stream) {
  std::vector<float> values;
  const int64_t count = view.num_elements(), element_bytes = ByteSize(view.dtype);
  for (int64_t begin = 0; begin < count; begin += kChunkElements) {
    const int64_t size = std::min(kChunkElements, count - begin);
    values.resize(static_cast<size_t>(size));
    RETURN_IF_ERROR(ConvertToFloat(TensorView{view.dtype, {size}, view.data + begin * element_bytes}, absl::MakeSpan(values)));
    RETURN_IF_ERROR(stream.Append(values));
  }
  return stream.Flush();
}

// The conversion of one model; a member per step.
class Converter {
 public:
  Converter(const ArtifactReader& reader, const ConversionOptions& options, ArtifactWriter& writer)
      : reader_(reader), options_(options), writer_(writer) {}

  absl::Status DeclareTensors();
  absl::Status WriteTensors();
  absl::Status WriteSideFiles();
  const ConversionReport& report() const { return report_; }

 private:
  const ArtifactReader& reader_;
  const ConversionOptions& options_;
  ArtifactWriter& writer_;
  std::vector<std::string> plain_names_;
  ConversionReport report_;
};

absl::Status Converter::DeclareTensors() {
  std::vector<TensorSpec> specs;
  for (const std::string& name : reader_.WeightNames()) {
    ASSIGN_OR_RETURN(const TensorInfo info, reader_.DescribeWeight(name));
    specs.push_back({absl::StrCat(name, ".weight"), DType::kBF16, info.shape});
  }
  for (const std::string& name : reader_.PlainTensorNames()) {
    if (IsKvScale(name)) continue;
    ASSIGN_OR_RETURN(const std::optional<Weight> tensor, reader_.ReadTensor(name));
    if (!tensor.has_value()) return BugError(name, ": expected a tensor that was listed, found none");
    specs.push_back({name, DType::kBF16, tensor->dense->shape});
    plain_names_.push_back(name);
  }
  report_.num_tensors = static_cast<int64_t>(specs.size());
  return writer_.DeclareTensors(std::move(specs));
}

absl::Status Converter::WriteTensors() {
  int64_t done = 0;
  const auto advance = [&](const Weight& weight) {
    report_.input_bytes += weight.stored_bytes;
    ++done;
    return options_.progress ? options_.progress(done, report_.num_tensors) : absl::OkStatus();
  };
  for (const std::string& name : reader_.WeightNames()) {
    ASSIGN_OR_RETURN(const Weight weight, reader_.ReadWeight(name));
    RETURN_IF_ERROR(WriteAsBf16(absl::StrCat(name, ".weight"), weight, writer_));
    RETURN_IF_ERROR(advance(weight));
  }
  for (const std::string& name : plain_names_) {
    ASSIGN_OR_RETURN(const std::optional<Weight> tensor, reader_.ReadTensor(name));
    RETURN_IF_ERROR(WriteAsBf16(name, *tensor, writer_));
    RETURN_IF_ERROR(advance(*tensor));
  }
  return absl::OkStatus();
}

absl::Status Converter::WriteSideFiles() {
  Json config = reader_.config();
  config.erase("quantization_config");
  config["torch_dtype"] = "bfloat16";
  if (config.contains("dtype")) config["dtype"] = "bfloat16";
  return WriteConversionFiles(reader_, config, options_, writer_);
}

}  // namespace

bool IsKvScale(absl::string_view tensor_name) {
  constexpr absl::string_view kSuffixes[] = {".k_scale", ".v_scale", ".q_scale", ".k_proj.output_scale", ".v_proj.output_scale"};
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [&](absl::string_view suffix) { return absl::EndsWith(tensor_name, suffix); });
}

absl::Status WriteAsBf16(const std::string& tensor_name, const Weight& weight, ArtifactWriter& writer) {
  Bf16Stream stream(writer, tensor_name);
  return weight.quantized.has_value() ? WriteQuantized(*weight.quantized, stream) : WriteDense(*weight.dense, stream);
}

absl::Status WriteConversionFiles(const ArtifactReader& reader, const Json& config, const ConversionOptions& options,
                                  ArtifactWriter& writer) {
  RETURN_IF_ERROR(writer.AddJson("config.json", config));
  if (!options.tokenizer_json.empty()) RETURN_IF_ERROR(writer.AddFile("tokenizer.json", options.tokenizer_json));
  if (!options.tokenizer_config_json.empty()) RETURN_IF_ERROR(writer.AddFile("tokenizer_config.json", options.tokenizer_config_json));
  if (IsDirectory(reader.path())) return writer.CopySideFiles(reader.path());
  return reader.generation_config().empty() ? absl::OkStatus() : writer.AddJson("generation_config.json", reader.generation_config());
}

absl::StatusOr<ConversionReport> ConvertToHuggingFace(const ArtifactReader& reader, const std::string& output,
                                                      const ConversionOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactWriter> writer,
                   ArtifactWriter::Create(output, {.source_path = reader.path(), .max_shard_bytes = options.max_shard_bytes}));
  Converter converter(reader, options, *writer);
  RETURN_IF_ERROR(converter.DeclareTensors());
  RETURN_IF_ERROR(converter.WriteTensors());
  RETURN_IF_ERROR(converter.WriteSideFiles());
  Manifest manifest;
  manifest.pith_version = options.pith_version;
  ASSIGN_OR_RETURN(manifest.source_fingerprint, reader.Fingerprint());
  manifest.recipe = {{"scheme", "BF16"}, {"method", "convert"}};
  RETURN_IF_ERROR(writer->Commit(std::move(manifest)).status());
  ConversionReport report = converter.report();
  report.output_bytes = static_cast<int64_t>(writer->bytes_written());
  return report;
}

}  // namespace pith
