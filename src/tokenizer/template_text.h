// The string of the template interpreter: UTF-8 text that knows, run by run, whether the user or the template wrote it.
//
// Every operation that moves characters around keeps their origin; RenderPieces relies on it. A Text is immutable and shared.
// Thread-safe to read. Positions are byte offsets on code point boundaries unless a name says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace pith::jinja {

// Bytes [end of the previous run, end).
struct TextRun {
  size_t end = 0;
  bool user = false;
};
using TextRuns = absl::InlinedVector<TextRun, 1>;  // neighbours differ; empty runs do not occur

class Text;
using TextPtr = std::shared_ptr<const Text>;

class Text {
 public:
  Text() = default;
  // `runs` must cover `bytes`; `bytes` must be UTF-8.
  Text(std::string bytes, TextRuns runs, bool markup);

  const std::string& bytes() const { return bytes_; }
  const TextRuns& runs() const { return runs_; }
  int64_t length() const { return length_; }  // in code points
  bool is_ascii() const { return length_ == static_cast<int64_t>(bytes_.size()); }
  bool has_user_text() const { return runs_.size() > 1 || (runs_.size() == 1 && runs_[0].user); }
  // Escaped HTML: what `|e` and `|safe` give. Adding to it escapes the other side.
  bool markup() const { return markup_; }

  // Byte offset of code point `index`, 0 <= index <= length(). O(1) for ASCII, linear otherwise.
  size_t ByteOffset(int64_t index) const;
  // Code points before byte `offset`.
  int64_t CodePointIndex(size_t offset) const;

 private:
  std::string bytes_;
  TextRuns runs_;
  int64_t length_ = 0;
  bool markup_ = false;
};

// Collects text of both origins.
class TextBuilder {
 public:
  void Append(absl::string_view bytes, bool user);
  void Append(const Text& text) { Append(text, 0, text.bytes().size()); }
  void Append(const Text& text, size_t begin, size_t end);  // bytes [begin, end)
  void AppendCodePoint(char32_t code_point, bool user);

  size_t size() const { return bytes_.size(); }
  TextPtr Build(bool markup = false) &&;

 private:
  void ExtendRun(size_t end, bool user);

  std::string bytes_;
  TextRuns runs_;
};

// Walks the code points of a text with their origin: while (cursor.Next()) use(cursor.code_point, cursor.user).
class TextCursor {
 public:
  explicit TextCursor(const Text& text) : text_(text) {}
  bool Next();

  char32_t code_point = 0;
  size_t begin = 0, end = 0;  // its bytes
  bool user = false;

 private:
  const Text& text_;
  size_t run_ = 0;
};

TextPtr MakeText(absl::string_view bytes, bool user = false);
// Bytes [begin, end); keeps markup. Returns `text` itself when that is all of it.
TextPtr SliceText(const TextPtr& text, size_t begin, size_t end);

// Byte position of `needle` in bytes [begin, end) of `haystack`, or npos: the first, or the last. Linear time.
size_t FindBytes(absl::string_view haystack, absl::string_view needle, size_t begin, size_t end);
size_t FindLastBytes(absl::string_view haystack, absl::string_view needle, size_t begin, size_t end);

}  // namespace pith::jinja
