"""Our WordPiece against the `tokenizers` library over the same vocabulary."""

import random
from collections.abc import Iterator
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from recollect.inference.embedding import wordpiece
from tests.inference.unicode_differences import differing_characters

DIFFERING = differing_characters()
VOCABULARY = (files("recollect.inference") / "data" / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
ALL_CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]

ALPHABETS = {
    "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "ascii punctuation": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "composed accents": "áàâäãåāăąçćčďđéèêëęěíìîïıñńňóòôöõøőŕřśšşţťúùûüůýÿžżÁÉÎÕÜÝẞßæœĲǆǅ",
    "decomposed accents": "aeiounAEIOUN\u0300\u0301\u0302\u0303\u0308\u030a\u0327\u0328\u0338\u0345",
    "turkish": "iıİIğĞşŞçÇöÖüÜ\u0307",
    "greek": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊΐΑΒΓΔΣΩΆΈΪᾳᾼῼ\u037e\u0387",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяёїґЁЇҐЙІѐ",
    "hebrew": "אבגדהוזחטיךכלםמןנסעפץצקרשת\u05b0\u05b4\u05b7\u05bc\u05c1\u05be\u05f3שׁ",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوية\u0621\u0623\u0625\u0622\u0651\u064b\u064e\u0640\u060c\u061f\u06d4٠١٢",
    "devanagari": "अआइईउऊएऐओऔकखगघचछजझटठडढतथदधनपफबभमयरलवशषसह\u093e\u093f\u0940\u0941\u0947\u094d\u093c\u0902\u0964क़",
    "tamil and bengali": "அஆஇகஙசஞடணதநபம\u0bbe\u0bbf\u0bc1\u0bcd\u0bcaঅআইকখগঘ\u09be\u09bf\u09c7\u09cb\u09cdড়",
    "thai": "กขคงจฉชซญฎฏฐณดตถทธนบปผฝพฟภมยรลวศษสหอฮะาิีึืุูเแโใไ็่้๊๋์ำๆฯ๏๚",
    "hangul": "가각간한국어말글씨뷁힣ㄱㄴㅏㅑ\u1100\u1161\u11a8\u3164",
    "kana": "あいうえおかがきぎくぐはばぱアイウエオカガヴー゙゚ﾊﾞﾊﾟ、。「」・〜\u3099\u309a",
    "ideographs": "中文漢字日本語测试机器学习記憶㐀䶵々〇"
    "\U00020000\U0002a6d6\U0002b740\U0002b820\U0002b920\uf900\ufa0e\U0002f800",
    "emoji": "😀😂🥹❤👍👩💻👨👧🏳🌈🇩🇪🇯🇵🏽🏿☀✈©®™\u200d\ufe0f\ufe0e\u20e3",
    "controls": "\x00\x01\x07\x08\x0b\x0c\x1b\x1c\x1d\x1e\x1f\x7f\x80\x85\x9f"
    "\xad\u200b\u200c\u200e\u202e\u2060\ufeff\ufffd\ue000",
    "white space": "\t\n\r \xa0\u1680\u2000\u2003\u2007\u2009\u200a\u2028\u2029\u202f\u205f\u3000",
    "typography": "“”‘’«»‹›–—…•·†‡¶¿¡‰′″‽⁂№℃Å℮½²³ªº≠≮≯¬±×÷√∞∑€£¥₿←→↔①ⅣⅷﬁﬃＡｂ１！",
}


@pytest.fixture(scope="module")
def reference() -> Tokenizer:
    """The library's own parts. Its special tokens stay unregistered: a user's "[SEP]" is text, not structure."""
    tokens = {token: number for number, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(tokens, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=True
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", tokens["[SEP]"]), ("[CLS]", tokens["[CLS]"]))
    return tokenizer


@pytest.fixture(scope="module")
def truncating(reference: Tokenizer) -> Tokenizer:
    tokenizer = Tokenizer.from_str(reference.to_str())
    tokenizer.enable_truncation(256)
    return tokenizer


def texts_of(alphabet: str, other: str, seed: str, count: int = 400) -> Iterator[str]:
    """Texts of one alphabet, now and then mixed with another and with words of the vocabulary."""
    chance = random.Random(seed)
    for _ in range(count):
        words = []
        for _ in range(chance.randint(1, 20)):
            source = chance.choice((alphabet, alphabet, alphabet + other, VOCABULARY))
            words.append("".join(chance.choices(source, k=chance.randint(1, 9))))
        yield chance.choice((" ", "", " ", "\n")).join(words)


def reference_words(reference: Tokenizer, text: str) -> list[str]:
    return [word for word, _ in reference.pre_tokenizer.pre_tokenize_str(reference.normalizer.normalize_str(text))]


@pytest.mark.parametrize("name", ALPHABETS)
def test_texts_of_every_script_have_the_tokens_of_the_reference(name: str, truncating: Tokenizer) -> None:
    other = random.Random(name).choice(list(ALPHABETS.values()))
    texts = list(texts_of(ALPHABETS[name], other, name))
    expected = truncating.encode_batch(texts)
    assert [text for text, tokens in zip(texts, expected, strict=True) if wordpiece.encode(text) != tokens.ids] == []


def test_every_character_of_unicode_is_read_as_the_reference_reads_it_but_for_the_named_ones(
    reference: Tokenizer,
) -> None:
    different = set()
    for start in range(0, len(ALL_CHARACTERS), 256):
        block = [f"a{character}b" for character in ALL_CHARACTERS[start : start + 256]]
        if wordpiece.bundled().words(" ".join(block)) != reference_words(reference, " ".join(block)):
            different |= {
                text[1] for text in block if wordpiece.bundled().words(text) != reference_words(reference, text)
            }
    assert different == DIFFERING


characters = st.characters(exclude_categories=["Cs"], exclude_characters=sorted(DIFFERING))


@settings(max_examples=1500, deadline=None)
@given(
    st.lists(
        st.text(characters)
        | st.text(st.sampled_from("".join(ALPHABETS.values())))
        | st.sampled_from(VOCABULARY).map(lambda token: token.removeprefix("##")),
        max_size=30,
    ).map("".join)
)
def test_any_text_has_the_tokens_of_the_reference(truncating: Tokenizer, text: str) -> None:
    assert wordpiece.encode(text) == truncating.encode(text).ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\n\u3000",
        "The quick brown fox; isn't it 3.14?",
        "ΟΔΥΣΣΕΥΣ ΣΊΣΥΦΟΣ ς Σ",
        "İSTANBUL'da ıssız İ I i̇",
        "👩🏽‍💻 met 👨‍👩‍👧‍👦 in 🇩🇪🇯🇵 🏳️‍🌈 3️⃣",
        "cafe\u0301 café CAFÉ naïve a\u0315\u0300\u05ae\u0300b",
        "𝄞 \U0001d157\U0001d165\U0001d16d and \U0001d165\U0001d172\U0001d16d",
        "[CLS] [SEP] [MASK] [UNK] [PAD] ##ing",
        "nul\x00nul and \ufeffbom",
        "東京タワーは、1958年に完成しました。",
        "한국어 텍스트와 english mixed עִבְרִית العَرَبِيَّة ไทย हिन्दी",
        "x" * 100,
        "x" * 101,
        "\u0301" * 101 + "a",
        "é" * 100 + " " + "각" * 34 + " " + "한" * 33,
        "https://example.com/a?b=c&d=%20#e_f-g",
    ],
)
def test_texts_that_are_easy_to_get_wrong(text: str, truncating: Tokenizer) -> None:
    assert wordpiece.encode(text) == truncating.encode(text).ids


@pytest.mark.parametrize("words", [253, 254, 255, 5000])
def test_the_model_is_given_at_most_256_tokens(words: int, truncating: Tokenizer) -> None:
    text = "memory " * words
    assert wordpiece.encode(text) == truncating.encode(text).ids
    assert len(wordpiece.encode(text)) == min(words + 2, 256)


def test_a_text_is_cut_inside_a_word_as_the_reference_cuts_it(truncating: Tokenizer) -> None:
    text = "unbelievability electroencephalography " * 100
    assert wordpiece.encode(text) == truncating.encode(text).ids


def test_half_of_a_surrogate_pair_is_dropped() -> None:
    assert wordpiece.bundled().words("a\ud800b \udfff") == ["ab"]


def test_the_caches_do_not_grow_without_bound() -> None:
    for character in ALL_CHARACTERS[::20]:
        wordpiece.encode(f"{character} {character}{'x' * 120}")
    assert len(wordpiece._folding(True, True)) <= wordpiece.CACHED_CHARACTERS
    assert wordpiece.bundled()._cached_pieces.cache_info().currsize <= wordpiece.CACHED_WORDS
