#include "cli/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "cli/command.h"
#include "cli/samples.h"
#include "kernels/probes.h"

namespace pith {
namespace {

constexpr int64_t kReadGrain = 256;
constexpr int kReadsPerSample = 4;
constexpr int64_t kSteps = int64_t{1} << 19;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t BufferBytes(int64_t working_set_bytes) {
  return std::clamp<int64_t>(working_set_bytes, int64_t{1} << 20, int64_t{4} << 30) / kReadGrain * kReadGrain;
}

}  // namespace

double Gops(int64_t multiply_adds, double seconds) { return 2e-9 * static_cast<double>(multiply_adds) / seconds; }

double MachineLimits::gops(ProbeLimit limit) const {
  switch (limit) {
    case ProbeLimit::kF32: return f32_gops;
    case ProbeLimit::kBf16: return bf16_gops;
    case ProbeLimit::kInt8: return int8_gops;
    case ProbeLimit::kRead: break;
  }
  return 0.0;
}

MachineProbe::MachineProbe(ThreadPool& pool, Isa isa, int64_t working_set_bytes)
    : pool_(pool), isa_(isa), buffer_(static_cast<size_t>(BufferBytes(working_set_bytes))) {
  pool_.ParallelFor(static_cast<int64_t>(buffer_.size()), kReadGrain, [&](int64_t begin, int64_t end, int) {
    std::memset(buffer_.data() + begin, 1, static_cast<size_t>(end - begin));  // otherwise one zero page would be read all the time
  });
  ReadSeconds();
}

double MachineProbe::ReadSeconds() {
  const ProbeEntry* row = FindProbe(ProbeLimit::kRead, isa_);
  std::atomic<uint64_t> sink{0};
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kReadsPerSample; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool_.ParallelFor(static_cast<int64_t>(buffer_.size()), kReadGrain,
                      [&](int64_t begin, int64_t end, int) { sink ^= row->read(buffer_.data() + begin, end - begin); });
    fastest = std::min(fastest, SecondsSince(start));
  }
  return fastest;
}

double MachineProbe::MultiplyGops(const ProbeEntry& row) {
  std::atomic<int64_t> multiply_adds{0};
  const auto start = std::chrono::steady_clock::now();
  pool_.Run([&](int) { multiply_adds += row.multiply(kSteps); });
  return Gops(multiply_adds.load(), SecondsSince(start));
}

void MachineProbe::Sample() {
  read_.push_back(1e-9 * static_cast<double>(buffer_.size()) / ReadSeconds());
  const std::pair<ProbeLimit, std::vector<double>*> kinds[] = {
      {ProbeLimit::kF32, &f32_}, {ProbeLimit::kBf16, &bf16_}, {ProbeLimit::kInt8, &int8_}};
  for (const auto& [limit, samples] : kinds) {
    const ProbeEntry* row = FindProbe(limit, isa_);
    if (row != nullptr) samples->push_back(MultiplyGops(*row));
  }
}

void MachineProbe::Clear() {
  for (std::vector<double>* samples : {&read_, &f32_, &bf16_, &int8_}) samples->clear();
}

MachineLimits MachineProbe::limits() const {
  CHECK(!read_.empty());
  return {.threads = pool_.num_threads(),
          .read_bytes = static_cast<int64_t>(buffer_.size()),
          .read_gb_per_s = Median(read_),
          .f32_gops = Median(f32_),
          .bf16_gops = bf16_.empty() ? 0.0 : Median(bf16_),
          .int8_gops = Median(int8_)};
}

MachineLimits MeasureMachineLimits(ThreadPool& pool, Isa isa, int64_t working_set_bytes, int samples) {
  MachineProbe probe(pool, isa, working_set_bytes);
  for (int i = 0; i < samples; ++i) probe.Sample();
  return probe.limits();
}

OrderedJson ToJson(const MachineLimits& limits) {
  const auto rate = [](double gops) { return gops > 0 ? OrderedJson(gops) : OrderedJson(nullptr); };
  return {{"threads", limits.threads},         {"read_bytes", limits.read_bytes},     {"read_gb_per_s", limits.read_gb_per_s},
          {"f32_gops", rate(limits.f32_gops)}, {"bf16_gops", rate(limits.bf16_gops)}, {"int8_gops", rate(limits.int8_gops)}};
}

std::string LimitsText(const MachineLimits& limits) {
  std::string text = absl::StrFormat("read %.1f GB/s over %s; f32 %.0f", limits.read_gb_per_s, HumanBytes(limits.read_bytes),
                                     limits.f32_gops);
  if (limits.bf16_gops > 0) absl::StrAppendFormat(&text, ", bf16 %.0f", limits.bf16_gops);
  return absl::StrCat(text, absl::StrFormat(", int8 %.0f", limits.int8_gops), " GOPS (", Plural(limits.threads, "thread"), ")");
}

}  // namespace pith
