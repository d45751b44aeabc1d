#include "artifact/fingerprint.h"

#include "base/check.h"

namespace pith {

FingerprintBuilder::FingerprintBuilder(absl::string_view configuration) {
  hash_.Update("pith fingerprint 1\n");
  AddText(configuration);
}

void FingerprintBuilder::AddNumber(uint64_t value) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  hash_.Update({bytes, sizeof(bytes)});
}

void FingerprintBuilder::AddText(absl::string_view text) {
  AddNumber(text.size());
  hash_.Update(text);
}

void FingerprintBuilder::AddTensor(absl::string_view name, absl::string_view type, absl::Span<const int64_t> shape,
                                   absl::Span<const uint8_t> bytes) {
  CHECK(first_ || last_name_ < name);
  first_ = false;
  last_name_ = std::string(name);
  AddText(name);
  AddText(type);
  AddNumber(shape.size());
  for (const int64_t dim : shape) AddNumber(static_cast<uint64_t>(dim));
  AddText({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace pith
