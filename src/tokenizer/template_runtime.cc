#include "tokenizer/template_runtime.h"

namespace pith::jinja {

// Every retained object is still held here while the others are emptied, so nothing is destroyed recursively from one to the next.
Runtime::~Runtime() {
  for (const auto& object : retained_) object->Release();
}

}  // namespace pith::jinja
