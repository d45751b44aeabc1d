#include "compression/input_observer.h"

#include "base/float_types.h"

namespace pith {

void InputObserver::OnLinearInput(absl::string_view module, const uint16_t* input, int64_t num_rows, int64_t dim) {
  const auto it = statistics_.find(std::string(module));
  if (it == statistics_.end()) return;
  rows_.resize(static_cast<size_t>(num_rows * dim));
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = ToFloat(bfloat16{input[i]});
  it->second->Add({rows_.data(), num_rows, dim}, pool_);
}

}  // namespace pith
