// Any bytes as the description of prepacked weights: parsed or refused, and what is parsed is written and read back the same.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "model/prepack_description.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto layers = pith::ParsePrepackDescription({reinterpret_cast<const char*>(data), size});
  if (!layers.ok()) {
    CHECK(!layers.status().message().empty());
    return 0;
  }
  for (const auto& [name, layer] : *layers) {
    CHECK(!layer.parts.empty() && layer.parts[0].name == name);
    for (const pith::PrepackedMatrix& matrix : layer.matrices) {
      CHECK(matrix.problem.n > 0 && matrix.problem.k > 0 && matrix.problem.bits >= 1 && matrix.problem.bits <= 16);
      CHECK(static_cast<int>(matrix.problem.scale) <= static_cast<int>(pith::GemmScale::kI8));
      CHECK(static_cast<int>(matrix.problem.activation) <= static_cast<int>(pith::GemmActivation::kFp8));
    }
  }
  const std::string text = pith::MakePrepackDescription(*layers);
  const auto again = pith::ParsePrepackDescription(text);
  CHECK(again.ok());
  CHECK(pith::MakePrepackDescription(*again) == text);
  return 0;
}
