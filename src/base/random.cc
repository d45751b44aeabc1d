#include "base/random.h"

#include <cmath>

#include "base/check.h"

namespace pith {
namespace {

uint64_t Join(uint32_t low, uint32_t high) { return static_cast<uint64_t>(high) << 32 | low; }

double OpenUnit(uint32_t low, uint32_t high) { return (static_cast<double>(Join(low, high) >> 12) + 0.5) * 0x1p-52; }

std::array<uint32_t, 4> PhiloxWords(uint64_t seed, uint64_t a, uint64_t b) {
  return Philox4x32({static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32), static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

std::array<double, 2> UniformOpenPair(uint64_t seed, uint64_t a, uint64_t b) {
  const auto words = PhiloxWords(seed, a, b);
  return {OpenUnit(words[0], words[1]), OpenUnit(words[2], words[3])};
}

double UniformOpen(uint64_t seed, uint64_t a, uint64_t b) {
  const auto words = PhiloxWords(seed, a, b);
  return OpenUnit(words[0], words[1]);
}

uint64_t RandomStream::Below(uint64_t bound) {
  CHECK(bound > 0);
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;  // a multiple of bound
  for (;;) {
    const auto words = PhiloxWords(seed_, stream_, index_++);
    const uint64_t value = Join(words[0], words[1]);
    if (value < limit) return value % bound;
  }
}

float RandomStream::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(Uniform()));
  return static_cast<float>(radius * std::cos(6.283185307179586 * Uniform()));
}

}  // namespace pith
