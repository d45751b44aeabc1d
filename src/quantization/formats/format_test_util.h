// For tests only: golden vectors of packing, and stored tensors as views.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/test_util.h"
#include "gtest/gtest.h"
#include "quantization/formats/format_table.h"

namespace pith {

inline ModuleTensors Views(const std::vector<StoredTensor>& stored) {
  ModuleTensors tensors{"m", {}};
  for (const StoredTensor& tensor : stored) tensors.tensors.push_back({tensor.suffix, tensor.tensor.view()});
  return tensors;
}

// golden/packing.json; nullopt when the shared data is absent.
inline std::optional<Json> PackingVectors() {
  const std::string path = SharedPath("golden/packing.json");
  if (!std::filesystem::exists(path)) return std::nullopt;
  std::ifstream file(path);
  return *ParseJson(std::string(std::istreambuf_iterator<char>(file), {}));
}

// The weight behind the vectors of a width: scales of 1.
inline QuantizedTensor GoldenWeight(const Json& golden, int bits) {
  const Json& vectors = golden[absl::StrCat("bits", bits)];
  QuantizedTensor weight;
  weight.out = golden["out"];
  weight.in = golden["in"];
  weight.bits = bits;
  weight.group_size = golden["group"];
  const int middle = 1 << (bits - 1);
  for (const Json& row : vectors["q_signed"]) {
    for (const int code : row) weight.code.push_back(static_cast<uint8_t>(code + middle));
  }
  for (const Json& row : vectors["zp_signed"]) {
    for (const int zero : row) weight.zero_point.push_back(static_cast<uint8_t>(zero + middle));
  }
  weight.scale.assign(weight.zero_point.size(), 1.0f);
  return weight;
}

// A tensor of 32-bit words from nested lists.
inline Tensor WordsOf(const Json& rows) {
  Tensor tensor(DType::kI32, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())});
  size_t i = 0;
  for (const Json& row : rows) {
    for (const int32_t word : row) tensor.as<int32_t>()[i++] = word;
  }
  return tensor;
}

inline void ExpectSameWords(const ModuleTensors& tensors, absl::string_view suffix, const Json& expected) {
  const TensorView* view = tensors.Find(suffix);
  ASSERT_NE(view, nullptr) << suffix;
  const Tensor words = WordsOf(expected);
  ASSERT_EQ(view->shape, words.shape()) << suffix;
  for (int64_t i = 0; i < words.num_elements(); ++i) ASSERT_EQ(view->as<int32_t>()[i], words.as<int32_t>()[i]) << suffix << " " << i;
}

}  // namespace pith
