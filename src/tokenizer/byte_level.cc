#include "tokenizer/byte_level.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr int kAlphabetEnd = 0x144;  // 0x100 + the 68 bytes that are not printable

constexpr bool IsPrintableLatin1(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<char32_t, 256> char_of_byte{};
  std::array<int16_t, kAlphabetEnd> byte_of_char{};
};

constexpr Alphabet BuildAlphabet() {
  Alphabet alphabet;
  for (int16_t& byte : alphabet.byte_of_char) byte = -1;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t c = IsPrintableLatin1(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.char_of_byte[byte] = c;
    alphabet.byte_of_char[c] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = BuildAlphabet();

}  // namespace

char32_t ByteLevelChar(uint8_t byte) { return kAlphabet.char_of_byte[byte]; }

int ByteLevelByte(char32_t c) { return c < kAlphabetEnd ? kAlphabet.byte_of_char[c] : -1; }

void AppendByteLevelText(absl::string_view bytes, std::string* out) {
  for (const char byte : bytes) AppendUtf8(ByteLevelChar(static_cast<uint8_t>(byte)), out);
}

void AppendByteLevelBytes(absl::string_view text, std::string* out) {
  const size_t before = out->size();
  for (size_t position = 0; position < text.size();) {
    const int byte = ByteLevelByte(DecodeUtf8(text, &position));
    if (byte < 0) {
      out->resize(before);
      absl::StrAppend(out, text);
      return;
    }
    out->push_back(static_cast<char>(byte));
  }
}

}  // namespace pith
