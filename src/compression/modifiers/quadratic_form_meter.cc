#include "compression/modifiers/quadratic_form_meter.h"

#include <algorithm>
#include <bit>

#include "compression/modifiers/hessian.h"
#include "kernels/gemm_problem.h"
#include "kernels/selection.h"

namespace pith {
namespace {

constexpr int64_t kJobRows = 256;     // enough to make up for reading `gram`
constexpr int64_t kChunkPanels = 32;  // of columns that are multiplied together: enough to make up for reading the rows again
constexpr int64_t kChunkColumns = kChunkPanels * kGemmPanel;
constexpr int64_t kSplitRows = 64;

// Bits of the nearest bf16 of a finite number, and of what that leaves over.
void Split(const float* values, int64_t count, uint16_t* high, uint16_t* low) {
  const auto round = [](float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    return (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  };
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t upper = round(values[i]);
    high[i] = static_cast<uint16_t>(upper);
    low[i] = static_cast<uint16_t>(round(values[i] - std::bit_cast<float>(upper << 16)));
  }
}

double Dot(const float* a, const float* b, int64_t count) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int64_t j = 0; j < 4; ++j) sums[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

struct QuadraticFormMeter::Rows {
  explicit Rows(int64_t in)
      : in(in),
        errors(static_cast<size_t>(kJobRows * in)),
        products(static_cast<size_t>(kJobRows * kChunkColumns)),
        high(errors.size()),
        low(errors.size()) {}

  int64_t in, count = 0;
  std::vector<float> errors;        // [kJobRows, in]
  std::vector<float> products;      // [kJobRows, kChunkColumns]
  std::vector<uint16_t> high, low;  // bf16 bits [kJobRows, in]
};

QuadraticFormMeter::QuadraticFormMeter(MatrixView<const float> gram, Isa isa, ThreadPool& pool) : gram_(gram) {
  if (isa < Isa::kAmx) return;
  problem_ = DescribeDenseGemm(gram.cols, gram.cols);
  const absl::StatusOr<GemmSelection> selection = SelectGemm(GemmWeight::kBf16, problem_, isa);
  if (!selection.ok() || selection->kernel->isa != KernelIsa::kAmx) return;
  kernel_ = selection->kernel;
  std::vector<uint16_t> bits(static_cast<size_t>(gram.rows * gram.cols));
  for (const bool low : {false, true}) {
    pool.ParallelForDynamic(gram.rows, kSplitRows, [&](int64_t begin, int64_t end, int) {
      std::vector<uint16_t> other(static_cast<size_t>(gram.cols));
      for (int64_t r = begin; r < end; ++r) {
        uint16_t* const wanted = &bits[r * gram.cols];
        Split(gram.row(r), gram.cols, low ? other.data() : wanted, low ? wanted : other.data());
      }
    });
    AlignedBuffer& packed = low ? low_ : high_;
    packed = AlignedBuffer(kernel_->prepack_bytes(problem_));
    const GemmPrepackParams params{.problem = problem_, .dense = bits.data(), .out = packed.data()};
    pool.ParallelForDynamic((gram.cols + kGemmPanel - 1) / kGemmPanel, kChunkPanels, [&](int64_t begin, int64_t end, int) {
      GemmPrepackParams part = params;
      part.panel_begin = begin;
      part.panel_end = end;
      kernel_->prepack(part);
    });
  }
}

void QuadraticFormMeter::Multiply(const std::vector<uint16_t>& activation, const AlignedBuffer& weight, bool accumulate, int64_t panel,
                                  Rows& rows) const {
  GemmParams params{.problem = problem_, .weight = weight.data(), .activation = activation.data(), .activation_stride = rows.in};
  params.m = rows.count;
  params.out = rows.products.data();
  params.out_stride = kChunkColumns;
  params.out_panel = panel;
  params.accumulate = accumulate;
  params.panel_begin = panel;
  params.panel_end = std::min(panel + kChunkPanels, (rows.in + kGemmPanel - 1) / kGemmPanel);
  kernel_->run(params);
}

void QuadraticFormMeter::AddForms(Rows& rows, absl::Span<double> forms) const {
  Split(rows.errors.data(), rows.count * rows.in, rows.high.data(), rows.low.data());
  for (int64_t panel = 0; panel * kGemmPanel < rows.in; panel += kChunkPanels) {
    Multiply(rows.high, high_, false, panel, rows);
    Multiply(rows.low, high_, true, panel, rows);
    Multiply(rows.high, low_, true, panel, rows);
    const int64_t begin = panel * kGemmPanel, columns = std::min(kChunkColumns, rows.in - begin);
    for (int64_t r = 0; r < rows.count; ++r) forms[r] += Dot(&rows.errors[r * rows.in + begin], &rows.products[r * kChunkColumns], columns);
  }
}

std::vector<double> QuadraticFormMeter::Measure(int64_t num_rows, absl::FunctionRef<void(int64_t, absl::Span<float>)> fill_error,
                                                ThreadPool& pool) const {
  if (!uses_tiles()) return QuadraticForms(num_rows, gram_, fill_error, pool);
  const int64_t in = gram_.cols;
  std::vector<double> forms(static_cast<size_t>(num_rows));
  pool.ParallelForDynamic((num_rows + kJobRows - 1) / kJobRows, 1, [&](int64_t first, int64_t last, int) {
    Rows rows(in);
    for (int64_t job = first; job < last; ++job) {
      const int64_t begin = job * kJobRows;
      rows.count = std::min(kJobRows, num_rows - begin);
      for (int64_t r = 0; r < rows.count; ++r) fill_error(begin + r, absl::MakeSpan(&rows.errors[r * in], static_cast<size_t>(in)));
      AddForms(rows, absl::MakeSpan(forms).subspan(static_cast<size_t>(begin), static_cast<size_t>(rows.count)));
    }
  });
  for (double& form : forms) form = std::max(form, 0.0);
  return forms;
}

}  // namespace pith
