// What was kept, as sources: exported as one patch, or taken back.
#pragma once

#include <string>

#include "hyperloom/core/json.h"
#include "hyperloom/integrate/manifest.h"
#include "hyperloom/session/layout.h"
#include "hyperloom/session/session.h"

namespace hyperloom::integrate {

// `<session>/kept/<sha256>` holds contents; `state.kept_sources` is {absolute path: {original_hash,
// original_mode, kept_hash, kept_mode}}, an empty hash for no file. Saved in front of a KEEP; the
// entries go into the state with add_kept(), which runs inside SharedState::update.
// Errors: "unreadable_file", "unwritable_file".
Result<Json> save_contents(const session::Layout& layout, const Manifest& applied);
void add_kept(Json& state, const Json& contents);

// Everything that is kept as one unified diff against the originals, paths relative to `tree`;
// empty when nothing is. Errors: "unreadable_file" when a content is lost.
Result<std::string> export_patch(const session::Layout& layout, const Json& state,
                                 const fs::path& tree);

// Brings back the originals of everything that was kept, with manifest and journal, and empties
// stack and `current_best` (kept configuration is there alone) along with it; the ledger ends where
// it began. {status: ok | skipped | failed, ...}. Refuses with "tree_drift" where a file is not
// what was kept.
Json undo_kept(session::Session& session, const fs::path& tree);

}  // namespace hyperloom::integrate
