# For the tests here: many programs in one file, so that their headers are compiled once. Its argument says which one runs.

# join DECLARATION RESULT FILE...: each file in a namespace of its name. `int main(void)` becomes `int DECLARATION`, and
# the program ends with the value of `main()RESULT`.
join() {
  local declaration=$1 result=$2 file name macro
  shift 2
  grep -h '^#include ' "$@" | sort -u
  echo '#include <string.h>'
  for file in "$@"; do
    name=$(basename "$file" .cu)
    printf '#define main(...) %s\nnamespace %s {\n#include "%s"\n}\n' "$declaration" "$name" "$file"
    for macro in main $(sed -n 's/^#define *\([A-Za-z_0-9]*\).*/\1/p' "$file"); do echo "#undef $macro"; done
  done
  echo 'int main(int argc, char **argv) {'
  for file in "$@"; do
    name=$(basename "$file" .cu)
    echo "  if (argc > 1 && strcmp(argv[1], \"$name\") == 0) return $name::main()$result;"
  done
  printf '  return 2;\n}\n'
}
