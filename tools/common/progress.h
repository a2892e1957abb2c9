// When progress lines show; set once from --progress.
#pragma once

namespace loom {

enum class ProgressMode { Auto, Always, Never };
void set_progress_mode(ProgressMode mode);

}  // namespace loom
