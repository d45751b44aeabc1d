// Input: tokenizer.json, optionally followed by a NUL and a text to encode with it.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/check.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const absl::string_view text = end == absl::string_view::npos ? " a<s>b 12\n\xC3\xA9" : input.substr(end + 1);
  const auto tokenizer = pith::Tokenizer::FromJson(input.substr(0, end), "");
  if (!tokenizer.ok()) return 0;
  for (const bool parse_special : {false, true}) {
    const auto ids = (*tokenizer)->Encode(text, {.add_special_tokens = true, .parse_special = parse_special});
    if (!ids.ok()) continue;
    pith::StreamDetokenizer stream(**tokenizer);
    for (const pith::TokenId id : *ids) {
      CHECK(id >= 0 && id < (*tokenizer)->vocab_size());
      stream.Append(id);
    }
    stream.Finish();
    (*tokenizer)->Decode(*ids);
  }
  return 0;
}
