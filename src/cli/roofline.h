// The least time an operator could take on this machine: the longer of streaming its weights, keys and values at the measured read
// bandwidth and doing its operations at the peak of the products its kernel row declares (kernels/kernel_entry.h), measured with the
// instruction set of the run. Activations are left out: they pass from operator to operator through the caches. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cli/machine_limits.h"
#include "kernels/registry.h"
#include "nn/profiler.h"

namespace pith {

// The rows of a record's kernel, in order; several are joined by "+". What is no row ("read_row of ...") is left out.
std::vector<KernelRow> RowsOf(absl::string_view kernel);

struct RooflineTime {
  double read_seconds = 0, multiply_seconds = 0;
  double seconds() const { return read_seconds > multiply_seconds ? read_seconds : multiply_seconds; }
  RooflineTime& operator+=(const RooflineTime& other) {
    read_seconds += other.read_seconds;
    multiply_seconds += other.multiply_seconds;
    return *this;
  }
};
// Of one operator; of several operators the sums, for a whole pass.
RooflineTime Roofline(const OperatorRecord& record, const MachineLimits& limits);
RooflineTime Roofline(absl::Span<const OperatorRecord> records, const MachineLimits& limits);

}  // namespace pith
