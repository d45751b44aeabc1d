// What the ISA folders define and registry.cc reads: two constant tables per folder, each in a translation unit of its own.
//
//   cpu/<isa>/table.cc           kGemmTable__<isa>: the GEMM rows, preferred first. Each row is defined beside its kernel, in
//                                cpu/<isa>/gemm_<act>_<weight>.cc, as a constant named by the grammar of kernel_entry.h.
//                                Rows of several activations that run the same function share gemm_<weight>.cc.
//   cpu/<isa>/operator_table.cc  kOperators__<isa> and kNumOperators__<isa>: attention, norms, RoPE, activations, embedding, ...
//
// Everything is constant-initialized (a count that lives in another translation unit would need a dynamic initializer, compiled for
// that ISA and run on every CPU; so the tables do not refer to each other). POD only: ISA folders include this header.
#pragma once

#include "kernels/kernel_entry.h"

namespace pith {

struct GemmTable {
  const GemmKernelEntry* const* rows;
  size_t count;
};

extern const GemmTable kGemmTable__scalar;
extern const GemmTable kGemmTable__avx2;
extern const GemmTable kGemmTable__avx2_vnni;  // what it lacks falls back to avx2 by selection
extern const GemmTable kGemmTable__avx512;
extern const GemmTable kGemmTable__avx512_vnni;
extern const GemmTable kGemmTable__amx;

extern const OperatorEntry kOperators__scalar[];
extern const size_t kNumOperators__scalar;
extern const OperatorEntry kOperators__avx2[];
extern const size_t kNumOperators__avx2;
extern const OperatorEntry kOperators__avx2_vnni[];
extern const size_t kNumOperators__avx2_vnni;
extern const OperatorEntry kOperators__avx512[];
extern const size_t kNumOperators__avx512;
extern const OperatorEntry kOperators__avx512_vnni[];
extern const size_t kNumOperators__avx512_vnni;
extern const OperatorEntry kOperators__amx[];
extern const size_t kNumOperators__amx;

}  // namespace pith
