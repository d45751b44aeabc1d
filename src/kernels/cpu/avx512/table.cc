#include "kernels/cpu/tables.h"

namespace pith {

const GemmTable kGemmTable__avx512 = {nullptr, 0};

}  // namespace pith
