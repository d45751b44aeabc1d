#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"

namespace pith {

void Vocabulary::Reserve(size_t tokens) {
  ids_.reserve(tokens);
  texts_.reserve(tokens);
}

absl::string_view Vocabulary::Store(absl::string_view text) {
  constexpr size_t kBlockBytes = 64 << 10;
  if (block_size_ - block_used_ < text.size() || blocks_.empty()) {
    block_size_ = std::max(kBlockBytes, text.size());
    block_used_ = 0;
    blocks_.push_back(std::make_unique<char[]>(block_size_));
  }
  char* stored = blocks_.back().get() + block_used_;
  std::memcpy(stored, text.data(), text.size());
  block_used_ += text.size();
  return {stored, text.size()};
}

absl::Status Vocabulary::Add(absl::string_view text, TokenId id) {
  if (id < 0 || id > kMaxTokenId) {
    return BadFileError("token '", Printable(text), "': expected an id from 0 to ", kMaxTokenId, ", found ", id);
  }
  if (Has(id))
    return BadFileError("token '", Printable(text), "': expected an id of its own, found ", id, ", which is '", Printable(Text(id)), "'");
  const absl::string_view stored = Store(text);
  if (const auto [other, fresh] = ids_.emplace(stored, id); !fresh) {
    return BadFileError("token '", Printable(text), "': expected it once, found it as ", other->second, " and ", id);
  }
  if (id >= end_id()) texts_.resize(static_cast<size_t>(id) + 1);
  texts_[id] = stored;
  return absl::OkStatus();
}

}  // namespace pith
