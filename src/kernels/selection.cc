#include "kernels/selection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "kernels/registry.h"

namespace pith {
namespace {

absl::string_view WeightName(GemmWeight weight) {
  switch (weight) {
    case GemmWeight::kBf16: return "bf16";
    case GemmWeight::kW8Grouped: return "w8g";
    case GemmWeight::kW4Grouped: return "w4g";
    case GemmWeight::kF8Grouped: return "f8g";
  }
  return "unknown";
}

bool MayRun(KernelIsa needed, Isa chosen) { return IsaIncludes(chosen, static_cast<Isa>(needed)); }

std::string NeedsIsa(absl::string_view row, KernelIsa needed, Isa chosen) {
  return absl::StrCat(row, ": needs ", IsaName(static_cast<Isa>(needed)), ", chosen ", IsaName(chosen));
}

// Takes the row's function if the operator is still missing; says whether it did.
template <typename F> bool Take(F* chosen, F candidate) {
  if (*chosen != nullptr || candidate == nullptr) return false;
  *chosen = candidate;
  return true;
}

}  // namespace

absl::string_view GemmActivationName(GemmActivation activation) {
  switch (activation) {
    case GemmActivation::kBf16: return "bf16";
    case GemmActivation::kInt16: return "int16 dynamic";
    case GemmActivation::kInt8: return "int8 dynamic";
    case GemmActivation::kFp8: return "fp8 in bf16";
  }
  return "unknown";
}

absl::StatusOr<GemmSelection> SelectGemm(GemmWeight weight, const GemmProblem& problem, Isa isa, std::vector<std::string>* refused) {
  GemmSelection selection;
  if (refused != nullptr) selection.refused = *refused;
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (row->weight != weight || row->activation != problem.activation) continue;
    if (!MayRun(row->isa, isa)) {
      selection.refused.push_back(NeedsIsa(row->name, row->isa, isa));
      continue;
    }
    const char* reason = row->can_implement(problem);
    if (reason == nullptr) {
      selection.kernel = row;
      return selection;
    }
    selection.refused.push_back(absl::StrCat(row->name, ": ", reason));
  }
  if (refused != nullptr) *refused = selection.refused;
  return NotSupportedError("gemm: expected a kernel for ", WeightName(weight), " weights [", problem.n, ", ", problem.k, "], ",
                           problem.bits, " bits, group size ", problem.group_size, ", ", GemmActivationName(problem.activation),
                           " activations; found none: ", absl::StrJoin(selection.refused, "; "));
}

std::vector<std::string> MissingRows(const GemmKernelEntry& row, Isa isa) {
  std::vector<std::string> missing;
  for (int i = static_cast<int>(isa); i > static_cast<int>(row.isa); --i) {
    if (!IsaIncludes(isa, static_cast<Isa>(i))) continue;
    const std::vector<const GemmKernelEntry*> rows = AllGemmKernels();
    const bool found = std::any_of(rows.begin(), rows.end(), [&](const GemmKernelEntry* other) {
      return static_cast<int>(other->isa) == i && other->weight == row.weight && other->activation == row.activation;
    });
    if (!found) {
      missing.push_back(absl::StrCat(IsaName(static_cast<Isa>(i)), ": no row for ", GemmActivationName(row.activation),
                                     " activations times ", WeightName(row.weight)));
    }
  }
  return missing;
}

AttentionSelection SelectAttention(KvDtype kv_dtype, int64_t head_dim, Isa isa) {
  AttentionSelection selection;
  for (const OperatorEntry* row : AllOperators()) {
    if (row->kv_dtype != kv_dtype || (row->attention == nullptr && row->kv_append == nullptr)) continue;
    const OperatorEntry** chosen = row->attention != nullptr ? &selection.attention : &selection.kv_append;
    if (*chosen != nullptr) continue;
    if (!MayRun(row->isa, isa)) {
      selection.refused.push_back(NeedsIsa(row->name, row->isa, isa));
    } else if (head_dim % row->head_dim_multiple != 0) {
      selection.refused.push_back(absl::StrCat(row->name, ": head_dim % ", row->head_dim_multiple, " != 0"));
    } else {
      *chosen = row;
    }
  }
  return selection;
}

Operators SelectOperators(Isa isa) {
  Operators chosen;
  chosen.isa = isa;
  for (const OperatorEntry* row : AllOperators()) {
    if (!MayRun(row->isa, isa)) continue;
    const bool taken = Take(&chosen.rms_norm, row->rms_norm) || Take(&chosen.rotary, row->rotary) ||
                       Take(&chosen.gated_activation, row->gated_activation) || Take(&chosen.embedding, row->embedding) ||
                       Take(&chosen.convert, row->convert) || Take(&chosen.quantize_activation, row->quantize_activation) ||
                       Take(&chosen.quantize_activation_fp8, row->quantize_activation_fp8);
    if (taken) chosen.names.push_back(row->name);
  }
  return chosen;
}

}  // namespace pith
