// Byte pair encoding of one word: start from its characters, join the neighbours whose merge has the lowest rank (the leftmost of
// equals), until no merge applies. Sennrich et al. 2016; the exact order is that of the Hugging Face tokenizers library.
//
// O(n log n) in the word for every input; short words are remembered. A word of SentencePiece text (spaces are U+2581, and a whole text
// is one word) is first cut at the spaces no merge can reach across, which changes nothing but the time. Thread-safe after creation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "tokenizer/tokenizer_definition.h"
#include "tokenizer/word_cache.h"

namespace pith {

class BpeModel {
 public:
  // `definition` must outlive the model. With `raw_bytes`, words are bytes and the vocabulary is text in the byte-level alphabet.
  // Otherwise words are UTF-8 text as the vocabulary writes it.
  // Merges that make a special token, and whole-word matches of one (ignore_merges), are left out: text never becomes a special id
  // that way. A special token that is a single character stays what the text encodes to.
  BpeModel(const TokenizerDefinition& definition, bool raw_bytes);

  // Whether every byte has a token, so that raw_bytes loses nothing.
  static bool HasWholeByteAlphabet(const Vocabulary& vocabulary);

  // Appends the ids of `word`. Characters without a token become byte tokens (byte_fallback), the unknown token, or nothing.
  void EncodeWord(absl::string_view word, std::vector<TokenId>* ids) const;

 private:
  struct Rank {
    uint32_t rank = kNoRank;
    TokenId merged = -1;
  };
  static constexpr uint32_t kNoRank = UINT32_MAX;
  static constexpr size_t kShortWord = 64;  // symbols
  using Symbols = absl::InlinedVector<TokenId, kShortWord>;

  static uint64_t PairKey(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  Rank FindRank(TokenId left, TokenId right) const;

  void BuildSymbolTables();
  void FindSpaceJoiners();
  bool CanCutBefore(absl::string_view word, size_t space) const;
  bool FindWholeWord(absl::string_view word, TokenId* id) const;
  void EncodeSegment(absl::string_view word, std::vector<TokenId>* ids) const;
  void SplitIntoSymbols(absl::string_view word, Symbols* symbols) const;
  TokenId FindCharacter(absl::string_view character, char32_t code_point) const;
  bool AppendByteTokens(absl::string_view character, Symbols* symbols) const;
  void MergeShort(Symbols* symbols) const;
  void MergeLong(Symbols* symbols) const;

  const TokenizerDefinition& definition_;
  const bool raw_bytes_;
  bool cut_at_spaces_ = false;
  absl::flat_hash_set<char32_t> space_joiners_;  // characters that some merge joins with a U+2581 behind them
  absl::flat_hash_map<uint64_t, Rank> merges_;
  std::vector<bool> is_special_;             // by id, up to the largest special id
  std::array<TokenId, 256> byte_ids_{};      // raw bytes; -1: none
  std::array<TokenId, 256> fallback_ids_{};  // <0x00> to <0xFF>; -1: none
  std::vector<TokenId> character_ids_;       // by code point below 0x10000; -1: none
  std::unique_ptr<WordCache> cache_;
};

}  // namespace pith
