#include "base/status.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(ToExitCode, OneCodePerConstructor) {
  EXPECT_EQ(ToExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ToExitCode(UsageError("x")), 2);
  EXPECT_EQ(ToExitCode(FieldError("temperature", "x")), 2);
  EXPECT_EQ(ToExitCode(RefusedError("x")), 3);
  EXPECT_EQ(ToExitCode(NotSupportedError("x")), 4);
  EXPECT_EQ(ToExitCode(BadFileError("x")), 65);
  EXPECT_EQ(ToExitCode(MissingInputError("x")), 66);
  EXPECT_EQ(ToExitCode(UnavailableError("x")), 69);
  EXPECT_EQ(ToExitCode(BugError("x")), 70);
  EXPECT_EQ(ToExitCode(OutOfMemoryError("x")), 71);
  EXPECT_EQ(ToExitCode(CannotCreateError("x")), 73);
  EXPECT_EQ(ToExitCode(IoError("x")), 74);
  EXPECT_EQ(ToExitCode(CancelledError("x")), 130);
  EXPECT_EQ(ToExitCode(absl::UnauthenticatedError("x")), 1);
}

TEST(Status, ConstructorsConcatenate) { EXPECT_EQ(BadFileError("a", 1, ": ", 2.5).message(), "a1: 2.5"); }

TEST(Annotate, PrefixesKeepsTheCodeAndLeavesOkAlone) {
  const absl::Status status = Annotate(BadFileError("bad"), "model.safetensors");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "model.safetensors: bad");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

TEST(Annotate, NamesAThingOnce) {
  EXPECT_EQ(Annotate(BadFileError("model: norm: bad"), "model").message(), "model: norm: bad");
  EXPECT_EQ(Annotate(BadFileError("model.norm: bad"), "model").message(), "model: model.norm: bad");
}

TEST(FieldError, NamesTheFieldAndSurvivesAnnotate) {
  const absl::Status status = FieldError("top_p", "expected a number in (0, 1], found ", 3);
  EXPECT_EQ(status.message(), "top_p: expected a number in (0, 1], found 3");
  EXPECT_EQ(ErrorField(status), "top_p");
  EXPECT_EQ(ErrorField(Annotate(status, "request 7")), "top_p");
  EXPECT_EQ(ErrorField(UsageError("x")), "");
  EXPECT_EQ(ErrorField(absl::OkStatus()), "");
}

TEST(Macros, PassErrorsOn) {
  const auto half = [](int x) -> absl::StatusOr<int> {
    if (x % 2 != 0) return UsageError("odd: ", x);
    return x / 2;
  };
  const auto quarter = [&](int x) -> absl::StatusOr<int> {
    ASSIGN_OR_RETURN(const int once, half(x));
    ASSIGN_OR_RETURN(const int twice, half(once));
    return twice;
  };
  const auto check = [&](int x) -> absl::Status {
    RETURN_IF_ERROR(quarter(x).status());
    return absl::OkStatus();
  };
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().message(), "odd: 3");
  EXPECT_TRUE(check(8).ok());
  EXPECT_EQ(check(5).message(), "odd: 5");
}

TEST(Printable, KeepsTextAndEscapesTheRest) {
  EXPECT_EQ(Printable("plain text"), "plain text");
  EXPECT_EQ(Printable("a\nb\tc\x7F\x1B[31m"), "a\\x0Ab\\x09c\\x7F\\x1B[31m");
  EXPECT_EQ(Printable(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"), "\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80");
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(Printable("\xFF"), "\\xFF");
  EXPECT_EQ(Printable("\xC3"), "\\xC3");  // cut short
  EXPECT_EQ(Printable("\xE4\xB8"), "\\xE4\\xB8");
  EXPECT_EQ(Printable("\xC0\x80"), "\\xC0\\x80");  // overlong
  EXPECT_EQ(Printable("\xE0\x80\x80"), "\\xE0\\x80\\x80");
  EXPECT_EQ(Printable("\xF0\x80\x80\x80"), "\\xF0\\x80\\x80\\x80");
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\\xED\\xA0\\x80");           // surrogate
  EXPECT_EQ(Printable("\xF4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(Printable("\xC2\x9B"), "\\xC2\\x9B");                    // C1 control
}

TEST(Printable, NeverExceedsTheLimitAndNeverCutsACharacter) {
  EXPECT_EQ(Printable("abcdef", 6), "abcdef");
  EXPECT_EQ(Printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(Printable("abcd\n\n", 6), "abcd...");
  EXPECT_EQ(Printable("ab\xE4\xB8\xAD", 4), "ab...");
  EXPECT_EQ(Printable("ab\xE4\xB8\xAD", 5), "ab\xE4\xB8\xAD");
  EXPECT_EQ(Printable(std::string(1000, 'x')), absl::StrCat(std::string(120, 'x'), "..."));
}

}  // namespace
}  // namespace pith
