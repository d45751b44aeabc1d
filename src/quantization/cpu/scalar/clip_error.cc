#include "quantization/cpu/clip_error.h"

#include "quantization/cpu/clip_error_lanes.h"

namespace pith {

double clip_error_f32__scalar(const ClipErrorParams& p) { return ClipErrorOf<FourLanes>(p); }

}  // namespace pith
