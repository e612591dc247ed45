"""What nncuda.h declares, as the letters of nncuda/_library.py: name -> "result>arguments"."""
import re

_LETTERS = {"int": "i", "int64_t": "l", "double": "d", "size_t": "z", "uint32_t": "u", "uint64_t": "U"}


def _letter(declaration):
    """Of one parameter, or of a result: the letter of its type."""
    declaration = declaration.strip()
    if "*" in declaration:
        # Text comes back as const char *; a char * that is written into is a pointer, as the others are.
        return "s" if re.match(r"const char \*", declaration) else "p"
    return _LETTERS[declaration.split()[0]]


def signatures(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = {}
    for result, name, parameters in re.findall(r"NNCUDA_API\s+([\w ]+?[\s*]+)nncuda_(\w+)\(([^)]*)\);", text):
        parameters = "" if parameters.strip() == "void" else "".join(_letter(one) for one in parameters.split(","))
        found[name] = _letter(result) + ">" + parameters
    return found


def structures(text):
    """name -> names of the members, all int64_t."""
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\}", re.sub(r"/\*.*?\*/", "", text, flags=re.S),
                                 flags=re.S):
        found[name] = [member.strip() for line in re.findall(r"int64_t ([^;]*);", body) for member in line.split(",")]
    return found
