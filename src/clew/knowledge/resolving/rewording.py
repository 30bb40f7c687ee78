"""Turns of phrase that say the same: `see whether`, `find out if` and `check that`; `two` and `2`; `data frame` and
`dataframe`. Names are left as they are written. A list that something is put into is no wish to have things listed: it
becomes `lists`, which is no word of asking."""

from __future__ import annotations

import re
from functools import lru_cache

CONTAINER = r"(?:lists?|sets?|dicts?|dictionar(?:y|ies)|arrays?|tuples?|queues?|heaps?|vectors?|hash ?maps?)"
_OF_A = r"(?:of|in|from|to) (?:(?:a|an|the|this|that|our|each|every) )?(?:\w+ )?"
_GOAL = r"(?= [^.,;?!]+ (?:to|into)\b)"

_PHRASES = (
    (r"(?:see|test|tell|know|determine|find out|detect|check|verify) (?:if|whether|that)", "check"),
    (r"check for whether", "check"),
    (rf"(?:items?|entr(?:y|ies)|members?)(?= {_OF_A}{CONTAINER}\b)", "element"),
    (rf"(?:(?:turn|cast|convert)(?:s|ed|ing)?|change|changing){_GOAL}", "convert"),
    (r"pars(?:e|es|ed|ing)(?= [^.,;?!]+ into\b)", "convert"),
    (r"load(?:s|ed|ing)?(?= (?:[^.,;?!]* )?files?\b| [^.,;?!]+ (?:from|into|to)\b)", "read"),
    (r"(?:read|load|get)(?:s|ing)? (?:the |all )?contents? (?:of|from)", "read"),
    (r"(?:is|are) (?:the same|equal|identical)|(?:the )?same(?=\W*\Z)", "equal"),
    (r"get(?:ting)? rid of", "remove"),
    (r"mak(?:e|es|ing)(?= (?:(?:a|an|the|new|our) )*(?:director(?:y|ies)|dirs?|folders?)\b)", "create"),
    (r"((?:remov|delet)(?:e|es|ed|ing) (?:[\w-]+ ){1,4}?)in", r"\1from"),
    (r"([\w-]+) at (?:the )?end of (?:the |a |each |every )?lines?", r"trailing \1"),
    (r"(a|an|the|this|each|in|to|into|as|from|nested|linked|sorted) list(?! of\b)", r"\1 lists"),
    (r"end of (?:the |a )?file(?: (?:is |was )?reached)?", "eof"),
    (r"(?:a |the )?(?:good|best|right|easy|easiest|simple|simplest|proper|clean) ways? (?:to|of|for)", ""),
    (r"(?:a |the )?(?:scripts?|programs?|code) (?:to|that|which)", ""),
    (r"writ(?:e|ing) (?:a |the )?(?:functions?|methods?) (?:to|that|which)(?! (?:a|an|the|our)\b)", ""),
)
_COMPOUNDS = """
    data frame, data type, data set, data base, file name, white space, lower case, upper case, time stamp, time zone,
    time out, end point, work flow, work space, back end, front end, key word, place holder, check box, check sum,
    meta data, sub string, sub process, sub class, sub module, multi line, user name, hash map, call back, thread pool,
    run time, set up, code base, web hook, web socket, name space, log file, stack trace, break point, drop down
"""
_PAIRS = tuple(tuple(pair.split()) for pair in _COMPOUNDS.replace("\n", " ").split(","))
_NUMBER_WORDS = "two three four five six seven eight nine ten"
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split(), 2)}

_RULES = tuple((re.compile(rf"(?<![\w.])(?:{pattern})(?![\w(])", re.IGNORECASE), said) for pattern, said in _PHRASES)
_JOINED = re.compile(
    rf"(?<![\w.])(?:{'|'.join(rf'{one}[ -]({two}s?)' for one, two in _PAIRS)})(?![\w(])", re.IGNORECASE
)
_NUMBER = re.compile(rf"(?<![\w.-])(?:{'|'.join(_NUMBERS)})(?![\w-])", re.IGNORECASE)


@lru_cache(1 << 10)
def reword(question: str) -> str:
    """The question with one wording for each of these; what it is about stays as it is."""
    question = _JOINED.sub(lambda found: re.sub(r"[ -]", "", found[0]), question)
    question = _NUMBER.sub(lambda found: _NUMBERS[found[0].lower()], question)
    for pattern, said in _RULES:
        question = pattern.sub(said, question)
    return question
