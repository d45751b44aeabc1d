#include "tokenizer/bpe.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/strings/str_format.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr absl::string_view kMetaspace = "\xE2\x96\x81";  // U+2581, how SentencePiece writes a space
constexpr char32_t kMetaspaceChar = 0x2581;
constexpr char32_t kNumTableCharacters = 0x10000;

// A pending merge of the symbol at `position` with the one behind it, lowest rank first, then leftmost.
struct PendingMerge {
  uint32_t rank, position;
  bool operator>(const PendingMerge& other) const { return rank != other.rank ? rank > other.rank : position > other.position; }
};

}  // namespace

BpeModel::BpeModel(const TokenizerDefinition& definition, bool raw_bytes)
    : definition_(definition), raw_bytes_(raw_bytes), cache_(std::make_unique<WordCache>()) {
  for (const AddedToken& token : definition.added_tokens) {
    if (!token.special || token.id < 0 || token.id >= definition.vocabulary.end_id()) continue;
    if (is_special_.size() <= static_cast<size_t>(token.id)) is_special_.resize(token.id + 1);
    is_special_[token.id] = true;
  }
  const auto is_special = [this](TokenId id) { return static_cast<size_t>(id) < is_special_.size() && is_special_[id]; };
  merges_.reserve(definition.merges.size());
  for (size_t rank = 0; rank < definition.merges.size(); ++rank) {
    const BpeMerge& merge = definition.merges[rank];
    if (is_special(merge.merged)) continue;
    merges_[PairKey(merge.left, merge.right)] = {static_cast<uint32_t>(rank), merge.merged};  // of a repeated pair the last counts
  }
  BuildSymbolTables();
  // A space without a token of its own could be fused with an unknown character before it.
  cut_at_spaces_ = !raw_bytes_ && !definition.ignore_merges && definition.vocabulary.Find(kMetaspace).has_value();
  if (cut_at_spaces_) FindSpaceJoiners();
}

bool BpeModel::HasWholeByteAlphabet(const Vocabulary& vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    AppendUtf8(ByteLevelChar(static_cast<uint8_t>(byte)), &text);
    if (!vocabulary.Find(text).has_value()) return false;
  }
  return true;
}

void BpeModel::BuildSymbolTables() {
  const Vocabulary& vocabulary = definition_.vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    AppendUtf8(ByteLevelChar(static_cast<uint8_t>(byte)), &text);
    byte_ids_[byte] = vocabulary.Find(text).value_or(-1);
    fallback_ids_[byte] = vocabulary.Find(absl::StrFormat("<0x%02X>", byte)).value_or(-1);
  }
  if (raw_bytes_) return;
  character_ids_.assign(kNumTableCharacters, -1);
  for (TokenId id = 0; id < vocabulary.end_id(); ++id) {
    const absl::string_view text = vocabulary.Text(id);
    if (text.empty() || text.size() > 3) continue;
    size_t end = 0;
    const char32_t c = DecodeUtf8(text, &end);
    if (end == text.size()) character_ids_[c] = id;
  }
}

// What a merge joins is part of its token, so a place where no token has these two characters side by side is never joined.
void BpeModel::FindSpaceJoiners() {
  for (const BpeMerge& merge : definition_.merges) {
    const absl::string_view text = definition_.vocabulary.Text(merge.merged);
    for (size_t space = text.find(kMetaspace, 1); space != absl::string_view::npos; space = text.find(kMetaspace, space + 1)) {
      size_t before = PreviousUtf8(text, space);
      space_joiners_.insert(DecodeUtf8(text, &before));
    }
  }
}

bool BpeModel::CanCutBefore(absl::string_view word, size_t space) const {
  size_t before = PreviousUtf8(word, space);
  const char32_t c = DecodeUtf8(word, &before);
  return c != kMetaspaceChar && !space_joiners_.contains(c);
}

BpeModel::Rank BpeModel::FindRank(TokenId left, TokenId right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found != merges_.end() ? found->second : Rank();
}

void BpeModel::EncodeWord(absl::string_view word, std::vector<TokenId>* ids) const {
  if (!cut_at_spaces_) {
    EncodeSegment(word, ids);
    return;
  }
  size_t begin = 0;
  for (size_t space = word.find(kMetaspace, 1); space != absl::string_view::npos; space = word.find(kMetaspace, space + 1)) {
    if (!CanCutBefore(word, space)) continue;
    EncodeSegment(word.substr(begin, space - begin), ids);
    begin = space;
  }
  EncodeSegment(word.substr(begin), ids);
}

void BpeModel::EncodeSegment(absl::string_view word, std::vector<TokenId>* ids) const {
  const bool cacheable = word.size() <= WordCache::kMaxWordBytes;
  const size_t hash = cacheable ? absl::HashOf(word) : 0;
  if (cacheable && cache_->Find(word, hash, ids)) return;
  const size_t before = ids->size();
  TokenId whole = -1;
  if (definition_.ignore_merges && FindWholeWord(word, &whole)) {
    ids->push_back(whole);
  } else {
    Symbols symbols;
    SplitIntoSymbols(word, &symbols);
    symbols.size() <= kShortWord ? MergeShort(&symbols) : MergeLong(&symbols);
    ids->insert(ids->end(), symbols.begin(), symbols.end());
  }
  if (cacheable) cache_->Insert(word, hash, absl::MakeConstSpan(*ids).subspan(before));
}

bool BpeModel::FindWholeWord(absl::string_view word, TokenId* id) const {
  std::optional<TokenId> found;
  if (raw_bytes_) {
    std::string text;
    AppendByteLevelText(word, &text);
    found = definition_.vocabulary.Find(text);
  } else {
    found = definition_.vocabulary.Find(word);
  }
  if (!found.has_value() || (static_cast<size_t>(*found) < is_special_.size() && is_special_[*found])) return false;
  *id = *found;
  return true;
}

TokenId BpeModel::FindCharacter(absl::string_view character, char32_t code_point) const {
  if (code_point < kNumTableCharacters) return character_ids_[code_point];
  return definition_.vocabulary.Find(character).value_or(-1);
}

bool BpeModel::AppendByteTokens(absl::string_view character, Symbols* symbols) const {
  const auto id_of = [this](char byte) { return fallback_ids_[static_cast<uint8_t>(byte)]; };
  if (!std::all_of(character.begin(), character.end(), [&](char byte) { return id_of(byte) >= 0; })) return false;
  for (const char byte : character) symbols->push_back(id_of(byte));
  return true;
}

void BpeModel::SplitIntoSymbols(absl::string_view word, Symbols* symbols) const {
  if (raw_bytes_) {
    for (const char byte : word) symbols->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    return;
  }
  bool previous_unknown = false;
  for (size_t begin = 0, end = 0; begin < word.size(); begin = end) {
    const char32_t c = DecodeUtf8(word, &end);
    const absl::string_view character = word.substr(begin, end - begin);
    const TokenId id = FindCharacter(character, c);
    const bool known = id >= 0 || (definition_.byte_fallback && AppendByteTokens(character, symbols));
    if (id >= 0) symbols->push_back(id);
    if (!known && definition_.unk_id.has_value() && !(previous_unknown && definition_.fuse_unk)) symbols->push_back(*definition_.unk_id);
    previous_unknown = !known;
  }
}

// Quadratic in the number of symbols, which is small; everything stays in registers and one or two cache lines.
void BpeModel::MergeShort(Symbols* symbols) const {
  size_t n = symbols->size();
  TokenId* ids = symbols->data();
  std::array<Rank, kShortWord> ranks;  // ranks[i]: of ids[i] and ids[i + 1]
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = FindRank(ids[i], ids[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (ranks[i].rank < ranks[best].rank) best = i;
    }
    if (ranks[best].rank == kNoRank) break;
    ids[best] = ranks[best].merged;
    std::copy(ids + best + 2, ids + n, ids + best + 1);
    if (best + 2 < n) std::copy(ranks.begin() + best + 2, ranks.begin() + n - 1, ranks.begin() + best + 1);
    --n;
    if (best > 0) ranks[best - 1] = FindRank(ids[best - 1], ids[best]);
    if (best + 1 < n) ranks[best] = FindRank(ids[best], ids[best + 1]);
  }
  symbols->resize(n);
}

// A list of symbols linked by position and a heap of the merges that were possible when pushed; stale ones are recognised when popped.
void BpeModel::MergeLong(Symbols* symbols) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  constexpr TokenId kGone = -1;
  const uint32_t n = static_cast<uint32_t>(symbols->size());
  TokenId* ids = symbols->data();
  std::vector<uint32_t> previous(n), next(n);
  std::vector<PendingMerge> heap;
  heap.reserve(n);
  for (uint32_t i = 0; i < n; ++i) {
    previous[i] = i > 0 ? i - 1 : kEnd;
    next[i] = i + 1 < n ? i + 1 : kEnd;
    if (i + 1 < n) {
      if (const Rank rank = FindRank(ids[i], ids[i + 1]); rank.rank != kNoRank) heap.push_back({rank.rank, i});
    }
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto push = [&](uint32_t position) {
    if (position == kEnd || next[position] == kEnd) return;
    const Rank rank = FindRank(ids[position], ids[next[position]]);
    if (rank.rank == kNoRank) return;
    heap.push_back({rank.rank, position});
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const PendingMerge top = heap.back();
    heap.pop_back();
    const uint32_t right = ids[top.position] == kGone ? kEnd : next[top.position];
    if (right == kEnd) continue;
    const Rank rank = FindRank(ids[top.position], ids[right]);
    if (rank.rank != top.rank) continue;
    ids[top.position] = rank.merged;
    ids[right] = kGone;
    next[top.position] = next[right];
    if (next[right] != kEnd) previous[next[right]] = top.position;
    push(previous[top.position]);
    push(top.position);
  }
  symbols->erase(std::remove(symbols->begin(), symbols->end(), kGone), symbols->end());
}

}  // namespace pith
