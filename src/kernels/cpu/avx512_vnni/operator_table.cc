#include "kernels/cpu/tables.h"

namespace pith {

const OperatorEntry kOperators__avx512_vnni[] = {{}};
const size_t kNumOperators__avx512_vnni = 0;

}  // namespace pith
