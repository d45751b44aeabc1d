// Which modules are worth more bits: a recipe for an average of bits per weight, from how much the model's output suffers when one set of
// modules alone is quantized.
//
// A set is what must share a scheme: q, k and v; o; gate and up; down; of one layer. Its loss in the recipe's own scheme is the KL
// divergence of the dense model's next-token distribution from that of a model in which this set alone is rounded to nearest; in another
// scheme that KL times the ratio of the squared errors of its weights. Losses are taken to add up (bit_allocation.h). Source: one-at-a-time
// sensitivities: HAWQ-V2 (Dong et al. 2019, arXiv 1911.03852) with the trace of the Hessian where we measure KL.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "base/thread_pool.h"
#include "compression/calibration_data.h"
#include "compression/compression_plan.h"
#include "compression/compression_report.h"
#include "compression/recipe.h"

namespace pith {

struct BitBudgetOptions {
  int64_t num_sequences = 4;      // of the calibration data, from the first on
  int64_t sequence_length = 256;  // their first tokens
  int64_t position_stride = 4;    // every so many positions the distributions are compared
};

// Modules that share a scheme.
struct ModuleSet {
  std::vector<const PlannedModule*> modules;
  int64_t layer = 0;
};

// The sets of quantized modules of a plan, in the order of the model. Borrows from it.
std::vector<ModuleSet> ModuleSets(const CompressionPlan& plan);

// What quantizing a set alone in its own scheme does.
struct SetLoss {
  double kl = 0;             // divergence in nats per position, as above
  double squared_error = 0;  // sum over its weights
};

// One per set. Memory: the dense layers, hidden states before each layer and distributions at the compared
// positions. `progress` (done, total sets) may end the work. Errors: those of LayerwiseModel; kInvalidArgument without data.
absl::StatusOr<std::vector<SetLoss>> MeasureSensitivities(const ArtifactReader& reader, const std::vector<ModuleSet>& sets,
                                                          const CalibrationData& data, const BitBudgetOptions& options, ThreadPool& pool,
                                                          const std::function<absl::Status(int64_t, int64_t)>& progress);

struct AllocatedRecipe {
  Recipe recipe;
  std::vector<SensitivityReport> sensitivities;  // of the sets in the order of the model, with what each got
};

// The recipe with overrides, so that the modules that its own scheme targets take at most `bits_per_weight` bits each on average, scales
// included: each set in that scheme, in groups of 32 of it, or in 8 bits per channel. Errors: those of MeasureSensitivities; kUnimplemented
// for a recipe of other than weight-only codes of at most 4 bits; kInvalidArgument for fewer bits than its scheme takes (named).
absl::StatusOr<AllocatedRecipe> AllocateRecipe(const ArtifactReader& reader, const Recipe& recipe, double bits_per_weight,
                                               const CalibrationData& data, const BitBudgetOptions& options, ThreadPool& pool,
                                               const std::function<absl::Status(int64_t, int64_t)>& progress);

}  // namespace pith
