// For tests only: random text, and a GGUF vocabulary small enough to work out by hand.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {

// One random code point: a quarter ASCII, white space and apostrophes often, then ever larger ranges. No surrogates.
inline char32_t RandomCodePoint(RandomStream* random) {
  static constexpr char32_t kFrequent[] = {' ', ' ', ' ', '\n', '\t', '\r',   '\'',  's',   'l',
                                           'e', 'T', '0', '9',  0xA0, 0x3000, 0x17F, 0x2581};
  switch (random->Below(6)) {
    case 0: return 32 + static_cast<char32_t>(random->Below(95));
    case 1: return kFrequent[random->Below(std::size(kFrequent))];
    case 2: return static_cast<char32_t>(random->Below(0x800));
    case 3: return 0x800 + static_cast<char32_t>(random->Below(0xD800 - 0x800));
    case 4: return 0xE000 + static_cast<char32_t>(random->Below(0x2000));
    default: return 0x10000 + static_cast<char32_t>(random->Below(random->Below(2) == 0 ? 0x10000 : 0x100000));
  }
}

inline std::string RandomText(uint64_t seed, size_t num_code_points) {
  RandomStream random(seed, /*stream=*/7);
  std::string text;
  for (size_t i = 0; i < num_code_points; ++i) AppendUtf8(RandomCodePoint(&random), &text);
  return text;
}

// SentencePiece: <unk> <s> </s>, the 256 bytes, then "ab" words with scores, a user-defined "\n\n" and an unused token.
//   259 "\u2581" -9   260 "a" -10   261 "b" -11   262 "\u2581a" -1   263 "ab" -2   264 "\u2581ab" -3   265 "\n\n"   266 unused
inline GgufVocabulary TinySentencePiece() {
  GgufVocabulary gguf;
  gguf.model = "llama";
  const auto add = [&gguf](const std::string& token, int type, float score) {
    gguf.tokens.push_back(token);
    gguf.token_types.push_back(type);
    gguf.scores.push_back(score);
  };
  add("<unk>", 2, 0);
  add("<s>", 3, 0);
  add("</s>", 3, 0);
  for (int byte = 0; byte < 256; ++byte) {
    static constexpr char kDigits[] = "0123456789ABCDEF";
    add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 6, 0);
  }
  add("\u2581", 1, -9);
  add("a", 1, -10);
  add("b", 1, -11);
  add("\u2581a", 1, -1);
  add("ab", 1, -2);
  add("\u2581ab", 1, -3);
  add("\n\n", 4, 0);
  add("<gone>", 5, 0);
  gguf.unk_id = 0;
  gguf.bos_id = 1;
  gguf.eos_id = 2;
  return gguf;
}

}  // namespace pith
