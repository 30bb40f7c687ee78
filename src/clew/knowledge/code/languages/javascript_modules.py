"""Imports and exports of JavaScript: `import`, `export … from`, `require` and `import()`. An export under another name
is an import from the file itself, with an empty module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.walker import Handler, Walker, named_at

if TYPE_CHECKING:
    from tree_sitter import Node


def _import(walk: Walker, node: Node, start: int) -> bool:
    source, clause = node.child_by_field_name("source"), named_at(node)
    if clause is not None and clause.type == "import_require_clause":
        source, alias = clause.child_by_field_name("source"), named_at(clause)
        if source is not None and alias is not None:
            walk.add_import(_string(walk, source), "", walk.text(alias), node)
        return False
    if source is None:
        return False
    module = _string(walk, source)
    if clause is None or clause.type != "import_clause":
        walk.add_import(module, "", "", node)
        return False
    for each in clause.named_children:
        if each.type == "identifier":
            walk.add_import(module, "default", walk.text(each), each)
        elif each.type == "namespace_import" and (alias := named_at(each)) is not None:
            walk.add_import(module, "", walk.text(alias), each)
        else:
            _import_listed(walk, module, each)
    return False


def _import_listed(walk: Walker, module: str, listed: Node) -> None:
    for each in listed.named_children:
        name, alias = each.child_by_field_name("name"), each.child_by_field_name("alias")
        if name is not None and (module or alias is not None):
            walk.add_import(module, _string(walk, name), _string(walk, alias), each)


def _export(walk: Walker, node: Node, start: int) -> bool:
    source = node.child_by_field_name("source")
    module = _string(walk, source)
    is_listed = False
    for each in node.named_children:
        if each.type == "export_clause":
            is_listed = True
            _import_listed(walk, module, each)
        elif each.type == "namespace_export" and (alias := named_at(each)) is not None:
            is_listed = True
            walk.add_import(module, "", _string(walk, alias), node)
    if is_listed:
        return False
    if source is not None:
        walk.add_import(module, "*", "", node)
        return False
    _export_default(walk, node)
    return True


def _export_default(walk: Walker, node: Node) -> None:
    if all(each.type != "default" for each in node.children[:3]):
        return
    value = node.child_by_field_name("value") or node.child_by_field_name("declaration")
    name = value.child_by_field_name("name") if value is not None and value.type != "identifier" else value
    if name is not None and (target := walk.pure_target(name)):
        walk.add_import("", target.decode("utf-8", "replace"), "default", node)


def is_import(walk: Walker, node: Node, function: Node) -> bool:
    """Whether a call is `require` or `import()`. It is recorded as an import, unless a declaration was."""
    module = required_module(walk, node)
    if module and node.start_byte not in walk.entered:
        walk.add_import(module, "", "", node)
    if module:
        walk.claim(function)
    return bool(module)


def required_module(walk: Walker, value: Node) -> str:
    """The module in `require("m")`, `await import("m")` or `require("m").name`; else empty."""
    if value.type == "member_expression":
        value = value.child_by_field_name("object") or value
    if value.type == "await_expression":
        value = named_at(value) or value
    function = value.child_by_field_name("function") if value.type == "call_expression" else None
    if function is None or walk.raw(function)[:8] not in (b"require", b"import"):
        return ""
    string = named_at(value.child_by_field_name("arguments"))
    return _string(walk, string) if string is not None and string.type == "string" else ""


def import_required(walk: Walker, node: Node, name: Node, value: Node, module: str) -> None:
    """Record the names that a declaration takes from a required module."""
    is_wrapped = value.type in ("member_expression", "await_expression")
    walk.entered.add(((named_at(value) if is_wrapped else None) or value).start_byte)
    if name.type == "identifier":
        taken = value.child_by_field_name("property") if value.type == "member_expression" else None
        walk.add_import(module, walk.text(taken), walk.text(name), node)
        return
    for each in name.named_children:
        key, bound = each.child_by_field_name("key"), each.child_by_field_name("value")
        if key is not None and bound is not None:
            walk.add_import(module, walk.text(key), walk.text(bound), node)
        elif each.type == "shorthand_property_identifier_pattern":
            walk.add_import(module, walk.text(each), "", node)


def _string(walk: Walker, node: Node | None) -> str:
    return walk.text(node).strip("'\"`")


MODULE_TABLE: dict[str, Handler] = {"import_statement": _import, "export_statement": _export}
