#include "cli/roofline.h"

#include <algorithm>

#include "absl/strings/str_split.h"

namespace pith {
namespace {

// Of a product by the fastest of the rows: the record does not say which of them did how much, and the least time must not be more than
// is possible. 0: they multiply nothing, or nothing was measured.
double ProductGops(absl::Span<const KernelRow> rows, const MachineLimits& limits) {
  double fastest = 0;
  for (const KernelRow& row : rows) {
    if (row.multiply.passes > 0) fastest = std::max(fastest, limits.gops(row.multiply.limit) / row.multiply.passes);
  }
  return fastest;
}

}  // namespace

std::vector<KernelRow> RowsOf(absl::string_view kernel) {
  std::vector<KernelRow> rows;
  for (const absl::string_view name : absl::StrSplit(kernel, '+', absl::SkipEmpty())) {
    if (const std::optional<KernelRow> row = FindKernel(name); row.has_value()) rows.push_back(*row);
  }
  return rows;
}

RooflineTime Roofline(const OperatorRecord& record, const MachineLimits& limits) {
  const double gops = ProductGops(RowsOf(record.kernel), limits);
  RooflineTime time;
  time.read_seconds = 1e-9 * static_cast<double>(record.work.weight_bytes + record.work.kv_bytes) / limits.read_gb_per_s;
  if (gops > 0) time.multiply_seconds = 1e-9 * static_cast<double>(record.work.operations) / gops;
  return time;
}

RooflineTime Roofline(absl::Span<const OperatorRecord> records, const MachineLimits& limits) {
  RooflineTime total;
  for (const OperatorRecord& record : records) total += Roofline(record, limits);
  return total;
}

}  // namespace pith
