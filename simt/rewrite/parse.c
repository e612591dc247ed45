/* parse.c - brackets, declarations and statements among the tokens. */
#include "parse.h"

Item *items;
int item_count;

/* ---- brackets that are not always brackets: < > ---- */

int angle_end(int i) {
  int depth = 0;
  if (is(i + 1, "<") && adjacent(i)) return -1;
  for (; i < token_count; i++) {
    if (is(i, "<") && is(i + 1, "<") && adjacent(i))
      i++; /* a shift */
    else if (is(i, "<") && (depth == 0 || is_identifier(i - 1)))
      depth++;
    else if (is(i, ">") && --depth == 0)
      return i;
    else if (is(i, "(") || is(i, "[") || is(i, "{"))
      i = tokens[i].match >= 0 ? tokens[i].match : token_count;
    else if (is_one_of(i, "; ) ] }"))
      return -1;
  }
  return -1;
}

int angle_start(int i) {
  int depth = 0;
  for (; i >= 0; i--) {
    if (is(i, "<") && is(i - 1, "<") && adjacent(i - 1))
      i--;
    else if (is(i, ">"))
      depth++;
    else if (is(i, "<") && --depth == 0)
      return i;
    else if (is_one_of(i, ") ] }"))
      i = tokens[i].match; /* -1 ends the search */
    else if (is_one_of(i, "; ( [ {"))
      return -1;
  }
  return -1;
}

int piece_end(int i, int end, bool is_declaration) {
  for (; i < end; i++) {
    if (is(i, ",")) return i;
    if (opens(i)) {
      i = tokens[i].match;
    } else if (is(i, "<") && is_identifier(i - 1)) {
      int close = angle_end(i);
      if (close >= 0 && close < end && (is_declaration || is_one_of(close + 1, "( :: { ,") || close + 1 == end))
        i = close;
    }
  }
  return end;
}

int attribute_end(int i) {
  if (is_one_of(i, "alignas _Alignas __align__ __attribute__ __attribute") && opens(i + 1))
    return tokens[i + 1].match + 1;
  if (is(i, "[") && is(i + 1, "[") && opens(i)) return tokens[i].match + 1;
  return i;
}

/* ---- functions and declarations: what stands directly in a namespace or class ---- */

Item *function_at(int i) {
  for (i = tokens[i].parent; i >= 0; i = tokens[i].parent)
    if (tokens[i].function >= 0) return &items[tokens[i].function];
  return NULL;
}

bool in_function(int i) {
  for (i = tokens[i].parent; i >= 0; i = tokens[i].parent)
    if (is(i, "{")) return !tokens[i].is_scope;
  return false;
}

bool is_kernel_or_device_only(const Item *item) { return item->global || (item->device && !item->host); }

/* The parameter list of a function? f(..), f<int>(..); not (*f)(..), decltype(..), T x(1). */
static bool is_parameter_list(int i) {
  if (is_one_of(i - 1,
                "decltype __typeof__ typeof noexcept throw __launch_bounds__ __maxnreg__ __cluster_dims__ "
                "__block_size__ explicit requires asm __asm__ static_assert sizeof alignof"))
    return false;
  if (!is_identifier(i - 1) && !is(i - 1, ">")) return false;
  return !is(i + 1, "*") && !is(i + 1, "&") && !is_kind(i + 1, NUMBER) && !is_kind(i + 1, STRING) &&
         !is_one_of(i + 1, "- true false nullptr");
}

static void add_item(Item item, int end) {
  if (item.name >= 0 && tokens[item.name].kind != IDENTIFIER) item.name = -1;
  item.end = end;
  items = need(realloc(items, (size_t)(item_count + 1) * sizeof *items));
  items[item_count++] = item;
}

static void parse_scope(int i, int end, const char *class_name);

/* One declaration or definition; gives the token after it. */
static int parse_item(int i, int end, const char *class_name) {
  Item item = {.start = i, .name = -1, .parameters = -1, .body = -1, .class_name = class_name};
  bool is_namespace = false, is_enum = false, after_operator = false, assigned = false, has_initialisers = false;
  int class_key = -1, number = -1; /* a class is items[number], before its members */
  for (; i < end; i++) {
    int skipped = attribute_end(i);
    if (skipped > i) {
      i = skipped - 1;
    } else if (is(i, ";")) {
      if (number < 0)
        add_item(item, i + 1);
      else
        items[number].end = i + 1;
      return i + 1;
    } else if (is(i, "template") && is(i + 1, "<") && angle_end(i + 1) > 0) {
      int close = angle_end(i + 1);
      if (close == i + 2) item.is_specialisation = true;
      if (close > i + 2) item.is_template = true;
      i = close;
    } else if (is(i, "operator") && !assigned) {
      item.name = i;
      after_operator = true;
      if (is(i + 1, "(")) i += 2; /* operator()(..) */
      while (i + 1 < end && !is_one_of(i + 1, "( ; {")) i++;
    } else if (is(i, "(")) {
      if (item.parameters < 0 && !assigned && (after_operator || is_parameter_list(i))) {
        item.parameters = i;
        if (!after_operator) item.name = is(i - 1, ">") ? angle_start(i - 1) - 1 : i - 1;
      }
      if (tokens[i].match > 0) i = tokens[i].match;
    } else if (is(i, "[")) {
      if (tokens[i].match > 0) i = tokens[i].match;
    } else if (is(i, "<") && is_identifier(i - 1) && !assigned && angle_end(i) > 0) {
      i = angle_end(i);
    } else if (is(i, "=")) {
      assigned = true;
    } else if (is(i, ":") && item.parameters >= 0) {
      has_initialisers = true; /* of a constructor */
    } else if (is(i, "{") && tokens[i].match >= 0) {
      int close = tokens[i].match;
      bool is_linkage = is(item.start, "extern") && is_kind(item.start + 1, STRING) && i == item.start + 2;
      if (is_namespace || is_linkage) {
        tokens[i].is_scope = true;
        add_item(item, i + 1);
        parse_scope(i + 1, close, NULL);
        return close + 1;
      }
      bool is_member = has_initialisers && (is_identifier(i - 1) || is(i - 1, ">")); /* S() : x{1} {} */
      if (class_key >= 0 && !is_enum && item.parameters < 0 && !assigned) {
        int name = class_key + 1;
        while (attribute_end(name) > name) name = attribute_end(name);
        tokens[i].is_scope = true;
        number = item_count;
        add_item(item, close + 1);
        parse_scope(i + 1, close, is_identifier(name) ? name_of(name) : "");
      } else if (item.parameters >= 0 && !assigned && !is_member) {
        item.body = i;
        tokens[i].function = item_count;
        add_item(item, close + 1);
        return close + 1;
      }
      i = close;
    } else if (is_identifier(i) && !assigned) {
      if (is(i, "namespace")) is_namespace = true;
      if (is(i, "enum")) is_enum = true;
      if (is_one_of(i, "class struct union") && class_key < 0 && item.parameters < 0) class_key = i;
      if (is(i, "__global__")) item.global = true;
      if (is(i, "__device__")) item.device = true;
      if (is(i, "__host__")) item.host = true;
      if (is(i, "__constant__")) item.constant = true;
      if (is(i, "__managed__")) item.managed = true;
    }
  }
  if (number < 0) add_item(item, end);
  return end;
}

static void parse_scope(int i, int end, const char *class_name) {
  while (i < end) {
    if (is(i, ";"))
      i++;
    else if (is_one_of(i, "public private protected") && is(i + 1, ":"))
      i += 2;
    else
      i = parse_item(i, end, class_name);
  }
}

void parse(const char *text) {
  items = NULL;
  item_count = 0;
  tokenise(text);
  match_brackets();
  parse_scope(0, token_count - 1, NULL);
}

bool head_has(const Item *item, const char *words) {
  int end = item->parameters >= 0 ? item->parameters : item->end;
  for (int i = item->start; i < end && !is(i, "=") && !is(i, "{"); i++)
    if (is_one_of(i, words)) return true;
  return false;
}

/* ---- variables and statements ---- */

bool ends_expression_before(int i) { return is_one_of(i, "return else do case goto throw co_return co_yield"); }

int declaration_start(int i) {
  for (; i > 0; i--) {
    if (is_one_of(i - 1, "; { }") || (is(i - 1, ":") && !is(i, ":"))) return i;
    if (is(i - 1, ")") && tokens[i - 1].match > 0 && attribute_end(tokens[i - 1].match - 1) != i) return i;
    if (is(i - 1, ")") && tokens[i - 1].match > 0) i = tokens[i - 1].match + 1;
  }
  return i;
}

int declaration_end(int i) {
  for (; i < token_count - 1 && !is(i, ";"); i++)
    if (opens(i)) i = tokens[i].match;
  return i;
}

int declared_name(int first, int end) {
  int name = -1;
  for (int i = first; i < end; i++) {
    bool is_class = is_one_of(name, "struct union class enum") || is_one_of(name - 1, "struct union class enum");
    if (is_one_of(i, "= [") || (is(i, "{") && name >= 0 && !is_class)) break;
    if (is(i, "(") && name >= 0 && !is(i + 1, "*") && !is(i + 1, "&")) break;
    int skipped = attribute_end(i);
    if (skipped > i) {
      i = skipped - 1;
    } else if (is(i, "<") && is_identifier(i - 1) && angle_end(i) > 0) {
      i = angle_end(i);
    } else if (is(i, "{")) { /* the name comes after the class */
      i = tokens[i].match;
      name = -1;
    } else if (is_identifier(i) && !is_one_of(i, "const volatile __restrict__")) {
      name = i;
    }
  }
  return name;
}

int statement_end(int i) {
  while (i < token_count && is_one_of(i, "for while switch if else constexpr do")) {
    bool is_if = is(i, "if");
    if (is(i, "if") && is(i + 1, "constexpr")) i++;
    i = opens(i + 1) && is(i + 1, "(") ? tokens[i + 1].match + 1 : i + 1;
    if (!is_if) continue;
    i = statement_end(i);
    if (!is(i, "else")) return i;
  }
  if (opens(i)) {
    int end = tokens[i].match + 1;
    if (is(i, "{")) return end;
  }
  while (i < token_count && !is_one_of(i, "; }")) i = opens(i) ? tokens[i].match + 1 : i + 1;
  return is(i, ";") ? i + 1 : i;
}
