#include "cli/roofline.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace pith {

absl::string_view IsaOfKernel(absl::string_view kernel) {
  const size_t mark = kernel.rfind("__");
  return mark == absl::string_view::npos ? absl::string_view() : kernel.substr(mark + 2);
}

KernelMultiply MultiplyOfKernel(absl::string_view kernel) {
  const absl::string_view first = *absl::StrSplit(kernel, '+').begin();
  const std::vector<absl::string_view> parts = absl::StrSplit(first, '_');
  const absl::string_view activation = parts.size() > 1 ? parts[1] : "";
  if (parts[0] != "gemm") return {};
  if (activation == "int8") return {.limit = ProbeLimit::kInt8};
  if (activation == "int16") return {.limit = ProbeLimit::kInt8, .passes = 2};
  if (const absl::string_view isa = IsaOfKernel(first); isa == "avx512_vnni" || isa == "amx")
    return {.limit = ProbeLimit::kBf16, .emulated = absl::StrContains(first, "_f8g_")};
  return {.limit = ProbeLimit::kF32, .emulated = true};
}

RooflineTime Roofline(const OperatorRecord& record, const MachineLimits& limits) {
  const KernelMultiply multiply = MultiplyOfKernel(record.kernel);
  const double peak = limits.gops(multiply.limit);
  RooflineTime time;
  time.read_seconds = 1e-9 * static_cast<double>(record.work.weight_bytes + record.work.kv_bytes) / limits.read_gb_per_s;
  if (peak > 0) time.multiply_seconds = 1e-9 * static_cast<double>(record.work.operations * multiply.passes) / peak;
  return time;
}

RooflineTime Roofline(absl::Span<const OperatorRecord> records, const MachineLimits& limits) {
  RooflineTime total;
  for (const OperatorRecord& record : records) total += Roofline(record, limits);
  return total;
}

}  // namespace pith
