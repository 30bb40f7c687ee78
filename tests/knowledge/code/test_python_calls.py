"""Calls in Python: values are followed through assignments, arguments, classes, containers and imports."""

from __future__ import annotations

from tests.knowledge.code.programs import callers


def test_an_alias_is_followed_to_its_function() -> None:
    found = callers("def f(): ...\ng = f\nh = g\ndef run():\n    h()\n")
    assert found == {"f": {"run"}}


def test_arguments_reach_parameters_by_place_name_and_default() -> None:
    found = callers("""
        def a(): ...
        def b(): ...
        def c(): ...
        def run(x, y=b, *, z): x(); y(); z()
        run(a, z=c)
    """)
    assert found["a"] == found["b"] == found["c"] == {"run"}


def test_starred_arguments_keep_their_places() -> None:
    found = callers("""
        def a(): ...
        def b(): ...
        def first(x, y): x()
        def second(*args, **named): args[1](); named["key"]()
        first(*[a, b])
        second(a, b, key=a)
        def both(*args, **named): first(*args); second(*args, **named)
        both(b, a)
    """)
    assert found["a"] == {"first", "second"}
    assert found["b"] == {"first", "second"}


def test_closures_and_nonlocal_names_hold_what_they_are_given() -> None:
    found = callers("""
        def f(): ...
        def outer():
            held = None
            def fill():
                nonlocal held
                held = f
            def use():
                held()
            fill()
            return use
        outer()()
    """)
    assert found["f"] == {"outer.use"}
    assert found["outer.use"] == {"<main>"}


def test_a_global_that_a_function_sets_is_seen_everywhere() -> None:
    found = callers("def f(): ...\ndef fill():\n    global g\n    g = f\ndef run():\n    g()\n")
    assert found["f"] == {"run"}


def test_a_decorator_is_called_and_what_it_returns_stands_for_the_function() -> None:
    found = callers("""
        def twice(function):
            def wrapper(*args):
                return function(*args)
            return wrapper
        @twice
        def work(): ...
        def run(): work()
    """)
    assert found == {"twice": {"<main>"}, "work": {"twice.wrapper"}, "twice.wrapper": {"run"}}


def test_a_decorator_with_arguments_is_called_and_calls() -> None:
    found = callers("""
        def repeat(times):
            def decorate(function):
                def wrapper(): function()
                return wrapper
            return decorate
        @repeat(3)
        def work(): ...
        work()
    """)
    assert found["repeat"] == found["repeat.decorate"] == {"<main>"}
    assert found["repeat.decorate.wrapper"] == {"<main>"}
    assert found["work"] == {"repeat.decorate.wrapper"}


def test_a_decorator_of_which_nothing_is_known_leaves_the_function_as_it_is() -> None:
    found = callers("""
        import functools, pytest
        @pytest.mark.slow
        @functools.lru_cache(maxsize=None)
        def work(): ...
        def log(function):
            @functools.wraps(function)
            def wrapper(): return function()
            return wrapper
        @log
        def other(): ...
        work(); other()
    """)
    assert found["work"] == {"<main>"}
    assert found["other"] == {"log.wrapper"}
    assert found["log.wrapper"] == {"<main>"}


def test_lambdas_are_functions_of_the_scope_around_them() -> None:
    found = callers("""
        def f(): ...
        def run(callback): callback()
        run(lambda: f())
        run(lambda: f)
        (lambda x: x())(f)
    """)
    assert found["<lambda1>"] == found["<lambda2>"] == {"run"}
    assert found["f"] == {"<lambda1>", "<lambda3>"}


def test_methods_are_found_in_the_order_of_c3() -> None:
    found = callers("""
        class Base:
            def m(self): ...
        class Left(Base): ...
        class Right(Base):
            def m(self): ...
        class Both(Left, Right): ...
        Both().m()
    """)
    assert found["Right.m"] == {"<main>"}
    assert "Base.m" not in found


def test_super_goes_on_in_the_order_of_the_object() -> None:
    found = callers("""
        class Base:
            def m(self): ...
        class Left(Base):
            def m(self): super().m()
        class Right(Base):
            def m(self): super(Right, self).m()
        class Both(Left, Right):
            def m(self): super().m()
        Both().m()
    """)
    assert found["Left.m"] == {"Both.m"}
    assert found["Right.m"] == {"Left.m"}
    assert found["Base.m"] == {"Left.m", "Right.m"}


def test_a_class_that_inherits_from_itself_or_in_a_circle_is_endured() -> None:
    found = callers("class A(A):\n    def m(self): self.m()\nclass B(C): ...\nclass C(B): ...\nC().m()\n")
    assert found["A.m"] == {"A.m"}


def test_attributes_of_self_hold_functions_and_objects() -> None:
    found = callers("""
        class Engine:
            def start(self): ...
        class Car:
            def __init__(self, hook):
                self.engine = Engine()
                self.hook = hook
            def drive(self):
                self.engine.start()
                self.hook()
        def notify(): ...
        class Van(Car): ...
        Van(notify).drive()
    """)
    assert found["Engine.start"] == found["notify"] == {"Car.drive"}
    assert found["Car.__init__"] == found["Van"] == {"<main>"}


def test_class_methods_static_methods_and_calls_of_instances() -> None:
    found = callers("""
        class Maker:
            @classmethod
            def make(cls): return cls()
            @staticmethod
            def help(): ...
            def __call__(self): self.help()
        maker = Maker.make()
        maker()
    """)
    assert found["Maker"] == {"Maker.make"}
    assert found["Maker.__call__"] == {"<main>"}
    assert found["Maker.help"] == {"Maker.__call__"}


def test_reading_a_property_calls_it_and_setting_calls_its_setter() -> None:
    found = callers("""
        class Box:
            @property
            def content(self): return self.inner
            @content.setter
            def content(self, value): self.inner = value
        def f(): ...
        def fill(box: Box): box.content = f
        def use(box: Box): box.content()
    """)
    assert found["Box.content"] == {"fill", "use"}
    assert found["f"] == {"use"}


def test_containers_are_followed_by_constant_key_and_place() -> None:
    found = callers("""
        def a(): ...
        def b(): ...
        table = {"a": a, "b": b}
        row = [a, b]
        def by_key(): table["a"]()
        def by_place(): row[1]()
        def by_any(key): table[key]()
        def by_get(): table.get("b")()
        def by_slice(): row[1:][0](); [one() for one in row[:2]]
    """)
    assert found["a"] == {"by_key", "by_any", "by_slice"}
    assert found["b"] == {"by_place", "by_any", "by_get", "by_slice"}


def test_the_class_of_an_object_leads_to_its_methods() -> None:
    found = callers("""
        class A:
            @classmethod
            def make(cls): return cls()
            def again(self): self.__class__.make(); type(self).make()
    """)
    assert found["A.make"] == {"A.again"}


def test_containers_that_are_filled_later_and_looped_over() -> None:
    found = callers("""
        def a(): ...
        def b(): ...
        def c(): ...
        hooks = []
        hooks.append(a)
        named = {}
        named["x"] = b
        named.update(y=c)
        def run():
            for hook in hooks: hook()
        def run_named():
            for name, hook in named.items(): hook()
            for hook in named.values(): hook()
        def run_all():
            [hook() for hook in hooks]
            for place, (one, two) in enumerate(zip(hooks, hooks)): two()
    """)
    assert found["a"] == {"run", "run_all"}
    assert found["b"] == found["c"] == {"run_named"}


def test_generators_and_iterators_of_ones_own() -> None:
    found = callers("""
        def a(): ...
        def b(): ...
        def each():
            yield a
            yield from [b]
        class Walk:
            def __iter__(self): return self
            def __next__(self): return a
        def use():
            for function in each(): function()
        def walk():
            for function in Walk(): function()
        def one(): next(each())()
    """)
    assert found["a"] == {"use", "walk", "one"}
    assert found["b"] == {"use", "one"}
    assert found["Walk.__iter__"] == found["Walk.__next__"] == {"walk"}


def test_exceptions_are_made_where_they_are_raised_and_used_where_they_are_caught() -> None:
    found = callers("""
        class Broken(Exception):
            def __init__(self): ...
            def explain(self): ...
        def fail(): raise Broken
        def run():
            try: fail()
            except (Broken, ValueError) as error: error.explain()
    """)
    assert found["Broken.__init__"] == {"fail"}
    assert found["Broken.explain"] == {"run"}


def test_with_enters_and_leaves() -> None:
    found = callers("""
        class Lock:
            def __enter__(self): return self
            def __exit__(self, *args): ...
            def use(self): ...
        def run():
            with Lock() as lock: lock.use()
    """)
    assert found["Lock.__enter__"] == found["Lock.__exit__"] == found["Lock.use"] == {"run"}


def test_built_in_functions_call_what_they_are_given() -> None:
    found = callers("""
        from functools import partial
        def a(x): ...
        def b(x): ...
        def c(x, y): ...
        def d(): ...
        def run():
            list(map(a, [1])); sorted([2], key=b); max([1, 2], key=c); partial(d)(); getattr(holder, "name")()
        class Holder: ...
        holder = Holder()
        holder.name = d
    """)
    assert all(found[name] == {"run"} for name in "abcd")


def test_names_are_found_wherever_their_scope_binds_them() -> None:
    found = callers("""
        def early(): late()
        key = lambda: late()
        def outer():
            def first(): second()
            def second(): ...
            first()
        def late(): ...
        key()
    """)
    assert found["late"] == {"early", "<lambda1>"}
    assert found["outer.second"] == {"outer.first"}


def test_annotations_say_what_a_parameter_is() -> None:
    found = callers("""
        from __future__ import annotations
        from collections.abc import Sequence
        class Node:
            def visit(self): ...
            def parent(self) -> Node | None: ...
        def one(node: Node): node.visit()
        def two(node: "Node | None" = None): node.parent().visit()
        def many(nodes: Sequence[Node]):
            for node in nodes: node.visit()
        async def later() -> Node: ...
        async def wait():
            node = await later()
            node.visit()
    """)
    assert found["Node.visit"] == {"one", "two", "many", "wait"}


def test_a_variable_that_may_hold_nearly_anything_is_taken_to_hold_nothing() -> None:
    classes = "".join(f"class C{number}:\n    def m(self): ...\n" for number in range(40))
    made = ", ".join(f"C{number}()" for number in range(40))
    found = callers(f"{classes}def use(thing): thing.m()\nfor one in [{made}]: use(one)\nC0().m()\n")
    assert found["C0.m"] == {"<main>"}
    assert "C1.m" not in found


def test_a_long_table_of_functions_is_followed_whole() -> None:
    functions = "".join(f"def f{number}(): ...\n" for number in range(40))
    table = ", ".join(f"'{number}': f{number}" for number in range(40))
    found = callers(f"{functions}TABLE = {{{table}}}\ndef run(name): TABLE[name]()\n")
    assert all(found[f"f{number}"] == {"run"} for number in range(40))
