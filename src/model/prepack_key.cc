#include "model/prepack_key.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "kernels/selection.h"

namespace pith {
namespace {

// "int16", "int8", "bf16", "llm-int8".
std::string ActivationText(const WeightOnlyActivation& activation) {
  const absl::string_view name = GemmActivationName(activation.kind);
  return absl::StrCat(activation.outlier_threshold > 0 ? "llm-" : "", name.substr(0, name.find(' ')));
}

// Absolute, links followed: the same model by whatever path.
std::string RealPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

// Characters that every file system takes; at most 64 of them.
std::string FileStem(const std::string& path) {
  std::string stem = BaseName(path).substr(0, 64);
  for (char& c : stem) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  }
  return stem;
}

}  // namespace

std::string PrepackKey(const ArtifactReader& reader, const ComputeContext& context, const std::string& build) {
  // Every text is followed by a byte that it cannot hold, or is of fixed form.
  std::string text = absl::StrCat("pith prepack 1\n", build, "\n", IsaName(context.isa), "\n",
                                  ActivationText(context.weight_only_activation), " ", context.weight_only_activation.outlier_threshold,
                                  "\n", DumpJson(reader.config()), "\n");
  for (const WeightFile& file : reader.WeightFiles()) {
    absl::StrAppend(&text, file.identity.inode, " ", file.identity.size, " ", file.identity.modified_ns, " ", file.identity.changed_ns, " ",
                    DumpJson(Json(file.name)), "\n");
  }
  for (const TensorInfo& tensor : reader.Tensors()) {
    absl::StrAppend(&text, tensor.type, " ", absl::StrJoin(tensor.shape, ","), " ", tensor.stored_bytes, " ", DumpJson(Json(tensor.name)),
                    " ", DumpJson(Json(tensor.file)), "\n");
  }
  return Sha256Hex(text);
}

std::string PrepackFileName(const ArtifactReader& reader, const ComputeContext& context) {
  const std::string path = RealPath(reader.path());
  return absl::StrCat(FileStem(path), ".", ActivationText(context.weight_only_activation), ".", IsaName(context.isa), ".",
                      Sha256Hex(path).substr(0, 12), ".safetensors");
}

}  // namespace pith
