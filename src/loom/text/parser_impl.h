// The parser's state; parser.cpp drives it, parse_*.cpp read one kind of thing each.
//
// An operation is read by walking the steps of its format. A Region step suspends the walk in a
// frame, the operations of the region are read, and `}` resumes it. Functions that return bool
// return false when the operation cannot be completed; the problem is then reported, or follows
// from one that was.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loom/ir/module.h"
#include "loom/text/lexer.h"
#include "loom/text/name_scopes.h"
#include "loom/text/op_format.h"

namespace loom {

// Nesting of lists, dictionaries and encodings inside one attribute.
inline constexpr unsigned kMaxAttrDepth = 64;
// Operands or results of an operation, and arguments of a region.
inline constexpr size_t kMaxValues = 65535;
// Owner of a value that a signature mentions and has not bound yet.
inline constexpr uint32_t kUnbound = RegionId::kNone;

class Parser {
 public:
  Parser(SourceFiles& files, FileId file, Diagnostics& diagnostics);
  std::optional<Module> run();

 private:
  enum class Progress : uint8_t { Done, Entered, Failed };

  // A region of an operation that repeats regions, until the operation is complete.
  struct Case {
    RegionId region;
    int64_t key = 0;
  };

  // The operation whose format is being walked.
  struct Current {
    const OpFormat* format = nullptr;
    Token name;
    OpId op;             // valid once created: before its first region or signature, or at the end
    RegionId last_body;  // the last region with braces
    uint32_t names_begin = 0;  // its results, in names_
    uint32_t names_count = 0;
    uint32_t cases_begin = 0;  // its regions, in cases_
    uint16_t pc = 0;
    bool scope_open = false;
    bool older = false;     // written under an older name
    bool in_cases = false;  // between the braces around its cases
    bool last_case = false;
    int8_t scope_region = -1;
    NameScopes::Scope scope;
  };
  struct Frame {
    Current current;
    RegionId region;
    RegionId outer;
  };
  struct Name {
    StringId id;
    Token token;
  };
  struct Pending {  // mentioned by a signature, not bound yet
    ValueId value;
    Token token;
  };

  struct KeyedEntry {
    DictEntry entry;
    Token key;
  };

  // --- parser.cpp: the loop ---
  void parse_regions();
  bool check_end();
  bool parse_header();
  bool finish_op();
  bool create_op();
  bool deduce_results();
  void bind_results();
  void fail_op();
  void recover(const char* start);
  bool parse_alias();
  bool in_older_template() const;
  bool parse_older_decl();
  bool skip_location();
  void close_region();
  void drop_implicit_terminator(OpId op);

  // --- parse_format.cpp ---
  Progress walk_format();
  bool step(const FormatStep& step);
  bool starts(size_t pc) const;
  bool parse_literal(const FormatStep& step);
  bool parse_operands(int group);
  bool parse_types(int group);
  bool parse_result_types(int group);
  bool parse_result_arrow();
  bool parse_operand_clause(const FormatStep& step);
  bool parse_index_list(const FormatStep& step);
  bool parse_operand_dict(const FormatStep& step);
  bool parse_induction(const FormatStep& step);
  bool parse_iter_args(const FormatStep& step);
  void bind_loop_args(RegionId region);
  bool enter_region(int region);
  bool open_region(int region, RegionId id);
  // --- parse_table.cpp ---
  Progress next_case(const FormatStep& step);
  bool close_cases(const FormatStep& step);
  bool parse_body_args(const FormatStep& step);
  bool parse_lookup_rows(const FormatStep& step);
  bool parse_lookup_row(size_t& width);
  bool parse_pack_list(const FormatStep& step);

  // --- parse_format.cpp ---
  void begin_group(int group);
  void end_group() { group_sizes_.back() = operand_count() - group_begin_; }
  uint32_t operand_count() const { return static_cast<uint32_t>(operands_.size()); }
  std::span<const ValueId> group(int index) const;
  bool check_annotation(ValueId value, TypeId stated, const Token& at);
  bool operand_count_error(size_t expected, size_t found, const Token& at);

  // --- parse_signature.cpp ---
  bool parse_signature(const FormatStep& step);
  bool parse_result_signature(const FormatStep& step);
  bool parse_key_arg(const FormatStep& step);
  bool parse_signature_arg(bool name_optional, std::vector<ValueId>& out);
  bool bind_signature_name(const Token& name, TypeId type, ValueId& out);
  bool settle_signature();
  void hide_result_names();
  void open_scope(int region, bool isolated);
  void close_scope();

  // --- parse_attr.cpp ---
  bool parse_attr(int slot);
  bool parse_attr_clause(const FormatStep& step);
  bool parse_range_clause(const FormatStep& step);
  bool parse_flags(const FormatStep& step);
  bool parse_parameter(const FormatStep& step);
  bool parse_word(const FormatStep& step);
  bool parse_op_dict();
  bool parse_older_dict();
  bool parse_form(const AttrSpec& spec, AttrId& out, bool in_clause);
  bool parse_enum(const AttrSpec& spec, AttrId& out);
  bool parse_flag_list(const AttrSpec& spec, AttrId& out);
  bool parse_literal_value(AttrId& out);
  bool parse_integer(int64_t& out);
  bool parse_float(double& out);
  bool parse_string(StringId& out);
  bool parse_symbol(const AttrSpec& spec, AttrId& out);
  bool symbols_only(AttrId& list, const Token& at_token);
  bool parse_older_family(AttrId& out);
  bool parse_bytes(AttrId& out);
  bool parse_int_list(AttrId& out, bool in_clause);
  bool parse_predicates(AttrId& out);
  bool parse_predicate(Predicate& out);
  bool parse_value(AttrId& out, unsigned depth);
  bool parse_value_list(AttrId& out, unsigned depth);
  bool parse_dict(AttrId& out, unsigned depth);
  bool parse_encoding(AttrId& out, unsigned depth);
  bool parse_encoding_parameter(std::vector<KeyedEntry>& entries, unsigned depth);
  bool check_keys(std::vector<KeyedEntry> entries, Diag duplicate);
  bool deep_enough(unsigned depth);
  AttrId list_attr(std::span<const DictEntry> entries);

  // --- parse_type.cpp ---
  bool parse_type(TypeId& out);
  bool parse_shaped(TypeKind kind, TypeId& out);
  bool parse_dims(std::vector<Dim>& dims);
  bool parse_attachments(Type& type);
  bool parse_encoding_type(TypeId& out);
  bool type_starts() const;
  bool type_value(const Token& name, ValueId& out);

  // --- parse_trivia.cpp ---
  void take_leading(RegionId region);
  void attach_trivia();
  void enter_trivia(RegionId region);
  void case_trivia(RegionId region);
  void close_trivia(RegionId region);
  size_t take_middle();
  StringId trivia_text(const Trivia& item);

  // --- tokens and names ---
  void advance() {
    last_end_ = token_.end();
    last_line_ = token_.line;
    lexer_.next(token_);
  }
  bool at(TokenKind kind) const { return token_.kind == kind; }
  bool at_word(std::string_view word) const {
    return token_.kind == TokenKind::Word && token_.text() == word;
  }
  bool take(TokenKind kind) {
    if (token_.kind != kind) return false;
    advance();
    return true;
  }
  bool need(TokenKind kind, std::string_view expected) {
    if (token_.kind != kind) return expected_error(expected);
    advance();
    return true;
  }
  // The braces of dictionaries, which recovery has to see closed.
  bool take_open_brace() {
    if (!take(TokenKind::LeftBrace)) return false;
    ++open_braces_;
    return true;
  }
  bool need_close_brace() {
    if (!need(TokenKind::RightBrace, "'}'")) return false;
    --open_braces_;
    return true;
  }
  Location location(const Token& token) const {
    return {file_, token.line, token.column, token.size == 0 ? 1 : token.size};
  }
  bool error(Diag id, const Token& token, std::vector<DiagParam> params = {});
  bool expected_error(std::string_view expected);
  // The value that the current token names; takes the token.
  bool use_value(ValueId& out);
  std::string suggest_op(std::string_view name) const;
  std::string suggest_encoding(std::string_view name) const;
  // A repair for a name that means no value here.
  std::string suggest_value(std::string_view name) const;
  void define(StringId name, ValueId value, const Token& token);
  ValueId poison();

  SourceFiles& files_;
  const FileId file_;
  Diagnostics& diagnostics_;
  Module module_;
  Lexer lexer_;
  Token token_;
  const char* last_end_ = nullptr;
  uint32_t last_line_ = 1;
  NameScopes names_in_scope_;
  uint32_t open_braces_ = 0;
  ValueId poison_;  // stands for values of operations that failed

  Current current_;
  RegionId region_;  // that current_ stands in
  std::vector<Frame> frames_;
  std::vector<Name> names_;
  std::vector<Case> cases_;
  std::unordered_map<uint32_t, AttrId> aliases_;  // by StringId index

  // Parts of the current operation until it is created.
  std::vector<ValueId> operands_;
  std::vector<uint32_t> group_sizes_;
  uint32_t group_begin_ = 0;
  std::vector<TypeId> result_types_;
  bool results_stated_ = false;
  std::vector<AttrId> attrs_;
  std::vector<StringId> leading_;
  AttrId older_family_;  // of a family that is declared under its older name
  Token last_list_;      // `[` of the last list of values
  Token missing_;        // where a required parameter or clause was not found
  bool has_missing_ = false;

  // Parts of the region or signature that comes next.
  std::vector<Name> arg_names_;
  std::vector<ValueId> args_;
  std::vector<Pending> pending_;
  std::vector<StringId> result_names_;
  std::vector<ValueId> result_values_;
  RegionId signature_region_;

  std::vector<Dim> dims_;
  std::vector<int64_t> ints_;
  std::string scratch_;
};

}  // namespace loom
