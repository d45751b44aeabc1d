#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

bool StartsWithWord(absl::string_view text) {
  size_t position = 0;
  return !text.empty() && HasUnicodeClass(DecodeUtf8(text, &position), kClassWord);
}

bool EndsWithWord(absl::string_view text) {
  if (text.empty()) return false;
  size_t position = PreviousUtf8(text, text.size());
  return HasUnicodeClass(DecodeUtf8(text, &position), kClassWord);
}

// Start of the white space that ends at `end`, not before `limit`.
size_t SpaceBefore(absl::string_view text, size_t limit, size_t end) {
  while (end > limit) {
    const size_t begin = PreviousUtf8(text, end);
    size_t position = begin;
    if (!HasUnicodeClass(DecodeUtf8(text, &position), kClassSpace)) break;
    end = begin;
  }
  return end;
}

size_t SpaceBehind(absl::string_view text, size_t begin) {
  while (begin < text.size()) {
    size_t position = begin;
    if (!HasUnicodeClass(DecodeUtf8(text, &position), kClassSpace)) break;
    begin = position;
  }
  return begin;
}

}  // namespace

bool TouchesRange(absl::Span<const ByteRange> ranges, size_t begin, size_t end, size_t* next) {
  while (*next < ranges.size() && ranges[*next].end <= begin) ++*next;
  return *next < ranges.size() && ranges[*next].begin < end;
}

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens, const std::vector<std::string>& contents)
    : tokens_(std::move(tokens)), token_of_node_(1, -1) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!contents[i].empty()) Insert(contents[i], static_cast<int32_t>(i));
  }
}

void AddedTokenMatcher::Insert(absl::string_view content, int32_t token) {
  uint32_t node = 0;
  for (size_t i = 0; i < content.size(); ++i) {
    const uint32_t fresh = static_cast<uint32_t>(token_of_node_.size());
    uint32_t& edge = i == 0 ? first_nodes_[static_cast<uint8_t>(content[0])] : edges_[EdgeKey(node, content[i])];
    if (edge == 0) {
      edge = fresh;
      token_of_node_.push_back(-1);
    }
    node = edge;
  }
  token_of_node_[node] = token;
}

bool AddedTokenMatcher::LongestMatch(absl::string_view text, size_t begin, int32_t* token, size_t* end) const {
  uint32_t node = first_nodes_[static_cast<uint8_t>(text[begin])];
  bool found = false;
  for (size_t position = begin + 1; node != 0; ++position) {
    if (token_of_node_[node] >= 0) {
      *token = token_of_node_[node];
      *end = position;
      found = true;
    }
    if (position == text.size()) break;
    const auto edge = edges_.find(EdgeKey(node, text[position]));
    node = edge != edges_.end() ? edge->second : 0;
  }
  return found;
}

std::vector<TextSegment> AddedTokenMatcher::Split(absl::string_view text, bool match_special, absl::Span<const ByteRange> user_text) const {
  std::vector<TextSegment> segments;
  size_t covered = 0;
  size_t position = 0;
  size_t next_range = 0;
  while (!tokens_.empty() && position < text.size()) {
    int32_t index = 0;
    size_t match_end = 0;
    if (!LongestMatch(text, position, &index, &match_end)) {
      ++position;
      continue;
    }
    const AddedToken& token = tokens_[index];
    size_t begin = position, end = match_end;
    position = match_end;
    if (token.special && !match_special) continue;
    if (token.special && TouchesRange(user_text, begin, end, &next_range)) {
      position = std::clamp(user_text[next_range].end, begin + 1, end);
      continue;
    }
    if (token.single_word && (EndsWithWord(text.substr(0, begin)) || StartsWithWord(text.substr(end)))) continue;
    if (token.lstrip) begin = SpaceBefore(text, std::min(covered, begin), begin);
    if (token.rstrip) end = SpaceBehind(text, end);
    begin = std::max(begin, covered);
    if (begin > covered) segments.push_back({covered, begin, -1});
    segments.push_back({begin, std::max(begin, end), token.id});
    covered = std::max(begin, end);
  }
  if (covered < text.size()) segments.push_back({covered, text.size(), -1});
  return segments;
}

}  // namespace pith
