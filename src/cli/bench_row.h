// One measured row of `pith bench` and its renderings; the columns that llama-bench has keep its names and meanings.
// Source: llama.cpp tools/llama-bench/README.md, output formats.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/machine_limits.h"
#include "cli/roofline.h"

namespace pith {

enum class BenchKind {
  kPrefill,  // "pp512": a prompt in passes of at most 512 rows, logits of the last row
  kDecode,   // "tg128": one token per pass and sequence
  kVerify,   // "verify8": one pass of 8 rows of one sequence, logits of all of them: what speculation asks of the target
};

struct BenchTest {
  BenchKind kind = BenchKind::kPrefill;
  int64_t tokens = 0;  // of one sequence: prompt, steps, or rows of the verification pass
  int64_t batch = 1;   // sequences side by side
  int64_t depth = 0;   // tokens in the KV cache before

  std::string Name() const;  // "tg128 b4 @ d4096"
};

// What does not change between the rows of one model.
struct BenchModel {
  std::string filename, type, data_path, build_commit, kv_cache = "bf16", cpu;
  int64_t file_bytes = 0, resident_bytes = 0, num_params = 0;
};

struct BenchRow {
  BenchTest test;
  std::vector<double> samples_ns;  // of `passes_per_sample` runs of the test
  int64_t passes_per_sample = 1;   // of a verification test; 1 otherwise
  std::string test_time;           // start, UTC: "2026-11-30T03:00:00Z"
  MachineLimits limits;            // sampled between the samples
  RooflineTime run_roofline;       // least time of one run of the test on these limits

  RooflineTime roofline() const;  // of a sample
  int64_t tokens_per_sample() const { return test.batch * test.tokens * passes_per_sample; }
  double median_ns() const;
  double tokens_per_second() const;  // of the median sample
  double pass_ms() const;            // prefill: the whole prompt; decode: one step; verification: one pass
  double share() const;              // of the roofline: least time / median time
  const char* bound() const { return run_roofline.read_seconds >= run_roofline.multiply_seconds ? "memory" : "compute"; }
};

// "2026-11-30T03:00:00Z"
std::string UtcTime();

OrderedJson ToJson(const BenchRow& row, const BenchModel& model);

// Text of rows one by one, so that each can be printed as soon as it is measured. format: "md", "csv", "json" (an array) or "jsonl".
class RowRenderer {
 public:
  explicit RowRenderer(std::string format) : format_(std::move(format)) {}

  // The row, with what stands between it and the one before; the first with the head of the table.
  std::string Row(const BenchRow& row, const BenchModel& model);
  // What ends the rows so far: "]" of a json array that was begun. Once.
  std::string End();

 private:
  const std::string format_;
  bool begun_ = false;
};

}  // namespace pith
