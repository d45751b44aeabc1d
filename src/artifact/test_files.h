// For tests only: hand-made safetensors and GGUF bytes, good and bad, and files holding them.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace pith {

inline void WriteTestFile(const std::string& path, absl::string_view content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
}

inline std::string ReadTestFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

// The bytes of a trivially copyable value, or of each element of a vector, little-endian like the machine.
template <typename T> std::string RawBytes(const T& value) { return std::string(reinterpret_cast<const char*>(&value), sizeof(T)); }
template <typename T> std::string RawBytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A safetensors file: length of `header`, `header`, `data`.
inline std::string SafetensorsBytes(absl::string_view header, absl::string_view data) {
  return absl::StrCat(RawBytes<uint64_t>(header.size()), header, data);
}

// Builds GGUF bytes field by field, so that a test can break any of them.
class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;
  std::string magic = "GGUF";
  int64_t tensor_count_delta = 0, kv_count_delta = 0;  // added to the true counts in the header

  static std::string String(absl::string_view text) { return absl::StrCat(RawBytes<uint64_t>(text.size()), text); }

  // A metadata entry of any type from its raw value bytes.
  GgufBuilder& Raw(absl::string_view key, uint32_t type, absl::string_view value) {
    absl::StrAppend(&kv_, String(key), RawBytes(type), value);
    ++num_kv_;
    return *this;
  }
  GgufBuilder& U32(absl::string_view key, uint32_t value) { return Raw(key, 4, RawBytes(value)); }
  GgufBuilder& F32(absl::string_view key, float value) { return Raw(key, 6, RawBytes(value)); }
  GgufBuilder& Bool(absl::string_view key, bool value) { return Raw(key, 7, RawBytes<uint8_t>(value ? 1 : 0)); }
  GgufBuilder& Str(absl::string_view key, absl::string_view value) { return Raw(key, 8, String(value)); }
  GgufBuilder& Strings(absl::string_view key, const std::vector<std::string>& values) {
    std::string raw = absl::StrCat(RawBytes<uint32_t>(8), RawBytes<uint64_t>(values.size()));
    for (const std::string& value : values) absl::StrAppend(&raw, String(value));
    return Raw(key, 9, raw);
  }
  template <typename T> GgufBuilder& Array(absl::string_view key, uint32_t element_type, const std::vector<T>& values) {
    return Raw(key, 9, absl::StrCat(RawBytes(element_type), RawBytes<uint64_t>(values.size()), RawBytes(values)));
  }

  // A tensor whose offset is the running padded sum. `dims` as stored: fastest first.
  GgufBuilder& Tensor(absl::string_view name, const std::vector<int64_t>& dims, uint32_t type, absl::string_view data) {
    return TensorAt(name, dims, type, data_.size(), data);
  }
  GgufBuilder& TensorAt(absl::string_view name, const std::vector<int64_t>& dims, uint32_t type, uint64_t offset, absl::string_view data) {
    absl::StrAppend(&infos_, String(name), RawBytes(static_cast<uint32_t>(dims.size())), RawBytes(dims), RawBytes(type), RawBytes(offset));
    absl::StrAppend(&data_, data);
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\0');
    ++num_tensors_;
    return *this;
  }

  std::string Build() const {
    std::string file = absl::StrCat(magic, RawBytes(version), RawBytes(num_tensors_ + tensor_count_delta),
                                    RawBytes(num_kv_ + kv_count_delta), kv_, infos_);
    if (num_tensors_ > 0) file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
    return file + data_;
  }

 private:
  std::string kv_, infos_, data_;
  int64_t num_kv_ = 0, num_tensors_ = 0;
};

}  // namespace pith
