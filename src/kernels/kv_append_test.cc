#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/attention.h"
#include "kernels/operator_test_fixture.h"

namespace pith {
namespace {

struct AppendShape {
  int64_t num_kv_heads, head_dim, block_size, first_position, num_rows;
};

constexpr AppendShape kShapes[] = {{1, 8, 4, 0, 1},    {2, 40, 4, 3, 6},    {3, 64, 32, 31, 2}, {1, 256, 16, 5, 40},
                                   {4, 96, 32, 0, 70}, {2, 128, 64, 60, 9}, {5, 72, 8, 7, 17},  {2, 13, 4, 2, 9}};

TEST(KvAppendTest, StoresRowsInTheirBlocksAndNothingElse) {
  for (const AppendShape& s : kShapes) {
    const int64_t blocks = (s.first_position + s.num_rows + s.block_size - 1) / s.block_size;
    const int64_t head_stride = s.block_size * s.head_dim + 3, block_stride = s.num_kv_heads * head_stride + 2;
    std::vector<int32_t> table;
    for (int64_t b = 0; b < blocks; ++b) table.push_back(static_cast<int32_t>(blocks - 1 - b));
    const int64_t key_stride = s.num_kv_heads * s.head_dim + 1, value_stride = key_stride + 4;
    const std::vector<float> key = NormalValues(s.num_rows * key_stride - 1, 1), value = NormalValues(s.num_rows * value_stride - 5, 2);
    const PageEndBuffer<float> readable_key(key), readable_value(value);
    std::vector<uint16_t> expected_key(static_cast<size_t>(blocks * block_stride), 0xBEEF), expected_value = expected_key;
    for (int64_t r = 0; r < s.num_rows; ++r) {
      for (int64_t h = 0; h < s.num_kv_heads; ++h) {
        for (int64_t i = 0; i < s.head_dim; ++i) {
          const int64_t t = s.first_position + r;
          const int64_t at = table[t / s.block_size] * block_stride + h * head_stride + t % s.block_size * s.head_dim + i;
          expected_key[at] = ToBits(key[r * key_stride + h * s.head_dim + i]);
          expected_value[at] = ToBits(value[r * value_stride + h * s.head_dim + i]);
        }
      }
    }
    for (const auto& row : RunnableRows(&OperatorEntry::kv_append)) {
      GuardedBuffer<uint16_t> key_cache(blocks * block_stride, 0xBEEF), value_cache(blocks * block_stride, 0xBEEF);
      row.run({.key = readable_key.data(),
               .value = readable_value.data(),
               .key_stride = key_stride,
               .value_stride = value_stride,
               .num_rows = s.num_rows,
               .first_position = s.first_position,
               .num_kv_heads = s.num_kv_heads,
               .head_dim = s.head_dim,
               .key_cache = key_cache.data(),
               .value_cache = value_cache.data(),
               .block_table = table.data(),
               .block_size = s.block_size,
               .block_stride = block_stride,
               .head_stride = head_stride});
      EXPECT_TRUE(key_cache.Intact() && value_cache.Intact()) << row.name;
      EXPECT_EQ(key_cache.values(), expected_key) << row.name << " head_dim " << s.head_dim;
      EXPECT_EQ(value_cache.values(), expected_value) << row.name << " head_dim " << s.head_dim;
    }
  }
}

}  // namespace
}  // namespace pith
