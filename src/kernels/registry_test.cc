#include "kernels/registry.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/probes.h"

namespace pith {
namespace {

bool HasBf16Products(KernelIsa isa) { return isa == KernelIsa::kAvx512Vnni || isa == KernelIsa::kAmx; }

TEST(Registry, EveryProductHasAProbeOfItsInstructionSet) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    EXPECT_GE(row->multiply.passes, 1) << row->name;
    const ProbeEntry* probe = FindProbe(row->multiply.limit, static_cast<Isa>(row->isa));
    ASSERT_NE(probe, nullptr) << row->name;
    EXPECT_NE(probe->multiply, nullptr) << row->name;
  }
  for (const OperatorEntry* row : AllOperators()) {
    EXPECT_EQ(row->multiply.passes > 0, row->attention != nullptr) << row->name;  // the others are element-wise
    const ProbeEntry* probe = FindProbe(row->multiply.limit, static_cast<Isa>(row->isa));
    ASSERT_NE(probe, nullptr) << row->name;
    EXPECT_NE(probe->multiply, nullptr) << row->name;
  }
}

TEST(Registry, GemmRowsMultiplyWhatTheirActivationsAre) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    const bool integers = row->activation == GemmActivation::kInt16 || row->activation == GemmActivation::kInt8;
    const ProbeLimit floats = HasBf16Products(row->isa) ? ProbeLimit::kBf16 : ProbeLimit::kF32;
    EXPECT_EQ(row->multiply.limit, integers ? ProbeLimit::kInt8 : floats) << row->name;
    // Below VNNI the two planes are joined before they are multiplied.
    const bool two = row->activation == GemmActivation::kInt16 && row->isa != KernelIsa::kScalar && row->isa != KernelIsa::kAvx2;
    EXPECT_EQ(row->multiply.passes, two ? 2 : 1) << row->name;
    const bool bytes_times_int8 = row->activation == GemmActivation::kInt8 && row->weight == GemmWeight::kW8Grouped;
    EXPECT_EQ(row->add_outliers != nullptr, bytes_times_int8) << row->name;
  }
}

TEST(Registry, AttentionOverIntegersMultipliesIntegersWhereThereAreInstructions) {
  for (const OperatorEntry* row : AllOperators()) {
    if (row->attention == nullptr) continue;
    const bool vnni = row->isa == KernelIsa::kAvx2Vnni || row->isa == KernelIsa::kAvx512Vnni || row->isa == KernelIsa::kAmx;
    ProbeLimit expected = ProbeLimit::kF32;
    if (vnni && row->kv_dtype == KvDtype::kInt8) expected = ProbeLimit::kInt8;
    if (row->isa == KernelIsa::kAmx && row->kv_dtype != KvDtype::kInt8) expected = ProbeLimit::kBf16;
    EXPECT_EQ(row->multiply.limit, expected) << row->name;
    EXPECT_EQ(row->multiply.passes, expected == ProbeLimit::kF32 ? 1 : 2) << row->name;  // two planes, or two bf16 parts
  }
}

// "" where the types are multiplied as they are.
std::string StandIn(absl::string_view type, KernelIsa isa, absl::string_view widest) {
  if (type == "bf16" && HasBf16Products(isa)) return "";
  return absl::StrCat(type, " as ", HasBf16Products(isa) ? "bf16" : widest);
}

TEST(Registry, EmulatedSaysWhatStandsInForWhat) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    const bool bf16 = row->activation == GemmActivation::kBf16;
    std::string expected = bf16 ? StandIn("bf16", row->isa, "f32") : "";
    if (row->weight == GemmWeight::kF8Grouped) expected = StandIn("fp8", row->isa, "f32");
    EXPECT_EQ(std::string(row->emulated != nullptr ? row->emulated : ""), expected) << row->name;
  }
  for (const OperatorEntry* row : AllOperators()) {
    std::string expected;
    if (row->attention != nullptr) {
      const absl::string_view widest = row->isa == KernelIsa::kScalar ? "f64" : "f32";
      const absl::string_view types[] = {"bf16", "int8", "fp8"};
      const absl::string_view type = types[static_cast<int>(row->kv_dtype)];
      if (row->multiply.limit != ProbeLimit::kInt8) expected = StandIn(type, row->isa, widest);
    }
    EXPECT_EQ(std::string(row->emulated != nullptr ? row->emulated : ""), expected) << row->name;
  }
}

TEST(Registry, RowsAreFoundByName) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    const std::optional<KernelRow> found = FindKernel(row->name);
    ASSERT_TRUE(found.has_value()) << row->name;
    EXPECT_TRUE(found->is_gemm);
    EXPECT_EQ(found->isa, row->isa);
    EXPECT_EQ(found->multiply.limit, row->multiply.limit);
    EXPECT_EQ(found->multiply.passes, row->multiply.passes);
    EXPECT_EQ(found->emulated, row->emulated);
  }
  for (const OperatorEntry* row : AllOperators()) {
    const std::optional<KernelRow> found = FindKernel(row->name);
    ASSERT_TRUE(found.has_value()) << row->name;
    EXPECT_FALSE(found->is_gemm);
    EXPECT_EQ(found->multiply.limit, row->multiply.limit);
    EXPECT_EQ(found->emulated, row->emulated);
  }
  EXPECT_FALSE(FindKernel("read_row of gemm_bf16_bf16_f32__avx2").has_value());
  EXPECT_FALSE(FindKernel("").has_value());
}

}  // namespace
}  // namespace pith
