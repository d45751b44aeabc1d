#include "base/cpu_features.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

constexpr Isa kAll[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni};

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

TEST(CpuFeatures, DescriptionNamesTheInstructionSet) {
  EXPECT_THAT(CpuDescription(), testing::EndsWith(std::string(", ") + std::string(IsaName(DetectIsa()))));
}

}  // namespace
}  // namespace pith
