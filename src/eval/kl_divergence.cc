#include "eval/kl_divergence.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace pith {
namespace {

// One model with a KV cache for one window and the logits of one chunk.
class WindowRunner {
 public:
  static absl::StatusOr<std::unique_ptr<WindowRunner>> Create(DecoderModel& model, int64_t context, std::optional<KvDtype> kv_cache_dtype) {
    auto runner = std::make_unique<WindowRunner>(model, context);
    ASSIGN_OR_RETURN(KvStorage storage, KvStorage::Create(model.KvSpecAs(kv_cache_dtype, runner->pool_.num_blocks())));
    runner->storage_ = std::make_unique<KvStorage>(std::move(storage));
    RETURN_IF_ERROR(runner->pool_.Grow(runner->table_, context));
    return runner;
  }

  WindowRunner(DecoderModel& model, int64_t context) : model_(&model), pool_(BlockPool::BlocksForTokens(context)) {}

  // Runs tokens [begin, end) of a window whose earlier tokens ran before; keeps the logits of the wanted rows.
  absl::Status Run(absl::Span<const int32_t> tokens, int64_t begin, int64_t end, int64_t first_wanted) {
    ForwardBatch batch;
    batch.token_ids.assign(tokens.begin() + begin, tokens.begin() + end);
    batch.sequences.push_back({.row_begin = 0, .num_rows = end - begin, .first_position = begin, .blocks = &table_});
    for (int64_t position = std::max(begin, first_wanted); position < end; ++position) {
      batch.logits_rows.push_back(static_cast<int32_t>(position - begin));
    }
    logits_.resize(batch.logits_rows.size() * static_cast<size_t>(model_->config().vocab_size));
    RETURN_IF_ERROR(model_->Forward(batch, *storage_, absl::MakeSpan(logits_)));
    for (size_t i = 0; i < logits_.size(); ++i) {
      if (!std::isfinite(logits_[i])) {
        return BadFileError("logits: expected finite values, found ", logits_[i], " for token ",
                            i % static_cast<size_t>(model_->config().vocab_size));
      }
    }
    return absl::OkStatus();
  }

  absl::Span<const float> Logits(int64_t wanted) const {
    const auto vocab = static_cast<size_t>(model_->config().vocab_size);
    return absl::MakeConstSpan(logits_).subspan(static_cast<size_t>(wanted) * vocab, vocab);
  }

 private:
  DecoderModel* model_;
  BlockPool pool_;
  BlockTable table_;
  std::unique_ptr<KvStorage> storage_;
  std::vector<float> logits_;
};

absl::Status CheckModel(const DecoderModel& reference, const DecoderModel& model, int64_t context) {
  if (model.config().vocab_size != reference.config().vocab_size) {
    return UsageError("vocab_size: expected that of the reference, ", reference.config().vocab_size, ", found ", model.config().vocab_size);
  }
  return CheckContext(model.config(), context);
}

// Positions whose next token is scored: [FirstScored, window - 1).
int64_t FirstScored(int64_t window, bool score_all) { return score_all ? 0 : window / 2 - 1; }

// Appends the comparisons of the `count` rows whose logits both runners hold; `first` says where the first predicted token is.
void CompareRows(const WindowRunner& reference, const WindowRunner& model, const TokenWindow& window, const ScoredToken& first,
                 int64_t count, const ComparisonOptions& options, ThreadPool& pool, std::vector<ScoredToken>& tokens) {
  const size_t base = tokens.size();
  tokens.resize(base + static_cast<size_t>(count), first);
  pool.ParallelFor(count, 1, [&](int64_t row_begin, int64_t row_end, int) {
    ServedScratch scratch;
    for (int64_t row = row_begin; row < row_end; ++row) {
      ScoredToken& token = tokens[base + static_cast<size_t>(row)];
      token.position += row;
      token.comparison = CompareLogits(reference.Logits(row), model.Logits(row), window.tokens[static_cast<size_t>(token.position)]);
      for (const SamplingParams& params : options.served) {
        token.served.push_back(CompareServed(reference.Logits(row), model.Logits(row), params, scratch));
      }
    }
  });
}

// One window through every runner; appends the comparisons of the models.
absl::Status ScoreWindow(absl::Span<const std::unique_ptr<WindowRunner>> runners, const TokenWindow& window, int64_t window_index,
                         const ComparisonOptions& options, ThreadPool& pool, std::vector<std::vector<ScoredToken>>& scored) {
  const auto length = static_cast<int64_t>(window.tokens.size());
  const int64_t last = length - 1;  // the last token is only predicted
  const int64_t first_wanted = std::clamp<int64_t>(FirstScored(length, options.score_all), 0, last - 1);
  for (int64_t begin = 0; begin < last;) {
    // Rows without logits may run in larger chunks; the boundary never changes a result.
    const int64_t end = begin < first_wanted ? std::min(first_wanted, begin + 512) : std::min(last, begin + options.chunk);
    for (size_t m = 0; m < runners.size(); ++m) {
      RETURN_IF_ERROR(Annotate(runners[m]->Run(window.tokens, begin, end, first_wanted),
                               absl::StrCat(m == 0 ? "reference" : absl::StrCat("model ", m), ": window ", window_index)));
    }
    const int64_t wanted = end - std::max(begin, first_wanted);
    for (size_t m = 1; m < runners.size() && wanted > 0; ++m) {
      CompareRows(*runners[0], *runners[m], window, {.window = window_index, .position = std::max(begin, first_wanted) + 1}, wanted,
                  options, pool, scored[m - 1]);
    }
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckContext(const DecoderConfig& config, int64_t context) {
  if (context <= config.max_position_embeddings) return absl::OkStatus();
  return UsageError("--context: expected at most max_position_embeddings = ", config.max_position_embeddings, ", found ", context);
}

absl::StatusOr<std::vector<std::vector<ScoredToken>>> CompareModels(DecoderModel& reference, absl::Span<DecoderModel* const> models,
                                                                    const Corpus& corpus, const ComparisonOptions& options,
                                                                    ThreadPool& pool) {
  std::vector<std::unique_ptr<WindowRunner>> runners;
  RETURN_IF_ERROR(CheckModel(reference, reference, corpus.context));
  ASSIGN_OR_RETURN(auto first, WindowRunner::Create(reference, corpus.context, std::nullopt));
  runners.push_back(std::move(first));
  for (DecoderModel* model : models) {
    RETURN_IF_ERROR(CheckModel(reference, *model, corpus.context));
    ASSIGN_OR_RETURN(auto runner, WindowRunner::Create(*model, corpus.context, options.kv_cache_dtype));
    runners.push_back(std::move(runner));
  }
  std::vector<std::vector<ScoredToken>> scored(models.size());
  for (size_t w = 0; w < corpus.windows.size(); ++w) {
    RETURN_IF_ERROR(ScoreWindow(runners, corpus.windows[w], static_cast<int64_t>(w), options, pool, scored));
    if (options.progress) RETURN_IF_ERROR(options.progress(static_cast<int64_t>(w) + 1));
  }
  return scored;
}

}  // namespace pith
