// Bytes of GGUF blocks: the first byte picks the type, the second the number of rows. Both decoders must agree or both refuse.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "quantization/formats/gguf_blocks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pith;
  if (size < 2) return 0;
  const GgufType& type = GgufTypes()[data[0] % GgufTypes().size()];
  const int64_t rows = data[1] % 4;
  const absl::Span<const uint8_t> bytes(data + 2, size - 2);
  const int64_t blocks = static_cast<int64_t>(bytes.size()) / type.block_bytes;
  const int64_t in = rows == 0 ? 0 : blocks / rows * type.block_elements;
  const absl::StatusOr<QuantizedTensor> weight = DecodeGgufBlocks(type, bytes, rows, in);
  if (!weight.ok()) return 0;
  std::vector<float> direct(static_cast<size_t>(rows * in)), by_row(direct.size());
  if (!DequantizeGgufBlocks(type, bytes, absl::MakeSpan(direct)).ok()) std::abort();
  for (int64_t o = 0; o < rows; ++o) weight->DequantizeRow(o, absl::MakeSpan(by_row.data() + o * in, static_cast<size_t>(in)));
  if (!direct.empty() && std::memcmp(direct.data(), by_row.data(), direct.size() * sizeof(float)) != 0) std::abort();
  return 0;
}
