// A linear layer: out = activation * weight^T (+ bias), with weights prepacked for the kernel chosen at load.
//
// Several matrices that share their input (q, k and v; gate and up) load as one Linear whose output columns lie one after the other:
// neighbours of the same kernel family, group layout, bits and input quantization become one matrix, others stay separate matrices of the
// same layer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/huge_page_arena.h"
#include "kernels/gemm.h"
#include "nn/compute_context.h"
#include "nn/data_path.h"
#include "nn/linear_input.h"
#include "nn/prepacked_weight.h"
#include "tensor/tensor.h"

namespace pith {

class Linear {
 public:
  // `parts` in column order, all with the same `in`; nothing of them is kept. Dense F32 and F16 weights are rounded to bf16 and the data
  // path says so. Errors: kDataLoss for NaN or infinities (tensor and index named), kUnimplemented when no kernel can run a part.
  static absl::StatusOr<Linear> Load(absl::Span<const LinearSource> parts, const ComputeContext& context);

  // The same layer from matrices that an equal one gave away, without values: `bytes` gets, per matrix, the memory that the caller fills
  // with its bytes before the first Run. Kernels are chosen as by Load, so that a description that says otherwise is refused. Errors:
  // kDataLoss when the matrices are not those that the parts become here, kUnimplemented when no kernel can run a part.
  static absl::StatusOr<Linear> FromPrepacked(absl::Span<const PrepackedPart> parts, absl::Span<const PrepackedMatrix> matrices,
                                              const ComputeContext& context, std::vector<absl::Span<uint8_t>>& bytes);
  // What FromPrepacked takes.
  std::vector<PrepackedMatrix> matrices() const;

  int64_t out() const { return out_; }
  int64_t in() const { return in_; }

  // The forms of input the kernels multiply with, each once: what to prepare a LinearInput for.
  const std::vector<InputFormat>& formats() const { return formats_; }

  // Rows [row, row + m) of `input`, prepared for formats(); out [m, out()] f32, rows out_stride floats apart; m >= 1.
  // accumulate adds to `out` instead of overwriting it. The panels are split over the pool. Row invariant: see kernels/gemm.h.
  void Run(const ComputeContext& context, const LinearInput& input, int64_t row, int64_t m, float* out, int64_t out_stride,
           bool accumulate = false) const;
  // Columns [begin, end) of the same on the calling thread, for who splits the columns over the pool himself: out [m, end - begin].
  // IsPanelBegin(begin), and IsPanelBegin(end) or end == out().
  void RunColumns(const LinearInput& input, int64_t row, int64_t m, int64_t begin, int64_t end, float* out, int64_t out_stride) const;
  // Whether a panel of a matrix begins with this column, so that nobody else computes a part of it.
  bool IsPanelBegin(int64_t column) const;

  // Row `o` of the weights, in() floats: exactly what the prepacked matrix stands for.
  void ReadRow(int64_t o, float* out) const;

  // One row per part, in order.
  const std::vector<TensorDataPath>& data_path() const { return data_path_; }
  int64_t resident_bytes() const;

 private:
  struct Segment {  // one prepacked matrix
    GemmProblem problem;
    const GemmKernelEntry* kernel = nullptr;
    InputFormat input;
    const uint8_t* weight = nullptr;  // in the arena
    int64_t weight_bytes = 0;
    // The columns of the weights that are kept in bf16, with the products of input.outlier_columns; null: none.
    const GemmKernelEntry* outlier_kernel = nullptr;
    GemmProblem outlier_problem;
    const uint8_t* outlier_weight = nullptr;  // in the arena
    int64_t outlier_bytes = 0;
    int64_t column_begin = 0;  // of the layer's output
    int64_t panel_begin = 0;   // of the layer's panels, all segments counted
    int64_t num_panels() const { return (problem.n + kGemmPanel - 1) / kGemmPanel; }
  };
  struct SegmentMemory {  // of the prepacked weights of a segment; outlier null: none
    uint8_t *weight = nullptr, *outlier = nullptr;
  };

  // params: m, the output and the panels; the rest is filled in here.
  void RunPanels(const Segment& segment, const LinearInput& input, int64_t row, GemmParams params) const;
  // Stacks parts that can share a matrix. AddMatrix chooses the kernel and prepacks.
  absl::Status StackParts(absl::Span<const LinearSource> parts, const ComputeContext& context);
  absl::Status AddMatrix(absl::Span<const LinearSource> parts, GemmWeight family, GemmPrepackParams params, const ComputeContext& context);
  // The segment behind the others, with memory for its prepacked weights.
  SegmentMemory AddSegment(const LinearKernel& chosen, const GemmProblem& problem);
  // The row of a part of the last segment.
  void AddDataPath(TensorDataPath storage, const LinearKernel& chosen);
  template <typename Part> void SetBias(absl::Span<const Part> parts);

  std::shared_ptr<HugePageArena> arena_;  // keeps the weights
  int64_t out_ = 0, in_ = 0, num_panels_ = 0;
  std::vector<Segment> segments_;
  std::vector<InputFormat> formats_;
  std::vector<float> bias_;  // [out], or empty
  std::vector<TensorDataPath> data_path_;
};

}  // namespace pith
