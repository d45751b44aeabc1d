#include "quantization/formats/gguf_block_encoders.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "quantization/formats/gguf_block_decoders.h"

namespace pith {
namespace {

// Numbers on the grid of a type, so that the layout alone decides: what is decoded is what was encoded, in place.
TEST(GgufBlockEncoders, PutEveryCodeInItsPlace) {
  struct Case {
    const char* name;
    int count, group, min_code, max_code;  // x = code * 0.5, the codes of a group running from min to max
    void (*encode)(const float*, const float*, float, uint8_t*);
    void (*decode)(const uint8_t*, uint8_t*, float*, float*);
    int zero;  // of the decoded codes; -1: there are minimums
  };
  const Case cases[] = {
      {"Q8_0", 32, 32, -127, 127, EncodeBlockQ8_0, DecodeBlockQ8_0, 128}, {"Q4_0", 32, 32, -8, 7, EncodeBlockQ4_0, DecodeBlockQ4_0, 8},
      {"Q4_1", 32, 32, -4, 11, EncodeBlockQ4_1, DecodeBlockQ4_1, -1},     {"Q5_0", 32, 32, -16, 15, EncodeBlockQ5_0, DecodeBlockQ5_0, 16},
      {"Q5_1", 32, 32, -4, 27, EncodeBlockQ5_1, DecodeBlockQ5_1, -1},     {"Q4_K", 256, 32, -4, 11, EncodeBlockQ4K, DecodeBlockQ4K, -1},
      {"Q5_K", 256, 32, -4, 27, EncodeBlockQ5K, DecodeBlockQ5K, -1},      {"Q6_K", 256, 16, -32, 31, EncodeBlockQ6K, DecodeBlockQ6K, 32}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::vector<float> x(static_cast<size_t>(c.count));
    for (int i = 0; i < c.count; ++i) {
      const int within = i % c.group, range = c.max_code - c.min_code;
      // Both ends in every group, and another order in each.
      const int code = within == 0 ? c.min_code : within == 1 ? c.max_code : c.min_code + (i * 37 + i / c.group * 11) % (range + 1);
      x[static_cast<size_t>(i)] = 0.5f * static_cast<float>(code);
    }
    uint8_t block[256] = {}, code[256];
    float scale[16], min[16];
    c.encode(x.data(), nullptr, 1.0f, block);
    c.decode(block, code, scale, min);
    for (int i = 0; i < c.count; ++i) {
      const int g = i / c.group;
      const float y = c.zero < 0 ? scale[g] * code[i] - min[g] : scale[g] * static_cast<float>(code[i] - c.zero);
      ASSERT_NEAR(y, x[static_cast<size_t>(i)], 0.1f) << i;
    }
  }
}

}  // namespace
}  // namespace pith
