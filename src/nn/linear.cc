#include "nn/linear.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "nn/dense_weight.h"

namespace pith {
namespace {

GemmProblem ProblemOf(const LinearSource& source) {
  GemmProblem problem{.n = source.out(), .k = source.in()};
  if (source.quantized != nullptr) {
    problem.group_size = source.quantized->group_size;
    problem.bits = source.quantized->bits;
    problem.has_zero_point = !source.quantized->zero_point.empty();
    problem.has_min = !source.quantized->min.empty();
  }
  return problem;
}

GemmWeight FamilyOf(const LinearSource& source) {
  if (source.quantized == nullptr) return GemmWeight::kBf16;
  return source.quantized->bits <= 4 ? GemmWeight::kW4Grouped : GemmWeight::kW8Grouped;
}

bool CanShareMatrix(const LinearSource& a, const LinearSource& b) {
  const GemmProblem p = ProblemOf(a), q = ProblemOf(b);
  return FamilyOf(a) == FamilyOf(b) && p.group_size == q.group_size && p.bits == q.bits && p.has_zero_point == q.has_zero_point &&
         p.has_min == q.has_min;
}

// The rows of several sources one after the other, in the form a kernel prepacks from. A single quantized source is borrowed.
struct StackedRows {
  std::vector<uint16_t> dense;
  QuantizedTensor stacked;
  const QuantizedTensor* quantized = nullptr;
};

template <typename T> void AppendTo(std::vector<T>& out, const std::vector<T>& in) { out.insert(out.end(), in.begin(), in.end()); }

absl::StatusOr<StackedRows> StackRows(absl::Span<const LinearSource> parts, int64_t n, int64_t k, ThreadPool& pool) {
  StackedRows rows;
  if (parts[0].quantized == nullptr) rows.dense.resize(n * k);
  int64_t row = 0;
  for (const LinearSource& part : parts) {
    const std::string tensor = absl::StrCat(part.name, ".weight");
    if (part.quantized == nullptr) {
      RETURN_IF_ERROR(ConvertToBfloat16(tensor, *part.dense, pool, absl::MakeSpan(rows.dense).subspan(row * k, part.out() * k)));
      row += part.out();
      continue;
    }
    const QuantizedTensor& q = *part.quantized;
    RETURN_IF_ERROR(CheckFinite(absl::StrCat(tensor, " (scale)"), q.scale, q.num_groups()));
    RETURN_IF_ERROR(CheckFinite(absl::StrCat(tensor, " (min)"), q.min, q.num_groups()));
    if (parts.size() == 1) {
      rows.quantized = &q;
      continue;
    }
    AppendTo(rows.stacked.code, q.code);
    AppendTo(rows.stacked.scale, q.scale);
    AppendTo(rows.stacked.zero_point, q.zero_point);
    AppendTo(rows.stacked.min, q.min);
  }
  return rows;
}

}  // namespace

absl::StatusOr<Linear> Linear::Load(absl::Span<const LinearSource> parts, const ComputeContext& context) {
  CHECK(!parts.empty());
  Linear linear;
  linear.in_ = parts[0].in();
  bool has_bias = false;
  for (const LinearSource& part : parts) {
    CHECK((part.dense == nullptr) != (part.quantized == nullptr));
    CHECK_EQ(part.in(), linear.in_);
    CHECK(part.bias.empty() || static_cast<int64_t>(part.bias.size()) == part.out());
    has_bias |= !part.bias.empty();
  }
  for (size_t begin = 0; begin < parts.size();) {
    size_t end = begin + 1;
    while (end < parts.size() && CanShareMatrix(parts[begin], parts[end])) ++end;
    RETURN_IF_ERROR(linear.AddSegment(parts.subspan(begin, end - begin), context));
    begin = end;
  }
  if (has_bias) {
    linear.bias_.reserve(linear.out_);
    for (const LinearSource& part : parts) {
      linear.bias_.insert(linear.bias_.end(), part.bias.begin(), part.bias.end());
      if (part.bias.empty()) linear.bias_.insert(linear.bias_.end(), part.out(), 0.0f);
    }
  }
  return linear;
}

absl::Status Linear::AddSegment(absl::Span<const LinearSource> parts, const ComputeContext& context) {
  Segment segment;
  segment.problem = ProblemOf(parts[0]);
  for (const LinearSource& part : parts.subspan(1)) segment.problem.n += part.out();
  segment.column_begin = out_;
  segment.panel_begin = num_panels_;
  absl::StatusOr<GemmSelection> selection = SelectGemm(FamilyOf(parts[0]), segment.problem, context.isa);
  if (!selection.ok()) return Annotate(selection.status(), parts[0].name);
  segment.kernel = selection->kernel;

  ASSIGN_OR_RETURN(const StackedRows rows, StackRows(parts, segment.problem.n, segment.problem.k, *context.pool));
  segment.weight = AlignedBuffer(segment.kernel->prepack_bytes(segment.problem));
  GemmPrepackParams params{.problem = segment.problem, .out = segment.weight.data()};
  if (parts[0].quantized == nullptr) {
    params.dense = rows.dense.data();
  } else {
    const QuantizedTensor& q = rows.quantized != nullptr ? *rows.quantized : rows.stacked;
    params.code = q.code.data();
    params.scale = q.scale.data();
    params.zero_point = q.zero_point.empty() ? nullptr : q.zero_point.data();
    params.min = q.min.empty() ? nullptr : q.min.data();
  }
  context.pool->ParallelFor(segment.num_panels(), 1, [&](int64_t begin, int64_t end, int) {
    GemmPrepackParams range = params;
    range.panel_begin = begin;
    range.panel_end = end;
    segment.kernel->prepack(range);
  });

  for (const LinearSource& part : parts) {
    TensorDataPath& path = data_path_.emplace_back(DescribeStorage(part));
    DescribeKernel(*segment.kernel, selection->refused, path);
    path.resident_bytes = static_cast<int64_t>(segment.weight.size()) * part.out() / segment.problem.n;
  }
  out_ += segment.problem.n;
  num_panels_ += segment.num_panels();
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

void Linear::Run(const ComputeContext& context, const uint16_t* activation, int64_t activation_stride, int64_t m, float* out,
                 int64_t out_stride, bool accumulate) const {
  DCHECK(m >= 1);
  context.pool->ParallelFor(num_panels_, 1, [&](int64_t begin, int64_t end, int) {
    for (const Segment& segment : segments_) {
      const int64_t first = std::max<int64_t>(begin - segment.panel_begin, 0);
      const int64_t last = std::min(end - segment.panel_begin, segment.num_panels());
      if (first >= last) continue;
      segment.kernel->run({.problem = segment.problem,
                           .weight = segment.weight.data(),
                           .activation = activation,
                           .activation_stride = activation_stride,
                           .m = m,
                           .bias = bias_.empty() ? nullptr : bias_.data() + segment.column_begin,
                           .out = out + segment.column_begin,
                           .out_stride = out_stride,
                           .accumulate = accumulate,
                           .panel_begin = first,
                           .panel_end = last});
    }
  });
}

int64_t Linear::resident_bytes() const {
  int64_t bytes = static_cast<int64_t>(bias_.size() * sizeof(float));
  for (const Segment& segment : segments_) bytes += static_cast<int64_t>(segment.weight.size());
  return bytes;
}

}  // namespace pith
