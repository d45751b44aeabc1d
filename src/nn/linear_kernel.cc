#include "nn/linear_kernel.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/gemm_problem.h"
#include "kernels/selection.h"

namespace pith {
namespace {

// k that share an activation scale: the weights' group, so that a step is one of both; long groups (per channel) are cut, since int16 sums
// must stay exact and one outlier should spoil a part of the row only.
int64_t ActivationGroup(const GemmProblem& problem) {
  constexpr int64_t kLargest = 128, kUnit = 8;
  if (problem.group_size <= kLargest) return problem.group_size;
  int64_t group = 0;
  for (int64_t candidate = kUnit; candidate <= kLargest; candidate += kUnit) {
    if (problem.group_size % candidate == 0) group = candidate;
  }
  return group != 0 ? group : problem.group_size;
}

// What a matrix is to be multiplied with. bf16: nothing else is wanted, or `refusal` says why nothing else can be.
struct Wanted {
  GemmActivation activation = GemmActivation::kBf16;
  int64_t group = 0;  // integers: k that share a scale
  float static_scale = 0, outlier_threshold = 0;
  std::vector<int32_t> outlier_columns;
  std::string text;
  std::string refusal;
};

bool IsInteger(GemmWeight family) { return family == GemmWeight::kW8Grouped || family == GemmWeight::kW4Grouped; }

// LLM.int8(): one scale per row for what is no outlier. `columns`: the outliers where they are fixed.
Wanted Int8WithOutliers(const GemmProblem& problem, float threshold, bool fixed, const std::vector<int32_t>& columns) {
  Wanted wanted{.activation = GemmActivation::kInt8, .group = problem.k};
  if (fixed) {
    wanted.outlier_columns = columns;
    wanted.text = "int8 dynamic per token, outlier columns in bf16";
  } else {
    wanted.outlier_threshold = threshold;
    wanted.text = absl::StrCat("int8 dynamic per token, outliers from ", threshold, " in f32");
  }
  return wanted;
}

Wanted DeclaredInt8(const InputQuantization& input, const GemmProblem& problem) {
  Wanted wanted{.activation = GemmActivation::kInt8, .group = problem.k, .text = "int8 dynamic per token"};
  const QuantizationArgs& args = input.args;
  if (!args.dynamic) {
    wanted.static_scale = input.static_scale;
    wanted.text = "int8 static per tensor";
  } else if (args.strategy == QuantizationStrategy::kGroup || problem.group_size != problem.k) {
    wanted.group = args.strategy == QuantizationStrategy::kGroup ? args.group_size : ActivationGroup(problem);
    wanted.text = absl::StrCat("int8 dynamic per row and group of ", wanted.group);
  }
  return wanted;
}

Wanted Declared(GemmWeight family, const InputQuantization& input, const GemmProblem& problem) {
  const QuantizationArgs& args = input.args;
  if (args.outlier_threshold > 0 && family == GemmWeight::kW8Grouped) {
    return Int8WithOutliers(problem, args.outlier_threshold, args.fixed_outliers, input.outlier_columns);
  }
  if (args.outlier_threshold == 0 && args.num_bits == 8 && args.type == QuantizationType::kInt && IsInteger(family)) {
    return DeclaredInt8(input, problem);
  }
  const bool one_scale_per_row = args.strategy != QuantizationStrategy::kGroup;
  if (args.type == QuantizationType::kFloat && family == GemmWeight::kF8Grouped && one_scale_per_row) {
    return {.activation = GemmActivation::kFp8,
            .static_scale = input.static_scale,
            .text = args.dynamic ? "fp8 dynamic per token" : "fp8 static per tensor"};
  }
  return {.refusal = absl::StrCat("activations ", DescribeInput(args), ": no kernel multiplies these weights with them")};
}

Wanted WeightOnly(GemmWeight family, const GemmProblem& problem, const ComputeContext& context) {
  const auto [kind, outlier_threshold] = context.weight_only_activation;
  if (!IsInteger(family) || kind == GemmActivation::kBf16) return {};
  if (outlier_threshold > 0 && family == GemmWeight::kW8Grouped) return Int8WithOutliers(problem, outlier_threshold, false, {});
  const GemmActivation activation = outlier_threshold > 0 ? GemmActivation::kInt16 : kind;
  return {.activation = activation, .group = ActivationGroup(problem), .text = std::string(GemmActivationName(activation))};
}

InputFormat FormatOf(const GemmProblem& problem, const Wanted& wanted) {
  InputFormat format{.kind = problem.activation,
                     .static_scale = wanted.static_scale,
                     .outlier_threshold = wanted.outlier_threshold,
                     .outlier_columns = wanted.outlier_columns};
  if (problem.activation == GemmActivation::kInt16 || problem.activation == GemmActivation::kInt8) {
    format.group_size = problem.activation_group;
    format.sum_group = problem.step();
  }
  return format;
}

// Why no better row was chosen: those that refused, then the instruction sets that have none.
std::vector<std::string> WithMissingRows(GemmSelection selection, Isa isa) {
  for (std::string& missing : MissingRows(*selection.kernel, isa)) selection.refused.push_back(std::move(missing));
  return std::move(selection.refused);
}

// The dense kernel for the [n, columns] part of the weights that is kept in bf16.
absl::Status SelectOutlierKernel(int64_t n, Isa isa, LinearKernel& chosen) {
  chosen.outlier_problem = DescribeDenseGemm(n, static_cast<int64_t>(chosen.input.outlier_columns.size()));
  ASSIGN_OR_RETURN(const GemmSelection selection, SelectGemm(GemmWeight::kBf16, chosen.outlier_problem, isa, nullptr));
  chosen.outlier_kernel = selection.kernel;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LinearKernel> SelectLinearKernel(GemmWeight family, const std::optional<InputQuantization>& input, GemmProblem& problem,
                                                const ComputeContext& context) {
  const Wanted wanted = input.has_value() ? Declared(family, *input, problem) : WeightOnly(family, problem, context);
  std::vector<std::string> refused;
  if (!wanted.refusal.empty()) refused.push_back(wanted.refusal);
  if (wanted.activation != GemmActivation::kBf16) {
    problem.activation = wanted.activation;
    problem.activation_group = wanted.group;
    absl::StatusOr<GemmSelection> selection = SelectGemm(family, problem, context.isa, &refused);
    if (selection.ok()) {
      LinearKernel chosen{.kernel = selection->kernel,
                          .input = FormatOf(problem, wanted),
                          .activation = wanted.text,
                          .refused = WithMissingRows(*std::move(selection), context.isa)};
      if (!wanted.outlier_columns.empty()) RETURN_IF_ERROR(SelectOutlierKernel(problem.n, context.isa, chosen));
      return chosen;
    }
    problem.activation = GemmActivation::kBf16;
    problem.activation_group = 0;
  }
  absl::StatusOr<GemmSelection> selection = SelectGemm(family, problem, context.isa, &refused);
  if (!selection.ok()) return selection.status();
  std::string text(GemmActivationName(GemmActivation::kBf16));
  if (input.has_value()) absl::StrAppend(&text, " (declared ", DescribeInput(input->args), ")");
  return LinearKernel{
      .kernel = selection->kernel, .activation = std::move(text), .refused = WithMissingRows(*std::move(selection), context.isa)};
}

}  // namespace pith
