"""Ruby. A bare name that is not a local variable is a reference, though it may be a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages import walker
from clew.knowledge.code.languages.fact_builder import Role
from clew.knowledge.code.languages.walker import Handler, LanguageTable, Walker
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_QUERY = """
(class) @open_class
(module) @open_module
[(method) (singleton_method)] @def
(superclass [(constant) (scope_resolution)] @base)
(call) @call
(assignment left: (constant)) @constant
(program (assignment left: (identifier)) @value)
(assignment left: (identifier) @bind)
(assignment left: (left_assignment_list (identifier) @bind))
(method_parameters (_) @bind)
(block_parameters (_) @bind)
(lambda_parameters (_) @bind)
(exception_variable (identifier) @bind)
[(block) (do_block) (lambda)] @anonymous
[(scope_resolution) (constant)] @type
(identifier) @name
(comment) @comment
"""
_PATTERNS = "optional_parameter keyword_parameter splat_parameter hash_splat_parameter block_parameter"
_MIXINS = frozenset((b"include", b"extend", b"prepend"))
_ACCESSORS = frozenset((b"attr_accessor", b"attr_reader", b"attr_writer"))
_REQUIRES = frozenset((b"require", b"require_relative", b"load", b"autoload"))


def _open(kind: SymbolKind, role: Role) -> Handler:
    def handle(walk: Walker, node: Node, start: int) -> None:
        name = node.child_by_field_name("name")
        if name is None:
            return
        walk.claim(name)
        is_method = kind == "function" and walk.scope.role != "function" and walk.scope.name
        head = node.child_by_field_name("parameters") or node.child_by_field_name("superclass") or name
        # without a body the signature ends at the word that ends the definition
        until = node.child_by_field_name("body") or head.next_sibling
        walk.enter(walk.define("method" if is_method else kind, walk.label(name), node, until=until), node, role)

    return handle


def _call(walk: Walker, node: Node, start: int) -> None:
    """`require`, `include` and `attr_reader` are methods of Ruby with a meaning of their own."""
    method, arguments = node.child_by_field_name("method"), node.child_by_field_name("arguments")
    name = walk.raw(method) if method is not None and node.child_by_field_name("receiver") is None else b""
    given = arguments.named_children if arguments is not None else []
    if name in _REQUIRES and given:
        _require(walk, node, name, given)
    elif walk.scope.role == "function" or name not in _MIXINS | _ACCESSORS:
        walker.call(walk, node, start)
        return
    for each in given if name in _MIXINS else ():
        walk.relate("inherit", walk.pure_target(each), each)
        walk.claim(each)
    for each in given if name in _ACCESSORS else ():
        walk.define_value(walk.text(each).lstrip(":"), node, is_constant=False)
    walk.claim(method)


def _require(walk: Walker, node: Node, name: bytes, given: list[Node]) -> None:
    if given[-1].type == "string":
        path = walk.label(given[-1])
        if name == b"require_relative" and not path.startswith("."):
            path = f"./{path}"
        walk.note_import(path, walk.text(given[0]).lstrip(":") if name == b"autoload" else "", "", node)


TABLES = {
    "ruby": LanguageTable(
        _QUERY,
        members={"call": ("receiver", "method"), "scope_resolution": ("scope", "name")},
        calls={"call": "method"},
        wrappers={"parenthesized_statements": ""},
        names=("identifier", "constant"),
        patterns=frozenset(_PATTERNS.split()),
        own=(b"self.",),
        builtins=frozenset(b"self super nil true false private protected public".split()),
        handlers={
            "open_class": _open("class", "class"),
            "open_module": _open("module", "class"),
            "def": _open("function", "function"),
            "call": _call,
        },
    )
}
