"""What a file of JavaScript brings in and gives out: `import`, `export … from`, `require` and `import()`. What is given
out under another name is an import of the file itself, with no module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.grammar import Handler
from clew.knowledge.code.languages.nodes import named_at
from clew.knowledge.code.languages.walker import Walk

if TYPE_CHECKING:
    from tree_sitter import Node


def _import(walk: Walk, node: Node, start: int) -> bool:
    source = node.child_by_field_name("source")
    clause = named_at(node)
    if clause is not None and clause.type == "import_require_clause":
        source, alias = clause.child_by_field_name("source"), named_at(clause)
        if source is not None and alias is not None:
            walk.bring(_string(walk, source), "", walk.text(alias), node)
        return False
    if source is None:
        return False
    module = _string(walk, source)
    if clause is None or clause.type != "import_clause":
        walk.bring(module, "", "", node)
        return False
    for each in clause.named_children:
        if each.type == "identifier":
            walk.bring(module, "default", walk.text(each), each)
        elif each.type == "namespace_import" and (alias := named_at(each)) is not None:
            walk.bring(module, "", walk.text(alias), each)
        else:
            _bring_listed(walk, module, each)
    return False


def _bring_listed(walk: Walk, module: str, listed: Node) -> None:
    for each in listed.named_children:
        name, alias = each.child_by_field_name("name"), each.child_by_field_name("alias")
        if name is not None and (module or alias is not None):
            walk.bring(module, _string(walk, name), _string(walk, alias) if alias is not None else "", each)


def _export(walk: Walk, node: Node, start: int) -> bool:
    source = node.child_by_field_name("source")
    module = _string(walk, source) if source is not None else ""
    is_listed = False
    for each in node.named_children:
        if each.type == "export_clause":
            is_listed = True
            _bring_listed(walk, module, each)
        elif each.type == "namespace_export" and (alias := named_at(each)) is not None:
            walk.bring(module, "", _string(walk, alias), node)
            is_listed = True
    if source is not None and not is_listed:
        walk.bring(module, "*", "", node)
    if source is None and not is_listed:
        _export_default(walk, node)
    return source is None and not is_listed


def _export_default(walk: Walk, node: Node) -> None:
    if all(each.type != "default" for each in node.children[:3]):
        return
    value = node.child_by_field_name("value") or node.child_by_field_name("declaration")
    name = value.child_by_field_name("name") if value is not None and value.type != "identifier" else value
    if name is not None and (target := walk.pure_target(name)):
        walk.bring("", target.decode("utf-8", "replace"), "default", node)


def take_call_import(walk: Walk, node: Node, function: Node) -> bool:
    """Whether a call is one of `require` or `import()`, which is then an import, unless a declaration was."""
    module = required_module(walk, node)
    if module and node.start_byte not in walk.opened:
        walk.bring(module, "", "", node)
    if module:
        walk.skips.add(function.start_byte)
    return bool(module)


def required_module(walk: Walk, value: Node) -> str:
    """The module in `require("m")`, `await import("m")` or `require("m").name`; else nothing."""
    if value.type == "member_expression":
        value = value.child_by_field_name("object") or value
    if value.type == "await_expression":
        value = named_at(value) or value
    function = value.child_by_field_name("function") if value.type == "call_expression" else None
    if function is None or walk.raw(function)[:8] not in (b"require", b"import"):
        return ""
    arguments = value.child_by_field_name("arguments")
    string = named_at(arguments) if arguments is not None else None
    return _string(walk, string) if string is not None and string.type == "string" else ""


def bring_required(walk: Walk, node: Node, name: Node, value: Node, module: str) -> None:
    """The names that a declaration takes from a required module."""
    taken = value.child_by_field_name("property") if value.type == "member_expression" else None
    call = value
    if value.type in ("member_expression", "await_expression"):
        call = named_at(value) or value
    walk.opened.add(call.start_byte)
    if name.type == "identifier":
        walk.bring(module, walk.text(taken) if taken is not None else "", walk.text(name), node)
        return
    for each in name.named_children:
        key, bound = each.child_by_field_name("key"), each.child_by_field_name("value")
        if key is not None and bound is not None:
            walk.bring(module, walk.text(key), walk.text(bound), node)
        elif each.type == "shorthand_property_identifier_pattern":
            walk.bring(module, walk.text(each), "", node)


def _string(walk: Walk, node: Node) -> str:
    return walk.text(node).strip("'\"`")


MODULE_TABLE: dict[str, Handler] = {"import_statement": _import, "export_statement": _export}
