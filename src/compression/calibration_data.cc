#include "compression/calibration_data.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/status.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr absl::string_view kTextExtensions[] = {".txt", ".raw", ".utf8"};
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kPieceBytes = size_t{1} << 20;  // of a text that are tokenized at once
constexpr uint64_t kDrawStream = 0xCA11B;        // which of the seed's streams decides the draw

bool IsText(absl::string_view name) {
  return std::any_of(std::begin(kTextExtensions), std::end(kTextExtensions), [&](absl::string_view e) { return absl::EndsWith(name, e); });
}

bool IsJsonLines(absl::string_view name) { return absl::EndsWith(name, ".jsonl"); }

std::string DomainName(const std::string& path) {
  const std::string name = BaseName(path);
  const size_t dot = name.find('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

// The first of `text`, at least one byte and at most kPieceBytes: up to a line break, or else to the end of a character.
absl::string_view FirstPiece(absl::string_view text) {
  if (text.size() <= kPieceBytes) return text;
  const size_t line_break = text.rfind('\n', kPieceBytes - 1);
  if (line_break != absl::string_view::npos) return text.substr(0, line_break + 1);
  const size_t end = PreviousUtf8(text, kPieceBytes + 1);
  return text.substr(0, end > 0 ? end : kPieceBytes);  // 0: no UTF-8, which is found when it is tokenized
}

struct Sample {
  std::string domain;
  std::vector<int32_t> tokens;
};

// Keeps `count` of the samples it is shown, each set of them as likely: those with the smallest of the numbers that the seed gives to their
// places, so that no more than these are ever in memory.
class SampleDraw {
 public:
  SampleDraw(int64_t count, uint64_t seed) : count_(static_cast<size_t>(count)), seed_(seed) {}

  void Add(const std::string& domain, std::vector<int32_t> tokens) {
    const int64_t place = next_place_++;
    const std::pair key(UniformOpen(seed_, kDrawStream, static_cast<uint64_t>(place)), place);
    if (kept_.size() == count_) {
      if (key > kept_.rbegin()->first) return;
      kept_.erase(std::prev(kept_.end()));
    }
    kept_.emplace(key, Sample{domain, std::move(tokens)});
  }

  // In the order they were shown.
  std::vector<Sample> Take() {
    std::map<int64_t, Sample> by_place;
    for (auto& [key, sample] : kept_) by_place.emplace(key.second, std::move(sample));
    std::vector<Sample> samples;
    for (auto& [place, sample] : by_place) samples.push_back(std::move(sample));
    return samples;
  }

 private:
  const size_t count_;
  const uint64_t seed_;
  int64_t next_place_ = 0;
  std::map<std::pair<double, int64_t>, Sample> kept_;
};

// {"role": ..., "content": ...} and whatever else a template may look at.
absl::StatusOr<OrderedJson> ReadMessages(const Json& messages) {
  if (!messages.is_array() || messages.empty()) {
    return BadFileError("messages: expected a list of messages, found ", messages.is_array() ? "none in it" : messages.type_name());
  }
  OrderedJson result = OrderedJson::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    for (const char* key : {"role", "content"}) {
      const auto text = GetString(messages[i], key);
      if (!text.ok()) return Annotate(text.status(), absl::StrCat("messages.", i));
    }
    result.push_back(OrderedJson(messages[i]));
  }
  return result;
}

class SampleReader {
 public:
  SampleReader(const ModelText& model_text, const CalibrationOptions& options)
      : model_text_(model_text),
        length_(options.sequence_length),
        bos_(AddedBos(model_text.tokenizer)),
        draw_(options.num_samples, options.seed) {}

  absl::Status AddFile(const std::string& path) {
    ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    files_.push_back(BaseName(path));
    domain_ = DomainName(path);
    const absl::string_view text = absl::StripPrefix(file.text(), kByteOrderMark);
    return Annotate(IsText(path) ? AddText(text) : AddLines(text), path);
  }

  std::vector<std::string> TakeFiles() { return std::move(files_); }
  std::vector<Sample> TakeSamples() { return draw_.Take(); }

 private:
  // Samples go over the borders of pieces.
  absl::Status AddText(absl::string_view text) {
    std::vector<int32_t> tokens;
    while (!text.empty()) {
      RETURN_IF_ERROR(CheckInterrupted());
      const absl::string_view piece = FirstPiece(text);
      text.remove_prefix(piece.size());
      ASSIGN_OR_RETURN(const std::vector<int32_t> more, EncodeText(model_text_, piece));
      tokens.insert(tokens.end(), more.begin(), more.end());
      tokens.erase(tokens.begin(), tokens.begin() + AddSamples(tokens, bos_));
    }
    return absl::OkStatus();
  }

  absl::Status AddLines(absl::string_view text) {
    for (int64_t number = 1; !text.empty(); ++number) {
      RETURN_IF_ERROR(CheckInterrupted());
      const absl::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      if (line.find_first_not_of(" \t\r") == absl::string_view::npos) continue;
      if (const absl::Status status = AddLine(line); !status.ok()) return Annotate(status, absl::StrCat("line ", number));
    }
    return absl::OkStatus();
  }

  absl::Status AddLine(absl::string_view line) {
    ASSIGN_OR_RETURN(const Json object, ParseJson(line));
    if (const Json* conversation = FindMember(object, "messages"); conversation != nullptr) {
      ASSIGN_OR_RETURN(const OrderedJson messages, ReadMessages(*conversation));
      ASSIGN_OR_RETURN(std::vector<int32_t> tokens, EncodeConversation(model_text_, messages, /*add_generation_prompt=*/false));
      const bool starts_with_bos = !tokens.empty() && tokens.front() == model_text_.tokenizer.bos_id();
      const std::optional<TokenId> bos = starts_with_bos ? bos_ : std::nullopt;
      if (bos.has_value()) tokens.erase(tokens.begin());  // every sample of it gets one
      AddDocument(std::move(tokens), bos);
      return absl::OkStatus();
    }
    for (const char* key : {"text", "content"}) {
      if (FindMember(object, key) == nullptr) continue;
      ASSIGN_OR_RETURN(const std::string text, GetString(object, key));
      ASSIGN_OR_RETURN(std::vector<int32_t> tokens, EncodeText(model_text_, text));
      AddDocument(std::move(tokens), bos_);
      return absl::OkStatus();
    }
    return BadFileError(R"(expected an object with "messages", "text" or "content", found none of them)");
  }

  void AddDocument(std::vector<int32_t> tokens, std::optional<TokenId> bos) {
    if (AddSamples(tokens, bos) > 0) return;
    if (bos.has_value()) tokens.insert(tokens.begin(), *bos);
    if (tokens.size() >= 2) draw_.Add(domain_, std::move(tokens));
  }

  // Cuts whole samples from the front; returns how many tokens they took.
  int64_t AddSamples(const std::vector<int32_t>& tokens, std::optional<TokenId> bos) {
    const int64_t length = length_ - (bos.has_value() ? 1 : 0);
    int64_t begin = 0;
    for (; begin + length <= static_cast<int64_t>(tokens.size()); begin += length) {
      std::vector<int32_t> sample;
      if (bos.has_value()) sample.push_back(*bos);
      sample.insert(sample.end(), tokens.begin() + begin, tokens.begin() + begin + length);
      draw_.Add(domain_, std::move(sample));
    }
    return begin;
  }

  const ModelText& model_text_;
  const int64_t length_;
  const std::optional<TokenId> bos_;
  SampleDraw draw_;
  std::string domain_;  // of the file that is read
  std::vector<std::string> files_;
};

// The files that `paths` name, in their order.
absl::StatusOr<std::vector<std::string>> FindFiles(absl::Span<const std::string> paths) {
  std::vector<std::string> files;
  std::set<std::string> seen;
  const auto add = [&](const std::string& path) {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::canonical(path, error);
    if (!error && !seen.insert(canonical.string()).second) return UsageError(path, ": expected every file once, found it twice");
    files.push_back(path);
    return absl::OkStatus();
  };
  for (const std::string& path : paths) {
    if (!IsDirectory(path)) {
      if (FileExists(path) && !IsText(path) && !IsJsonLines(path)) {
        return NotSupportedError(path, ": expected a folder, or a file that ends in .txt, .raw, .utf8 or .jsonl, found another extension");
      }
      RETURN_IF_ERROR(add(path));
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
    const size_t before = files.size();
    for (const std::string& name : names) {
      if (IsText(name) || IsJsonLines(name)) RETURN_IF_ERROR(add(JoinPath(path, name)));
    }
    if (files.size() == before) return BadFileError(path, ": expected files that end in .txt, .raw, .utf8 or .jsonl, found none");
  }
  return files;
}

}  // namespace

int64_t CalibrationData::num_tokens() const {
  int64_t count = 0;
  for (const std::vector<int32_t>& sequence : sequences) count += static_cast<int64_t>(sequence.size());
  return count;
}

int64_t CalibrationData::longest() const {
  size_t longest = 0;
  for (const std::vector<int32_t>& sequence : sequences) longest = std::max(longest, sequence.size());
  return static_cast<int64_t>(longest);
}

std::string CalibrationData::Hash() const {
  Sha256 hash;
  for (const std::vector<int32_t>& sequence : sequences) {
    const auto length = static_cast<int32_t>(sequence.size());
    hash.Update({reinterpret_cast<const char*>(&length), sizeof(length)});
    hash.Update({reinterpret_cast<const char*>(sequence.data()), sequence.size() * sizeof(int32_t)});
  }
  return hash.HexDigest();
}

absl::Status Validate(const CalibrationOptions& options) {
  if (options.num_samples < 1) return UsageError("calibration: expected at least 1 sample, found ", options.num_samples);
  if (options.sequence_length < 2) return UsageError("calibration: expected samples of at least 2 tokens, found ", options.sequence_length);
  return absl::OkStatus();
}

absl::StatusOr<CalibrationData> LoadCalibrationData(absl::Span<const std::string> paths, const ModelText& model_text,
                                                    const CalibrationOptions& options) {
  RETURN_IF_ERROR(Validate(options));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FindFiles(paths));
  SampleReader reader(model_text, options);
  for (const std::string& file : files) RETURN_IF_ERROR(reader.AddFile(file));
  CalibrationData data{.files = reader.TakeFiles(), .options = options};
  for (Sample& sample : reader.TakeSamples()) {
    data.domain_tokens[sample.domain] += static_cast<int64_t>(sample.tokens.size());
    data.sequences.push_back(std::move(sample.tokens));
  }
  if (data.sequences.empty()) {
    return BadFileError(absl::StrJoin(paths, ", "), ": expected a text of at least ", options.sequence_length, " tokens, found none");
  }
  return data;
}

OrderedJson KnownJson(const CalibrationOptions& options, bool from_files) {
  OrderedJson json = {{"source", from_files ? "files" : "model"}, {"seed", options.seed}, {"sequence_length", options.sequence_length}};
  if (!from_files) json["samples"] = options.num_samples;  // files may have fewer
  return json;
}

OrderedJson ToJson(const CalibrationData& data) {
  OrderedJson domains = OrderedJson::object();
  for (const auto& [domain, tokens] : data.domain_tokens) domains[domain] = tokens;
  OrderedJson json = {{"source", data.files.empty() ? "model" : "files"}};
  if (!data.files.empty()) json["files"] = data.files;
  json.update({{"seed", data.options.seed},
               {"sequence_length", data.options.sequence_length},
               {"samples", data.sequences.size()},
               {"tokens", data.num_tokens()},
               {"domain_tokens", domains},
               {"ids_sha256", data.Hash()}});
  return json;
}

}  // namespace pith
