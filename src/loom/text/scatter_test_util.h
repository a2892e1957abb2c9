// Another layout of a text, for tests.
#pragma once

#include <random>
#include <string>

#include "loom/diag/diagnostic.h"
#include "loom/text/lexer.h"

namespace loom {

// Every token of the text, with random blanks, line ends and comments between two of them; the
// comments are numbered from `comments` on.
inline std::string scatter(const std::string& text, unsigned seed, size_t& comments) {
  std::mt19937 random(seed);
  Diagnostics diagnostics;
  Lexer lexer(text, FileId(0u), diagnostics);
  std::string out;
  for (Token token = lexer.next(); token.kind != TokenKind::End; token = lexer.next()) {
    out += token.text();
    for (unsigned i = 0, count = random() % 3; i < count; ++i) {
      switch (random() % 8) {
        case 0:
          out += " // comment " + std::to_string(comments++) + " \n";
          break;
        case 1:
          out += "\n\n\n";
          break;
        case 2:
          out += "\r\n\t";
          break;
        default:
          out += ' ';
      }
    }
    out += ' ';
  }
  return out;
}

}  // namespace loom
