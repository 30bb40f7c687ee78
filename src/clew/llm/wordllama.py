"""The default embedder: WordLlama's 256 dimensions, a table of one vector per token, averaged.

Only two files of the `wordllama` package are read, never its code. A wheel of Clew carries them; a checkout reads them
from the installed package. Vectors equal its own `embed(norm=True)`, several times faster: no padding, and the tokens
of a word are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from clew.errors import ConfigError

if TYPE_CHECKING:
    from clew.llm.token_table import TokenIds, TokenTable

OWN_FILES = Path(__file__).parent / "wordllama_files"
"""The folder of the files in a wheel of Clew."""
_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"

_BLOCK = 256


class WordLlamaEmbedder:
    """Unit vectors of 256 numbers. A text without tokens gets a zero vector, which means that it has no vector.

    Thread-safe. The first call loads the weights, and raises ConfigError if they are not installed.
    """

    name = "wordllama-256"
    dimension = 256

    def __init__(self) -> None:
        self._lock = Lock()
        self._model: TokenTable | None = None

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text as little-endian float32. The same text always gives the same bytes,
        independent of the other texts."""
        model = self._loaded()
        return [vector for at in range(0, len(texts), _BLOCK) for vector in model.embed(texts[at : at + _BLOCK])]

    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """Return the token ids of each text."""
        model = self._loaded()
        return [ids for at in range(0, len(texts), _BLOCK) for ids in model.tokens(texts[at : at + _BLOCK])]

    def _loaded(self) -> TokenTable:
        if self._model is None:
            # numpy and the tokenizer take longer to load than a command that embeds nothing takes to run
            from clew.llm.token_table import TokenTable

            with self._lock:
                folder = find_weights()
                self._model = self._model or TokenTable(folder / _WEIGHTS, folder / _TOKENIZER)
        return self._model


def find_weights() -> Path:
    """The folder of the files: Clew's own, else that of the installed `wordllama`, found without importing it. Raises
    ConfigError."""
    spec = find_spec("wordllama")
    for folder in (OWN_FILES, *((spec.submodule_search_locations or ()) if spec else ())):
        if (Path(folder) / _WEIGHTS).is_file() and (Path(folder) / _TOKENIZER).is_file():
            return Path(folder)
    raise ConfigError("the weights of WordLlama are not installed: pip install wordllama")
