#include "kernels/cpu/tables.h"

namespace pith {

const GemmTable kGemmTable__avx2 = {nullptr, 0};

}  // namespace pith
