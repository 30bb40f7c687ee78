"""What the place of a call says by itself: the name by which a method may be guessed, and the constant that tells
what is meant."""

from __future__ import annotations

import ast

from clew.knowledge.code.python_building import constant_key
from clew.knowledge.code.python_scopes import Scope
from clew.knowledge.code.python_summary import Key


def told_apart_by(node: ast.Call, scope: Scope) -> Key:
    """The constant that says what is meant: the name in `getattr(thing, name)`, the key in `thing.get(key)`."""
    place = 0 if isinstance(node.func, ast.Attribute) else 1
    return constant_key(node.args[place], scope) if len(node.args) > place else None


def guessable_name(called: ast.expr, scope: Scope) -> str:
    """The name of a method by which it may be guessed: not of an imported module; `self.` before those of one's own."""
    if not isinstance(called, ast.Attribute):
        return ""
    root = called.value
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return called.attr
    binder = scope.binder(root.id)
    if binder is not None and root.id in binder.imported:
        return ""
    method = scope.method_scope()
    is_own = root is called.value and method is not None and method.names.get(root.id) == method.receiver
    return f"self.{called.attr}" if is_own else called.attr
