#include "tokenizer/utf8.h"

#include <algorithm>
#include <cstdint>

#include "simdjson.h"

namespace pith {
namespace {

// Valid range of the second byte after `lead`; `length` of the whole sequence, 0 when `lead` starts none.
struct LeadInfo {
  int length;
  uint8_t second_low, second_high;
};

LeadInfo ClassifyLead(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};  // continuation bytes and the overlong C0, C1
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};  // up to U+10FFFF
  return {0, 0, 0};
}

// Whether `byte` is inside a sequence, not its first.
bool Continues(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

}  // namespace

bool IsValidUtf8(absl::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

Utf8Step NextUtf8(absl::string_view text) {
  const LeadInfo lead = ClassifyLead(static_cast<uint8_t>(text[0]));
  if (lead.length == 0) return {Utf8Step::kInvalid, 1};
  for (int i = 1; i < lead.length; ++i) {
    if (static_cast<size_t>(i) == text.size()) return {Utf8Step::kIncomplete, i};
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Utf8Step::kInvalid, i};
  }
  return {Utf8Step::kValid, lead.length};
}

char32_t DecodeUtf8(absl::string_view text, size_t* position) {
  const auto* p = reinterpret_cast<const uint8_t*>(text.data()) + *position;
  if (p[0] < 0x80) {
    *position += 1;
    return p[0];
  }
  if (p[0] < 0xE0) {
    *position += 2;
    return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
  }
  if (p[0] < 0xF0) {
    *position += 3;
    return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
  }
  *position += 4;
  return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

size_t PreviousUtf8(absl::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && Continues(text[end]));
  return end;
}

int64_t CountUtf8(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return !Continues(byte); });
}

void AppendUtf8(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    out->push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

std::string ReplaceInvalidUtf8(absl::string_view bytes) {
  if (IsValidUtf8(bytes)) return std::string(bytes);
  std::string rest(bytes);
  std::string out = TakeCompleteUtf8(&rest);
  if (!rest.empty()) out += kReplacementUtf8;
  return out;
}

std::string TakeCompleteUtf8(std::string* bytes) {
  const absl::string_view text = *bytes;
  std::string out;
  size_t position = 0;
  while (position < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(position));
    if (step.state == Utf8Step::kIncomplete) break;
    if (step.state == Utf8Step::kValid) {
      out.append(text.data() + position, static_cast<size_t>(step.length));
    } else {
      out += kReplacementUtf8;
    }
    position += step.length;
  }
  bytes->erase(0, position);
  return out;
}

}  // namespace pith
