#include "kernels/registry.h"

#include "kernels/cpu/tables.h"

namespace pith {
namespace {

static_assert(static_cast<int>(KernelIsa::kScalar) == static_cast<int>(Isa::kScalar));
static_assert(static_cast<int>(KernelIsa::kAvx2) == static_cast<int>(Isa::kAvx2));
static_assert(static_cast<int>(KernelIsa::kAvx2Vnni) == static_cast<int>(Isa::kAvx2Vnni));
static_assert(static_cast<int>(KernelIsa::kAvx512) == static_cast<int>(Isa::kAvx512));
static_assert(static_cast<int>(KernelIsa::kAvx512Vnni) == static_cast<int>(Isa::kAvx512Vnni));
static_assert(static_cast<int>(KernelIsa::kAmx) == static_cast<int>(Isa::kAmx));

}  // namespace

std::vector<const GemmKernelEntry*> AllGemmKernels() {
  std::vector<const GemmKernelEntry*> all;
  for (const GemmTable* table :
       {&kGemmTable__amx, &kGemmTable__avx512_vnni, &kGemmTable__avx512, &kGemmTable__avx2_vnni, &kGemmTable__avx2, &kGemmTable__scalar}) {
    all.insert(all.end(), table->rows, table->rows + table->count);
  }
  return all;
}

std::vector<const OperatorEntry*> AllOperators() {
  std::vector<const OperatorEntry*> all;
  const auto append = [&all](const OperatorEntry* rows, size_t count) {
    for (size_t i = 0; i < count; ++i) all.push_back(&rows[i]);
  };
  append(kOperators__amx, kNumOperators__amx);
  append(kOperators__avx512_vnni, kNumOperators__avx512_vnni);
  append(kOperators__avx512, kNumOperators__avx512);
  append(kOperators__avx2_vnni, kNumOperators__avx2_vnni);
  append(kOperators__avx2, kNumOperators__avx2);
  append(kOperators__scalar, kNumOperators__scalar);
  return all;
}

std::optional<KernelRow> FindKernel(absl::string_view name) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (row->name == name) return KernelRow{row->name, row->isa, row->multiply, row->emulated, true};
  }
  for (const OperatorEntry* row : AllOperators()) {
    if (row->name == name) return KernelRow{row->name, row->isa, row->multiply, row->emulated, false};
  }
  return std::nullopt;
}

}  // namespace pith
