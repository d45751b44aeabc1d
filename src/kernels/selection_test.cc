#include "kernels/selection.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/registry.h"

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Sets PITH_FORCE_ISA for a scope.
class ForcedIsa {
 public:
  explicit ForcedIsa(const std::string& name) { setenv("PITH_FORCE_ISA", name.c_str(), 1); }
  ~ForcedIsa() { unsetenv("PITH_FORCE_ISA"); }
};

// "int16" of "int16 dynamic".
std::string ShortName(GemmActivation activation) {
  const absl::string_view name = GemmActivationName(activation);
  return std::string(name.substr(0, name.find(' ')));
}

TEST(Registry, NamesFollowTheGrammarAndAreUnique) {
  std::set<std::string> names;
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    EXPECT_TRUE(absl::StartsWith(row->name, absl::StrCat("gemm_", ShortName(row->activation), "_"))) << row->name;
    EXPECT_TRUE(absl::EndsWith(row->name, absl::StrCat("_f32__", IsaName(static_cast<Isa>(row->isa))))) << row->name;
    EXPECT_TRUE(names.insert(row->name).second) << row->name;
  }
}

// Tests of kernels pass over the rows that the CPU lacks: which they are is said here.
TEST(Registry, EveryRowRunsOnThisCpu) {
  std::string lacking;
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (!RunsHere(row->isa)) absl::StrAppend(&lacking, "\n  ", row->name);
  }
  for (const OperatorEntry* row : AllOperators()) {
    if (!RunsHere(row->isa)) absl::StrAppend(&lacking, "\n  ", row->name);
  }
  if (!lacking.empty()) GTEST_SKIP() << "no test runs these rows, for this CPU lacks their instructions:" << lacking;
}

TEST(Registry, EveryIsaHasEveryWeightFamilyItGainsByAndTheBestComesFirst) {
  std::set<std::pair<Isa, GemmWeight>> seen;
  int previous = static_cast<int>(Isa::kAmx);
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    EXPECT_LE(static_cast<int>(row->isa), previous) << row->name;
    previous = static_cast<int>(row->isa);
    seen.insert({static_cast<Isa>(row->isa), row->weight});
  }
  EXPECT_THAT(seen, SizeIs(22));  // five instruction sets times four families, and the two of avx2_vnni
  EXPECT_TRUE(seen.contains({Isa::kAvx2Vnni, GemmWeight::kW8Grouped}) && seen.contains({Isa::kAvx2Vnni, GemmWeight::kW4Grouped}));
}

TEST(SelectGemm, ForcingAnInstructionSetSelectsIt) {
  const GemmProblem problem{.n = 64, .k = 64, .group_size = 32, .bits = 4};
  for (const Isa isa : kAllIsas) {
    if (!ThisCpu().Supports(isa)) continue;
    const ForcedIsa forced{std::string(IsaName(isa))};
    const absl::StatusOr<Isa> selected = SelectIsa();
    ASSERT_TRUE(selected.ok()) << selected.status();
    EXPECT_EQ(*selected, isa);
    const absl::StatusOr<GemmSelection> gemm = SelectGemm(GemmWeight::kW4Grouped, problem, *selected);
    ASSERT_TRUE(gemm.ok()) << gemm.status();
    // amx and avx2_vnni have no row for bf16 times int codes
    const Isa bf16_isa = isa == Isa::kAvx2Vnni ? Isa::kAvx2 : std::min(isa, Isa::kAvx512Vnni);
    EXPECT_EQ(std::string(gemm->kernel->name), absl::StrCat("gemm_bf16_w4g_f32__", IsaName(bf16_isa)));
    const Isa bf16_isas[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni};
    EXPECT_THAT(gemm->refused, SizeIs(std::end(bf16_isas) - std::upper_bound(std::begin(bf16_isas), std::end(bf16_isas), bf16_isa)));
    GemmProblem integer = problem;
    integer.activation = GemmActivation::kInt16;
    integer.activation_group = 32;
    const absl::StatusOr<GemmSelection> exact = SelectGemm(GemmWeight::kW4Grouped, integer, *selected);
    ASSERT_TRUE(exact.ok()) << exact.status();
    const Isa integer_isa = isa == Isa::kAvx512 ? Isa::kAvx2 : isa;  // without VNNI, 512 bits gain nothing
    EXPECT_EQ(std::string(exact->kernel->name), absl::StrCat("gemm_int16_w4g_f32__", IsaName(integer_isa)));
  }
}

TEST(MissingRows, SetsThatHaveNoneOfTheKindAreNamed) {
  GemmProblem problem{.n = 64, .k = 64, .group_size = 32, .bits = 4};
  const auto missing = [&](Isa isa) {
    const absl::StatusOr<GemmSelection> gemm = SelectGemm(GemmWeight::kW4Grouped, problem, isa);
    EXPECT_TRUE(gemm.ok()) << gemm.status();
    return MissingRows(*gemm->kernel, isa);
  };
  EXPECT_THAT(missing(Isa::kAmx), ElementsAre("amx: no row for bf16 activations times w4g"));
  EXPECT_THAT(missing(Isa::kAvx2Vnni), ElementsAre("avx2_vnni: no row for bf16 activations times w4g"));
  EXPECT_THAT(missing(Isa::kAvx512Vnni), IsEmpty());
  EXPECT_THAT(missing(Isa::kScalar), IsEmpty());
  problem.activation = GemmActivation::kInt8;
  problem.activation_group = 32;
  EXPECT_THAT(missing(Isa::kAmx), IsEmpty());
  EXPECT_THAT(missing(Isa::kAvx512), ElementsAre("avx512: no row for int8 dynamic activations times w4g"));
}

// avx2_vnni comes before avx512 in the order, but a CPU that was found to have AVX-512 may lack AVX-VNNI.
TEST(SelectGemm, NoOtherInstructionSetBringsAvxVnni) {
  for (const GemmActivation activation : {GemmActivation::kInt16, GemmActivation::kInt8}) {
    for (const GemmWeight weight : {GemmWeight::kW4Grouped, GemmWeight::kW8Grouped}) {
      GemmProblem problem{.n = 64, .k = 64, .group_size = 32, .bits = weight == GemmWeight::kW4Grouped ? 4 : 8};
      problem.activation = activation;
      problem.activation_group = 32;
      for (const Isa isa : kAllIsas) {
        const absl::StatusOr<GemmSelection> gemm = SelectGemm(weight, problem, isa);
        ASSERT_TRUE(gemm.ok()) << gemm.status();
        EXPECT_EQ(gemm->kernel->isa == KernelIsa::kAvx2Vnni, isa == Isa::kAvx2Vnni) << gemm->kernel->name << ", chosen " << IsaName(isa);
      }
      const absl::StatusOr<GemmSelection> wide = SelectGemm(weight, problem, Isa::kAvx512);
      EXPECT_EQ(wide->kernel->isa, KernelIsa::kAvx2) << wide->kernel->name;
      EXPECT_THAT(wide->refused, Contains(HasSubstr("__avx2_vnni: needs avx2_vnni, chosen avx512")));
    }
  }
  for (const Isa isa : kAllIsas) {
    const Isa attention = static_cast<Isa>(SelectAttention(KvDtype::kInt8, 64, isa).attention->isa);
    EXPECT_EQ(attention == Isa::kAvx2Vnni, isa == Isa::kAvx2Vnni) << IsaName(isa);
    for (const std::string& name : SelectOperators(isa).names) EXPECT_TRUE(isa == Isa::kAvx2Vnni || !absl::EndsWith(name, "__avx2_vnni"));
  }
}

TEST(SelectGemm, WhatNoVectorRowTakesReachesScalarWithTheReasons) {
  struct {
    GemmWeight weight;
    GemmProblem problem;
    const char* reason;
  } cases[] = {
      {GemmWeight::kW4Grouped, {.n = 8, .k = 9, .group_size = 3, .bits = 4}, "group_size is odd"},
      {GemmWeight::kW8Grouped, {.n = 8, .k = 9, .group_size = 9, .bits = 8}, "group_size is odd"},
      {GemmWeight::kW8Grouped, {.n = 8, .k = 8194, .group_size = 2, .bits = 8, .has_min = true}, "more than 4096 groups"},
      {GemmWeight::kW4Grouped, {.n = 8, .k = 8194, .group_size = 2, .bits = 3, .has_zero_point = true}, "more than 4096 groups"},
      {GemmWeight::kF8Grouped, {.n = 8, .k = 9, .group_size = 9, .bits = 8, .activation = GemmActivation::kFp8}, "group_size is odd"},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<GemmSelection> gemm = SelectGemm(c.weight, c.problem, Isa::kAvx512Vnni);
    ASSERT_TRUE(gemm.ok()) << gemm.status();
    EXPECT_EQ(gemm->kernel->isa, KernelIsa::kScalar) << gemm->kernel->name;
    EXPECT_THAT(std::vector<std::string>(gemm->refused.end() - 3, gemm->refused.end()), Each(HasSubstr(c.reason)));
    for (size_t i = 0; i + 3 < gemm->refused.size(); ++i) EXPECT_THAT(gemm->refused[i], HasSubstr("needs amx"));
  }
}

TEST(SelectGemm, AProblemNoRowTakesIsNotSupported) {
  const GemmProblem cases[] = {
      {.n = 8, .k = 10, .group_size = 4, .bits = 4},                                          // does not divide
      {.n = 8, .k = 8, .group_size = 0, .bits = 4},                                           // no group size
      {.n = 8, .k = 8, .group_size = 4, .bits = 8},                                           // not this family's bits
      {.n = 0, .k = 8, .group_size = 4, .bits = 4},                                           // empty
      {.n = 8, .k = 8, .group_size = 4, .bits = 4, .has_zero_point = true, .has_min = true},  // two offsets
  };
  for (const GemmProblem& problem : cases) {
    const absl::StatusOr<GemmSelection> gemm = SelectGemm(GemmWeight::kW4Grouped, problem, Isa::kAvx512Vnni);
    ASSERT_FALSE(gemm.ok());
    EXPECT_EQ(gemm.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(gemm.status().message()), HasSubstr("gemm_bf16_w4g_f32__scalar: "));
  }
  EXPECT_FALSE(SelectGemm(GemmWeight::kBf16, {.n = 8, .k = 8, .bits = 8}, Isa::kAvx512Vnni).ok());
  const GemmProblem no_fp8[] = {
      {.n = 8, .k = 8, .group_size = 4, .bits = 8, .has_zero_point = true},
      {.n = 8, .k = 8, .group_size = 4, .bits = 8, .has_min = true},
      {.n = 8, .k = 8, .group_size = 4, .bits = 4},
  };
  for (const GemmProblem& problem : no_fp8) EXPECT_FALSE(SelectGemm(GemmWeight::kF8Grouped, problem, Isa::kAvx512Vnni).ok());
}

TEST(SelectAttention, EveryCacheFormatOnEveryIsaWithTheReasons) {
  for (const Isa isa : kAllIsas) {
    for (const KvDtype dtype : {KvDtype::kBf16, KvDtype::kInt8, KvDtype::kFp8}) {
      const AttentionSelection selection = SelectAttention(dtype, 64, isa);
      ASSERT_NE(selection.attention, nullptr);
      ASSERT_NE(selection.kv_append, nullptr);
      EXPECT_NE(selection.attention->attention_combine, nullptr);
      EXPECT_EQ(selection.attention->kv_dtype, dtype);
      EXPECT_EQ(selection.kv_append->kv_dtype, dtype);
      EXPECT_TRUE(IsaIncludes(isa, static_cast<Isa>(selection.attention->isa))) << selection.attention->name;
      EXPECT_THAT(selection.refused, Each(HasSubstr(absl::StrCat(", chosen ", IsaName(isa)))));
    }
  }
  const AttentionSelection best = SelectAttention(KvDtype::kInt8, 128, Isa::kAvx512Vnni);
  EXPECT_STREQ(best.attention->name, "attention_f32_int8_bf16__avx512_vnni");
  EXPECT_STREQ(best.kv_append->name, "kv_append_f32_int8__avx512");
  EXPECT_STREQ(SelectAttention(KvDtype::kInt8, 128, Isa::kAvx2Vnni).attention->name, "attention_f32_int8_bf16__avx2_vnni");
  EXPECT_STREQ(SelectAttention(KvDtype::kFp8, 128, Isa::kAvx512Vnni).attention->name, "attention_f32_fp8_bf16__avx512");
}

// Vector kernels move whole groups of 8 elements: with a head of 2 they would write over the next one.
TEST(SelectAttention, OddHeadSizesReachScalar) {
  for (const int64_t head_dim : {2, 4, 12, 20}) {
    const AttentionSelection selection = SelectAttention(KvDtype::kInt8, head_dim, Isa::kAmx);
    EXPECT_EQ(selection.attention->isa, KernelIsa::kScalar);
    EXPECT_THAT(selection.refused, AllOf(SizeIs(5), Each(AnyOf(HasSubstr("head_dim % 8 != 0"), HasSubstr("needs avx2_vnni")))));
  }
}

// Tiles multiply 32 bf16 at a time, and without them a kernel would read beyond a head.
TEST(SelectAttention, HeadSizesThatTilesCannotHoldAreRefusedAndSaySo) {
  const AttentionSelection selection = SelectAttention(KvDtype::kBf16, 40, Isa::kAmx);
  EXPECT_STREQ(selection.attention->name, "attention_f32_bf16_bf16__avx512");
  EXPECT_THAT(selection.refused, testing::ElementsAre("attention_f32_bf16_bf16__amx: head_dim % 32 != 0"));
}

TEST(Registry, AttentionNamesSayTheCacheFormat) {
  constexpr const char* kFormats[] = {"bf16", "int8", "fp8"};
  for (const OperatorEntry* row : AllOperators()) {
    const std::string format = kFormats[static_cast<int>(row->kv_dtype)], isa(IsaName(static_cast<Isa>(row->isa)));
    if (row->attention != nullptr) {
      EXPECT_EQ(std::string(row->name), absl::StrCat("attention_f32_", format, "_bf16__", isa));
      EXPECT_NE(row->attention_combine, nullptr) << row->name;
    }
    if (row->kv_append != nullptr) {
      EXPECT_EQ(std::string(row->name), absl::StrCat("kv_append_f32_", format, "__", isa));
    }
  }
}

TEST(SelectOperators, EveryIsaHasAllOfThemAndFallsBackDownwards) {
  for (const Isa isa : kAllIsas) {
    const Operators operators = SelectOperators(isa);
    EXPECT_EQ(operators.isa, isa);
    EXPECT_NE(operators.rms_norm, nullptr);
    EXPECT_NE(operators.rotary, nullptr);
    EXPECT_NE(operators.gated_activation, nullptr);
    EXPECT_NE(operators.embedding, nullptr);
    EXPECT_NE(operators.convert, nullptr);
    EXPECT_NE(operators.quantize_activation, nullptr);
    EXPECT_NE(operators.quantize_activation_fp8, nullptr);
    EXPECT_THAT(operators.names, SizeIs(7));
    // The row of the best ISA that `isa` includes and that has one.
    const auto rows = AllOperators();
    const auto chosen = std::find_if(rows.begin(), rows.end(), [isa](const OperatorEntry* row) {
      return row->rotary != nullptr && IsaIncludes(isa, static_cast<Isa>(row->isa));
    });
    ASSERT_NE(chosen, rows.end());
    EXPECT_EQ(operators.rotary, (*chosen)->rotary);
  }
}

}  // namespace
}  // namespace pith
