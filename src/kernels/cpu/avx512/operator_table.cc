#include "kernels/cpu/tables.h"

namespace pith {

const OperatorEntry kOperators__avx512[] = {{}};
const size_t kNumOperators__avx512 = 0;

}  // namespace pith
