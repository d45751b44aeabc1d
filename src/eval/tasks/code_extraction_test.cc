#include "eval/tasks/code_extraction.h"

#include <gtest/gtest.h>

namespace pith {
namespace {

const UnitTest kAdd{.prompt = "import math\n\ndef half(x):\n    return x / 2\n\ndef add(a, b):\n    \"\"\" Sum. \"\"\"\n",
                    .entry_point = "add"};
constexpr char kPreamble[] = "import math\n\ndef half(x):\n    return x / 2\n\n";

TEST(CodeExtractionTest, AFencedFunctionReplacesTheOneOfThePrompt) {
  EXPECT_EQ(ExtractPython("Here you are:\n```python\ndef add(a, b):\n    return a + b\n```\nIt adds.", kAdd),
            std::string(kPreamble) + "def add(a, b):\n    return a + b\n");
  // Not closed; another language tag; carriage returns.
  EXPECT_EQ(ExtractPython("```py\r\ndef add(a, b):\r\n    return a + b\r\n", kAdd),
            std::string(kPreamble) + "def add(a, b):\n    return a + b\n\n");
  // Inside a list.
  EXPECT_EQ(ExtractPython("1. So:\n   ~~~\n   def add(a, b):\n       return a\n   ~~~\n", kAdd),
            std::string(kPreamble) + "def add(a, b):\n    return a\n");
}

TEST(CodeExtractionTest, OfSeveralBlocksTheLastThatDefinesTheFunctionCounts) {
  EXPECT_EQ(
      ExtractPython("```\ndef add(a, b):\n    return 1\n```\nBetter:\n```\ndef add (a, b):\n    return 2\n```\n```\nadd(1, 2)\n```", kAdd),
      std::string(kPreamble) + "def add (a, b):\n    return 2\n");
  EXPECT_EQ(ExtractPython("```\npip install x\n```\n```\n    return a + b\n```", kAdd), kAdd.prompt + "    return a + b\n");
}

TEST(CodeExtractionTest, ABareFunctionIsTakenOutOfItsProse) {
  EXPECT_EQ(
      ExtractPython("Sure!\nfrom math import ceil\n\ndef add(\n    a, b\n):\n    return a + b\n\n# a check\nThis adds.\ndef other(): pass",
                    kAdd),
      std::string(kPreamble) + "from math import ceil\n\ndef add(\n    a, b\n):\n    return a + b\n\n# a check\n");
  // A longer name is not the function.
  EXPECT_EQ(ExtractPython("    def add_all(): pass\n    return a", kAdd), kAdd.prompt + "    def add_all(): pass\n    return a\n");
}

TEST(CodeExtractionTest, CompletionsContinueThePrompt) {
  EXPECT_EQ(ExtractPython("    c = a + b\n    return c\n\nprint(add(1, 2))\n", kAdd), kAdd.prompt + "    c = a + b\n    return c\n\n");
  // The first line has lost its indentation, or all have.
  EXPECT_EQ(ExtractPython("c = a + b\n    return c", kAdd), kAdd.prompt + "    c = a + b\n    return c\n");
  EXPECT_EQ(ExtractPython("if a:\n    return b\nreturn a", kAdd), kAdd.prompt + "    if a:\n        return b\n    return a\n");
  EXPECT_EQ(ExtractPython("return a + b", kAdd), kAdd.prompt + "    return a + b\n");
  EXPECT_EQ(ExtractPython("\n\n", kAdd), kAdd.prompt);
  EXPECT_EQ(ExtractPython("", {.prompt = "def f():", .entry_point = "f"}), "def f():\n");
}

TEST(CodeExtractionTest, WithoutAFunctionUnderTestCodeIsTakenAsItIs) {
  EXPECT_EQ(ExtractPython("So:\n```python\nx = 1\n```\n", {}), "x = 1\n");
  EXPECT_EQ(ExtractPython("x = 1", {}), "x = 1\n");
  EXPECT_EQ(ExtractPython(std::string("x = \0 1\xff", 8), {}), "x =  1\xEF\xBF\xBD\n");
}

}  // namespace
}  // namespace pith
