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

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr CpuFeatures kSkylakeX{.avx2 = true, .avx512 = true};
constexpr CpuFeatures kZen4{.avx2 = true, .avx512 = true, .avx512_vnni = true};
constexpr CpuFeatures kAlderLake{.avx2 = true, .avx_vnni = true};
constexpr CpuFeatures kSapphireRapids{.avx2 = true, .avx_vnni = true, .avx512 = true, .avx512_vnni = true, .amx = true};

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
  for (const Isa isa : kAllIsas) {
    setenv("PITH_FORCE_ISA", std::string(IsaName(isa)).c_str(), 1);
    const auto selected = SelectIsa();
    if (ThisCpu().Supports(isa)) {
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
    EXPECT_THAT(std::string(selected.status().message()), AllOf(HasSubstr("avx2_vnni"), HasSubstr("avx512_vnni")));
  }
}

TEST_F(ForceIsa, AvxVnniIsRefusedWhereOnlyBetterSetsAre) {
  for (const CpuFeatures& cpu : {kSkylakeX, kZen4}) {
    setenv("PITH_FORCE_ISA", "avx2_vnni", 1);
    const auto refused = SelectIsa(cpu);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("(scalar, avx2, avx512"));
    setenv("PITH_FORCE_ISA", "avx2", 1);
    EXPECT_EQ(*SelectIsa(cpu), Isa::kAvx2);
    unsetenv("PITH_FORCE_ISA");
    EXPECT_GE(*SelectIsa(cpu), Isa::kAvx512);
  }
  EXPECT_EQ(*SelectIsa(kAlderLake), Isa::kAvx2Vnni);
  EXPECT_EQ(*SelectIsa(kSapphireRapids), Isa::kAmx);
  setenv("PITH_FORCE_ISA", "avx2_vnni", 1);
  EXPECT_EQ(*SelectIsa(kSapphireRapids), Isa::kAvx2Vnni);
}

TEST(CpuFeatures, SupportsWhatItsFlagsAddUpTo) {
  EXPECT_THAT(CpuFeatures().SupportedIsas(), ElementsAre(Isa::kScalar));
  EXPECT_THAT((CpuFeatures{.avx_vnni = true, .avx512 = true}).SupportedIsas(), ElementsAre(Isa::kScalar));  // AVX2 is masked
  EXPECT_THAT(kSkylakeX.SupportedIsas(), ElementsAre(Isa::kScalar, Isa::kAvx2, Isa::kAvx512));
  EXPECT_THAT(kZen4.SupportedIsas(), ElementsAre(Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni));
  EXPECT_THAT(kAlderLake.SupportedIsas(), ElementsAre(Isa::kScalar, Isa::kAvx2, Isa::kAvx2Vnni));
  EXPECT_THAT(kSapphireRapids.SupportedIsas(), testing::ElementsAreArray(kAllIsas));
}

// What is chosen on a CPU may only bring code that it supports.
TEST(CpuFeatures, WhatASupportedSetIncludesIsSupported) {
  for (const CpuFeatures& cpu : {CpuFeatures(), kSkylakeX, kZen4, kAlderLake, kSapphireRapids, ThisCpu()}) {
    for (const Isa isa : cpu.SupportedIsas()) {
      EXPECT_TRUE(IsaIncludes(isa, isa));
      EXPECT_TRUE(IsaIncludes(isa, Isa::kScalar));
      for (const Isa part : kAllIsas) EXPECT_TRUE(!IsaIncludes(isa, part) || cpu.Supports(part)) << IsaName(isa) << " " << IsaName(part);
    }
  }
  EXPECT_TRUE(IsaIncludes(Isa::kAvx2Vnni, Isa::kAvx2));
  EXPECT_FALSE(IsaIncludes(Isa::kAvx2, Isa::kAvx2Vnni));
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
  EXPECT_EQ(ThisCpu().Supports(Isa::kAvx2Vnni), has({"avx2", "fma", "f16c", "bmi2", "avx_vnni"}));
  EXPECT_EQ(DetectIsa() >= Isa::kAvx512, has({"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl"}));
  EXPECT_EQ(DetectIsa() >= Isa::kAvx512Vnni, has({"avx512f", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512vbmi"}));
}

TEST(CpuFeatures, DescriptionNamesTheInstructionSet) {
  EXPECT_THAT(CpuDescription(), testing::EndsWith(std::string(", ") + std::string(IsaName(DetectIsa()))));
}

}  // namespace
}  // namespace pith
