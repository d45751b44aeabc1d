#include "kernels/cpu/tables.h"

namespace pith {

const OperatorEntry kOperators__scalar[] = {{}};
const size_t kNumOperators__scalar = 0;

}  // namespace pith
