// Element types of stored tensors, with the names safetensors gives them.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace pith {

enum class DType : uint8_t { kBool, kU8, kI8, kF8E4M3, kF8E5M2, kU16, kI16, kF16, kBF16, kU32, kI32, kF32, kU64, kI64, kF64 };

int64_t ByteSize(DType dtype);                            // bytes per element: 1, 2, 4 or 8
absl::string_view DTypeName(DType dtype);                 // "BF16", "F8_E4M3", ... as in a safetensors header
std::optional<DType> ParseDType(absl::string_view name);  // the inverse; nullopt for an unknown or sub-byte type

}  // namespace pith
