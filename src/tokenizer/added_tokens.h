// Finds added tokens in text: leftmost first, the longest where several start, then on behind it; and cuts the text around them.
//
// Flags as in the Hugging Face tokenizers library. single_word: only where no word character (\w) touches it. lstrip, rstrip: the white
// space beside it belongs to it. Special tokens can be left in the text ("user text never produces special ids"): what matches one is
// then skipped, together with shorter tokens inside it.
// Linear in the text (times the longest token). Thread-safe after creation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

// Bytes [begin, end) of a text: an added token, or text between them (id < 0). Never empty, except for tokens whose stripped white
// space another one had taken already.
struct TextSegment {
  size_t begin = 0, end = 0;
  TokenId id = -1;
};

// Whether [begin, end) touches one of `ranges`, ascending and disjoint. *next remembers where to look on; `begin` must not fall from call
// to call.
bool TouchesRange(absl::Span<const ByteRange> ranges, size_t begin, size_t end, size_t* next);

class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  // `contents[i]` is what tokens[i] looks like in the text to be searched (its content, or that normalized). Empty ones never match.
  AddedTokenMatcher(std::vector<AddedToken> tokens, const std::vector<std::string>& contents);

  bool empty() const { return tokens_.empty(); }
  // Special tokens are matched with match_special, except where they touch one of the ascending, disjoint `user_text` ranges; the search
  // then goes on behind that range, so nothing a user writes hides a token that starts behind it.
  std::vector<TextSegment> Split(absl::string_view text, bool match_special, absl::Span<const ByteRange> user_text = {}) const;

 private:
  static uint64_t EdgeKey(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }
  void Insert(absl::string_view content, int32_t token);
  // The longest token that starts at `begin`: its index and end.
  bool LongestMatch(absl::string_view text, size_t begin, int32_t* token, size_t* end) const;

  std::vector<AddedToken> tokens_;
  std::vector<int32_t> token_of_node_;  // the trie; node 0 is the root, -1: no token ends here
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::array<uint32_t, 256> first_nodes_{};  // edges of the root; 0: none
};

}  // namespace pith
