// For the operator tests: the table rows this CPU can run, buffers that notice writes outside of them, seeded values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu_features.h"
#include "base/float_types.h"
#include "base/random.h"
#include "kernels/registry.h"

namespace pith {

template <typename F> struct OperatorRow {
  std::string name;
  F run;
};

// Every row that implements an operator (a member such as &OperatorEntry::attention) and that this CPU can run.
template <typename F> std::vector<OperatorRow<F>> RunnableRows(F OperatorEntry::*member) {
  std::vector<OperatorRow<F>> rows;
  for (const OperatorEntry* entry : AllOperators()) {
    if (entry->*member == nullptr || !RunsHere(entry->isa)) continue;
    rows.push_back({entry->name, entry->*member});
  }
  return rows;
}

// `count` elements between two guards of 64 elements each; begins one element off vector alignment.
template <typename T> class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t count, T fill = T{}) : count_(count), storage_(static_cast<size_t>(count + 2 * kGuard)) {
    std::memset(storage_.data(), kPattern, storage_.size() * sizeof(T));
    std::fill_n(data(), count, fill);
  }
  T* data() { return storage_.data() + kGuard; }
  T& operator[](int64_t i) { return data()[i]; }
  std::vector<T> values() { return std::vector<T>(data(), data() + count_); }
  // True while no byte outside [data(), data() + count) has changed.
  bool Intact() const {
    const auto untouched = [](const T* begin) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(begin);
      return std::all_of(bytes, bytes + kGuard * sizeof(T), [](unsigned char b) { return b == kPattern; });
    };
    return untouched(storage_.data()) && untouched(storage_.data() + kGuard + count_);
  }

 private:
  static constexpr int64_t kGuard = 65;
  static constexpr unsigned char kPattern = 0xA5;
  int64_t count_;
  std::vector<T> storage_;
};

// A copy of some values that ends where the readable memory ends: reading one element further, also by a masked vector load that a
// sanitizer does not see, stops the test.
template <typename T> class PageEndBuffer {
 public:
  explicit PageEndBuffer(const std::vector<T>& values) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = values.size() * sizeof(T);
    const size_t readable = (bytes + page - 1) / page * page;
    size_ = readable + page;
    map_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map_ + readable, page, PROT_NONE);
    data_ = reinterpret_cast<T*>(map_ + readable - bytes);
    std::copy(values.begin(), values.end(), data_);
  }
  ~PageEndBuffer() { munmap(map_, size_); }
  PageEndBuffer(const PageEndBuffer&) = delete;
  PageEndBuffer& operator=(const PageEndBuffer&) = delete;
  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  char* map_;
  size_t size_;
  T* data_;
};

constexpr KvDtype kKvDtypes[] = {KvDtype::kBf16, KvDtype::kInt8, KvDtype::kFp8};
inline std::string KvDtypeTestName(const testing::TestParamInfo<KvDtype>& info) {
  constexpr const char* kNames[] = {"bf16", "int8", "fp8"};
  return kNames[static_cast<int>(info.param)];
}

inline std::vector<float> NormalValues(int64_t count, uint64_t seed, float scale = 1.0f) {
  RandomStream random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = scale * random.Normal();
  return values;
}

inline float FromBits(uint16_t bits) { return ToFloat(bfloat16{bits}); }
inline uint16_t ToBits(float x) { return ToBfloat16(x).bits; }

constexpr double kF32Unit = 0x1p-24;  // relative error of one f32 rounding
constexpr double kBf16Unit = 0x1p-8;  // and of one bf16 rounding

}  // namespace pith
