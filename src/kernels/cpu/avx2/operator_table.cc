#include "kernels/cpu/tables.h"

namespace pith {

const OperatorEntry kOperators__avx2[] = {{}};
const size_t kNumOperators__avx2 = 0;

}  // namespace pith
