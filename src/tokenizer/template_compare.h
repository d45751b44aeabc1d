// ==, < and `in` as Python defines them. Exact between int, bool and float; errors where Python raises TypeError.
// Every compared element costs a step, so shared nested values cannot make a comparison explode.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

absl::StatusOr<bool> Equals(Budget& budget, const Value& a, const Value& b);
// a < b, or a <= b. Errors: types without an order.
absl::StatusOr<bool> Ordered(Budget& budget, const Value& a, const Value& b, bool or_equal);
inline absl::StatusOr<bool> Less(Budget& budget, const Value& a, const Value& b) { return Ordered(budget, a, b, false); }
// item in container. Uses up an iterator. Errors: no container, a str sought in by something else, an unhashable key.
absl::StatusOr<bool> Contains(Runtime& runtime, const Value& container, const Value& item);

// -1, 0 or 1; exact. nullopt when b is NaN.
std::optional<int> CompareNumbers(int64_t a, double b);

// Stable merge sort of indices 0..count-1 with a comparison that may fail. O(count log count) comparisons.
absl::StatusOr<std::vector<size_t>> StableSort(size_t count, absl::FunctionRef<absl::StatusOr<bool>(size_t, size_t)> less);

}  // namespace pith::jinja
