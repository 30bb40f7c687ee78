"""Existing components are found by a need in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import InvalidInput
from clew.knowledge.project.components import Prop, find_component
from tests.knowledge.project.samples import PYTHON, REACT, line_at, project


@pytest.mark.req("SYL-103")
async def test_a_modal_is_found_for_a_confirmation_dialog(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        answer = await find_component(code, "confirmation dialog", "ui")
    assert answer.found
    modal = answer.matches[0]
    assert (modal.name, modal.type, modal.path) == ("ConfirmModal", "ui", "src/components/confirm-modal.tsx")
    assert "function ConfirmModal" in line_at(REACT, modal.source)
    assert modal.description == "Asks before something is done that cannot be undone."
    assert list(modal.props) == [
        Prop(name="title", type="string"),
        Prop(name="message", type="string"),
        Prop(name="onConfirm", type="() => void"),
        Prop(name="onCancel", type="() => void", required=False),
        Prop(name="confirmText", type="string", required=False),
        Prop(name="variant", type="'danger' | 'warning' | 'info'", required=False),
    ]
    assert modal.variants == ["danger", "warning", "info"]
    assert modal.usage_example.startswith('<ConfirmModal\n          title="Delete?"')
    assert modal.usage_example.endswith("/>")
    assert "<ConfirmModal" in line_at(REACT, modal.usage_source)
    assert {"ui", "confirm", "modal", "dialog"} <= set(modal.tags)


@pytest.mark.req("SYL-103")
async def test_a_missing_thing_is_not_found(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        for need in ("video player", "blockchain wallet", "date picker", "order printer"):
            answer = await find_component(code, need)
            assert (answer.found, list(answer.matches)) == (False, []), need
            assert answer.suggestion
        assert not (await find_component(code, "confirmation dialog", "hook")).found


@pytest.mark.req("SYL-103")
async def test_hooks_and_utilities_are_found_with_their_parameters(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        hook = (await find_component(code, "session hook", "hook")).matches[0]
        price = (await find_component(code, "currency formatting", "utility")).matches[0]
    assert (hook.name, hook.type) == ("useSession", "hook")
    assert [(prop.name, prop.required) for prop in hook.props] == [("initialName", False)]
    assert price.name == "formatPrice"
    assert [(prop.name, prop.type, prop.required) for prop in price.props] == [
        ("amount", "number", True),
        ("currency", "string", False),
    ]


@pytest.mark.req("SYL-103")
async def test_parts_of_python_are_utilities_and_patterns(tmp_path: Path) -> None:
    async with project(tmp_path, PYTHON) as code:
        rates = (await find_component(code, "fetch exchange rates")).matches[0]
        entry = (await find_component(code, "ledger entry", "pattern")).matches[0]
        errors = (await find_component(code, "entry error", "pattern")).matches[0]
    assert (rates.name, rates.type) == ("fetch_rates", "utility")
    assert (errors.name, errors.type, errors.source) == ("EntryError", "pattern", "ledger/money_types.py:1")
    assert [prop.name for prop in entry.props] == ["entry_name", "posted_at"]
    assert list(errors.props) == []
    assert errors.usage_example == 'raise EntryError("no entry") from error'


@pytest.mark.req("SYL-103")
async def test_a_general_part_is_found_and_one_for_something_else_is_not(tmp_path: Path) -> None:
    files = {
        "src/base-modal.tsx": "export const BaseModal = () => <div />\n",
        "src/image-modal.tsx": "export const ImageModal = () => <div />\n",
        "src/middleware/cors/index.ts": "export const cors = (origin: string) => origin\n",
    }
    async with project(tmp_path, files) as code:
        answer = await find_component(code, "confirmation dialog")
        cors = await find_component(code, "cors middleware")
    assert [each.name for each in answer.matches] == ["BaseModal"]
    assert [each.name for each in cors.matches] == ["cors"]


async def test_a_need_without_words_is_refused(tmp_path: Path) -> None:
    async with project(tmp_path, {"a.py": "def run():\n    pass\n"}) as code:
        with pytest.raises(InvalidInput, match="need"):
            await find_component(code, "  ?! ")


async def test_a_part_that_was_just_renamed_is_found_by_its_new_name_only(tmp_path: Path) -> None:
    async with project(tmp_path, {"a.py": "def send_mail():\n    pass\n"}) as code:
        assert (await find_component(code, "send mail")).found
        (Path(code.tree.root) / "a.py").write_text("def read_feed():\n    pass\n")
        await code.refresh()
        assert not (await find_component(code, "send mail")).found
        assert (await find_component(code, "read feed")).found


async def test_keys_and_hostile_heads_are_no_problem(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 10
    files = {
        "x/modal.tsx": f"export function BigModal({{ a = '{key}', {'b' * 5_000} }}: " + "<" * 2_000 + "\n",
        "x/other.tsx": f"export const SmallModal = memo(() => <p title='{key}'/>)\n",
    }
    async with project(tmp_path, files) as code:
        answer = await find_component(code, "modal dialog")
    assert answer.found
    assert key not in repr(answer)
