#include "quantization/formats/gguf_block_encoders.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/float_types.h"
#include "quantization/formats/block_fit.h"

namespace pith {
namespace {

// Stores the nearest F16 and returns it. One that F16 would make infinite becomes the largest.
float StoreHalf(float value, uint8_t* bytes) {
  float16 half = ToFloat16(value);
  if ((half.bits & 0x7FFF) >= 0x7C00) half.bits = static_cast<uint16_t>((half.bits & 0x8000) | 0x7BFF);
  std::memcpy(bytes, &half.bits, 2);
  return ToFloat(half);
}

// Weights of the errors of a group of `count`: large numbers count for more, since what they are multiplied with is not known apart.
void WeighErrors(const float* x, const float* importance, float mean_square, int count, float* weight) {
  for (int i = 0; i < count; ++i) weight[i] = importance == nullptr ? 1.0f : importance[i] * std::sqrt(mean_square + x[i] * x[i]);
  // A group that nothing was seen of is coded all the same.
  if (std::none_of(weight, weight + count, [](float w) { return w > 0; })) std::fill_n(weight, count, 1.0f);
}

float MeanSquare(const float* x, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum / static_cast<float>(count);
}

void PackNibbles(const uint8_t* code, int count, uint8_t* packed) {
  for (int i = 0; i < count; ++i) packed[i] = static_cast<uint8_t>((code[i] & 0xF) | (code[count + i] & 0xF) << 4);
}

void PackFifthBits(const uint8_t* code, uint8_t* bytes) {
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(code[i] >> 4 & 1) << i;
  std::memcpy(bytes, &bits, 4);
}

// Q4_0 and Q5_0: codes of one group of 32; returns nothing of the error, which the search has minimized.
void CodeHalf(const float* x, const float* importance, float mean_square, int zero, uint8_t* scale, uint8_t* code) {
  float weight[32];
  WeighErrors(x, importance, mean_square, 32, weight);
  CodeSymmetric(x, weight, 32, zero, StoreHalf(FitSymmetric(x, weight, 32, zero), scale), code);
}

// Q4_1 and Q5_1.
void CodeHalfWithMinimum(const float* x, const float* importance, float mean_square, int max_code, uint8_t* scale, uint8_t* code) {
  float weight[32];
  WeighErrors(x, importance, mean_square, 32, weight);
  AffineFit fit = FitAffine(x, weight, 32, max_code);
  fit.scale = StoreHalf(fit.scale, scale);
  fit.min = -StoreHalf(-fit.min, scale + 2);
  CodeAffine(x, weight, 32, max_code, fit, code);
}

constexpr int kGroups = 8, kGroupSize = 32, kLargestScale = 63;

// Scales or minimums of eight groups as 6-bit integers times a unit; returns the unit as stored. Weights: how much each group's counts.
float CodeUnits(const float* values, const float* weight, uint8_t* unit, int* code) {
  const float largest = *std::max_element(values, values + kGroups);
  if (!(largest > 0)) {
    std::fill_n(code, kGroups, 0);
    return StoreHalf(0, unit);
  }
  float best = 0, best_gain = -1;
  for (int step = -4; step <= 4; ++step) {
    const float inverse = (static_cast<float>(kLargestScale) + 0.25f * static_cast<float>(step)) / largest;
    float vq = 0, qq = 0;
    for (int g = 0; g < kGroups; ++g) {
      const float q = std::min(RoundSmall(inverse * values[g]), static_cast<float>(kLargestScale));
      vq += weight[g] * values[g] * q;
      qq += weight[g] * q * q;
    }
    if (!(qq > 0) || !(vq * vq / qq > best_gain)) continue;
    best_gain = vq * vq / qq;
    best = vq / qq;
  }
  const float stored = StoreHalf(best, unit);
  for (int g = 0; g < kGroups; ++g) {
    code[g] = stored > 0 ? static_cast<int>(std::min(RoundSmall(std::min(values[g] / stored, 64.0f)), static_cast<float>(kLargestScale)))
                         : 0;
  }
  return stored;
}

// The 6-bit numbers of eight groups in 12 bytes (docs/formats/gguf_blocks.md).
void PackScales(const int* scale, const int* min, uint8_t* packed) {
  for (int g = 0; g < 4; ++g) {
    packed[g] = static_cast<uint8_t>(scale[g] | (scale[g + 4] >> 4) << 6);
    packed[g + 4] = static_cast<uint8_t>(min[g] | (min[g + 4] >> 4) << 6);
    packed[g + 8] = static_cast<uint8_t>((scale[g + 4] & 0xF) | (min[g + 4] & 0xF) << 4);
  }
}

// Q4_K and Q5_K while they are searched for: x ~ d * scale[g] * code - dmin * min[g].
struct SuperBlock {
  float d = 0, dmin = 0;
  int scale[kGroups] = {}, min[kGroups] = {};
  uint8_t code[kGroups * kGroupSize] = {};
  float error = INFINITY;
};

// The best of each group's two integers among their neighbours, with their codes: rounding them apart is not the best for both.
void CodeGroups(const float* x, const float* weight, int max_code, SuperBlock& block) {
  block.error = 0;
  for (int g = 0; g < kGroups; ++g) {
    float best = INFINITY;
    uint8_t trial[kGroupSize];
    const int scale = block.scale[g], min = block.min[g];
    for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, kLargestScale); ++s) {
      for (int m = std::max(min - 1, 0); m <= std::min(min + 1, kLargestScale); ++m) {
        const AffineFit fit{block.d * static_cast<float>(s), block.dmin * static_cast<float>(m)};
        const float error = CodeAffine(x + g * kGroupSize, weight + g * kGroupSize, kGroupSize, max_code, fit, trial);
        if (!(error < best)) continue;
        best = error;
        block.scale[g] = s;
        block.min[g] = m;
        std::copy_n(trial, kGroupSize, block.code + g * kGroupSize);
      }
    }
    block.error += best;
  }
}

// The best two units for the integers and codes as they are; false where they are not determined.
bool SolveUnits(const float* x, const float* weight, SuperBlock& block) {
  double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;  // of a = scale * code and b = min
  for (int i = 0; i < kGroups * kGroupSize; ++i) {
    const double w = weight[i], a = block.scale[i / kGroupSize] * block.code[i], b = block.min[i / kGroupSize];
    aa += w * a * a;
    ab += w * a * b;
    bb += w * b * b;
    ax += w * a * x[i];
    bx += w * b * x[i];
  }
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 1e-9 * aa * bb)) return false;
  block.d = static_cast<float>((ax * bb - ab * bx) / determinant);
  block.dmin = static_cast<float>((ab * ax - aa * bx) / determinant);
  return block.d > 0 && block.dmin >= 0;
}

// Units, scales and minimums at the start of the block, and the 256 codes.
void CodeSuperBlock(const float* x, const float* importance, int max_code, uint8_t* block, uint8_t* code) {
  float weight[kGroups * kGroupSize], scales[kGroups], minimums[kGroups], group_weight[kGroups] = {};
  const float mean_square = 2 * MeanSquare(x, kGroups * kGroupSize);
  for (int g = 0; g < kGroups; ++g) {
    const float* group = x + g * kGroupSize;
    float* w = weight + g * kGroupSize;
    WeighErrors(group, importance == nullptr ? nullptr : importance + g * kGroupSize, mean_square, kGroupSize, w);
    const AffineFit fit = FitAffine(group, w, kGroupSize, max_code);
    scales[g] = fit.scale;
    minimums[g] = fit.min;
    for (int i = 0; i < kGroupSize; ++i) group_weight[g] += w[i];
  }
  SuperBlock best, trial;
  trial.d = CodeUnits(scales, group_weight, block, trial.scale);
  trial.dmin = CodeUnits(minimums, group_weight, block + 2, trial.min);
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    CodeGroups(x, weight, max_code, trial);
    if (!(trial.error < best.error)) break;
    best = trial;
    if (!SolveUnits(x, weight, trial)) break;
    trial.d = StoreHalf(trial.d, block);
    trial.dmin = StoreHalf(trial.dmin, block + 2);
  }
  StoreHalf(best.d, block);
  StoreHalf(best.dmin, block + 2);
  PackScales(best.scale, best.min, block + 4);
  std::copy_n(best.code, kGroups * kGroupSize, code);
}

}  // namespace

void EncodeBlockQ8_0(const float* x, const float*, float, uint8_t* block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
  // The codes go by the scale before it is rounded, as ggml's do.
  const float scale = largest / 127.0f;
  StoreHalf(scale, block);
  for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<uint8_t>(scale > 0 ? static_cast<int>(std::round(x[i] / scale)) : 0);
}

void EncodeBlockQ4_0(const float* x, const float* importance, float mean_square, uint8_t* block) {
  uint8_t code[32];
  CodeHalf(x, importance, mean_square, 8, block, code);
  PackNibbles(code, 16, block + 2);
}

void EncodeBlockQ4_1(const float* x, const float* importance, float mean_square, uint8_t* block) {
  uint8_t code[32];
  CodeHalfWithMinimum(x, importance, mean_square, 15, block, code);
  PackNibbles(code, 16, block + 4);
}

void EncodeBlockQ5_0(const float* x, const float* importance, float mean_square, uint8_t* block) {
  uint8_t code[32];
  CodeHalf(x, importance, mean_square, 16, block, code);
  PackFifthBits(code, block + 2);
  PackNibbles(code, 16, block + 6);
}

void EncodeBlockQ5_1(const float* x, const float* importance, float mean_square, uint8_t* block) {
  uint8_t code[32];
  CodeHalfWithMinimum(x, importance, mean_square, 31, block, code);
  PackFifthBits(code, block + 4);
  PackNibbles(code, 16, block + 8);
}

void EncodeBlockQ4K(const float* x, const float* importance, float, uint8_t* block) {
  uint8_t code[256];
  CodeSuperBlock(x, importance, 15, block, code);
  for (int chunk = 0; chunk < 4; ++chunk) PackNibbles(code + chunk * 64, 32, block + 16 + chunk * 32);
}

void EncodeBlockQ5K(const float* x, const float* importance, float, uint8_t* block) {
  uint8_t code[256];
  CodeSuperBlock(x, importance, 31, block, code);
  std::memset(block + 16, 0, 32);
  for (int i = 0; i < 256; ++i) block[16 + i % 32] |= static_cast<uint8_t>((code[i] >> 4 & 1) << (i / 32));
  for (int chunk = 0; chunk < 4; ++chunk) PackNibbles(code + chunk * 64, 32, block + 48 + chunk * 32);
}

void EncodeBlockQ6K(const float* x, const float* importance, float, uint8_t* block) {
  constexpr int kCount = 16, kZero = 32;
  float weight[256], scales[16];
  const float mean_square = MeanSquare(x, 256);
  for (int g = 0; g < 16; ++g) {
    WeighErrors(x + g * kCount, importance == nullptr ? nullptr : importance + g * kCount, mean_square, kCount, weight + g * kCount);
    scales[g] = FitSymmetric(x + g * kCount, weight + g * kCount, kCount, kZero);
  }
  const float extreme = *std::max_element(scales, scales + 16, [](float a, float b) { return std::abs(a) < std::abs(b); });
  const float d = StoreHalf(extreme / -128.0f, block + 208);
  uint8_t code[256];
  for (int g = 0; g < 16; ++g) {
    const int middle = d != 0 ? static_cast<int>(std::clamp(RoundSmall(scales[g] / d), -128.0f, 127.0f)) : 0;
    float best = INFINITY;
    uint8_t trial[kCount];
    for (int s = std::max(middle - 1, -128); s <= std::min(middle + 1, 127); ++s) {
      const float error = CodeSymmetric(x + g * kCount, weight + g * kCount, kCount, kZero, d * static_cast<float>(s), trial);
      if (!(error < best)) continue;
      best = error;
      block[192 + g] = static_cast<uint8_t>(s);
      std::copy_n(trial, kCount, code + g * kCount);
    }
  }
  for (int half = 0; half < 2; ++half) {
    PackNibbles(code + half * 128, 64, block + half * 64);
    for (int i = 0; i < 32; ++i) {
      int high = 0;
      for (int plane = 0; plane < 4; ++plane) high |= (code[half * 128 + plane * 32 + i] >> 4 & 3) << (2 * plane);
      block[128 + half * 32 + i] = static_cast<uint8_t>(high);
    }
  }
}

}  // namespace pith
