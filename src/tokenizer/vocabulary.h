// A two-way map between token texts and ids. Texts are copied into blocks that never move, so both directions hand out views.
// Movable; thread-safe to read.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tokenizer/tokenizer.h"

namespace pith {

// Ids above this are refused: a file of a few bytes must not make tables of gigabytes.
inline constexpr TokenId kMaxTokenId = (1 << 24) - 1;

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  void Reserve(size_t tokens);
  // Errors: kDataLoss when the text or the id is taken, or the id is negative or above kMaxTokenId.
  absl::Status Add(absl::string_view text, TokenId id);

  std::optional<TokenId> Find(absl::string_view text) const {
    const auto found = ids_.find(text);
    return found != ids_.end() ? std::optional<TokenId>(found->second) : std::nullopt;
  }
  bool Has(TokenId id) const { return id >= 0 && id < end_id() && texts_[id].data() != nullptr; }
  // Empty when the id is unknown. The view lives as long as the vocabulary.
  absl::string_view Text(TokenId id) const { return Has(id) ? texts_[id] : absl::string_view(); }

  TokenId end_id() const { return static_cast<TokenId>(texts_.size()); }  // largest id + 1
  size_t size() const { return ids_.size(); }

 private:
  absl::string_view Store(absl::string_view text);

  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_used_ = 0, block_size_ = 0;
  std::vector<absl::string_view> texts_;  // by id; a null view where there is none
  absl::flat_hash_map<absl::string_view, TokenId> ids_;
};

}  // namespace pith
