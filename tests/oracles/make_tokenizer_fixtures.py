#!/usr/bin/env python3
"""Writes tests/golden/tokenizer: small tokenizers of every kind we read, each with the ids the Python `tokenizers` package gives.

  make_tokenizer_fixtures.py OUT_DIR        needs: pip install tokenizers

NAME.tokenizer.json is the tokenizer, NAME.golden.json is [{"text", "add_special_tokens", "parse_special", "ids", "decoded"}, ...].
"""
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PROSE = """A small loom stood by the window, and the weaver worked on it all day long. She didn't hurry; the cloth wouldn't run away.
In 1984 the village had 217 houses, 12 wells and 3 mills. By 2003 there were 1,048 people and 96 dogs.
Der Weber saß am Fenster und webte ein blaues Tuch, während draußen der Regen fiel. Größer wurde es jeden Tag.
Ткачиха работала весь день, и ткань росла. 織り機は窓のそばにあった。 布は青い。 织布机放在窗边。
for (int i = 0; i < n; ++i) { total += weights[i] * values[i]; }  // the loom of numbers
    def weave(self, thread):
        return [self.warp(x) for x in thread if x != None]
"""
TEXTS = [
    "", " ", "a", "The weaver's loom wouldn't stop: 1984, 217 and 12345!", "  two  spaces\n\n\nand\tnew lines \r\n", "Größe, Ткачиха, 織り機, 织布机",
    "e\u0301 \u00e9 \ufb01 \u212b \u2075 \uff21", "👩‍💻 and 🇩🇪", "HE'S they'RE I'M '\u017f", "<s>not special</s> [sep] <mask>", "a  <mask>  b<mask>c", "xday day days day",
    "\x00\x1b\u00a0\u3000\u2581x", "naïve   ", "   leading", "unseen: \u13a0\u10c80\U0001f9f5", "x" * 90, "ab " * 40, "1" * 70, "\u0e01\u0e33" * 3, "İstanbul", "dayday DAY Day",
]


def train(pre_tokenizer, normalizer=None, byte_level=True, vocab_size=420, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    initial = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    special = ["<unk>", "<s>", "</s>"] if options.get("unk_token") else ["<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=initial, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(PROSE.splitlines(keepends=True), trainer)
    return tokenizer


def with_boundaries(tokenizer):
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("<s>", "</s>")])
    return tokenizer


def digits_byte_level():
    tokenizer = train(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
                      normalizers.NFC())
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken("day", single_word=True), AddedToken("[sep]", normalized=False)])
    return with_boundaries(tokenizer)


def llama3_byte_level():
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer = train(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    tokenizer.decoder = decoders.ByteLevel()
    data = json.loads(with_boundaries(tokenizer).to_str())
    data["model"]["ignore_merges"] = True
    # Whole words that no merge reaches.
    for word in ("Ġnumbers", "織", "Ġ[]"):
        data["model"]["vocab"].setdefault(word, len(data["model"]["vocab"]))
    return Tokenizer.from_str(json.dumps(data))


def prefix_space_byte_level():
    tokenizer = train(pre_tokenizers.ByteLevel(add_prefix_space=True), vocab_size=330)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<mask>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def add_byte_tokens(tokenizer, count=256):
    data = json.loads(tokenizer.to_str())
    vocab = data["model"]["vocab"]
    for byte in range(count):
        vocab.setdefault(f"<0x{byte:02X}>", len(vocab))
    data["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(data))


def sentencepiece():
    tokenizer = train(None, normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), byte_level=False, vocab_size=190,
                      unk_token="<unk>", fuse_unk=True)
    tokenizer = add_byte_tokens(tokenizer)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_tokens([AddedToken("day", normalized=True), AddedToken("\n\n", normalized=False)])
    tokenizer.add_special_tokens(["<mask>"])
    return with_boundaries(tokenizer)


def unknown_without_bytes():
    tokenizer = train(pre_tokenizers.Metaspace(), byte_level=False, vocab_size=170, unk_token="<unk>", fuse_unk=False)
    tokenizer.decoder = decoders.Metaspace()
    return with_boundaries(tokenizer)


def metaspace_first():
    tokenizer = train(pre_tokenizers.Metaspace(prepend_scheme="first", split=False), byte_level=False, vocab_size=170, unk_token="<unk>", fuse_unk=True)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    tokenizer.add_special_tokens(["<mask>"])
    return tokenizer


def normalizers_and_splits():
    steps = [normalizers.NFKD(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Replace(Regex(r"\s{2,}"), " "), normalizers.NFKC()]
    splits = [pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Split(Regex(r"\p{P}"), "merged_with_previous"),
              pre_tokenizers.Split(Regex(r"[0-9]+"), "contiguous"), pre_tokenizers.Split(Regex(r"[^x]+"), "isolated", invert=True),
              pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    tokenizer = train(pre_tokenizers.Sequence(splits), normalizers.Sequence(steps), vocab_size=330)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken("DAY", normalized=True, single_word=True)])
    return tokenizer


def o200k_pattern():
    case = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    pattern = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + case,
                        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + case,
                        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
    tokenizer = train(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "removed", invert=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), vocab_size=330)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def whitespace_words():
    tokenizer = train(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Whitespace(), pre_tokenizers.Digits()]),
                      byte_level=False, vocab_size=170, unk_token="<unk>")
    return tokenizer  # no decoder: tokens joined by spaces


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for make in (digits_byte_level, llama3_byte_level, prefix_space_byte_level, sentencepiece, unknown_without_bytes, metaspace_first,
                 normalizers_and_splits, o200k_pattern, whitespace_words):
        tokenizer = make()
        golden = []
        for text in TEXTS:
            for add, parse in ((False, False), (True, True)):
                tokenizer.encode_special_tokens = not parse
                ids = tokenizer.encode(text, add_special_tokens=add).ids
                golden.append({"text": text, "add_special_tokens": add, "parse_special": parse, "ids": ids, "decoded": tokenizer.decode(ids)})
        tokenizer.encode_special_tokens = False
        with open(os.path.join(out, make.__name__ + ".tokenizer.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        with open(os.path.join(out, make.__name__ + ".golden.json"), "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in golden) + "\n]\n")


if __name__ == "__main__":
    main()
