// The least time an operator could take on this machine: the longer of streaming its weights, keys and values at the measured read
// bandwidth and doing its operations at the measured peak of the instruction its kernel multiplies with. Activations are left out: they
// pass from operator to operator through the caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cli/machine_limits.h"
#include "kernels/probe.h"
#include "nn/profiler.h"

namespace pith {

// The multiply instruction of a kernel row, by the activation part of its name and its instruction set.
struct KernelMultiply {
  ProbeLimit limit = ProbeLimit::kF32;
  int passes = 1;         // hardware multiplications per logical one: two for 16-bit activations in two int8 planes
  bool emulated = false;  // operands are widened to f32 for want of a bf16 or fp8 instruction
};
KernelMultiply MultiplyOfKernel(absl::string_view kernel);

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

// "scalar" of "gemm_bf16_w4g_f32__scalar"; of several rows joined by "+" the last one's.
absl::string_view IsaOfKernel(absl::string_view kernel);

}  // namespace pith
