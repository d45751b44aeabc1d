#include "eval/tasks/code_extraction.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

using CodeLines = std::vector<absl::string_view>;

constexpr absl::string_view kFences[] = {"```", "~~~"};
constexpr size_t kIndent = 4;
// What a statement at the margin of a file that holds functions begins with; prose seldom does.
constexpr absl::string_view kTopLevel[] = {"import ", "from ", "def ", "async def ", "class ", "@"};

bool IsBlank(absl::string_view line) { return absl::StripAsciiWhitespace(line).empty(); }

size_t IndentOf(absl::string_view line) {
  size_t indent = 0;
  while (indent < line.size() && (line[indent] == ' ' || line[indent] == '\t')) ++indent;
  return indent;
}

bool BeginsTopLevel(absl::string_view line) {
  return std::any_of(std::begin(kTopLevel), std::end(kTopLevel), [&](absl::string_view word) { return absl::StartsWith(line, word); });
}

// The line that defines `function` at the margin; the number of lines when there is none.
size_t FindDefinition(const CodeLines& lines, absl::string_view function) {
  const auto defines = [&](absl::string_view line) {
    absl::ConsumePrefix(&line, "async ");
    if (!absl::ConsumePrefix(&line, "def ")) return false;
    line = absl::StripLeadingAsciiWhitespace(line);
    return absl::ConsumePrefix(&line, function) && absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "(");
  };
  return std::find_if(lines.begin(), lines.end(), defines) - lines.begin();
}

// The fence a line consists of, with its indentation taken off; empty for others.
absl::string_view FenceOf(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  for (const absl::string_view fence : kFences) {
    if (absl::StartsWith(line, fence)) return fence;
  }
  return "";
}

// The fenced blocks of an answer, without their fences. A block inside a list is indented as its fence: that is taken off.
std::vector<CodeLines> FencedBlocks(const CodeLines& lines) {
  std::vector<CodeLines> blocks;
  absl::string_view open;
  size_t indent = 0;
  for (absl::string_view line : lines) {
    const absl::string_view fence = FenceOf(line);
    if (open.empty() && !fence.empty()) {
      open = fence;
      indent = IndentOf(line);
      blocks.emplace_back();
    } else if (!open.empty() && fence == open) {
      open = "";
    } else if (!open.empty()) {
      blocks.back().push_back(line.substr(std::min(indent, IndentOf(line))));
    }
  }
  return blocks;
}

// From prose with a bare function in it: from the first line that begins code to the last line that belongs to it.
CodeLines WithoutProse(const CodeLines& lines, size_t definition) {
  size_t begin = definition;
  for (size_t i = 0; i < definition; ++i) {
    if (BeginsTopLevel(lines[i])) {
      begin = i;
      break;
    }
  }
  CodeLines code(lines.begin() + begin, lines.begin() + definition + 1);
  bool in_head = true;  // a signature over several lines may close at the margin
  for (size_t i = definition + 1; i < lines.size(); ++i) {
    const absl::string_view line = lines[i];
    const bool inside = IsBlank(line) || IndentOf(line) > 0 || (in_head && absl::StartsWith(line, ")"));
    if (!inside && !BeginsTopLevel(line) && !absl::StartsWith(line, "#")) break;
    in_head = in_head && !absl::EndsWith(absl::StripTrailingAsciiWhitespace(lines[i]), ":");
    code.push_back(line);
  }
  return code;
}

// What a completion is: the body of the function, to the first line at the margin. Models that lose the indentation of the first line keep
// that of the others; those that lose all of it have it restored.
std::string ContinuedBody(const CodeLines& lines) {
  size_t first = 0;
  while (first < lines.size() && IsBlank(lines[first])) ++first;
  if (first == lines.size()) return "";
  size_t least = std::numeric_limits<size_t>::max();
  for (size_t i = first + 1; i < lines.size(); ++i) {
    if (!IsBlank(lines[i])) least = std::min(least, IndentOf(lines[i]));
  }
  const bool at_margin = IndentOf(lines[first]) == 0;
  const bool all_at_margin = at_margin && (least == std::numeric_limits<size_t>::max() || least == 0);
  std::string body;
  for (size_t i = first; i < lines.size(); ++i) {
    if (!all_at_margin && i > first && !IsBlank(lines[i]) && IndentOf(lines[i]) == 0) break;
    const bool shift = !IsBlank(lines[i]) && (all_at_margin || (at_margin && i == first));
    absl::StrAppend(&body, std::string(shift ? kIndent : 0, ' '), lines[i], "\n");
  }
  return body;
}

// The prompt up to the definition of the entry point.
std::string PromptPreamble(const UnitTest& test) {
  const CodeLines lines = absl::StrSplit(test.prompt, '\n');
  size_t definition = FindDefinition(lines, test.entry_point);
  while (definition > 0 && definition < lines.size() && absl::StartsWith(lines[definition - 1], "@")) --definition;
  std::string preamble;
  for (size_t i = 0; i < definition && definition < lines.size(); ++i) absl::StrAppend(&preamble, lines[i], "\n");
  return preamble;
}

CodeLines SplitLines(const std::string& text) {
  CodeLines lines = absl::StrSplit(text, '\n');
  for (absl::string_view& line : lines) absl::ConsumeSuffix(&line, "\r");
  return lines;
}

std::string Joined(const CodeLines& lines) { return absl::StrCat(absl::StrJoin(lines, "\n"), "\n"); }

}  // namespace

std::string ExtractPython(absl::string_view answer, const UnitTest& test) {
  const std::string text = absl::StrReplaceAll(ReplaceInvalidUtf8(answer), {{absl::string_view("\0", 1), ""}});
  const CodeLines lines = SplitLines(text);
  const std::vector<CodeLines> blocks = FencedBlocks(lines);
  const auto defines = [&](const CodeLines& block) { return FindDefinition(block, test.entry_point) < block.size(); };
  const CodeLines* code = blocks.empty() ? &lines : &blocks.back();
  if (test.entry_point.empty()) return Joined(*code);
  const auto defining = std::find_if(blocks.rbegin(), blocks.rend(), defines);
  if (defining != blocks.rend()) return PromptPreamble(test) + Joined(*defining);
  if (blocks.empty() && defines(lines)) return PromptPreamble(test) + Joined(WithoutProse(lines, FindDefinition(lines, test.entry_point)));
  const std::string prompt = absl::StrCat(test.prompt, absl::EndsWith(test.prompt, "\n") ? "" : "\n");
  return prompt + ContinuedBody(*code);
}

}  // namespace pith
