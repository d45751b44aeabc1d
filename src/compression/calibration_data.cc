#include "compression/calibration_data.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr absl::string_view kTextExtensions[] = {".txt", ".raw", ".utf8"};

bool IsText(absl::string_view name) {
  return std::any_of(std::begin(kTextExtensions), std::end(kTextExtensions), [&](absl::string_view e) { return absl::EndsWith(name, e); });
}

std::string DomainName(const std::string& path) {
  const std::string name = BaseName(path);
  const size_t dot = name.find('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

struct Sample {
  std::string domain;
  std::vector<int32_t> tokens;
};

class SampleReader {
 public:
  SampleReader(const Tokenizer& tokenizer, int64_t length) : tokenizer_(tokenizer), length_(length) {
    const auto probe = tokenizer.Encode("a");
    if (probe.ok() && tokenizer.bos_id().has_value() && !probe->empty() && probe->front() == *tokenizer.bos_id()) bos_ = tokenizer.bos_id();
  }

  absl::Status AddFile(const std::string& path) {
    ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    const std::string domain = DomainName(path);
    if (IsText(path)) return Annotate(AddText(domain, file.text(), /*whole=*/false), path);
    int64_t number = 0;
    for (const absl::string_view line : absl::StrSplit(file.text(), '\n', absl::SkipWhitespace())) {
      ++number;
      if (absl::Status status = AddLine(domain, line); !status.ok()) return Annotate(status, absl::StrCat(path, ": line ", number));
    }
    return absl::OkStatus();
  }

  std::vector<Sample> Take() { return std::move(samples_); }

 private:
  absl::Status AddLine(const std::string& domain, absl::string_view line) {
    ASSIGN_OR_RETURN(const Json object, ParseJson(line));
    const auto text = GetString(object, FindMember(object, "text") != nullptr ? "text" : "content");
    if (!text.ok()) return BadFileError("expected an object with \"text\" or \"content\", found none");
    return AddText(domain, *text, /*whole=*/true);
  }

  // `whole`: a text that is shorter than a sample is one.
  absl::Status AddText(const std::string& domain, absl::string_view text, bool whole) {
    const auto tokens = tokenizer_.Encode(text, {.add_special_tokens = false});
    if (!tokens.ok()) return BadFileError(tokens.status().message());
    const auto count = static_cast<int64_t>(tokens->size());
    if (whole && count >= 2 && count < length_) Add(domain, *tokens);
    for (int64_t begin = 0; begin + length_ <= count; begin += length_) {
      Add(domain, {tokens->begin() + begin, tokens->begin() + begin + length_});
    }
    return absl::OkStatus();
  }

  void Add(const std::string& domain, std::vector<int32_t> tokens) {
    if (bos_.has_value()) tokens.front() = *bos_;
    samples_.push_back({domain, std::move(tokens)});
  }

  const Tokenizer& tokenizer_;
  const int64_t length_;
  std::optional<TokenId> bos_;
  std::vector<Sample> samples_;
};

// `count` of [0, size) without replacement, ascending: the first of a permutation that the seed decides.
std::vector<size_t> Draw(size_t size, size_t count, uint64_t seed) {
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  RandomStream random(seed);
  for (size_t i = 0; i < std::min(size, count); ++i) std::swap(order[i], order[i + random.Below(size - i)]);
  order.resize(std::min(size, count));
  std::sort(order.begin(), order.end());
  return order;
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

absl::StatusOr<CalibrationData> LoadCalibrationData(const std::string& path, const Tokenizer& tokenizer,
                                                    const CalibrationOptions& options) {
  SampleReader reader(tokenizer, options.sequence_length);
  if (IsDirectory(path)) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
    for (const std::string& name : names) {
      if (IsText(name) || absl::EndsWith(name, ".jsonl")) RETURN_IF_ERROR(reader.AddFile(JoinPath(path, name)));
    }
  } else {
    RETURN_IF_ERROR(reader.AddFile(path));
  }
  std::vector<Sample> samples = reader.Take();
  if (samples.empty()) return BadFileError(path, ": expected a text of at least ", options.sequence_length, " tokens, found none");
  CalibrationData data{.source = path};
  for (const size_t i : Draw(samples.size(), static_cast<size_t>(options.num_samples), options.seed)) {
    data.domain_tokens[samples[i].domain] += static_cast<int64_t>(samples[i].tokens.size());
    data.sequences.push_back(std::move(samples[i].tokens));
  }
  return data;
}

OrderedJson ToJson(const CalibrationData& data) {
  OrderedJson domains = OrderedJson::object();
  for (const auto& [domain, tokens] : data.domain_tokens) domains[domain] = tokens;
  return {{"samples", data.sequences.size()}, {"tokens", data.num_tokens()}, {"domain_tokens", domains}, {"ids_sha256", data.Hash()}};
}

}  // namespace pith
