#include "base/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

constexpr Isa kAll[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAmx};

class ForceIsa : public testing::Test {
 protected:
  void SetUp() override { unsetenv("PITH_FORCE_ISA"); }
  void TearDown() override { unsetenv("PITH_FORCE_ISA"); }
};

TEST_F(ForceIsa, UnsetOrEmptyTakesTheBest) {
  EXPECT_EQ(*SelectIsa(), DetectIsa());
  setenv("PITH_FORCE_ISA", "", 1);
  EXPECT_EQ(*SelectIsa(), DetectIsa());
}

TEST_F(ForceIsa, TakesWhatTheCpuHasAndRefusesTheRest) {
  for (const Isa isa : kAll) {
    setenv("PITH_FORCE_ISA", std::string(IsaName(isa)).c_str(), 1);
    const auto selected = SelectIsa();
    if (isa <= DetectIsa()) {
      ASSERT_TRUE(selected.ok()) << selected.status();
      EXPECT_EQ(*selected, isa);
    } else {
      EXPECT_EQ(selected.status().code(), absl::StatusCode::kUnavailable);
    }
  }
}

TEST_F(ForceIsa, UnknownNamesAreRefusedWithTheKnownOnes) {
  for (const char* name : {"AVX2", "avx", "avx512_vnni ", "avx2\n"}) {
    setenv("PITH_FORCE_ISA", name, 1);
    const auto selected = SelectIsa();
    EXPECT_EQ(selected.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(selected.status().message()), testing::HasSubstr("avx512_vnni"));
  }
}

TEST(CpuFeatures, AgreesWithTheKernel) {
  std::ifstream info("/proc/cpuinfo");
  std::string flags;
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("flags", 0) == 0) flags = line + " ";
  }
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const auto has = [&](const std::vector<std::string>& names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const std::string& name) { return flags.find(" " + name + " ") != std::string::npos; });
  };
  EXPECT_EQ(DetectIsa() >= Isa::kAvx2, has({"avx2", "fma", "f16c", "bmi2"}));
  EXPECT_EQ(DetectIsa() >= Isa::kAvx512, has({"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl"}));
  EXPECT_EQ(DetectIsa() >= Isa::kAvx512Vnni, has({"avx512f", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512vbmi"}));
}

TEST(CpuFeatures, DescriptionNamesTheInstructionSet) {
  EXPECT_THAT(CpuDescription(), testing::EndsWith(std::string(", ") + std::string(IsaName(DetectIsa()))));
}

}  // namespace
}  // namespace pith
