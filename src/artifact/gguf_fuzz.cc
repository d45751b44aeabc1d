// Any bytes as a GGUF file: refused, or every tensor lies inside the file, the model is refused or every weight decodes or is refused.
#include <cstddef>
#include <cstdint>

#include "artifact/gguf_model.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  absl::StatusOr<pith::GgufFile> file = pith::GgufFile::Parse({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  for (const pith::GgufTensor& tensor : file->tensors()) CHECK(tensor.begin <= size && tensor.size <= size - tensor.begin);
  const auto model = pith::GgufModel::Make(*std::move(file));
  if (!model.ok()) return 0;
  for (const std::string& name : (*model)->WeightNames()) {
    const auto weight = (*model)->ReadWeight(name);
    if (weight.ok() && weight->quantized.has_value())
      CHECK(static_cast<int64_t>(weight->quantized->code.size()) == weight->quantized->out * weight->quantized->in);
  }
  for (const std::string& name : (*model)->PlainTensorNames()) (void)(*model)->ReadTensor(name);
  CHECK((*model)->Fingerprint().ok());
  return 0;
}
