// The fingerprint of a model's content: one SHA-256, whatever the number of shards or the order of tensors in them.
//
// Recipe (version 1). SHA-256 over, in this order, with every length and number as 8 bytes little-endian:
//   "pith fingerprint 1\n"
//   length and bytes of the configuration: config.json parsed and printed on one line with sorted keys; of a GGUF file its metadata,
//     by ascending key: length and bytes of the key, value type, element type (arrays, else 0), length and bytes of the value
//   per tensor, by ascending name (bytes): length and bytes of the name, length and bytes of the type ("BF16", "Q4_K"),
//     rank and dimensions (rows first), length and bytes of the data as stored, padding left out
// The tokenizer files, the generation config and the container are not part of it, except through GGUF metadata.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/sha256.h"

namespace pith {

// Not thread-safe.
class FingerprintBuilder {
 public:
  explicit FingerprintBuilder(absl::string_view configuration);

  // Names must come in ascending order (checked).
  void AddTensor(absl::string_view name, absl::string_view type, absl::Span<const int64_t> shape, absl::Span<const uint8_t> bytes);
  // 64 lower-case hex digits; call once, last.
  std::string Finish() { return hash_.HexDigest(); }

 private:
  void AddNumber(uint64_t value);
  void AddText(absl::string_view text);

  Sha256 hash_;
  std::string last_name_;
  bool first_ = true;
};

}  // namespace pith
