"""Shell commands that hide a failure, or that run no test at all. A receipt of such a command proves nothing."""

from __future__ import annotations

import re

_MASKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"\|\|\s*(?:true|:|exit\s+0|/bin/true|echo\b|printf\b|\(?\s*exit\s+0)", "ignores a failure after `||`"),
        (r"\|\|\s*$", "ends with `||`"),
        (r"(?:;|&&|\n)\s*(?:true|:|exit\s+0|/bin/true)\s*;?\s*$", "ends with a command that always succeeds"),
        (r"(?:^|[;&|\n]\s*)set\s+\+(?:e|o\s+errexit|o\s+pipefail)", "switches off the check of errors"),
        (
            r"--exit-zero\b|--exit-code[= ]0\b|--no-error-on-unmatched\b|--exit-zero-even-if-changed",
            "exits with 0 always",
        ),
        (r"--suppress-no-test-exit-code|--passWithNoTests\b|--pass-with-no-tests\b", "passes without a test"),
        (r"continue-on-error", "continues on an error"),
        (
            r"--collect-only\b|(?:^|\s)--co\b|--no-run\b|--list-?tests?\b|--dry-run\b.*\bpytest|--setup-(?:only|plan)\b",
            "runs no test",
        ),
        (r"\bpytest\b.*--(?:deselect|ignore(?:-glob)?)[= ]", "leaves tests out"),
        (r"--maxfail[= ]0\b.*\|\|", "ignores failures"),
        (r"(?:^|[;&|\n]\s*)(?:nohup\s|.*[^&>]&\s*$)", "runs in the background"),
        (r"\btrap\b.*\b(?:EXIT|0|ERR)\b", "changes its exit code in a trap"),
        (r"^\s*(?:true|:|exit\s+0|echo\b[^;&|]*|printf\b[^;&|]*)\s*$", "checks nothing"),
        (r"^\s*!(?!\s*(?:gofmt|gofumpt)\b)", "succeeds when its command fails"),
        (
            r"(?:^|[;&|\n]\s*)(?:if|while|until)\s.*\b(?:pytest|test|check|lint|ruff|mypy)\b",
            "tests a failure with `if`",
        ),
        (r"-p\s+no:(?:python|main|terminal|pytest_recorder|clew-recorder)\b", "switches off a part of pytest"),
    )
)
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_PIPEFAIL = re.compile(r"set\s+-\w*o?\s*pipefail|set\s+-o\s+pipefail|set\s+-\w*eo\s+pipefail")
_LAST = re.compile(r"(?:;|\n)\s*(?P<last>[^;\n]+)$")


def find_mask(command: str) -> str:
    """How a command hides a failure, worded as the end of a sentence; empty if it does not."""
    plain = _without_quoted_operators(command)
    for pattern, reason in _MASKS:
        if pattern.search(plain):
            return reason
    if _PIPE.search(plain) and not _PIPEFAIL.search(plain) and not plain.lstrip().startswith("! gof"):
        return "loses the exit code in a pipe without pipefail"
    if (match := _LAST.search(plain)) and not re.search(r"set\s+-\w*e", plain) and match["last"].strip():
        return "loses the exit code of all commands but the last"
    return ""


def _without_quoted_operators(command: str) -> str:
    """The command without comments and without quoted operators, which are plain text for the shell. Quoted words stay,
    because a quoted option is still an option. Scripts for `sh -c` and commands in `$(…)` stay complete."""
    if re.search(r"\b(?:ba|z|da)?sh\s+-\w*c\b|\beval\b", command):
        return command.replace("'", " ").replace('"', " ")
    plain = _QUOTED.sub(_without_operators, command)
    return re.sub(r"(?:^|\s)#.*$", "", plain, flags=re.MULTILINE).strip()


def _without_operators(quoted: re.Match[str]) -> str:
    text = quoted[0]
    is_run = text[0] == '"' and ("$(" in text or "`" in text)
    return text if is_run else re.sub(r"[;&|#\n]", " ", text)
