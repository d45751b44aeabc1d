#include "tokenizer/word_cache.h"

#include <algorithm>
#include <cstring>

namespace pith {

bool WordCache::Find(absl::string_view word, size_t hash, std::vector<TokenId>* ids) const {
  if (word.empty() || word.size() > kMaxWordBytes) return false;
  const size_t index = hash % kSlots;
  const std::lock_guard<std::mutex> lock(locks_[index % kLocks]);
  const Slot& slot = slots_[index];
  if (slot.word_bytes != word.size() || std::memcmp(slot.word.data(), word.data(), word.size()) != 0) return false;
  ids->insert(ids->end(), slot.ids.begin(), slot.ids.begin() + slot.num_ids);
  return true;
}

void WordCache::Insert(absl::string_view word, size_t hash, absl::Span<const TokenId> ids) {
  if (word.empty() || word.size() > kMaxWordBytes || ids.size() > kMaxIds) return;
  const size_t index = hash % kSlots;
  const std::lock_guard<std::mutex> lock(locks_[index % kLocks]);
  Slot& slot = slots_[index];
  slot.word_bytes = static_cast<uint8_t>(word.size());
  slot.num_ids = static_cast<uint8_t>(ids.size());
  std::copy(word.begin(), word.end(), slot.word.begin());
  std::copy(ids.begin(), ids.end(), slot.ids.begin());
}

}  // namespace pith
