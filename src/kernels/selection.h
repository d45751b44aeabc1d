// Chooses kernels for this CPU (or for PITH_FORCE_ISA) and keeps the reason of every refusal, so `pith inspect` can print them.
// Thread-safe: the tables are constant; a `refused` list belongs to one call at a time.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/cpu_features.h"
#include "kernels/kernel_entry.h"

namespace pith {

struct GemmSelection {
  const GemmKernelEntry* kernel = nullptr;
  std::vector<std::string> refused;  // "gemm_bf16_w4g_f32__avx512_vnni: group_size % 8 != 0"
};

// "bf16", "int16 dynamic", "int8 dynamic", "fp8 in bf16".
absl::string_view GemmActivationName(GemmActivation activation);

// The first row, best ISA first, that can run `problem` with weights of family `weight` and the problem's kind of activations, and has
// an ISA that `isa` includes.
// Errors: kUnimplemented listing every refusal.
// `refused`, if given, carries refusals from one try to the next. In: those of earlier tries, which go before the ones of this try in the
// selection (or the error). Out: on an error all of them, for the next try; on success it stays as it was.
absl::StatusOr<GemmSelection> SelectGemm(GemmWeight weight, const GemmProblem& problem, Isa isa,
                                         std::vector<std::string>* refused = nullptr);

// The instruction sets that `isa` includes and that are preferred to the row's own, but have no row of its kind at all: "amx: no row for
// bf16 activations times w4g". That is no refusal: such a set brings nothing for this kind, or nobody has written it yet.
std::vector<std::string> MissingRows(const GemmKernelEntry& row, Isa isa);

// The attention kernels of one cache format. A kernel's partial states are its own, so attention and combine come from one row.
struct AttentionSelection {
  const OperatorEntry* attention = nullptr;  // attention and attention_combine
  const OperatorEntry* kv_append = nullptr;
  std::vector<std::string> refused;  // "attention_f32_int8_bf16__avx512_vnni: head_dim % 8 != 0"
};
// The first row of each, best ISA first, for this cache format and head_dim and an ISA that `isa` includes. Scalar takes everything.
AttentionSelection SelectAttention(KvDtype kv_dtype, int64_t head_dim, Isa isa);

// One of each other operator for an ISA; a missing one falls back to the best row that `isa` includes. Scalar has them all.
struct Operators {
  Isa isa = Isa::kScalar;
  void (*rms_norm)(const RmsNormParams&) = nullptr;
  void (*rotary)(const RotaryParams&) = nullptr;
  void (*gated_activation)(const GatedActivationParams&) = nullptr;
  void (*embedding)(const EmbeddingParams&) = nullptr;
  void (*convert)(const ConvertParams&) = nullptr;
  void (*quantize_activation)(const QuantizeActivationParams&) = nullptr;
  void (*quantize_activation_fp8)(const QuantizeActivationFp8Params&) = nullptr;
  std::vector<std::string> names;  // the rows chosen, for reports
};
Operators SelectOperators(Isa isa);

}  // namespace pith
