"""Optimization models of optical and direct-connect interconnects, solved by any solver and certified.

``import opticoll as oc`` is the public interface. ``__init__.pyi`` lists it, for editors and type checkers and here;
extensions add their functions. Each name is loaded when it is first used.
"""


def _homes() -> dict[str, str]:
    """Public name -> its module: that from which the stub file imports it, or which an extension names."""
    import ast
    from pathlib import Path

    from opticoll.extensions import extensions

    lines = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    imports = (line for line in lines if isinstance(line, ast.ImportFrom))
    homes = {name.name: line.module or "" for line in imports for name in line.names if name.name != "*"}
    for target in (target for one in extensions() for target in one.functions):
        homes[target.partition(":")[2]] = target.partition(":")[0]
    return dict(sorted(homes.items()))


def __getattr__(name: str) -> object:
    from importlib import import_module  # inside, so that completion does not offer it
    from pathlib import Path
    from types import FunctionType

    if Path(__file__).with_name(f"{name}.py").exists():  # from opticoll import plugins
        return import_module(f"opticoll.{name}")
    homes = _homes()
    if name == "__all__":
        return list(homes)
    if name not in homes:
        from opticoll.nearest_names import nearest

        msg = f"module 'opticoll' has no attribute {name!r}; {nearest(name, homes)}"
        raise AttributeError(msg, name=name, obj=None)
    value = getattr(import_module(homes[name]), name)
    if isinstance(value, FunctionType):
        value = import_module("opticoll.arguments").flags_checked(value)
    if homes[name].startswith("opticoll."):  # those of a plug-in change with its file
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(_homes())
