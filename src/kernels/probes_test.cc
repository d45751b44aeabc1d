#include "kernels/probes.h"

#include <set>
#include <string>

#include "base/aligned_buffer.h"
#include "gtest/gtest.h"
#include "kernels/registry.h"

namespace pith {
namespace {

TEST(ProbesTest, EveryStepDoesTheMultiplyAddsItSays) {
  for (const ProbeEntry* row : AllProbes()) {
    if (!RunsHere(row->isa) || row->limit == ProbeLimit::kRead) continue;
    ASSERT_NE(row->multiply, nullptr) << row->name;
    EXPECT_EQ(row->read, nullptr) << row->name;
    for (const int64_t steps : {1, 2, 1000}) EXPECT_EQ(row->multiply(steps), steps * row->multiply_adds_per_step) << row->name;
  }
}

TEST(ProbesTest, ReadsTouchEveryWord) {
  constexpr int64_t kBytes = 4096;
  AlignedBuffer buffer(kBytes);
  auto* words = reinterpret_cast<uint64_t*>(buffer.data());
  uint64_t expected = 0;
  for (int64_t i = 0; i < kBytes / 8; ++i) {
    words[i] = static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15u;
    expected ^= words[i];
  }
  for (const ProbeEntry* row : AllProbes()) {
    if (!RunsHere(row->isa) || row->limit != ProbeLimit::kRead) continue;
    ASSERT_NE(row->read, nullptr) << row->name;
    EXPECT_EQ(row->read(buffer.data(), kBytes), expected) << row->name;
    EXPECT_EQ(row->read(buffer.data(), 0), 0u) << row->name;
  }
}

TEST(ProbesTest, TheBestRowUpToAnInstructionSet) {
  EXPECT_STREQ(FindProbe(ProbeLimit::kBf16, Isa::kAvx512Vnni)->name, "probe_bf16_bf16_f32__avx512_vnni");
  EXPECT_EQ(FindProbe(ProbeLimit::kBf16, Isa::kAvx512), nullptr);
  EXPECT_STREQ(FindProbe(ProbeLimit::kInt8, Isa::kAvx512Vnni)->name, "probe_u8_s8_s32__avx512_vnni");
  EXPECT_STREQ(FindProbe(ProbeLimit::kInt8, Isa::kAmx)->name, "probe_s8_u8_s32__amx");
  EXPECT_STREQ(FindProbe(ProbeLimit::kBf16, Isa::kAmx)->name, "probe_bf16_bf16_f32__amx");
  EXPECT_STREQ(FindProbe(ProbeLimit::kInt8, Isa::kScalar)->name, "probe_u8_s8_s32__scalar");
  EXPECT_STREQ(FindProbe(ProbeLimit::kInt8, Isa::kAvx2)->name, "probe_u8_s8_s32__avx2");
  EXPECT_STREQ(FindProbe(ProbeLimit::kInt8, Isa::kAvx2Vnni)->name, "probe_u8_s8_s32__avx2_vnni");
  EXPECT_STREQ(FindProbe(ProbeLimit::kInt8, Isa::kAvx512)->name, "probe_u8_s8_s32__avx512");
  EXPECT_STREQ(FindProbe(ProbeLimit::kF32, Isa::kAvx2Vnni)->name, "probe_f32_f32_f32__avx2");
  EXPECT_STREQ(FindProbe(ProbeLimit::kF32, Isa::kAvx512Vnni)->name, "probe_f32_f32_f32__avx512");
  for (const Isa isa : kAllIsas) {
    EXPECT_NE(FindProbe(ProbeLimit::kRead, isa), nullptr);
    EXPECT_NE(FindProbe(ProbeLimit::kF32, isa), nullptr);
    EXPECT_NE(FindProbe(ProbeLimit::kInt8, isa), nullptr);
  }
  std::set<std::string> names;
  for (const ProbeEntry* row : AllProbes()) EXPECT_TRUE(names.insert(row->name).second) << row->name;
}

}  // namespace
}  // namespace pith
