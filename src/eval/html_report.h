// The report of `pith eval --html`: one self-contained page, verdict first, that works without network, on paper and on a phone.
#pragma once

#include <string>

#include "base/json.h"

namespace pith {

// `result` is the result object of `pith eval` (docs/evidence.md). What it lacks is left out of the page: a gate, slices, histograms,
// layers, worst tokens, hashes. All text in it is escaped. Pure and deterministic.
std::string RenderHtmlReport(const OrderedJson& result);

}  // namespace pith
