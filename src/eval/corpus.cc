#include "eval/corpus.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "eval/builtin_slices.h"

namespace pith {
namespace {

constexpr absl::string_view kTextExtensions[] = {".txt", ".raw", ".utf8"};
constexpr int64_t kBytesPerToken = 16;  // generous: how much text is encoded when only some windows are wanted

bool IsText(absl::string_view name) {
  return std::any_of(std::begin(kTextExtensions), std::end(kTextExtensions), [&](absl::string_view e) { return absl::EndsWith(name, e); });
}

std::string SliceName(const std::string& path) {
  const std::string name = BaseName(path);
  const size_t dot = name.find('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

// The text of one row of a .jsonl. Prompts of code end where their continuation begins; other answers come on a line of their own.
absl::StatusOr<std::string> RowText(const Json& row) {
  for (const char* key : {"text", "content"}) {
    if (FindMember(row, key) != nullptr) return GetString(row, key);
  }
  const Json* prompt = FindMember(row, "prompt");
  if (prompt == nullptr || !prompt->is_string()) {
    return BadFileError("expected an object with \"text\", \"content\" or \"prompt\", found none");
  }
  std::string text = prompt->get<std::string>();
  if (const Json* code = FindMember(row, "canonical_solution"); code != nullptr && code->is_string())
    return text + code->get<std::string>();
  const Json* answer = FindMember(row, "answer");
  return answer != nullptr && answer->is_string() ? absl::StrCat(text, "\n", answer->get<std::string>()) : text;
}

class CorpusBuilder {
 public:
  CorpusBuilder(const std::string& source, const Tokenizer& tokenizer, const CorpusOptions& options)
      : tokenizer_(tokenizer), options_(options) {
    corpus_.source = source;
    corpus_.context = options.context;
    const auto probe = tokenizer.Encode("a");
    corpus_.bos = probe.ok() && tokenizer.bos_id().has_value() && !probe->empty() && probe->front() == *tokenizer.bos_id();
  }

  absl::Status AddFile(const std::string& path) {
    ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    const absl::Status status = IsText(path) ? AddText(SliceName(path), file.text()) : AddJsonLines(SliceName(path), file.text());
    return Annotate(status, path);
  }

  absl::Status AddBuiltin(const BuiltinSlice& slice) {
    const absl::Status status = AddJsonLines(std::string(slice.name), slice.rows);
    return Annotate(status, absl::StrCat(corpus_.source, ": ", slice.file));
  }

  absl::StatusOr<Corpus> Finish() {
    if (corpus_.windows.empty()) {
      return BadFileError(corpus_.source, ": expected at least one text of ", options_.context, " tokens, found none");
    }
    return std::move(corpus_);
  }

 private:
  bool Full(int64_t taken) const { return options_.limit > 0 && taken >= options_.limit; }

  void AddWindow(const std::string& slice, absl::Span<const int32_t> tokens) {
    TokenWindow window{.slice = slice, .document = corpus_.num_documents++, .tokens = {tokens.begin(), tokens.end()}};
    if (corpus_.bos) window.tokens.front() = *tokenizer_.bos_id();
    corpus_.windows.push_back(std::move(window));
  }

  // The tokenizer blames its caller for text that is no UTF-8; here the file is to blame.
  absl::StatusOr<std::vector<int32_t>> EncodeText(absl::string_view text) const {
    auto tokens = tokenizer_.Encode(text, {.add_special_tokens = false});
    if (!tokens.ok()) return BadFileError(tokens.status().message());
    return tokens;
  }

  absl::Status AddText(const std::string& slice, absl::string_view text) {
    if (options_.limit > 0) text = CutAtCharacter(text, static_cast<size_t>(options_.limit * options_.context * kBytesPerToken));
    ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, EncodeText(text));
    const int64_t context = options_.context;
    int64_t taken = 0;
    for (int64_t begin = 0; begin + context <= static_cast<int64_t>(tokens.size()) && !Full(taken); begin += context, ++taken) {
      AddWindow(slice, absl::MakeConstSpan(tokens).subspan(begin, context));
    }
    return absl::OkStatus();
  }

  absl::Status AddJsonLines(const std::string& slice, absl::string_view text) {
    int64_t line_number = 0, taken = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_number;
      if (Full(taken)) break;
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      const std::string where = absl::StrCat("line ", line_number);
      const auto object = ParseJson(line);
      if (!object.ok()) return Annotate(object.status(), where);
      const auto content = RowText(*object);
      if (!content.ok()) return Annotate(content.status(), where);
      const auto tokens = EncodeText(*content);
      if (!tokens.ok()) return Annotate(tokens.status(), where);
      taken += AddDocument(slice, *tokens, options_.limit - taken);
    }
    return absl::OkStatus();
  }

  // Windows of one document, which share its number. Returns how many.
  int64_t AddDocument(const std::string& slice, const std::vector<int32_t>& tokens, int64_t room) {
    const auto length = static_cast<int64_t>(tokens.size());
    const int64_t document = corpus_.num_documents;
    int64_t added = 0;
    for (int64_t begin = 0; begin < length && (options_.limit == 0 || added < room); begin += options_.context) {
      const int64_t size = std::min(options_.context, length - begin);
      if (size < (begin == 0 ? 2 : options_.context)) break;
      AddWindow(slice, absl::MakeConstSpan(tokens).subspan(begin, size));
      corpus_.windows.back().document = document;
      ++added;
    }
    corpus_.num_documents = added > 0 ? document + 1 : document;
    return added;
  }

  // At most `bytes`, not in the middle of a UTF-8 sequence.
  static absl::string_view CutAtCharacter(absl::string_view text, size_t bytes) {
    if (text.size() <= bytes) return text;
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
    return text.substr(0, bytes);
  }

  const Tokenizer& tokenizer_;
  const CorpusOptions options_;
  Corpus corpus_;
};

absl::Status CheckWindow(const CorpusOptions& options) {
  if (options.context >= 2) return absl::OkStatus();
  return UsageError("--context: expected at least 2 tokens, found ", options.context);
}

}  // namespace

std::vector<std::string> Corpus::slices() const {
  std::vector<std::string> names;
  for (const TokenWindow& window : windows) {
    if (std::find(names.begin(), names.end(), window.slice) == names.end()) names.push_back(window.slice);
  }
  return names;
}

absl::StatusOr<Corpus> LoadCorpus(const std::string& path, const Tokenizer& tokenizer, const CorpusOptions& options) {
  RETURN_IF_ERROR(CheckWindow(options));
  CorpusBuilder builder(path, tokenizer, options);
  if (!IsDirectory(path)) {
    if (FileExists(path) && !IsText(path) && !absl::EndsWith(path, ".jsonl")) {
      return BadFileError(path, ": expected .txt, .raw, .utf8 or .jsonl, found another extension");
    }
    RETURN_IF_ERROR(builder.AddFile(path));
    return builder.Finish();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    if (IsText(name) || absl::EndsWith(name, ".jsonl")) RETURN_IF_ERROR(builder.AddFile(JoinPath(path, name)));
  }
  return builder.Finish();
}

absl::StatusOr<Corpus> LoadBuiltinCorpus(const Tokenizer& tokenizer, const CorpusOptions& options) {
  RETURN_IF_ERROR(CheckWindow(options));
  CorpusBuilder builder("built-in slices", tokenizer, options);
  for (const BuiltinSlice& slice : BuiltinSlices()) RETURN_IF_ERROR(builder.AddBuiltin(slice));
  return builder.Finish();
}

}  // namespace pith
