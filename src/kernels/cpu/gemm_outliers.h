// GemmKernelEntry::add_outliers of the rows with the i8 layout (gemm_layout.h): one function, compiled for the baseline CPU, so that every
// instruction set gives the same bits. POD only: ISA folders include this header.
#pragma once

#include "kernels/gemm.h"

namespace pith {

void AddI8Outliers(const GemmParams& params);

}  // namespace pith
