#include "compression/self_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compression/sample_starts.h"
#include "model/synthetic_artifact.h"
#include "tokenizer/test_byte_tokenizer.h"

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::SizeIs;

Json TinyConfig() {
  return {{"model_type", "llama"},          {"vocab_size", 258},           {"hidden_size", 32},        {"intermediate_size", 64},
          {"num_hidden_layers", 1},         {"num_attention_heads", 4},    {"num_key_value_heads", 2}, {"head_dim", 16},
          {"max_position_embeddings", 128}, {"tie_word_embeddings", false}};
}

// A model whose next token does not depend on what stands before: these logits, and -1000 for all others.
std::unique_ptr<SyntheticArtifact> ModelOfLogits(const std::map<int32_t, float>& logits) {
  auto artifact = SyntheticArtifact::Random(TinyConfig(), 1);
  std::vector<float> head(258 * 32, 0.0f);
  // Every token is embedded as a vector of ones, the layer adds nothing, and the norm leaves ones: a row of the head gives its first value.
  artifact->Set("model.embed_tokens.weight", {258, 32}, std::vector<float>(258 * 32, 1.0f));
  artifact->Set("model.norm.weight", {32}, std::vector<float>(32, 1.0f));
  for (int64_t token = 0; token < 258; ++token) {
    const auto it = logits.find(static_cast<int32_t>(token));
    head[static_cast<size_t>(token * 32)] = it == logits.end() ? -1000.0f : it->second;
  }
  artifact->Set("lm_head.weight", {258, 32}, head);
  artifact->Set("model.layers.0.self_attn.o_proj.weight", {32, 64}, std::vector<float>(32 * 64, 0.0f));
  artifact->Set("model.layers.0.mlp.down_proj.weight", {32, 64}, std::vector<float>(32 * 64, 0.0f));
  return artifact;
}

class SelfSamplingTest : public testing::Test {
 protected:
  ModelText Text(bool chat) const {
    return {.tokenizer = tokenizer_, .chat_template = chat ? &template_ : nullptr, .bos_token = "<s>", .eos_token = "</s>"};
  }
  // With `threads` threads and at most `batch` sequences at once.
  CalibrationData Sample(const ArtifactReader& artifact, bool chat, const CalibrationOptions& options, int threads = 1,
                         int64_t batch = 128) const {
    ThreadPool pool(threads);
    const auto model = DecoderModel::Load(artifact, {.pool = &pool});
    EXPECT_TRUE(model.ok()) << model.status();
    auto data = SampleFromModel(**model, Text(chat), options, batch, pool, nullptr);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? *std::move(data) : CalibrationData();
  }
  std::string TextOf(const CalibrationData& data, size_t sample) const { return tokenizer_.Decode(data.sequences[sample], true); }

  const ByteTokenizer tokenizer_{true};
  const ChatTemplate template_ = *ChatTemplate::Parse(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}>");
};

TEST_F(SelfSamplingTest, SamplesAreFullAndBeginWithDifferentStarts) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(), 3);
  const CalibrationData data = Sample(*artifact, /*chat=*/true, {.num_samples = 64, .sequence_length = 96, .seed = 5});
  EXPECT_THAT(data.sequences, AllOf(SizeIs(64), Each(SizeIs(96))));
  EXPECT_TRUE(data.files.empty());
  std::set<std::string> starts;
  for (size_t i = 0; i < data.sequences.size(); ++i) {
    const std::string text = TextOf(data, i);
    std::string start;  // the longest that the sample begins with
    for (const SampleStart& candidate : i % 2 == 0 ? UserMessages() : RawStarts()) {
      const std::string whole = i % 2 == 0 ? absl::StrCat("<s>[user]", candidate.text, "</s>>") : absl::StrCat("<s>", candidate.text);
      if (absl::StartsWith(text, whole.substr(0, 96)) && whole.size() > start.size()) start = whole;
    }
    ASSERT_NE(start, "") << text;
    EXPECT_TRUE(starts.insert(start).second) << text;
  }
}

TEST_F(SelfSamplingTest, DomainsCountEveryToken) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(), 3);
  CalibrationData data = Sample(*artifact, /*chat=*/true, {.num_samples = 128, .sequence_length = 64});
  int64_t sum = 0;
  for (const auto& [domain, tokens] : data.domain_tokens) sum += tokens;
  EXPECT_EQ(sum, 128 * 64);
  EXPECT_EQ(data.num_tokens(), sum);
  EXPECT_THAT(data.domain_tokens, ElementsAre(Key("chat/code"), Key("chat/dialogue"), Key("chat/math"), Key("chat/multilingual"),
                                              Key("chat/prose"), Key("chat/questions"), Key("code"), Key("dialogue"), Key("math"),
                                              Key("multilingual"), Key("prose"), Key("questions")));
  data = Sample(*artifact, /*chat=*/false, {.num_samples = 128, .sequence_length = 64});
  EXPECT_THAT(data.domain_tokens,
              ElementsAre(Key("code"), Key("dialogue"), Key("math"), Key("multilingual"), Key("prose"), Key("questions")));
}

// The promise that recipes are built on: neither threads nor the batch change a token, and a sample does not depend on how many there are.
TEST_F(SelfSamplingTest, SamplesDependOnSeedAndNumberAlone) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(), 3);
  const CalibrationOptions options = {.num_samples = 6, .sequence_length = 80, .seed = 5};
  const CalibrationData data = Sample(*artifact, true, options, 1, 128);
  for (const int64_t batch : {1, 4}) EXPECT_EQ(Sample(*artifact, true, options, 1, batch).sequences, data.sequences) << batch;
  EXPECT_EQ(Sample(*artifact, true, options, 3, 128).sequences, data.sequences);
  const CalibrationData more = Sample(*artifact, true, {.num_samples = 10, .sequence_length = 80, .seed = 5});
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(more.sequences[i], data.sequences[i]) << i;
  EXPECT_NE(Sample(*artifact, true, {.num_samples = 6, .sequence_length = 80, .seed = 6}).sequences, data.sequences);
}

// More rows than a pass takes: 64 starts of up to 100 bytes do not go through the model at once.
TEST_F(SelfSamplingTest, StartsThatFillAPassWaitForTheNext) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(), 3);
  const CalibrationOptions options = {.num_samples = 64, .sequence_length = 128, .seed = 1};
  EXPECT_EQ(Sample(*artifact, true, options, 1, 64).sequences, Sample(*artifact, true, options, 1, 4).sequences);
}

// Where the model ends its text with EOS (1 in 4 here), or begins another with BOS (1 in 8), a new start follows.
TEST_F(SelfSamplingTest, ANewStartFollowsTheEndOfAText) {
  const auto artifact = ModelOfLogits({{'~', std::log(5.0f)}, {ByteTokenizer::kEos, std::log(2.0f)}, {ByteTokenizer::kBos, 0.0f}});
  const CalibrationData data = Sample(*artifact, /*chat=*/false, {.num_samples = 8, .sequence_length = 128});
  int ends = 0;
  for (size_t i = 0; i < data.sequences.size(); ++i) {
    const std::string text = TextOf(data, i);
    std::set<std::string> seen;
    for (size_t position = 0; position < text.size();) {  // of a start
      const absl::string_view rest = absl::string_view(text).substr(position);
      std::string start;  // the longest that stands here
      for (const SampleStart& candidate : RawStarts()) {
        const std::string whole = absl::StrCat("<s>", candidate.text);
        const bool here = absl::StartsWith(rest, whole) || absl::StartsWith(whole, rest);
        if (here && whole.size() > start.size()) start = whole;
      }
      ASSERT_NE(start, "") << text << " at " << position;
      EXPECT_TRUE(seen.insert(start).second || start.size() >= rest.size()) << text << " at " << position;
      position += start.size();
      while (position < text.size() && text[position] == '~') ++position;
      const absl::string_view end = absl::string_view(text).substr(std::min(position, text.size()));
      if (end.empty()) break;
      ASSERT_TRUE(absl::StartsWith(end, "</s>") || absl::StartsWith(end, "<s>")) << text << " at " << position;
      position += absl::StartsWith(end, "</s>") ? 4 : 0;  // a BOS that was drawn is the start's own
      ++ends;
    }
  }
  EXPECT_GT(ends, 20);
}

// Other ends are those of generation_config.json.
TEST_F(SelfSamplingTest, StopTokensOfTheModelEndATextToo) {
  const auto artifact = ModelOfLogits({{'~', 0.0f}});
  ThreadPool pool(1);
  const auto model = DecoderModel::Load(*artifact, {.pool = &pool});
  ModelText text = Text(/*chat=*/false);
  text.stop_token_ids = {'~'};
  const auto data = SampleFromModel(**model, text, {.num_samples = 4, .sequence_length = 128}, 4, pool, nullptr);
  ASSERT_TRUE(data.ok()) << data.status();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(TextOf(*data, i), HasSubstr("~<s>"));
    EXPECT_THAT(TextOf(*data, i), testing::Not(HasSubstr("~~")));
  }
}

// Draws follow the model's distribution: of three bytes that no start holds, in the ratio 1 : 2 : 5.
TEST_F(SelfSamplingTest, TokensAreDrawnFromTheWholeDistribution) {
  const auto artifact = ModelOfLogits({{1, 0.0f}, {2, std::log(2.0f)}, {3, std::log(5.0f)}});
  const CalibrationData data = Sample(*artifact, /*chat=*/false, {.num_samples = 128, .sequence_length = 128});
  std::map<int32_t, double> count;
  for (const auto& sequence : data.sequences) {
    for (const int32_t token : sequence) ++count[token];
  }
  const double total = count[1] + count[2] + count[3];
  EXPECT_GT(total, 12000);
  EXPECT_NEAR(count[1] / total, 0.125, 0.015);
  EXPECT_NEAR(count[2] / total, 0.250, 0.020);
  EXPECT_NEAR(count[3] / total, 0.625, 0.020);
  // Behind the starts, which are shorter than this, each sample and each seed has draws of its own.
  const auto end = [](const CalibrationData& from, size_t sample) {
    return std::vector<int32_t>(from.sequences[sample].begin() + 80, from.sequences[sample].end());
  };
  EXPECT_NE(end(data, 0), end(data, 1));
  EXPECT_NE(end(data, 0), end(Sample(*artifact, /*chat=*/false, {.num_samples = 1, .sequence_length = 128, .seed = 1}), 0));
}

TEST_F(SelfSamplingTest, AnArtifactIsLoadedAndProgressReported) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(), 3);
  ThreadPool pool(2);
  std::set<std::string> phases;
  int64_t last = -1;
  const auto progress = [&](absl::string_view phase, int64_t done, int64_t total) {
    phases.insert(std::string(phase));
    if (phase == "sampling") {
      EXPECT_EQ(total, 4 * 64);
      EXPECT_GT(done, last);
      last = done;
    }
    return absl::OkStatus();
  };
  const CalibrationOptions options = {.num_samples = 4, .sequence_length = 64};
  const auto data = SampleCalibrationData(*artifact, Text(true), options, pool, progress);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(phases, ElementsAre("loading", "sampling"));
  EXPECT_EQ(last, 4 * 64);
  EXPECT_EQ(data->Hash(), SampleCalibrationData(*artifact, Text(true), options, pool, nullptr)->Hash());
}

TEST_F(SelfSamplingTest, AProgressErrorEndsTheWork) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(), 3);
  ThreadPool pool(2);
  for (const std::string stop : {"loading", "sampling"}) {
    int calls_after = 0;
    bool stopped = false;
    const auto status = SampleCalibrationData(*artifact, Text(true), {.num_samples = 4, .sequence_length = 64}, pool,
                                              [&](absl::string_view phase, int64_t done, int64_t) -> absl::Status {
                                                calls_after += stopped ? 1 : 0;
                                                stopped = stopped || (phase == stop && done > 0);
                                                return stopped ? absl::CancelledError("interrupted") : absl::OkStatus();
                                              })
                            .status();
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    EXPECT_EQ(calls_after, 0) << stop;
  }
}

// What sampling takes grows with the samples, whether they are decoded together or one batch after the other.
TEST_F(SelfSamplingTest, AnEstimateGrowsWithTheWork) {
  Json config = TinyConfig();
  config["max_position_embeddings"] = 1024;
  const auto artifact = SyntheticArtifact::Random(config, 3);
  ThreadPool pool(1);
  double before = 0;
  for (const int64_t samples : {2, 160, 1000}) {
    int64_t calls = 0;
    const auto progress = [&](absl::string_view phase, int64_t done, int64_t total) {
      EXPECT_LE(done, total) << phase;
      ++calls;
      return absl::OkStatus();
    };
    const auto use = EstimateSampling(*artifact, Text(true), {.num_samples = samples, .sequence_length = 512}, pool, progress);
    ASSERT_TRUE(use.ok()) << use.status();
    EXPECT_GT(use->cpu_seconds, before) << samples;
    EXPECT_GT(use->peak_memory_bytes, 0);
    EXPECT_GT(calls, 2);
    before = use->cpu_seconds;
  }
  // Short samples, and starts that fill them, are sampled rather than estimated.
  for (const int64_t length : {16, 128}) {
    EXPECT_TRUE(EstimateSampling(*artifact, Text(true), {.num_samples = 200, .sequence_length = length}, pool, nullptr).ok()) << length;
  }
  const auto stopped = EstimateSampling(
      *artifact, Text(true), {.num_samples = 2, .sequence_length = 512}, pool,
      [](absl::string_view phase, int64_t, int64_t) { return phase == "trying" ? absl::CancelledError("stop") : absl::OkStatus(); });
  EXPECT_TRUE(absl::IsCancelled(stopped.status()));
  EXPECT_TRUE(absl::IsInvalidArgument(EstimateSampling(*artifact, Text(true), {.num_samples = 0}, pool, nullptr).status()));
}

TEST_F(SelfSamplingTest, RandomDataHaveTheSizeOfSampledData) {
  const CalibrationData data = RandomCalibrationData({.num_samples = 5, .sequence_length = 40, .seed = 3}, 100);
  EXPECT_THAT(data.sequences, AllOf(SizeIs(5), Each(SizeIs(40))));
  EXPECT_EQ(data.num_tokens(), 200);
  for (const std::vector<int32_t>& sequence : data.sequences) {
    for (const int32_t token : sequence) EXPECT_TRUE(token >= 0 && token < 100);
  }
}

TEST_F(SelfSamplingTest, RefusalsSayWhatWasExpected) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(), 3);
  ThreadPool pool(1);
  const auto sample = [&](const ArtifactReader& reader, const ModelText& text, const CalibrationOptions& options) {
    return SampleCalibrationData(reader, text, options, pool, nullptr).status();
  };
  const absl::Status longer = sample(*artifact, Text(false), {.sequence_length = 129});
  EXPECT_TRUE(absl::IsInvalidArgument(longer)) << longer;
  EXPECT_THAT(longer.message(), AllOf(HasSubstr("max_position_embeddings = 128"), HasSubstr("found 129")));
  EXPECT_TRUE(absl::IsInvalidArgument(sample(*artifact, Text(false), {.num_samples = 0})));
  const ChatTemplate refusing = *ChatTemplate::Parse("{{ raise_exception('no users') }}");
  const absl::Status refused = sample(*artifact, {.tokenizer = tokenizer_, .chat_template = &refusing}, {.sequence_length = 16});
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("no users"));
  const ChatTemplate empty = *ChatTemplate::Parse("{# #}");
  EXPECT_THAT(sample(*artifact, {.tokenizer = tokenizer_, .chat_template = &empty}, {.sequence_length = 16}).message(),
              HasSubstr("expected a prompt"));
  Json config = TinyConfig();
  config["vocab_size"] = 200;
  const absl::Status smaller = sample(*SyntheticArtifact::Random(config, 1), Text(false), {.sequence_length = 16});
  EXPECT_TRUE(absl::IsDataLoss(smaller)) << smaller;
  EXPECT_THAT(smaller.message(), AllOf(HasSubstr("vocab_size = 200"), HasSubstr("found 258")));
}

}  // namespace
}  // namespace pith
