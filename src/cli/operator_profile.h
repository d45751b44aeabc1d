// What `pith profile` makes of the records of several rounds of one phase (prefill or decode): one line per kind of operator, beside the
// roofline and the BF16 twin, and the sentence whether the saved bytes became saved time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/cpu_features.h"
#include "base/json.h"
#include "cli/roofline.h"
#include "nn/data_path.h"
#include "nn/profiler.h"

namespace pith {

// The passes of one round, or of all of them.
struct PhaseRounds {
  std::string phase;  // "prefill" or "decode"
  int64_t passes = 0, rows_per_pass = 0;
  std::vector<std::vector<OperatorRecord>> rounds;  // the same operators in the same order in each
};

struct OperatorSummary {
  std::string name;
  int64_t layer = -1;              // -1: all of this name together
  int64_t calls = 0, threads = 0;  // threads: of the pool
  double seconds = 0;              // of one round: the median over the rounds of the sum over the calls
  OperatorWork work;               // of one round
  RooflineTime roofline;
  std::vector<std::string> kernels;    // of the calls, each once
  bool matrix_product = false;         // by a GEMM row
  bool emulated = false;               // a row says so: another type stands in for one that its instruction set cannot multiply
  std::vector<std::string> fallbacks;  // why a better kernel did not run; "scalar kernel" for one that has no vector twin
  int64_t bf16_weight_bytes = 0;       // the same matrices in BF16; of other operators their own weight_bytes
  double bf16_seconds = 0;             // of the twin; 0: none

  std::string kernel() const;  // joined by " "
  int64_t streamed_bytes() const { return work.weight_bytes + work.kv_bytes; }
  int64_t bf16_streamed_bytes() const { return bf16_weight_bytes + work.kv_bytes; }
  double roofline_share() const { return seconds > 0 ? roofline.seconds() / seconds : 0; }
  // Of a matrix product: time beyond what streaming the same bytes takes, for unpacking, converting, multiplying and waiting.
  double conversion_seconds() const { return seconds - roofline.read_seconds; }
};

// Where bf16_seconds come from.
enum class TwinSource { kNone, kMeasured, kEstimated, kIsBf16 };

struct PhaseSummary {
  std::string phase;
  int64_t passes = 0, rows_per_pass = 0;
  std::vector<OperatorSummary> operators;  // in the order they first ran
  TwinSource source = TwinSource::kNone;

  OperatorSummary Total() const;  // name "total"
};

// Sums by name, or by name and layer. `data_path` says which kernels are fallbacks; `isa` is the one chosen for the run.
PhaseSummary Summarize(const PhaseRounds& rounds, bool by_layer, const MachineLimits& limits, absl::Span<const TensorDataPath> data_path,
                       Isa isa);
// Fills in the twin's figures from its own rounds, summed the same way.
void AddMeasuredTwin(const PhaseSummary& twin, PhaseSummary& summary);
// Fills in what the twin would take if its matrix products reached the same share of their roofline; other operators stay as they are.
void AddEstimatedTwin(const MachineLimits& limits, Isa isa, PhaseSummary& summary);

std::string PhaseTable(const PhaseSummary& summary);
// "decode: 97.2 MB per pass instead of 269.0 MB in BF16 (2.77x fewer), 6.10 ms instead of 13.9 ms (2.28x faster, measured): ..."
std::string SavingsSentence(const PhaseSummary& summary, const MachineLimits& limits);
OrderedJson ToJson(const PhaseSummary& summary, const MachineLimits& limits);

}  // namespace pith
