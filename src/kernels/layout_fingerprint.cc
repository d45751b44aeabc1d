#include "kernels/layout_fingerprint.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/sha256.h"
#include "kernels/registry.h"

namespace pith {
namespace {

constexpr int64_t kRows = 21;  // a panel and a part of one
constexpr int64_t kColumns = 256, kGroup = 32, kUnit = 128;

// Codes of every width, and scales that every form holds exactly.
struct Probe {
  explicit Probe(int bits) : dense(kRows * kColumns), code(dense.size()), scale(kRows * kColumns / kGroup), zero(scale.size()) {
    const size_t codes = size_t{1} << bits;
    for (size_t i = 0; i < dense.size(); ++i) {
      dense[i] = static_cast<uint16_t>(0x3C00 + i * 37 % 1021);
      code[i] = static_cast<uint8_t>((i * 11 + i / 7) % (codes - 1));  // 0x7F is no e4m3 number
    }
    for (int i = 0; i < kRows * kColumns / kUnit; ++i) unit.push_back(static_cast<float>(1 + i % 5) / 64);
    for (size_t i = 0; i < scale.size(); ++i) {
      scale[i] = unit[i * kGroup / kUnit] * static_cast<float>(1 + i % 3);
      zero[i] = static_cast<uint8_t>(i % codes);
    }
  }

  std::vector<uint16_t> dense;
  std::vector<uint8_t> code;
  std::vector<float> scale, unit;
  std::vector<uint8_t> zero;
};

enum class Offset { kNone, kZeroPoint, kMin };

struct Form {
  int bits = 16;  // 16: dense
  Offset offset = Offset::kNone;
  GemmScale scale = GemmScale::kF32;
};

std::vector<Form> Forms(GemmWeight weight) {
  if (weight == GemmWeight::kBf16) return {{}};
  if (weight == GemmWeight::kF8Grouped) return {{8, Offset::kNone, GemmScale::kF32}, {8, Offset::kNone, GemmScale::kBf16}};
  const int bits = weight == GemmWeight::kW4Grouped ? 4 : 8;
  return {{bits, Offset::kNone, GemmScale::kF32},
          {bits - 1, Offset::kNone, GemmScale::kBf16},
          {bits, Offset::kZeroPoint, GemmScale::kF16},
          {bits, Offset::kMin, GemmScale::kF16},
          {bits, Offset::kMin, GemmScale::kI8}};
}

GemmPrepackParams MakeParams(const Probe& probe, const Form& form, const GemmKernelEntry& row) {
  GemmPrepackParams params{.problem = {.n = kRows, .k = kColumns, .activation = row.activation}};
  if (form.bits == 16) {
    params.dense = probe.dense.data();
    return params;
  }
  params.problem.group_size = kGroup;
  params.problem.bits = form.bits;
  params.problem.scale = form.scale;
  params.problem.has_zero_point = form.offset == Offset::kZeroPoint;
  params.problem.has_min = form.offset == Offset::kMin;
  if (row.activation == GemmActivation::kInt16 || row.activation == GemmActivation::kInt8) params.problem.activation_group = kGroup;
  params.code = probe.code.data();
  params.scale = probe.scale.data();
  if (params.problem.has_zero_point) params.zero_point = probe.zero.data();
  if (params.problem.has_min) params.min = probe.scale.data();
  if (form.scale == GemmScale::kI8) {
    params.problem.unit_size = kUnit;
    params.scale_unit = probe.unit.data();
    if (params.problem.has_min) params.min_unit = probe.unit.data();
  }
  return params;
}

void AddRow(const GemmKernelEntry& row, Sha256& hash) {
  hash.Update(row.name);
  for (const Form& form : Forms(row.weight)) {
    const Probe probe(row.weight == GemmWeight::kF8Grouped ? 7 : std::min(form.bits, 8));
    GemmPrepackParams params = MakeParams(probe, form, row);
    if (const char* reason = row.can_implement(params.problem)) {
      hash.Update(reason);
      continue;
    }
    AlignedBuffer prepacked(row.prepack_bytes(params.problem));
    params.out = prepacked.data();
    params.panel_end = (kRows + kGemmPanel - 1) / kGemmPanel;
    row.prepack(params);
    hash.Update({reinterpret_cast<const char*>(prepacked.data()), prepacked.size()});
  }
}

}  // namespace

std::string LayoutFingerprint(Isa isa) {
  Sha256 hash;
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (static_cast<int>(row->isa) <= static_cast<int>(isa)) AddRow(*row, hash);
  }
  return hash.HexDigest();
}

}  // namespace pith
