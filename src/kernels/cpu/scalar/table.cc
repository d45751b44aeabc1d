#include "kernels/cpu/tables.h"

namespace pith {

const GemmTable kGemmTable__scalar = {nullptr, 0};

}  // namespace pith
