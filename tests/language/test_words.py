"""Words: what a text is indexed under, and what a question looks for."""

import re
import time
from typing import Literal
from unicodedata import normalize

import pytest
import Stemmer  # type: ignore[import-not-found]
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import Invalid
from recollect.language.detection import detect
from recollect.language.letters import normalized
from recollect.language.stop_words import STOP_WORDS
from recollect.language.words import LANGUAGES, MAX_QUERY_TERMS, QueryTerm, document_terms, query_terms

SENTENCES = {
    "english": "Where are the books of my brother, and who has read them?",
    "german": "Wo sind die Bücher von meinem Bruder, und wer hat sie gelesen?",
    "french": "Où sont les livres de mon frère, et qui les a lus à l'école ?",
    "spanish": "¿Dónde están los libros de mi hermano y quién los ha leído?",
    "italian": "Dove sono i libri dell'amica di mio fratello e chi li ha letti?",
    "portuguese": "Onde estão os livros do meu irmão e quem não os leu?",
    "dutch": "Waar zijn de boeken van mijn broer en wie heeft ze gelezen?",
    "swedish": "Var är min brors böcker och vem har läst dem?",
    "danish": "Hvor er min brors bøger, og hvem har læst dem siden i går af jer?",
    "norwegian": "Hvor er bøkene til broren min, og hva har dere lest av dem?",
    "finnish": "Missä veljeni kirjat ovat ja kuka ne on lukenut?",
    "turkish": "Kardeşimin kitapları nerede ve onları kim okudu?",
    "hungarian": "Hol vannak a bátyám könyvei, és ki olvasta őket?",
    "romanian": "Unde sunt cărțile fratelui meu și cine le-a citit?",
    "polish": "Gdzie są książki mojego brata i kto je przeczytał?",
    "indonesian": "Di mana buku kakak saya dan siapa yang sudah membacanya?",
    "russian": "Где книги моего брата и кто их прочитал?",
    "greek": "Πού είναι τα βιβλία του αδελφού μου και ποιος τα διάβασε;",
    "arabic": "أين كتب أخي ومن قرأها؟",
    "hindi": "मेरे भाई की किताबें कहाँ हैं और किसने पढ़ीं?",
    "chinese": "我弟弟的书在哪里？谁读过它们？",
    "japanese": "弟の本はどこですか？誰が読みましたか？",
    "korean": "동생의 책은 어디에 있나요? 누가 읽었나요?",
    "thai": "หนังสือของน้องชายอยู่ที่ไหน",
}


def finds(question: str, text: str) -> list[str]:
    """The question's words under which the text is found."""
    terms = set(document_terms(text))
    return [term.word for term in query_terms(question) if terms.intersection(term.variants)]


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_recognised_as_its_language(language: str) -> None:
    assert detect(SENTENCES[language]) == language


@pytest.mark.parametrize("language", SENTENCES)
def test_every_sentence_is_found_by_all_of_its_own_words(language: str) -> None:
    asked = [term.word for term in query_terms(SENTENCES[language])]
    assert asked
    assert finds(SENTENCES[language], SENTENCES[language]) == asked


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("book", "I have read all the books"),
        ("Buch", "Ich habe alle Bücher von ihm gelesen"),
        ("cheval", "Les chevaux sont dans le pré et les vaches aussi"),
        ("homme", "C'est l'homme que j'ai vu à la gare"),
        ("L'Oréal", "I like L'Oréal"),
        ("dell'amica", "Amica"),
        ("amica", "Ho parlato con l'amica di mio fratello"),
        ("libro", "Mi hermano tiene muchos libros en la casa"),
        ("книга", "Я прочитал все книги моего брата"),
        ("елка", "Мы купили ёлку на рынке"),
        ("猫", "我的猫叫咪咪"),
        ("北京", "我们去年夏天去了北京旅游"),
        ("東京", "去年の夏は東京に行きました"),
        ("ﾃﾚﾋﾞ", "昨日テレビを見た"),
        ("책은", "이 책은 재미있어요"),
        ("cafe", "We met at the café"),
        ("café", "We met at the cafe"),
        ("oclock", "At five o’clock"),
        ("Straße", "Wir wohnen in der STRASSE mit den Bäumen"),
        ("naïve", "That was nai\u0308ve of me"),
    ],
)
def test_one_word_finds_its_other_forms(question: str, text: str) -> None:
    assert finds(question, text)


def test_a_word_alone_is_looked_up_in_every_latin_language() -> None:
    [term] = query_terms("Bücher")
    assert {"buch", "bucher"} <= set(term.variants)


def test_a_question_in_a_clear_language_is_looked_up_in_that_and_in_english() -> None:
    assert query_terms("Wo ist denn das Buch von meinen Schwestern?") == [
        QueryTerm("buch", ("buch",)),
        QueryTerm("schwestern", ("schwest", "schwestern")),
    ]


def test_an_english_question_is_looked_up_in_english_alone() -> None:
    assert query_terms("Which books did the sisters read?") == [
        QueryTerm("books", ("book",)),
        QueryTerm("sisters", ("sister",)),
        QueryTerm("read", ("read",)),
    ]


def test_a_question_of_stop_words_has_no_terms() -> None:
    assert query_terms("What was that for?") == []
    assert query_terms("") == query_terms("?!… 🎉") == []


@pytest.mark.parametrize("word", ["war", "die", "hat", "son", "mine", "AI", "MIT", "Dan", "go", "word", "LA", "y"])
def test_a_word_that_is_a_stop_word_only_elsewhere_is_looked_up(word: str) -> None:
    assert word.lower() in query_terms(word)[0].variants


def test_a_word_is_asked_for_once_whatever_its_form() -> None:
    assert [term.word for term in query_terms("dogs and the dog, Dogs")] == ["dogs"]


def test_repetitions_count_in_a_document() -> None:
    assert document_terms("the dog saw a dog") == ["dog", "saw", "dog"]


def test_names_and_loan_words_leave_an_english_text_english() -> None:
    assert detect("I met José and Zoë at Müller's in Los Angeles") == "english"
    assert detect("He booked Hotel de la Paix in Plaza de la Villa") == "english"
    assert detect("Anna likes Leonardo da Vinci and Vasco da Gama") == "english"
    assert detect("Haus der Kunst in der Prinzregentenstraße") == "german"
    assert document_terms("Müller called") == ["muller", "call"]


def test_words_of_another_script_are_stemmed_as_their_own_language() -> None:
    assert finds("книга", "She gave me the книги yesterday")


def test_a_configured_language_takes_the_place_of_detection() -> None:
    assert document_terms("Katzen", "german") == ["katz"]
    assert document_terms("Katzen", "english") == ["katzen"]
    assert document_terms("running", "russian") == ["run"]
    assert query_terms("und Katzen", "german") == [QueryTerm("katzen", ("katz", "katzen"))]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(Invalid, match="klingon"):
        document_terms("text", "klingon")


def test_a_run_of_characters_that_is_no_word_is_cut() -> None:
    assert max(map(len, document_terms("x" * 100_000))) <= 64


PROTOTYPE_WORD = re.compile(r"[a-z0-9]+")
PROTOTYPE_STEM = Stemmer.Stemmer("english").stemWord


def prototype_terms(text: str) -> list[str]:
    """The rule that recall was measured with."""
    words = PROTOTYPE_WORD.findall(text.lower().replace("'", ""))
    return [PROTOTYPE_STEM(word) for word in words if word not in STOP_WORDS["english"]]


ASCII = st.characters(max_codepoint=127)


@given(st.lists(st.text(ASCII, max_size=20), max_size=40).map(" ".join))
def test_english_terms_are_those_that_recall_was_measured_with(text: str) -> None:
    assert document_terms(text, "english") == prototype_terms(text)


@given(st.lists(st.sampled_from([*STOP_WORDS["english"], "running", "it's", "Dogs", "x_y", "e-mail", "3.5"])))
def test_english_sentences_need_no_configured_language(words: list[str]) -> None:
    text = " ".join(["The", *words])
    assert document_terms(text) == prototype_terms(text)


ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


@given(ANY_TEXT, st.sampled_from([None, *sorted(LANGUAGES)]))
def test_any_text_has_terms_that_can_be_stored(text: str, language: str | None) -> None:
    for term in document_terms(text, language):
        assert 0 < len(term) <= 70
        assert term.encode()
    assert detect(text) in LANGUAGES


@given(ANY_TEXT)
def test_any_text_is_found_by_its_own_words(text: str) -> None:
    assert finds(text, text) == [term.word for term in query_terms(text)]


@given(st.lists(st.sampled_from(" ".join(SENTENCES.values()).split()), max_size=12).map(" ".join))
def test_mixed_languages_are_found_by_their_own_words(text: str) -> None:
    assert finds(text, text) == [term.word for term in query_terms(text)]


def test_a_long_text_is_quick() -> None:
    start = time.process_time()
    document_terms("".join(SENTENCES.values()) * 500)
    document_terms("a'" * 200_000)
    query_terms("昨天" * 50_000)
    assert time.process_time() - start < 3


@pytest.mark.parametrize("form", ["NFD", "NFKC"])
def test_long_runs_of_marks_have_the_normal_form_of_unicode(form: Literal["NFD", "NFKC"]) -> None:
    marks = "\u0301\u0316\u0f73\u0344\uff9e\u0345\u05b0\u0327"
    for run in ("é" + marks * 20, marks * 20 + "か" + marks * 9, "…" * 40 + marks, "\u0f73" * 50):
        assert normalized(form, run) == normalize(form, run)


def test_of_a_question_as_long_as_a_document_the_first_words_are_asked_for() -> None:
    asked = query_terms(" ".join(f"word{number}" for number in range(3_000)))
    assert [term.word for term in asked] == [f"word{number}" for number in range(MAX_QUERY_TERMS)]
