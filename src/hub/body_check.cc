#include "hub/body_check.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/foreign_file.h"
#include "base/status.h"

namespace pith {
namespace {

struct ContentRange {
  int64_t first = 0, last = 0, total = 0;
};

// bytes 0-99/1234
std::optional<ContentRange> ParseContentRange(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "bytes ")) return std::nullopt;
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == absl::string_view::npos || slash == absl::string_view::npos || slash < dash) return std::nullopt;
  ContentRange range;
  if (!absl::SimpleAtoi(text.substr(0, dash), &range.first) || !absl::SimpleAtoi(text.substr(dash + 1, slash - dash - 1), &range.last) ||
      !absl::SimpleAtoi(text.substr(slash + 1), &range.total)) {
    return std::nullopt;
  }
  return range;
}

// W/"abc" and "abc" as abc
absl::string_view PlainEtag(absl::string_view etag) {
  absl::ConsumePrefix(&etag, "W/");
  absl::ConsumePrefix(&etag, "\"");
  absl::ConsumeSuffix(&etag, "\"");
  return etag;
}

absl::Status CheckHeaders(const HttpClientResponse& response, const RepoFile& file) {
  const absl::string_view etag = PlainEtag(response.Header("x-linked-etag"));
  if (!etag.empty() && etag != file.id.hex) {
    return BadFileError("expected ", file.id.kind_name(), " ", file.id.hex, " as in the listing, found X-Linked-Etag ",
                        Printable(etag, 80));
  }
  int64_t size = 0;
  if (absl::SimpleAtoi(response.Header("x-linked-size"), &size) && size != file.size) {
    return BadFileError("expected ", file.size, " bytes as in the listing, found X-Linked-Size ", size);
  }
  if (absl::StartsWithIgnoreCase(response.Header("content-type"), "text/html") && !absl::EndsWithIgnoreCase(file.name, ".html")) {
    return BadFileError("expected the file, found an HTML page (a login, a proxy's notice, or a wrong HF_ENDPOINT)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BodyRange> CheckBody(const HttpClientResponse& response, const RepoFile& file, int64_t first, int64_t last,
                                    absl::string_view piece) {
  RETURN_IF_ERROR(CheckHeaders(response, file));
  if (response.status == 206) {
    const std::optional<ContentRange> range = ParseContentRange(response.Header("content-range"));
    const int64_t expected_last = last < 0 ? file.size - 1 : last;
    if (!range.has_value() || range->first != first || range->last != expected_last || range->total != file.size) {
      return BadFileError("expected bytes ", first, "-", expected_last, " of ", file.size, ", found Content-Range ",
                          Printable(response.Header("content-range"), 80));
    }
    return BodyRange{first, expected_last - first + 1};
  }
  const std::optional<int64_t> length = response.content_length();
  if (length.has_value() && *length != file.size) {
    return BadFileError("expected ", file.size, " bytes as in the listing, found ", *length, FoundContent(piece));
  }
  return BodyRange{0, file.size};
}

}  // namespace pith
