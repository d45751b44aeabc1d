#include "server/http_types.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pith {
namespace {

// What is no escape stays as it is.
std::string DecodePercent(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                        absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (!escape) {
      decoded += text[i];
      continue;
    }
    absl::StrAppend(&decoded, absl::HexStringToBytes(text.substr(i + 1, 2)));
    i += 2;
  }
  return decoded;
}

}  // namespace

const std::string* HttpRequest::FindHeader(absl::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, name)) return &value;
  }
  return nullptr;
}

void SplitTarget(absl::string_view target, std::string* path, std::string* query) {
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(target, scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.size(), target.find_first_of("/?")));
  }
  const size_t mark = std::min(target.find('?'), target.size());
  *path = DecodePercent(target.substr(0, mark));
  query->clear();
  if (mark < target.size()) absl::StrAppend(query, target.substr(mark + 1));
  if (path->empty()) path->push_back('/');
}

}  // namespace pith
