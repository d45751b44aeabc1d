// Remembers the ids of short words. A fixed table of 64-byte slots, each written by whoever came last; a look-up costs one cache line.
// Thread-safe; memory never grows.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tokenizer/tokenizer.h"

namespace pith {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 26;
  static constexpr size_t kMaxIds = 9;

  WordCache() : slots_(kSlots) {}

  // Appends the ids of `word` when they are known. `hash` must be the same function of the word in every call.
  bool Find(absl::string_view word, size_t hash, std::vector<TokenId>* ids) const;
  // Does nothing for a word or ids that do not fit a slot.
  void Insert(absl::string_view word, size_t hash, absl::Span<const TokenId> ids);

 private:
  static constexpr size_t kSlots = 1 << 15;  // 2 MiB
  static constexpr size_t kLocks = 64;

  struct Slot {
    uint8_t word_bytes = 0;  // 0: empty
    uint8_t num_ids = 0;
    std::array<char, kMaxWordBytes> word{};
    std::array<TokenId, kMaxIds> ids{};
  };
  static_assert(sizeof(Slot) == 64);

  std::vector<Slot> slots_;
  mutable std::array<std::mutex, kLocks> locks_;  // slot i is guarded by locks_[i % kLocks]
};

}  // namespace pith
