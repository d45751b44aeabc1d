// Any bytes as an importance matrix, in either form: refused, or every entry has finite sums.
#include <cstddef>
#include <cstdint>

#include "artifact/importance_matrix.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto matrix = pith::ParseImportanceMatrix({reinterpret_cast<const char*>(data), size});
  if (!matrix.ok()) return 0;
  for (const auto& [name, entry] : matrix->entries) {
    for (const float sum : entry.sum_squares) CHECK(sum >= 0);
    CHECK(matrix->Importance(name, static_cast<int64_t>(entry.sum_squares.size())).ok());
  }
  return 0;
}
