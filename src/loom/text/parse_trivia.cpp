// Where comments and blank lines belong. The lexer lists them with the end of the token before
// them; what stands before the operation's last token stood in the middle of the operation.
#include "loom/text/parser_impl.h"

namespace loom {

StringId Parser::trivia_text(const Trivia& item) {
  return item.blank ? StringId() : module_.strings.intern(item.comment);
}

// Before the first token of an operation.
void Parser::take_leading(RegionId region) {
  leading_.clear();
  const bool first = !module_.region(region).first.valid();
  for (const Trivia& item : lexer_.trivia) {
    if (item.blank && first && leading_.empty()) continue;  // none stays directly after `{`
    leading_.push_back(trivia_text(item));
  }
  lexer_.trivia.clear();
}

// Moves the comments inside of the operation to the lines above it; returns how many items of the
// list are dealt with.
size_t Parser::take_middle() {
  size_t i = 0;
  for (; i < lexer_.trivia.size() && lexer_.trivia[i].after < last_end_; ++i) {
    if (lexer_.trivia[i].blank) continue;
    module_.op_trivia[current_.op.index()].leading.push_back(trivia_text(lexer_.trivia[i]));
  }
  return i;
}

// After the last token of an operation.
void Parser::attach_trivia() {
  auto& items = lexer_.trivia;
  size_t i = take_middle();
  if (i < items.size() && !items[i].blank && items[i].line == last_line_) {
    const StringId text = trivia_text(items[i++]);
    if (current_.last_body.valid()) {
      module_.region_trivia[current_.last_body.index()].after_close = text;
    } else {
      module_.op_trivia[current_.op.index()].same_line = text;
    }
  }
  items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i));
}

// After the `{` of a region.
void Parser::enter_trivia(RegionId region) {
  auto& items = lexer_.trivia;
  size_t i = take_middle();
  if (i < items.size() && !items[i].blank && items[i].line == last_line_) {
    module_.region_trivia[region.index()].after_open = trivia_text(items[i++]);
  }
  items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i));
}

// After the `}` of a case.
void Parser::case_trivia(RegionId region) {
  auto& items = lexer_.trivia;
  if (items.empty() || items[0].blank || items[0].line != last_line_) return;
  module_.region_trivia[region.index()].after_close = trivia_text(items[0]);
  items.erase(items.begin());
}

// Before the `}` of a region, or at the end of the file.
void Parser::close_trivia(RegionId region) {
  const bool first = !module_.region(region).first.valid();
  const auto known = module_.region_trivia.find(region.index());
  if (lexer_.trivia.empty() && known == module_.region_trivia.end()) return;
  auto& rest = module_.region_trivia[region.index()].before_close;
  for (const Trivia& item : lexer_.trivia) {
    if (item.blank && first && rest.empty()) continue;
    rest.push_back(trivia_text(item));
  }
  while (!rest.empty() && !rest.back().valid()) rest.pop_back();
  lexer_.trivia.clear();
}

}  // namespace loom
