#include "eval/tasks/language.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/test_util.h"

namespace pith {
namespace {

TEST(LanguageTest, ScriptsAndFrequentWordsTellLanguagesApart) {
  EXPECT_EQ(DetectLanguage("How many eggs does she sell on each of the days?"), "en");
  EXPECT_EQ(DetectLanguage("Wie viele Eier verkauft sie und was ist der Gewinn?"), "de");
  EXPECT_EQ(DetectLanguage("¿Cuántos huevos vende por día en el mercado y qué gana cada una de las granjas?"), "es");
  EXPECT_EQ(DetectLanguage("Combien des œufs est-ce que la ferme vend le lundi et le mardi ?"), "fr");
  EXPECT_EQ(DetectLanguage("彼女は1日に何個の卵を売りますか？"), "ja");
  EXPECT_EQ(DetectLanguage("她每天卖多少个鸡蛋？"), "zh");
  EXPECT_EQ(DetectLanguage("Сколько яиц она продаёт за 7 дней?"), "ru");
  EXPECT_EQ(DetectLanguage("เธอขายไข่กี่ฟองต่อวัน"), "th");
  EXPECT_EQ(DetectLanguage("সে প্রতিদিন কতগুলি ডিম বিক্রি করে?"), "bn");
  EXPECT_EQ(DetectLanguage("ఆమె రోజుకు ఎన్ని గుడ్లు అమ్ముతుంది?"), "te");
  EXPECT_EQ(DetectLanguage("Anauza mayai mangapi kwa siku na kila wiki ya mwezi?"), "sw");
  EXPECT_EQ(DetectLanguage(""), "en");
  EXPECT_EQ(DetectLanguage("12 + 13"), "en");
}

TEST(LanguageTest, RowsAreSortedAndSayWhatTheAnswerBeginsWith) {
  for (const LanguageCustoms& row : Languages()) {
    EXPECT_TRUE(absl::StrContains(row.instruction, row.answer_word)) << row.code;
    EXPECT_EQ(CustomsOf(row.code).code, row.code);
  }
  EXPECT_TRUE(std::is_sorted(Languages().begin(), Languages().end(), [](const auto& a, const auto& b) { return a.code < b.code; }));
  EXPECT_EQ(CustomsOf("xx").code, "en");
  EXPECT_EQ(CustomsOf("").code, "en");
}

TEST(LanguageTest, PublishedFilesAreRecognised) {
  for (const std::string language : {"en", "de", "es", "fr", "ja", "zh"}) {
    const auto content = ReadFile(SharedPath("data/mgsm/mgsm_" + language + ".tsv"));
    if (!content.ok()) GTEST_SKIP() << "needs the shared evaluation data (set PITH_SHARED_DIR)";
    EXPECT_EQ(DetectLanguage(*content), language);
  }
}

}  // namespace
}  // namespace pith
