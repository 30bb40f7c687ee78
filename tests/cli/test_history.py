"""Commands about history: explanations of lines, commits as answers, notes and briefs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Clew
from tests.knowledge.code.repositories import git, make_repository, write

KEY = "sk-live-1234567890abcdefghij"
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
CORE = f'"""Core."""\n\nLIMIT = 3\nAPI_KEY = "{KEY}"\n\n\ndef retry(job):\n    for _ in range(LIMIT):\n        job()\n'
WHY = "Fetching failed at night (#1234)\n\nINC-42: the line drops for a minute, so three attempts are made.\n\nMore."


@pytest.fixture
def shop(tmp_path: Path, folder: Path) -> Path:
    """A repository around the folder of the commands, with a reason in its history."""
    files = {
        "src/core.py": CORE.replace("LIMIT = 3", "LIMIT = 1"),
        ".env": "SECRET=abc\n",
        "README.md": "# Shop\n\nKettles.\n",
        "CHANGELOG.md": "# Changelog\n\n## 1.0\n\n### Removed\n\n- Copyright dates in README.md are gone\n",
        "docs/decisions/0001-kettles.md": "# 1. Kettles only\n\nDate: 2026-01-05\n\n## Decision\n\nNo pots are sold.\n",
        ".gitignore": ".clew/\n",
    }
    root = make_repository(tmp_path, files)
    write(root, "src/core.py", CORE)
    git(root, "commit", "-qam", WHY)
    return root


def note(clew: Clew, content: str, kind: str, *more: str) -> str:
    told = clew("get", "history://tools/store_summary", f"content={content}", f"summary_type={kind}", *more)
    found = re.search(r"Stored as ([^\s;,]+)", told.out)
    assert found is not None, told.out + told.err
    return found[1]


# -- why a line is so ------------------------------------------------------------------------------------------


def test_no_key_of_a_line_is_shown_committed_or_not(clew: Clew, shop: Path) -> None:
    write(shop, "src/core.py", f'{CORE}TOKEN = "{TOKEN}"\n')
    committed, new = clew("blame-why", "src/core.py:4", "--json"), clew("blame-why", "src/core.py:10", "--json")
    assert KEY not in committed.out + clew("blame-why", "src/core.py:4").out
    assert TOKEN not in new.out
    assert new.json["uncommitted"] == [10]


@pytest.mark.parametrize(
    ("place", "reason"),
    [(".env:1", "left out"), (".git/config:1", "is git's own"), ("../../etc/passwd:1", "not a place")],
)
def test_files_that_are_not_shown_are_refused_with_a_reason(clew: Clew, shop: Path, place: str, reason: str) -> None:
    result = clew("blame-why", place)
    assert result.code != 0
    assert reason in result.err
    assert "abc" not in result.out + result.err


def test_a_commit_is_shown_with_its_reason_and_its_whole_subject(clew: Clew, shop: Path) -> None:
    shown = clew("blame-why", "src/core.py:3").out
    assert "Fetching failed at night (#1234)" in shown
    assert "INC-42: the line drops for a minute, so three attempts are made." in shown
    assert "More." not in shown


def test_a_list_in_the_text_of_a_commit_is_shown_as_it_was_written(clew: Clew, shop: Path) -> None:
    write(shop, "src/core.py", CORE.replace("LIMIT = 3", "LIMIT = 5"))
    git(shop, "commit", "-qam", "Five attempts\n\n* for slow_lines (#7)")
    assert "  * for slow_lines (#7)" in clew("blame-why", "src/core.py:3").lines


def test_several_lines_name_each_commit_once(clew: Clew, shop: Path) -> None:
    write(shop, "src/core.py", f"# top\n{CORE}")
    shown = clew("blame-why", "src/core.py:1-9")
    assert shown.lines[:2] == ["src/core.py:1-9", "- not committed yet: line 1"]
    assert shown.out.count("Fetching failed at night") == 1
    assert "not committed yet: the line is new" in clew("blame-why", "src/core.py:1").out


def test_a_place_is_one_as_seen_from_here_or_from_the_top(
    clew: Clew, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop / "src")
    for place in ("core.py:3", "src/core.py:3", f"{shop}/src/core.py:3"):
        assert clew("blame-why", place).lines[0] == "src/core.py:3"
    assert clew("blame-why", "../README.md:1").lines[0] == "README.md:1"


def test_a_line_beyond_the_end_is_reported_with_the_length_of_the_file(clew: Clew, shop: Path) -> None:
    assert "src/core.py:99999'. The file has 9 lines" in clew("blame-why", "src/core.py:99999").err


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("src/core.py:9-3", "'src/core.py:9-3' ends before it begins"),
        ("x\udcff:1", "argument 2: is not valid UTF-8"),
        ("a" * 5_000 + ":1", "aaa…"),
        ("a" * 5_000, "is not PATH:LINE"),
    ],
)
def test_an_error_about_a_place_is_short(clew: Clew, shop: Path, place: str, reason: str) -> None:
    result = clew("blame-why", place)
    assert result.code != 0
    assert reason in result.err
    assert len(result.err) < 500


def test_a_line_of_a_repository_within_is_not_called_new(clew: Clew, shop: Path) -> None:
    make_repository(shop / "inner", {"i.py": "x = 1\n"})
    result = clew("blame-why", "inner/i.py:1")
    assert result.code != 0
    assert "belongs to another repository, inner" in result.err


def test_a_name_with_the_mark_of_a_symbol_is_a_file(clew: Clew, shop: Path) -> None:
    write(shop, "a", "one\n")
    write(shop, "a#b.py", "two\n")
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "Odd names")
    assert clew("blame-why", "a#b.py:1").lines[0] == "a#b.py:1"
    assert clew("blame-why", "a#b.py:1", "--json").json["path"] == "a#b.py"


def test_a_place_of_strange_letters_is_refused_by_the_tool_as_well(clew: Clew, shop: Path) -> None:
    result = clew("get", "history://tools/why_line", "--params", r'{"file_path": "x\u0000", "line": 1}')
    assert "is not a place in the repository" in result.out + result.err


def test_without_git_it_says_what_it_needs(clew: Clew, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    result = clew("blame-why", "a.py:1")
    assert result.code == 1
    assert "blame-why needs git history; this folder has none" in result.err


def test_a_note_of_a_line_explains_the_lines_near_it_alone(clew: Clew, shop: Path) -> None:
    write(shop, "src/core.py", CORE + "\n" * 20 + "FAR = 1\n")
    note(clew, "Three is enough", "decision", 'code_references=["src/core.py:8"]')
    assert "Three is enough" in clew("blame-why", "src/core.py:9").out
    assert "Three is enough" not in clew("blame-why", "src/core.py:30").out


def test_an_entry_of_a_changelog_counts_only_where_its_commit_wrote_the_line(clew: Clew, shop: Path) -> None:
    write(shop, "README.md", "# Shop\n\nKettles of tin.\n")
    git(shop, "commit", "-qam", "Say of what they are")
    assert "Copyright dates" not in clew("blame-why", "README.md:3").out


# -- commits are answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question", ["INC-42", "which commit made three attempts", "why was fetching failing at night"]
)
def test_a_commit_answers_what_was_done_and_is_cited(clew: Clew, shop: Path, question: str) -> None:
    clew("index")
    sha = git(shop, "rev-parse", "HEAD")[:10]
    for shown in (clew("ask", question), clew("get", "history://tools/search_history", f"query={question}")):
        assert re.search(rf"commit {sha} \d{{4}}-\d\d-\d\d", shown.out), shown.out


def test_a_commit_made_since_and_one_that_is_gone(clew: Clew, shop: Path) -> None:
    clew("index")
    write(shop, "README.md", "# Shop\n\nPots.\n")
    git(shop, "commit", "-qam", "Sell pots\n\nZANZIBAR-7 asked for them.")
    clew("index")
    assert "Sell pots" in clew("ask", "ZANZIBAR-7").out
    git(shop, "reset", "-q", "--hard", "HEAD~1")
    clew("index")
    assert "Sell pots" not in clew("ask", "ZANZIBAR-7").out


def test_keys_in_messages_of_commits_are_masked(clew: Clew, shop: Path) -> None:
    write(shop, "README.md", "# Shop\n\nPots.\n")
    git(shop, "commit", "-qam", f"Rotate {TOKEN}\n\nThe lantern key was {KEY}.")
    clew("index")
    shown = clew("blame-why", "README.md:3").out + clew("ask", "which commit rotated the lantern key").out
    assert "lantern key was [masked]" in shown
    assert TOKEN not in shown
    assert KEY not in shown


def test_that_older_commits_are_not_read_is_said(clew: Clew, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "commits are indexed" not in clew("index").err
    monkeypatch.setattr("clew.knowledge.base.NEWEST", 2)
    assert "commits are indexed" in clew("index").err


# -- notes -----------------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("kind", "content", "question"),
    [
        ("decision", "Kettles are polished with lemon", "what did we decide about polishing kettles"),
        ("mistake", "Kettles were polished with sand", "what did we decide about polishing kettles with sand"),
        ("preference", "Short names for kettles", "what did we decide about names for kettles"),
    ],
)
def test_notes_are_found_by_a_question(clew: Clew, shop: Path, kind: str, content: str, question: str) -> None:
    note(clew, content, kind, "title=Kettles", "outcome=They shine", 'code_references=["src/core.py#retry"]')
    assert content in clew("ask", question).out


def test_how_to_note_is_reported_by_ask_and_where_nothing_was_noted(clew: Clew, shop: Path) -> None:
    assert "history://tools/store_summary" in clew("ask", "note a decision", "--agent").out
    nothing = clew("get", "history://tools/search_history", "query=zzqx")
    assert "To note something: `clew get history://tools/store_summary" in nothing.out


def test_without_a_query_the_newest_are_listed(clew: Clew, shop: Path) -> None:
    clew("index")
    assert "Kettles only" in clew("get", "history://tools/hidden/get_decisions").out
    note(clew, "The tap was left open", "mistake", "outcome=A float closes it")
    assert "A float closes it" in clew("get", "history://tools/hidden/find_failures").out


def test_code_and_what_was_noted_of_it_lead_to_each_other(clew: Clew, shop: Path) -> None:
    id = note(clew, "Three is enough", "decision", 'code_references=["src/core.py:8", "src/core.py#retry"]')
    about = clew("get", "code://tools/hidden/get_history_for_code", "file_path=src/core.py").out
    assert "Three is enough" in about
    assert "Fetching failed at night" in about
    places = clew("get", "history://tools/hidden/get_code_for_history", f"history_id={id}").out
    assert "src/core.py:8" in places
    assert "retry" in places
    marked = clew(
        "get", "history://tools/store_summary", "content=x", "summary_type=decision", 'code_references=["no.ts"]'
    )
    assert "there is no file no.ts" in marked.out


# -- briefings -------------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-22")
def test_a_briefing_tells_the_decisions_of_the_project_and_counts_in_words(clew: Clew, shop: Path) -> None:
    clew("index")
    assert "This terminal: nothing recorded yet." in clew("brief").out
    assert "Kettles only" in clew("brief").out
    for content, kind in (("One", "decision"), ("Two", "decision"), ("Three", "failure")):
        note(clew, content, kind)
    assert clew("brief").lines[0] == "This terminal: 2 decisions, 1 failure."


@pytest.mark.req("SYL-22")
def test_a_briefing_lists_decisions_that_somebody_took_and_no_lines_of_a_changelog(clew: Clew, shop: Path) -> None:
    lines = "\n".join(f"- **breaking:** Lantern {number} was removed" for number in range(1_200))
    write(shop, "CHANGELOG.md", f"# Changelog\n\n## 2.0.0 - 2099-01-01\n\n{lines}\n")
    write(shop, "docs/adr/0009-lamps.md", "# 9. Lamps stay\n\nDate: 2024-03-05\n\n## Decision\n\nLamps stay lit.\n")
    clew("index")
    note(clew, "Pots are polished", "decision")
    for shown in (clew("brief").out, clew("brief", "full").out, clew("get", "history://tools/briefing").out):
        assert "Lamps stay" in shown
        assert "Pots are polished" in shown
        assert "Lantern" not in shown
    assert "2024-03-05 Lamps stay" in clew("brief").out


def test_decision_records_without_a_day_are_listed_by_number_latest_first(clew: Clew, shop: Path) -> None:
    for number in (8, 9, 10):
        write(shop, f"docs/adr/{number:04}-x.md", f"# {number}. Rule {number}\n\n## Decision\n\nYes to {number}.\n")
    clew("index")
    assert re.findall(r"Rule (\d+)\b", clew("brief").out) == ["10", "9", "8"]


def test_nothing_that_is_derived_is_added_to_git(clew: Clew, shop: Path) -> None:
    (shop / ".gitignore").unlink()
    clew("index")
    subprocess.run(["git", "-C", str(shop), "add", "."], check=True)
    staged = git(shop, "diff", "--cached", "--name-only").splitlines()
    assert [name for name in staged if name.startswith(".clew/")] == [".clew/.gitignore", ".clew/config.toml"]
