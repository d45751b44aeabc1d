#include "kernels/cpu/tables.h"

namespace pith {

const GemmTable kGemmTable__avx512_vnni = {nullptr, 0};

}  // namespace pith
