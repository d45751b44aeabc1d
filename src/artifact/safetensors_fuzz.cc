// Any bytes as a safetensors file: parsed or refused; what is accepted keeps the rules that readers rely on.
#include <cstddef>
#include <cstdint>

#include "artifact/safetensors.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto header = pith::ParseSafetensorsHeader(bytes, size);
  if (!header.ok()) {
    CHECK(!header.status().message().empty());
    return 0;
  }
  uint64_t position = header->tensors.empty() ? size : header->tensors.front().begin;
  for (const pith::SafetensorsTensor& tensor : header->tensors) {
    CHECK(tensor.begin == position && tensor.end >= tensor.begin && tensor.end <= size);
    position = tensor.end;
    if (tensor.dtype.has_value()) {
      CHECK(static_cast<uint64_t>(pith::NumElements(tensor.shape) * pith::ByteSize(*tensor.dtype)) == tensor.end - tensor.begin);
    }
  }
  CHECK(position == size);
  return 0;
}
