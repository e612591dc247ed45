"""The stack machine that reads the pickles of PyTorch's files: pth_to_safetensors.py runs it.

A pickle is a list of operations: put a number on the stack, make a tuple of what lies above the mark, import a name,
call it. This machine knows the names of ALLOWED, each a function of a few lines below, and imports and calls nothing
else. pickletools, which takes the operations apart, runs none.
"""
import pickletools

# Storages by their names in a pickle: safetensors' dtype, bytes of an element, a letter of memoryview.cast().
STORAGES = {
    "FloatStorage": ("F32", 4, "f"), "HalfStorage": ("F16", 2, "H"), "BFloat16Storage": ("BF16", 2, "H"),
    "DoubleStorage": ("F64", 8, "d"), "LongStorage": ("I64", 8, "q"), "IntStorage": ("I32", 4, "i"),
    "ShortStorage": ("I16", 2, "h"), "CharStorage": ("I8", 1, "b"), "ByteStorage": ("U8", 1, "B"),
    "BoolStorage": ("BOOL", 1, "B"), "ComplexFloatStorage": ("C64", 8, "q"),
}
MOST_RANK = 8
MOST_BYTES = 1 << 36  # of a storage


class Refused(Exception):
    """One sentence about the file."""


def show(value):
    """A value of the pickle in a message: short, and never written out where it nests."""
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        value = repr(value)
    return repr(value)[:80] if isinstance(value, (str, int, float, type(None))) else "a " + type(value).__name__


class Global:
    """A name that the pickle would import. It stays a name."""

    def __init__(self, name):
        self.name = name


class Storage:
    """The bytes of one or several tensors, which may come later than the tensors."""

    def __init__(self, kind, key, count):
        self.kind, self.key, self.count = kind, key, count
        self.data = None


class Tensor:
    def __init__(self, storage, offset, size, stride):
        self.storage, self.offset, self.size, self.stride = storage, offset, size, stride


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# ---------------------------------------------------------------------------------------------- the allowed functions

def rebuild_tensor(*arguments):
    """torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks), as a description."""
    if len(arguments) < 4:
        raise Refused("a tensor is made of %d values; storage, offset, size and stride are expected" % len(arguments))
    storage, offset, size, stride = arguments[:4]
    good = isinstance(storage, Storage) and is_count(offset) and isinstance(size, tuple) and isinstance(stride, tuple)
    if not good or len(size) != len(stride) or not all(map(is_count, size + stride)):
        raise Refused("a tensor has no storage, or its offset, size and stride (%s, %s, %s) are no whole numbers >= 0"
                      % (show(offset), show(size), show(stride)))
    if len(size) > MOST_RANK:
        raise Refused("a tensor has %d dimensions; up to %d are read" % (len(size), MOST_RANK))
    if 0 not in size:
        last = offset + sum((n - 1) * step for n, step in zip(size, stride))
        if last >= storage.count:
            raise Refused("a tensor of size %s and stride %s reaches element %d of a storage of %d"
                          % (show(size), show(stride), last, storage.count))
    return Tensor(storage, offset, size, stride)


def rebuild_parameter(*arguments):
    """torch._utils._rebuild_parameter(tensor, requires_grad, hooks): the tensor."""
    if not arguments or not isinstance(arguments[0], Tensor):
        raise Refused("a parameter is made of something that is no tensor")
    return arguments[0]


def ordered_dict(*arguments):
    if arguments:
        raise Refused("an OrderedDict is made with arguments; an empty one is expected, which is then filled")
    return {}


FUNCTIONS = {
    "collections.OrderedDict": ordered_dict,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor,
    "torch._utils._rebuild_parameter": rebuild_parameter,
}
ALLOWED = set(FUNCTIONS) | {"torch." + kind for kind in STORAGES}


# ---------------------------------------------------------------------------------------------------------- the machine

class Machine:
    """Runs the operations of one pickle that a state dict needs. pickletools reads them; nothing is called but the
    functions above."""

    MARK = object()

    def __init__(self, storages):
        self.storages = storages  # key -> Storage, of all persistent ids so far
        self.stack, self.memo = [], {}

    def run(self, stream):
        try:
            for operation, argument, _ in pickletools.genops(stream):
                if operation.name == "STOP":
                    return self.pop()
                action = getattr(self, "do_" + operation.name, None)
                if action is None and operation.name in CONSTANTS:
                    self.stack.append(CONSTANTS[operation.name](argument))
                elif action is None:
                    raise Refused("its pickle uses the operation %s, which a state dict does not need"
                                  % operation.name)
                else:
                    action(argument)
        except (ValueError, KeyError, IndexError, AttributeError, TypeError, UnicodeError) as error:
            raise Refused("its pickle is damaged or cut short: %s" % error)
        raise Refused("its pickle has no end")

    def pop(self):
        value = self.stack.pop()
        if value is self.MARK:
            raise ValueError("a mark stands where a value is expected")
        return value

    def pop_to_mark(self):
        items = []
        while self.stack[-1] is not self.MARK:
            items.append(self.stack.pop())
        self.stack.pop()
        return items[::-1]

    def top(self, kind):
        if not isinstance(self.stack[-1], kind):
            raise ValueError("a %s is expected to be filled" % kind.__name__)
        return self.stack[-1]

    def nothing(self, argument):
        pass

    do_PROTO = do_FRAME = nothing

    # Values are put on the stack, and remembered by numbers.
    def do_MARK(self, _):
        self.stack.append(self.MARK)

    def do_POP(self, _):
        self.stack.pop()

    def do_POP_MARK(self, _):
        self.pop_to_mark()

    def do_BINPUT(self, number):
        self.memo[number] = self.stack[-1]

    do_LONG_BINPUT = do_PUT = do_BINPUT

    def do_MEMOIZE(self, _):
        self.memo[len(self.memo)] = self.stack[-1]

    def do_BINGET(self, number):
        self.stack.append(self.memo[number])

    do_LONG_BINGET = do_GET = do_BINGET

    # Tuples, lists and dicts.
    def do_EMPTY_TUPLE(self, _):
        self.stack.append(())

    def do_TUPLE(self, _):
        self.stack.append(tuple(self.pop_to_mark()))

    def join(self, count):
        items = tuple(self.pop() for _ in range(count))
        self.stack.append(items[::-1])

    def do_TUPLE1(self, _):
        self.join(1)

    def do_TUPLE2(self, _):
        self.join(2)

    def do_TUPLE3(self, _):
        self.join(3)

    def do_EMPTY_LIST(self, _):
        self.stack.append([])

    def do_LIST(self, _):
        self.stack.append(self.pop_to_mark())

    def do_APPEND(self, _):
        value = self.pop()
        self.top(list).append(value)

    def do_APPENDS(self, _):
        items = self.pop_to_mark()
        self.top(list).extend(items)

    def do_EMPTY_DICT(self, _):
        self.stack.append({})

    def set_items(self, items):
        target = self.top(dict)
        for key, value in zip(items[::2], items[1::2]):
            if not isinstance(key, (str, int)):
                raise ValueError("a dict has a key that is neither text nor a number")
            target[key] = value

    def do_DICT(self, _):
        items = self.pop_to_mark()
        self.stack.append({})
        self.set_items(items)

    def do_SETITEM(self, _):
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    def do_SETITEMS(self, _):
        self.set_items(self.pop_to_mark())

    # Names, calls, storages: what makes a pickle dangerous.
    def do_GLOBAL(self, argument):
        self.find(*argument.split(" ", 1))

    def do_STACK_GLOBAL(self, _):
        name, module = self.pop(), self.pop()
        self.find(module, name)

    def find(self, module, name):
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a name to import is no text")
        full = "%s.%s" % (module, name)
        if full not in ALLOWED:
            raise Refused("its pickle wants to import %s, which a state dict does not need, and which may run any "
                          "code; nothing was run. Save the weights alone: torch.save(model.state_dict(), FILE)"
                          % full[:200])
        self.stack.append(Global(full))

    def do_REDUCE(self, _):
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, Global) or function.name not in FUNCTIONS or not isinstance(arguments, tuple):
            raise Refused("its pickle calls something that is no function of a state dict")
        self.stack.append(FUNCTIONS[function.name](*arguments))

    def do_BUILD(self, _):
        self.pop()  # attributes of an OrderedDict: _metadata, the versions of modules
        self.top(dict)

    def do_BINPERSID(self, _):
        self.stack.append(self.storage(self.pop()))

    def storage(self, identity):
        """('storage', FloatStorage, key, device, elements), and in old files the place of a view or None."""
        if not isinstance(identity, tuple) or len(identity) not in (5, 6) or identity[0] != "storage":
            raise Refused("its pickle has %s for the id of a storage" % show(identity))
        if len(identity) == 6 and identity[5] is not None:
            raise Refused("its storages are views of others, as PyTorch wrote before version 0.4; load it with PyTorch "
                          "and save it again")
        kind, key, count = identity[1], identity[2], identity[4]
        if not isinstance(kind, Global) or kind.name[6:] not in STORAGES or not isinstance(key, str):
            raise Refused("its pickle has a storage without a dtype or a key")
        if not is_count(count):
            raise Refused("storage %s has %s elements" % (key[:80], show(count)))
        if count * STORAGES[kind.name[6:]][1] > MOST_BYTES:
            raise Refused("storage %s has %d elements; up to %d bytes are read" % (key[:80], count, MOST_BYTES))
        found = self.storages.setdefault(key, Storage(kind.name[6:], key, count))
        if (found.kind, found.count) != (kind.name[6:], count):
            raise Refused("storage %s is named with two types or sizes" % key)
        return found


CONSTANTS = {"NONE": lambda _: None, "NEWTRUE": lambda _: True, "NEWFALSE": lambda _: False}
CONSTANTS.update(dict.fromkeys(
    ["INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE",
     "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "STRING", "BINSTRING",
     "SHORT_BINSTRING"], lambda argument: argument))
