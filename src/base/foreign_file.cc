#include "base/foreign_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace pith {
namespace {

constexpr size_t kSignatureBytes = 512;

bool IsPickle(absl::string_view content) {
  if (absl::StartsWith(content, absl::string_view("PK\x03\x04", 4))) return true;  // torch.save writes a zip archive of pickles
  // PROTO opcode with version 2..5, as every pickle since Python 2.3 starts.
  return content.size() >= 2 && content[0] == '\x80' && content[1] >= 2 && content[1] <= 5;
}

bool IsSafetensors(absl::string_view content) {
  return content.size() > 9 && content[8] == '{' && (content[9] == '"' || content[9] == '}') && content[5] == 0 && content[6] == 0 &&
         content[7] == 0;
}

}  // namespace

std::string DescribeContent(absl::string_view content) {
  content = content.substr(0, kSignatureBytes);
  if (content.empty()) return "an empty file (was the download interrupted?)";
  if (absl::StartsWith(content, "version https://git-lfs.github.com/spec/")) {
    return "a Git LFS pointer instead of the file itself (run `git lfs pull` in the repository)";
  }
  if (absl::StartsWith(content, "GGUF")) return "a GGUF file";
  if (IsPickle(content)) return "a Python pickle or zip archive (never opened, since unpickling runs code; use the safetensors files)";
  if (absl::StartsWith(content, "\x1F\x8B")) return "a gzip archive (unpack it first)";
  if (IsSafetensors(content)) return "a safetensors file";
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(content);
  if (absl::StartsWithIgnoreCase(text, "<!doctype html") || absl::StartsWithIgnoreCase(text, "<html")) {
    return "an HTML page (a download that needed a login, or a wrong address)";
  }
  if (absl::StartsWith(text, "{\"")) return "JSON text";
  return "";
}

bool HasPickleName(absl::string_view path) {
  for (const absl::string_view suffix : {".bin", ".pt", ".pth", ".ckpt", ".pkl"}) {
    if (absl::EndsWithIgnoreCase(path, suffix)) return true;
  }
  return false;
}

std::string FoundContent(absl::string_view content) {
  const std::string description = DescribeContent(content);
  return description.empty() ? "" : absl::StrCat(", found ", description);
}

}  // namespace pith
