"""Words are split into the same tokens with and without the tokenizer."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.llm import token_table
from clew.llm.vocabulary import TokenVocabulary
from clew.llm.wordllama import _TOKENIZER, WordLlamaEmbedder, find_weights

TOKENIZER = token_table._open_tokenizer(find_weights() / _TOKENIZER)
VOCABULARY = TokenVocabulary(find_weights() / _TOKENIZER)
WORDS = st.text(st.characters(exclude_characters=" \n▁", codec="utf-8"), max_size=20)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", " "]), WORDS | st.sampled_from(["check_array", 'say"', "C:\\temp", '\\"', "\\r"])
        )
    )
)
def test_the_vocabulary_cuts_words_as_the_tokenizer_does(pairs: list[tuple[str, str]]) -> None:
    words = [space + word for space, word in pairs if word and word not in ("<s>", "</s>", "<unk>")]
    assert VOCABULARY.has_simple(words)
    ids = TOKENIZER.encode("".join(f"{word}\n" for word in words)) if words else []
    assert [id for word in words for id in (*VOCABULARY.tokens(word), VOCABULARY.newline)] == list(ids)


def test_a_question_has_the_same_vector_before_and_after_the_tokenizer_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = "where does `validate(x)` — the naïve one — check  for 日本語?"
    first = WordLlamaEmbedder().embed([question])
    monkeypatch.setattr(token_table, "_FEW_WORDS", 0)
    assert WordLlamaEmbedder().embed([question]) == first


def test_a_vocabulary_in_another_form_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "tokenizer.json"
    place.write_text('{"model": {"vocab": {"a": 7}, "merges": []}}')
    with pytest.raises(ValueError, match="one a line"):
        TokenVocabulary(place)
