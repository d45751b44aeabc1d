#include "artifact/artifact_reader.h"

#include "absl/strings/match.h"
#include "artifact/gguf_model.h"
#include "artifact/huggingface_directory.h"
#include "base/file.h"
#include "base/foreign_file.h"
#include "base/status.h"

namespace pith {

absl::StatusOr<std::unique_ptr<ArtifactReader>> ArtifactReader::Open(const std::string& path) {
  if (path.empty()) return MissingInputError("model: expected the path of a directory or a GGUF file, found an empty text");
  if (IsDirectory(path)) return HuggingFaceDirectory::Open(path);
  const auto refuse = [&](absl::string_view found) {
    return BadFileError(Printable(path, 500), ": expected a model directory or a GGUF file, found ", found);
  };
  if (!FileExists(path)) return MissingInputError(Printable(path, 500), ": no such file or directory");
  if (HasPickleName(path)) {
    return refuse(
        "a pickled checkpoint by its name, which is never opened since unpickling runs code; use the safetensors files of the model");
  }
  if (absl::EndsWith(path, ".safetensors")) return refuse("a safetensors file; give the directory that holds it and its config.json");
  return GgufModel::Open(path);
}

absl::StatusOr<TensorInfo> ArtifactReader::DescribeWeight(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Weight weight, ReadWeight(name));
  TensorInfo info;
  info.name = std::string(name);
  info.stored_bytes = weight.stored_bytes;
  if (weight.quantized.has_value()) {
    info.type = weight.quantized->format;
    info.shape = {weight.quantized->out, weight.quantized->in};
    info.quantized = QuantizedForm{.bits = weight.quantized->bits,
                                   .type = weight.quantized->type,
                                   .group_size = weight.quantized->group_size,
                                   .has_zero_point = !weight.quantized->zero_point.empty(),
                                   .has_min = !weight.quantized->min.empty(),
                                   .input = weight.input,
                                   .scale = weight.quantized->scale_dtype,
                                   .unit_size = weight.quantized->unit_size};
  } else {
    info.type = std::string(DTypeName(weight.dense->dtype));
    info.shape = weight.dense->shape;
  }
  return info;
}

std::vector<std::string> ArtifactReader::PlainTensorNames() const {
  std::vector<std::string> names;
  for (const std::string& module : WeightNames()) {
    const std::string bias = absl::StrCat(module, ".bias");
    const auto tensor = ReadTensor(bias);
    if (tensor.ok() && tensor->has_value()) names.push_back(bias);
  }
  return names;
}

}  // namespace pith
