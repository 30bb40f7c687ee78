"""The words in which a question is put, which say nothing of its subject, and words that are one in a subject. Data: a
word belongs here only if no two questions that want different things differ by it."""

from __future__ import annotations

from clew.knowledge.resolving.phrases import Intent

_ORDINARY_WORDS = """
    code codebase function functions method methods class classes file files module modules project repository repo
    implementation implemented implement implements defined define defines definition located location locations logic
    work works worked working handle handles handled happen happens happened happening find locate explain
    explained describe walk show look looked understand remember remind similarly call calls called calling callers
    caller invokes invoked responsible part piece exactly actually really basically generally usually normally typically
    somewhere anywhere currently recently recent our ours exist exists deal deals dealt point detail details hood source
    sources maybe earlier previously lives live hold holds contain contains sits curious
"""
ORDINARY = frozenset(_ORDINARY_WORDS.split())
"""Words of asking, whatever is asked for."""

_ASKING_WORDS = {
    Intent.LOCATE: "list done",
    Intent.PATTERN: """strategy strategies approach approaches pattern patterns convention conventions framework
        frameworks library libraries style general comes do manage managed practice rule rules""",
    Intent.EXPLAIN: "purpose design internals require requires overview idea mechanism summary summarise summarize",
    Intent.GENERAL: "list number count every available total",
    Intent.HISTORICAL: """decide decided decision decisions chose chosen choose reason reasons past rationale motivation
        picked pick back time ago history ever already last instead approach ended""",
    Intent.ACTIVITY: """change changes changed commit commits modification modifications latest last touched edited
        modified history activity originally edits updates wrote written""",
    Intent.OUTCOME: """result results outcome status work help helped succeed succeeded successful successfully success
        fail failed failure pass passed turn turned current finished finish done complete completed yet found""",
    Intent.SIMILAR: "similar comparable before earlier past like ever resembles seen",
}
ASKING = {intent: frozenset(words.split()) for intent, words in _ASKING_WORDS.items()}
"""Words of asking for one thing, which are a subject elsewhere: a test may fail, and a change may have an outcome."""

_SAME_WORDS = """
    config configuration configure conf
    env environment
    var vars variable
    db database
    dir directory folder
    param params parameter
    arg args argument
    msg message
    repo repository
    doc docs documentation
    color colour
    behavior behaviour
    delete remove deletion removal erase
    create build construct
    start launch
    fix solve
    check verify
    fail failure
    edit modify
    need require
    choose pick
    number amount num
    string str
    integer int
    dictionary dict
    text txt
    image img
    character char
    boolean bool
    object obj
    calculate compute
    fetch retrieve retrieval
    transform transformation
    install installation
    register registration
    occurrence occurence occurance
"""
SAME_WORDS = tuple(tuple(line.split()) for line in _SAME_WORDS.strip().splitlines())
"""One word after the other for the same; the first stands for all. Names are not touched: `build_user` is another
function than `create_user`."""
