#include "eval/tasks/long_context.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status.h"
#include "eval/long_context_text.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr absl::string_view kKindNames[] = {"needle", "multi_key_needle", "variable_tracking"};
constexpr int64_t kMaxItems = 100'000, kMaxTokens = int64_t{1} << 24, kMaxHidden = 1000;
constexpr size_t kMaxSentenceBytes = 400;  // longer ones are cut at a space, so that any text can be filled to length
constexpr int64_t kAnswerTokens = 64, kTokensPerVariable = 16;
constexpr char kPlainEnd[] = "\nAnswer:";  // of running text
constexpr int kMaxFits = 12;               // tries to reach a length; each is closer

constexpr absl::string_view kAdjectives[] = {"brisk",  "calm",   "dusty",  "early",  "faint",  "gentle",  "hollow",
                                             "jolly",  "kindly", "lively", "mellow", "narrow", "patient", "quiet",
                                             "rustic", "tidy",   "upper",  "woven",  "young"};

struct Filler {
  std::vector<std::string> sentences;
  std::vector<int64_t> tokens;  // of each, with a space before it
};

void AddSentence(absl::string_view sentence, std::vector<std::string>* out) {
  std::string plain(absl::StripAsciiWhitespace(sentence));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }, ' ');
  if (!plain.empty()) out->push_back(std::move(plain));
}

// Cut behind a full stop, question or exclamation mark that white space follows, and at empty lines.
std::vector<std::string> SplitSentences(absl::string_view text) {
  std::vector<std::string> sentences;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : ' ';
    const bool space = absl::ascii_isspace(static_cast<unsigned char>(next));
    const bool ends = ((c == '.' || c == '?' || c == '!') && space) || (c == '\n' && next == '\n');
    const bool overlong = c == ' ' && i - begin >= kMaxSentenceBytes;
    if (!ends && !overlong) continue;
    AddSentence(text.substr(begin, i + 1 - begin), &sentences);
    begin = i + 1;
  }
  AddSentence(text.substr(begin), &sentences);
  return sentences;
}

absl::StatusOr<Filler> MakeFiller(const LongContextOptions& options, const CountTokens& count) {
  Filler filler;
  if (options.filler.empty()) {
    for (const absl::string_view sentence : FillerSentences()) filler.sentences.emplace_back(sentence);
  } else {
    if (!IsValidUtf8(options.filler)) return BadFileError("filler: expected UTF-8, found other bytes");
    filler.sentences = SplitSentences(options.filler);
  }
  if (filler.sentences.empty()) return BadFileError("filler: expected at least one sentence, found white space only");
  for (const std::string& sentence : filler.sentences) {
    filler.tokens.push_back(std::max<int64_t>(1, count(absl::StrCat(" ", sentence))));
  }
  return filler;
}

// What is hidden and asked, before it is hidden.
struct Puzzle {
  std::string introduction, question;
  std::vector<std::string> hidden;  // sentences, in the order in which they must appear
  std::vector<double> depths;       // of each, 0 to 1, ascending
  std::vector<std::string> answers;
  MatchKind match = MatchKind::kContains;
  int64_t max_tokens = kAnswerTokens;

  // Sentences with their depths; those of one depth keep their order.
  void Hide(std::vector<std::pair<double, std::string>> placed) {
    std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [depth, sentence] : placed) {
      depths.push_back(depth);
      hidden.push_back(std::move(sentence));
    }
  }
};

std::string RandomNumber(RandomStream& random) { return absl::StrCat(1'000'000 + random.Below(9'000'000)); }

// Draws until one is new.
template <typename Draw> std::string DrawNew(absl::flat_hash_set<std::string>* taken, const Draw& draw) {
  while (true) {
    std::string drawn = draw();
    if (taken->insert(drawn).second) return drawn;
  }
}

std::string RandomKey(RandomStream& random) {
  return absl::StrCat(kAdjectives[random.Below(std::size(kAdjectives))], " ", KeyWords()[random.Below(KeyWords().size())]);
}

Puzzle MakeNeedles(int64_t distractors, double depth, RandomStream& random) {
  Puzzle puzzle;
  absl::flat_hash_set<std::string> taken;
  std::vector<std::pair<double, std::string>> needles;
  std::string asked;
  for (int64_t i = 0; i <= distractors; ++i) {
    // Two words have 576 forms; with many needles a third part keeps them apart.
    const std::string key = DrawNew(
        &taken, [&] { return taken.size() < 400 ? RandomKey(random) : absl::StrCat(RandomKey(random), " ", random.Below(100'000)); });
    const std::string number = DrawNew(&taken, [&] { return RandomNumber(random); });
    needles.emplace_back(i == 0 ? depth : random.Uniform(), absl::StrCat("The secret number of the ", key, " is ", number, "."));
    if (i > 0) continue;
    asked = key;
    puzzle.answers = {number};
  }
  puzzle.Hide(std::move(needles));
  puzzle.introduction =
      distractors > 0
          ? "Secret numbers of several things are hidden in the following text. Remember them: one of them will be asked for at the end."
          : "A secret number is hidden in the following text. Remember it: it will be asked for at the end.";
  puzzle.question = absl::StrCat("What is the secret number of the ", asked, " in the text above? Answer with the number alone.");
  return puzzle;
}

std::string RandomVariable(RandomStream& random) {
  std::string name;
  for (int i = 0; i < 5; ++i) name += static_cast<char>('A' + random.Below(26));
  return name;
}

// Chains of assignments, each in its order and all mixed; the first chain is asked for.
Puzzle MakeChains(int64_t chains, int64_t hops, RandomStream& random) {
  Puzzle puzzle;
  absl::flat_hash_set<std::string> taken;
  std::vector<std::pair<double, std::string>> placed;
  std::string asked;
  for (int64_t chain = 0; chain < chains; ++chain) {
    std::vector<double> depths(hops + 1);
    for (double& depth : depths) depth = random.Uniform();
    std::sort(depths.begin(), depths.end());
    const std::string value = DrawNew(&taken, [&] { return absl::StrCat(10'000 + random.Below(90'000)); });
    std::string source = value;
    for (const double depth : depths) {
      const std::string variable = DrawNew(&taken, [&] { return RandomVariable(random); });
      placed.emplace_back(depth, absl::StrCat("VAR ", variable, " = ", source == value ? "" : "VAR ", source, "."));
      source = variable;
      if (chain == 0) puzzle.answers.push_back(variable);
    }
    if (chain == 0) asked = value;
  }
  puzzle.Hide(std::move(placed));
  puzzle.match = MatchKind::kContainsAll;
  puzzle.max_tokens = kAnswerTokens + kTokensPerVariable * (hops + 1);
  puzzle.introduction = "Assignments of variables are hidden in the following text. Follow the values that they hand on.";
  puzzle.question = absl::StrCat("Which variables in the text above have the value ", asked,
                                 ", given directly or through other variables? List all ", hops + 1, " names.");
  return puzzle;
}

// The text with `num_sentences` of filler from `offset` on, cyclically, and the hidden sentences at their depths.
std::string Write(const Puzzle& puzzle, const Filler& filler, size_t offset, int64_t num_sentences) {
  std::string text = puzzle.introduction + "\n\n";
  size_t hidden = 0;
  const auto hide_until = [&](double depth) {
    for (; hidden < puzzle.hidden.size() && puzzle.depths[hidden] <= depth; ++hidden) absl::StrAppend(&text, puzzle.hidden[hidden], " ");
  };
  for (int64_t i = 0; i < num_sentences; ++i) {
    hide_until((static_cast<double>(i) + 0.5) / static_cast<double>(num_sentences));
    absl::StrAppend(&text, filler.sentences[(offset + i) % filler.sentences.size()], " ");
  }
  hide_until(1);
  text.back() = '\n';
  return absl::StrCat(text, "\n", puzzle.question);
}

// How many sentences from `offset` on have `tokens` tokens together, at most.
int64_t SentencesWithin(const Filler& filler, size_t offset, int64_t tokens) {
  int64_t n = 0;
  while ((tokens -= filler.tokens[(offset + n) % filler.sentences.size()]) >= 0) ++n;
  return n;
}

// The longest prompt of at most `tokens`: counts of sentences say how many fit, the count of the whole says how wrong that was.
absl::StatusOr<std::string> Fit(const Puzzle& puzzle, const Filler& filler, size_t offset, int64_t tokens, const CountTokens& count) {
  std::string best = Write(puzzle, filler, offset, 0);
  const int64_t bare = count(best + kPlainEnd);
  if (bare > tokens) return FieldError("tokens", "expected at least ", bare, " for the question and what is hidden, found ", tokens);
  int64_t fits = 0, too_many = tokens - bare + 1;  // sentences; every one has a token at least
  int64_t budget = tokens - bare;
  for (int i = 0; i < kMaxFits && too_many - fits > 1; ++i) {
    const int64_t n = std::clamp(SentencesWithin(filler, offset, budget), fits + 1, too_many - 1);
    std::string text = Write(puzzle, filler, offset, n);
    const int64_t used = count(text + kPlainEnd);
    if (used <= tokens) {
      fits = n;
      best = std::move(text);
    } else {
      too_many = n;
    }
    budget += tokens - used;
  }
  return best;
}

absl::Status CheckOptions(const LongContextOptions& options) {
  const auto check = [](absl::string_view field, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return absl::OkStatus();
    return FieldError(field, "expected ", least, " to ", most, ", found ", value);
  };
  RETURN_IF_ERROR(check("tokens", options.tokens, 1, kMaxTokens));
  RETURN_IF_ERROR(check("items", options.items, 1, kMaxItems));
  RETURN_IF_ERROR(check("distractors", options.distractors, 1, kMaxHidden));
  RETURN_IF_ERROR(check("chains", options.chains, 1, kMaxHidden));
  RETURN_IF_ERROR(check("hops", options.hops, 1, kMaxHidden));
  return check("chains x hops", options.chains * options.hops, 1, kMaxHidden);
}

}  // namespace

absl::string_view LongContextName(LongContextKind kind) { return kKindNames[static_cast<int>(kind)]; }

absl::StatusOr<std::vector<TaskItem>> GenerateLongContext(const LongContextOptions& options, const CountTokens& count) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const Filler filler, MakeFiller(options, count));
  const absl::string_view name = LongContextName(options.kind);
  std::vector<TaskItem> items;
  for (int64_t i = 0; i < options.items; ++i) {
    RandomStream random(options.seed, static_cast<uint64_t>(i));
    const double depth = (static_cast<double>(i) + 0.5) / static_cast<double>(options.items);
    const size_t offset = random.Below(filler.sentences.size());
    const Puzzle puzzle = options.kind == LongContextKind::kVariableTracking
                              ? MakeChains(options.chains, options.hops, random)
                              : MakeNeedles(options.kind == LongContextKind::kNeedle ? 0 : options.distractors, depth, random);
    TaskItem item;
    item.id = absl::StrFormat("%s/%d/%d", name, options.tokens, i);
    item.task = std::string(name);
    item.slice = "long_context";
    ASSIGN_OR_RETURN(const std::string text, Fit(puzzle, filler, offset, options.tokens, count));
    item.messages = {{"user", text}};
    item.prompt = text + kPlainEnd;
    item.match = puzzle.match;
    item.answers = puzzle.answers;
    item.ignore_case = true;  // as RULER compares
    item.stop = {"\n\n"};
    item.max_tokens = puzzle.max_tokens;
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace pith
