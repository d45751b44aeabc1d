#include "tokenizer/template_compare.h"

#include <cmath>
#include <limits>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

TEST(TemplateCompare, IntegersAndFloatsAreComparedExactly) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(CompareNumbers(kMax, 9223372036854775808.0), -1);  // kMax rounds up to it
  EXPECT_EQ(CompareNumbers(kMin, -9223372036854775808.0), 0);
  EXPECT_EQ(CompareNumbers(kMin, -1e300), 1);
  EXPECT_EQ(CompareNumbers((int64_t{1} << 53) + 1, 9007199254740992.0), 1);
  EXPECT_EQ(CompareNumbers(2, 2.5), -1);
  EXPECT_EQ(CompareNumbers(-2, -2.5), 1);
  EXPECT_EQ(CompareNumbers(0, -0.0), 0);
  EXPECT_EQ(CompareNumbers(1, std::nan("")), std::nullopt);
}

// Expected values: jinja2 3.1 on Python 3.11.
TEST(TemplateCompare, Equality) {
  constexpr Example kExamples[] = {
      {"[1 == 1.0, 1 == true, 0 == false, 1 == '1', none == none, none == false, missing == missing, missing == none]",
       "[True, True, True, False, True, False, True, False]"},
      {"['a' == 'a', 'é' == 'é', [1, [2]] == [1, [2.0]], [1] == (1,), (1, 2) == (1, 2)]", "[True, True, True, False, True]"},
      {"[{'a': 1, 'b': 2} == {'b': 2.0, 'a': 1}, {} == {'a': 1}, {'a': 1} == {'b': 1}, {1: 2} == {true: 2}]", "[True, False, False, True]"},
      {"[range(3) == range(0, 3), range(0) == range(5, 5), range(3) == [0, 1, 2]]", "[True, True, False]"},
      {"[d.keys() == d.keys(), d.items() == d.items(), d.keys() == {'b': 0, 'a': 0, 'C': 0}.keys(), d.keys() == d.items()]",
       "[True, True, True, False]"},
      {"[1 != 2, 'a' != 'a', 9007199254740993 == 9007199254740992.0]", "[True, False, False]"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateCompare, Order) {
  constexpr Example kExamples[] = {
      {"[1 < 2, 2 <= 2.0, 2.5 > 2, true < 2, 'a' < 'b', 'Z' < 'a', 'é' > 'z', '' < 'a']",
       "[True, True, True, True, True, True, True, True]"},
      {"[[1, 2] < [1, 3], [1] < [1, 0], [2] > [1, 9], [1, 'a'] < [2, 3], (1, 2) <= (1, 2), [] < []]",
       "[True, True, True, True, True, False]"},
      {"[(1e400 - 1e400) < 1, (1e400 - 1e400) <= (1e400 - 1e400), (1e400 - 1e400) == (1e400 - 1e400)]", "[False, False, False]"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
  for (const char* bad : {"1 < 'a'", "none < none", "[1] < (1,)", "[1] < ['a']", "{} < {}", "missing > 1", "'a' >= missing"}) {
    EXPECT_EQ(Evaluate(bad).substr(0, 5), "ERROR") << bad;
  }
}

TEST(TemplateCompare, Containment) {
  constexpr Example kExamples[] = {
      {"['b' in 'abc', '' in 'a', 'x' in 'abc', 1 in [true], 'a' in d, 'z' in d, 2 in (1, 2), 'é' in 'hé']",
       "[True, True, False, True, True, False, True, True]"},
      {"[3 in range(5), 5 in range(5), 2 in range(5, 0, -2), 3.0 in range(5), 'a' in range(5)]", "[True, False, False, True, False]"},
      {"['a' in d.keys(), 2 in d.values(), ('a', 1) in d.items(), 1 in missing, [1] in [[1]], 1 in l|select]",
       "[True, True, True, False, True, True]"},
      {"['a' not in 'abc', 1 not in []]", "[False, True]"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
  for (const char* bad : {"1 in 'abc'", "1 in 5", "'a' in none", "[] in d", "missing in 'a'"})
    EXPECT_EQ(Evaluate(bad).substr(0, 5), "ERROR") << bad;
}

TEST(TemplateCompare, StableSortSortsAndKeepsOrder) {
  RandomStream random(5);
  for (int i = 0; i < 200; ++i) {
    std::vector<uint64_t> keys(random.Below(40));
    for (uint64_t& key : keys) key = random.Below(5);
    const absl::StatusOr<std::vector<size_t>> order = StableSort(
        keys.size(), [&](size_t a, size_t b) -> absl::StatusOr<bool> { return keys[a] < keys[b]; });
    ASSERT_TRUE(order.ok());
    for (size_t k = 1; k < order->size(); ++k) {
      const size_t before = (*order)[k - 1], after = (*order)[k];
      ASSERT_TRUE(keys[before] < keys[after] || (keys[before] == keys[after] && before < after));
    }
  }
  EXPECT_FALSE(StableSort(2, [](size_t, size_t) -> absl::StatusOr<bool> { return absl::InternalError("no"); }).ok());
}

}  // namespace
}  // namespace pith::jinja
