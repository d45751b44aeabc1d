// Round to nearest, with the clipping range of each group searched for the smallest |w - q|^2.4 (recipe.clip_search). Needs no data.
// Source: llm-compressor's `mse` observer; docs/methods/rtn.md.
#pragma once

#include <memory>

#include "compression/modifier.h"

namespace pith {

std::unique_ptr<Modifier> MakeRtnModifier();

}  // namespace pith
