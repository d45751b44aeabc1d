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

// The columns that the parts keep in bf16, [n, columns]; empty: none.
std::vector<uint16_t> StackOutlierColumns(absl::Span<const LinearSource> parts) {
  std::vector<uint16_t> stacked;
  for (const LinearSource& part : parts) {
    for (const bfloat16 weight : part.quantized->outlier_weight) stacked.push_back(weight.bits);
  }
  return stacked;
}

// All panels of a matrix into params.out.
void Prepack(const GemmKernelEntry& kernel, const GemmPrepackParams& params, ThreadPool& pool) {
  pool.ParallelFor((params.problem.n + kGemmPanel - 1) / kGemmPanel, 1, [&](int64_t begin, int64_t end, int) {
    GemmPrepackParams range = params;
    range.panel_begin = begin;
    range.panel_end = end;
    kernel.prepack(range);
  });
}

// Of a matrix that is expected to be prepacked for a kernel and a problem.
absl::Status CheckPrepacked(const std::string& name, const GemmKernelEntry& kernel, const GemmProblem& problem,
                            const PrepackedMatrix& matrix) {
  if (kernel.name == matrix.kernel && FieldsOf(problem) == FieldsOf(matrix.problem)) return absl::OkStatus();
  return BadFileError(name, ": expected a matrix prepacked for ", kernel.name, " [", problem.n, ", ", problem.k,
                      "], found another or one for ", Printable(matrix.kernel));
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
    CHECK(part.quantized == nullptr || !part.input.has_value() || part.quantized->outlier_column == part.input->outlier_columns);
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
  size_t begin = 0, next = 0;  // part, matrix
  for (const size_t end : ends) {
    if (next == matrices.size()) return BadFileError(name, ": expected more than ", next, " prepacked matrices, found no other");
    const absl::Span<const WeightShape> stacked = absl::MakeConstSpan(shapes).subspan(begin, end - begin);
    GemmProblem problem = StackedProblem(stacked);
    problem.scale = matrices[next].problem.scale;  // depends on the values
    if (problem.scale != GemmScale::kI8) problem.unit_size = 0;
    const GemmWeight family = GemmWeightFamily(stacked[0].bits, stacked[0].type);
    const absl::StatusOr<LinearKernel> selected = SelectLinearKernel(family, stacked[0].input, problem, context);
    if (!selected.ok()) return Annotate(selected.status(), name);
    const LinearKernel& chosen = *selected;
    RETURN_IF_ERROR(CheckPrepacked(name, *chosen.kernel, problem, matrices[next++]));
    if (chosen.outlier_kernel != nullptr) {
      if (next == matrices.size()) return BadFileError(name, ": expected a prepacked matrix of outlier columns, found none");
      RETURN_IF_ERROR(CheckPrepacked(name, *chosen.outlier_kernel, chosen.outlier_problem, matrices[next++]));
    }
    const SegmentMemory memory = linear.AddSegment(chosen, problem);
    const Segment& segment = linear.segments_.back();
    bytes.push_back({memory.weight, static_cast<size_t>(segment.weight_bytes)});
    if (memory.outlier != nullptr) bytes.push_back({memory.outlier, static_cast<size_t>(segment.outlier_bytes)});
    for (; begin < end; ++begin) linear.AddDataPath(parts[begin].storage, chosen);
  }
  if (next != matrices.size()) return BadFileError(name, ": expected ", next, " prepacked matrices, found ", matrices.size());
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
  const SegmentMemory memory = AddSegment(*chosen, params.problem);
  params.out = memory.weight;
  Prepack(*chosen->kernel, params, *context.pool);
  if (memory.outlier != nullptr) {
    const std::vector<uint16_t> columns = StackOutlierColumns(parts);
    Prepack(*chosen->outlier_kernel, {.problem = chosen->outlier_problem, .dense = columns.data(), .out = memory.outlier}, *context.pool);
  }
  for (const LinearSource& part : parts) AddDataPath(DescribeStorage(part), *chosen);
  return absl::OkStatus();
}

Linear::SegmentMemory Linear::AddSegment(const LinearKernel& chosen, const GemmProblem& problem) {
  Segment segment{.problem = problem, .kernel = chosen.kernel, .input = chosen.input, .column_begin = out_, .panel_begin = num_panels_};
  if (std::find(formats_.begin(), formats_.end(), segment.input) == formats_.end()) formats_.push_back(segment.input);
  segment.weight_bytes = static_cast<int64_t>(segment.kernel->prepack_bytes(problem));
  SegmentMemory memory{.weight = arena_->Allocate(static_cast<size_t>(segment.weight_bytes))};
  segment.weight = memory.weight;
  if (chosen.outlier_kernel != nullptr) {
    segment.outlier_kernel = chosen.outlier_kernel;
    segment.outlier_problem = chosen.outlier_problem;
    segment.outlier_bytes = static_cast<int64_t>(chosen.outlier_kernel->prepack_bytes(chosen.outlier_problem));
    segment.outlier_weight = memory.outlier = arena_->Allocate(static_cast<size_t>(segment.outlier_bytes));
  }
  out_ += problem.n;
  num_panels_ += segment.num_panels();
  segments_.push_back(std::move(segment));
  return memory;
}

void Linear::AddDataPath(TensorDataPath storage, const LinearKernel& chosen) {
  TensorDataPath& path = data_path_.emplace_back(std::move(storage));
  DescribeKernel(chosen, path);
  const Segment& segment = segments_.back();
  path.resident_bytes = (segment.weight_bytes + segment.outlier_bytes) * path.out / segment.problem.n;
}

std::vector<PrepackedMatrix> Linear::matrices() const {
  std::vector<PrepackedMatrix> matrices;
  for (const Segment& segment : segments_) {
    matrices.push_back({segment.problem, segment.kernel->name, {segment.weight, static_cast<size_t>(segment.weight_bytes)}});
    if (segment.outlier_kernel == nullptr) continue;
    matrices.push_back(
        {segment.outlier_problem, segment.outlier_kernel->name, {segment.outlier_weight, static_cast<size_t>(segment.outlier_bytes)}});
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
  if (segment.outlier_kernel == nullptr) return;
  params.problem = segment.outlier_problem;
  params.weight = segment.outlier_weight;
  params.activation = input.OutlierColumns(segment.input, row);
  params.activation_stride = segment.outlier_problem.k;
  params.bias = nullptr;
  params.accumulate = true;
  segment.outlier_kernel->run(params);
}

void Linear::ReadRow(int64_t o, float* out) const {
  for (const Segment& segment : segments_) {
    const int64_t row = o - segment.column_begin;
    if (row < 0 || row >= segment.problem.n) continue;
    segment.kernel->read_row(segment.problem, segment.weight, row, out);
    if (segment.outlier_kernel == nullptr) return;
    const std::vector<int32_t>& columns = segment.input.outlier_columns;
    std::vector<float> kept(columns.size());
    segment.outlier_kernel->read_row(segment.outlier_problem, segment.outlier_weight, row, kept.data());
    for (size_t c = 0; c < columns.size(); ++c) out[columns[c]] = kept[c];
    return;
  }
  CHECK(false);  // o is below out()
}

int64_t Linear::resident_bytes() const {
  int64_t bytes = static_cast<int64_t>(bias_.size() * sizeof(float));
  for (const Segment& segment : segments_) bytes += segment.weight_bytes + segment.outlier_bytes;
  return bytes;
}

}  // namespace pith
