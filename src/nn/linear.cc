#include "nn/linear.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "kernels/gemm_problem.h"
#include "nn/dense_weight.h"
#include "nn/weight_shape.h"

namespace pith {
namespace {

absl::StatusOr<std::vector<uint16_t>> StackDense(absl::Span<const LinearSource> parts, int64_t n, ThreadPool& pool) {
  const int64_t k = parts[0].in();
  std::vector<uint16_t> stacked(n * k);
  absl::Span<uint16_t> rest = absl::MakeSpan(stacked);
  for (const LinearSource& part : parts) {
    RETURN_IF_ERROR(ConvertToBfloat16(absl::StrCat(part.name, ".weight"), *part.dense, pool, rest.first(part.out() * k)));
    rest.remove_prefix(part.out() * k);
  }
  return stacked;
}

template <typename T> void Append(std::vector<T>& out, const std::vector<T>& in) { out.insert(out.end(), in.begin(), in.end()); }

QuantizedTensor StackQuantized(absl::Span<const LinearSource> parts) {
  QuantizedTensor stacked = *parts[0].quantized;
  for (const LinearSource& part : parts.subspan(1)) {
    stacked.out += part.quantized->out;
    Append(stacked.code, part.quantized->code);
    Append(stacked.scale, part.quantized->scale);
    Append(stacked.zero_point, part.quantized->zero_point);
    Append(stacked.min, part.quantized->min);
    Append(stacked.scale_unit, part.quantized->scale_unit);
    Append(stacked.min_unit, part.quantized->min_unit);
  }
  return stacked;
}

absl::Status CheckScales(absl::Span<const LinearSource> parts) {
  for (const LinearSource& part : parts) {
    const QuantizedTensor& q = *part.quantized;
    RETURN_IF_ERROR(CheckFinite(absl::StrCat(part.name, ".weight (scale)"), q.scale, q.num_groups()));
    RETURN_IF_ERROR(CheckFinite(absl::StrCat(part.name, ".weight (min)"), q.min, q.num_groups()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Linear> Linear::Load(absl::Span<const LinearSource> parts, const ComputeContext& context) {
  CHECK(!parts.empty());
  Linear linear;
  linear.in_ = parts[0].in();
  linear.arena_ = context.arena;
  std::vector<WeightShape> shapes;
  for (const LinearSource& part : parts) {
    CHECK((part.dense == nullptr) != (part.quantized == nullptr));
    CHECK_EQ(part.in(), linear.in_);
    CHECK(part.bias.empty() || static_cast<int64_t>(part.bias.size()) == part.out());
    shapes.push_back(ShapeOf(part));
  }
  size_t begin = 0;
  for (const size_t end : MatrixEnds(shapes)) {
    RETURN_IF_ERROR(linear.StackParts(parts.subspan(begin, end - begin), context));
    begin = end;
  }
  linear.SetBias(parts);
  return linear;
}

absl::StatusOr<Linear> Linear::FromPrepacked(absl::Span<const PrepackedPart> parts, absl::Span<const PrepackedMatrix> matrices,
                                             const ComputeContext& context, std::vector<absl::Span<uint8_t>>& bytes) {
  CHECK(!parts.empty());
  Linear linear;
  linear.in_ = parts[0].shape.in;
  linear.arena_ = context.arena;
  std::vector<WeightShape> shapes;
  for (const PrepackedPart& part : parts) shapes.push_back(part.shape);
  const std::vector<size_t> ends = MatrixEnds(shapes);
  const std::string& name = parts[0].storage.name;
  if (ends.size() != matrices.size()) {
    return BadFileError(name, ": expected ", ends.size(), " prepacked matrices, found ", matrices.size());
  }
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const absl::Span<const WeightShape> stacked = absl::MakeConstSpan(shapes).subspan(begin, ends[i] - begin);
    GemmProblem problem = StackedProblem(stacked);
    problem.scale = matrices[i].problem.scale;  // depends on the values
    if (problem.scale != GemmScale::kI8) problem.unit_size = 0;
    const GemmWeight family = GemmWeightFamily(stacked[0].bits, stacked[0].type);
    const absl::StatusOr<LinearKernel> selected = SelectLinearKernel(family, stacked[0].input, problem, context);
    if (!selected.ok()) return Annotate(selected.status(), name);
    const LinearKernel& chosen = *selected;
    if (chosen.kernel->name != matrices[i].kernel || FieldsOf(problem) != FieldsOf(matrices[i].problem)) {
      return BadFileError(name, ": expected a matrix prepacked for ", chosen.kernel->name, " [", problem.n, ", ", problem.k,
                          "], found another or one for ", Printable(matrices[i].kernel));
    }
    uint8_t* data = linear.AddSegment(chosen, problem);
    bytes.push_back({data, static_cast<size_t>(linear.segments_.back().weight_bytes)});
    for (; begin < ends[i]; ++begin) linear.AddDataPath(parts[begin].storage, chosen);
  }
  linear.SetBias(parts);
  return linear;
}

template <typename Part> void Linear::SetBias(absl::Span<const Part> parts) {
  if (std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.bias.empty(); })) return;
  bias_.reserve(out_);
  for (const Part& part : parts) {
    bias_.insert(bias_.end(), part.bias.begin(), part.bias.end());
    if (part.bias.empty()) bias_.insert(bias_.end(), part.out(), 0.0f);
  }
}

absl::Status Linear::StackParts(absl::Span<const LinearSource> parts, const ComputeContext& context) {
  int64_t n = 0;
  for (const LinearSource& part : parts) n += part.out();
  if (parts[0].quantized == nullptr) {
    ASSIGN_OR_RETURN(const std::vector<uint16_t> stacked, StackDense(parts, n, *context.pool));
    return AddMatrix(parts, GemmWeight::kBf16, {.problem = DescribeDenseGemm(n, in_), .dense = stacked.data()}, context);
  }
  RETURN_IF_ERROR(CheckScales(parts));
  std::optional<QuantizedTensor> stacked;
  if (parts.size() > 1) stacked = StackQuantized(parts);
  const QuantizedTensor& weight = stacked.has_value() ? *stacked : *parts[0].quantized;
  return AddMatrix(parts, GemmWeightFamily(weight), DescribePrepack(weight, DescribeGemm(weight)), context);
}

absl::Status Linear::AddMatrix(absl::Span<const LinearSource> parts, GemmWeight family, GemmPrepackParams params,
                               const ComputeContext& context) {
  const absl::StatusOr<LinearKernel> chosen = SelectLinearKernel(family, parts[0].input, params.problem, context);
  if (!chosen.ok()) return Annotate(chosen.status(), parts[0].name);
  params.out = AddSegment(*chosen, params.problem);
  context.pool->ParallelFor(segments_.back().num_panels(), 1, [&](int64_t begin, int64_t end, int) {
    GemmPrepackParams range = params;
    range.panel_begin = begin;
    range.panel_end = end;
    chosen->kernel->prepack(range);
  });
  for (const LinearSource& part : parts) AddDataPath(DescribeStorage(part), *chosen);
  return absl::OkStatus();
}

uint8_t* Linear::AddSegment(const LinearKernel& chosen, const GemmProblem& problem) {
  Segment segment{.problem = problem, .kernel = chosen.kernel, .input = chosen.input, .column_begin = out_, .panel_begin = num_panels_};
  if (std::find(formats_.begin(), formats_.end(), segment.input) == formats_.end()) formats_.push_back(segment.input);
  segment.weight_bytes = static_cast<int64_t>(segment.kernel->prepack_bytes(problem));
  uint8_t* const data = arena_->Allocate(static_cast<size_t>(segment.weight_bytes));
  segment.weight = data;
  out_ += problem.n;
  num_panels_ += segment.num_panels();
  segments_.push_back(std::move(segment));
  return data;
}

void Linear::AddDataPath(TensorDataPath storage, const LinearKernel& chosen) {
  TensorDataPath& path = data_path_.emplace_back(std::move(storage));
  DescribeKernel(chosen, path);
  path.resident_bytes = segments_.back().weight_bytes * path.out / segments_.back().problem.n;
}

std::vector<PrepackedMatrix> Linear::matrices() const {
  std::vector<PrepackedMatrix> matrices;
  for (const Segment& segment : segments_) {
    matrices.push_back({segment.problem, segment.kernel->name, {segment.weight, static_cast<size_t>(segment.weight_bytes)}});
  }
  return matrices;
}

void Linear::Run(const ComputeContext& context, const LinearInput& input, int64_t row, int64_t m, float* out, int64_t out_stride,
                 bool accumulate) const {
  DCHECK(m >= 1);
  DCHECK(input.dim() == in_);
  context.pool->ParallelFor(num_panels_, 1, [&](int64_t begin, int64_t end, int) {
    for (const Segment& segment : segments_) {
      const int64_t first = std::max<int64_t>(begin - segment.panel_begin, 0);
      const int64_t last = std::min(end - segment.panel_begin, segment.num_panels());
      if (first >= last) continue;
      RunPanels(segment, input, row,
                {.m = m,
                 .out = out + segment.column_begin,
                 .out_stride = out_stride,
                 .accumulate = accumulate,
                 .panel_begin = first,
                 .panel_end = last});
    }
  });
}

void Linear::RunColumns(const LinearInput& input, int64_t row, int64_t m, int64_t begin, int64_t end, float* out,
                        int64_t out_stride) const {
  DCHECK(m >= 1);
  DCHECK(IsPanelBegin(begin));
  DCHECK(end == out_ || IsPanelBegin(end));
  for (const Segment& segment : segments_) {
    const int64_t first = std::max(begin, segment.column_begin), last = std::min(end, segment.column_begin + segment.problem.n);
    if (first >= last) continue;
    const int64_t panel = (first - segment.column_begin) / kGemmPanel;
    RunPanels(segment, input, row,
              {.m = m,
               .out = out + (first - begin),
               .out_stride = out_stride,
               .out_panel = panel,
               .panel_begin = panel,
               .panel_end = (last - segment.column_begin + kGemmPanel - 1) / kGemmPanel});
  }
}

bool Linear::IsPanelBegin(int64_t column) const {
  return std::any_of(segments_.begin(), segments_.end(), [column](const Segment& segment) {
    const int64_t n = column - segment.column_begin;
    return n >= 0 && n < segment.problem.n && n % kGemmPanel == 0;
  });
}

void Linear::RunPanels(const Segment& segment, const LinearInput& input, int64_t row, GemmParams params) const {
  params.problem = segment.problem;
  params.weight = segment.weight;
  params.bias = bias_.empty() ? nullptr : bias_.data() + segment.column_begin;
  if (segment.input.kind == GemmActivation::kBf16) {
    params.activation = input.bf16() + row * in_;
    params.activation_stride = in_;
  } else if (segment.input.kind == GemmActivation::kFp8) {
    params.activation = input.Fp8Values(segment.input, row);
    params.activation_stride = in_;
    params.activation_scale = input.Fp8Scales(segment.input, row);
  } else {
    params.integer = input.Integers(segment.input, row);
    params.outlier = input.Outliers(segment.input, row);
  }
  segment.kernel->run(params);
  if (params.outlier.count != nullptr) segment.kernel->add_outliers(params);
}

void Linear::ReadRow(int64_t o, float* out) const {
  for (const Segment& segment : segments_) {
    const int64_t row = o - segment.column_begin;
    if (row >= 0 && row < segment.problem.n) return segment.kernel->read_row(segment.problem, segment.weight, row, out);
  }
  CHECK(false);  // o is below out()
}

int64_t Linear::resident_bytes() const {
  int64_t bytes = static_cast<int64_t>(bias_.size() * sizeof(float));
  for (const Segment& segment : segments_) bytes += segment.weight_bytes;
  return bytes;
}

}  // namespace pith
