"""Prints the chat template of a GGUF file, if it has one.

    gguf_chat_template.py MODEL.gguf

Reads the metadata with the standard library alone. Exits with 77 when the file has no template.
"""

import struct
import sys

STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def read(file, form):
    return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]


def read_string(file):
    return file.read(read(file, "Q"))


def skip(file, kind):
    if kind == STRING:
        read_string(file)
    elif kind == ARRAY:
        item, count = read(file, "I"), read(file, "Q")
        if item in SIZES:
            file.seek(SIZES[item] * count, 1)
        else:
            for _ in range(count):
                skip(file, item)
    else:
        file.seek(SIZES[kind], 1)


def chat_template(path):
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            sys.exit(f"{path}: expected a GGUF file")
        read(file, "I"), read(file, "Q")
        for _ in range(read(file, "Q")):
            key, kind = read_string(file), read(file, "I")
            if key == b"tokenizer.chat_template" and kind == STRING:
                return read_string(file).decode("utf-8")
            skip(file, kind)
    return None


if __name__ == "__main__":
    template = chat_template(sys.argv[1])
    if template is None:
        sys.exit(77)
    sys.stdout.buffer.write(template.encode("utf-8"))
