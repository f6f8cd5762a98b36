"""Sphinx configuration: builds the site from docstrings, notebooks and README."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
GENERATED = DOCS / "generated"
LAYERS = ("opticoll.instances", "opticoll.formulations", "opticoll.solvers", "opticoll.analysis")
sys.path[:0] = [str(ROOT / "src"), str(DOCS), str(ROOT / "notebooks")]

project = "opticoll"
author = "The opticoll developers"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser", "sphinx-mathjax-offline"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "opticoll"
html_static_path = ["static"]
html_css_files = ["site.css"]
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
myst_enable_extensions = ["amsmath", "dollarmath", "html_image"]
# "100 $ and 200 $" is not mathematics.
myst_dmath_allow_space = False
myst_heading_anchors = 3
# Types are written by their short names, which several modules may share.
suppress_warnings = ["myst.header", "ref.python"]
python_use_unqualified_type_names = True


def verbatim(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep the mathematics of docstrings unchanged.

    The body of a module's docstring becomes one literal block. Elsewhere ``*``, ``|`` and a trailing ``_`` outside of
    quotes are escaped, and prose below a list of parameters ends it.
    """
    if what == "module":
        body = [re.sub(r":\w+:`~?([^`]+)`", r"\1", line) for line in lines[1:]]
        if any(line.strip() for line in body):
            lines[1:] = ["", ".. code-block:: text", "", *(f"   {line}" for line in body), ""]
        return
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((":", "..", ">>>")):
            pieces = re.split(r"(``.+?``|:\w+:`[^`]+`|`[^`]+`)", line)
            pieces[::2] = [re.sub(r"(?<!\\)([*|]|(?<=\w)_(?!\w))", r"\\\1", piece) for piece in pieces[::2]]
            lines[number] = "".join(pieces)
    for number in range(len(lines) - 1, 0, -1):
        after = lines[number + 1] if number + 1 < len(lines) else ""
        if not lines[number - 1].strip() and re.match(r"\S", lines[number]) and not after.startswith(("---", "   ")):
            lines.insert(number, "")  # napoleon ends a section at two blank lines


def plain_defaults(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Omit a default value with an f-string, which Sphinx cannot parse."""
    return re.sub(r"= [^,()=]*f\"[^\"]*\"", "= ...", signature or "") or None, returns


def write(path: Path, text: str) -> None:
    """Write a page unless it is unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def modules_of(package: str) -> list[str]:
    """Public modules below a package, sorted."""
    path = import_module(package).__path__
    return sorted(module.name for module in walk_packages(path, f"{package}.") if "._" not in module.name)


def reference() -> None:
    """Write one page per sub-package: its modules with their docstrings; pages of packages that are gone go, too."""
    written = set()
    for layer in LAYERS:
        pages: dict[str, list[str]] = {}
        for name in [layer, *modules_of(layer)]:
            package = name if hasattr(import_module(name), "__path__") else name.rpartition(".")[0]
            pages.setdefault(package, []).append(name)
        for package, names in pages.items():
            title = f"``{package}``"
            parts = [title, "=" * len(title), ""]
            for name in names:
                if name != package:
                    parts += [name.rpartition(".")[2], "-" * len(name), ""]
                whole = name != package or not hasattr(
                    import_module(name), "__all__"
                )  # members of __all__ are documented in their own modules
                parts += [f".. automodule:: {name}", *(["   :members:"] if whole else []), ""]
            write(GENERATED / "api" / f"{package}.rst", "\n".join(parts))
            written.add(f"{package}.rst")
    for page in (GENERATED / "api").iterdir():
        if page.name not in written:
            page.unlink()


def import_types() -> None:
    """Import what modules with msgspec structs import for type checkers only: Sphinx evaluates their signatures."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("opticoll.") or "msgspec" not in vars(module):
            continue
        for block in ast.parse(inspect.getsource(module)).body:
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
                for statement in block.body:
                    # Some names are themselves for type checkers only; Sphinx warns if a signature needs one.
                    with suppress(ImportError, NameError):
                        exec(compile(ast.Module([statement], []), str(module.__file__), "exec"), vars(module))


def tables() -> None:
    """Write the lists of `opticoll list` as pages."""
    from opticoll.analysis import catalog

    columns = {
        "formulations": ("name", "class", "title", "where", "methods", "forms"),
        "methods": ("name", "title", "formulations"),
        "instances": ("name", "example", "summary", "source"),
    }
    for kind, names in columns.items():
        rows = getattr(catalog, kind)()
        text = [kind.capitalize(), "=" * len(kind), "", ".. list-table::", "   :header-rows: 1", ""]
        for row in [{name: name for name in names}, *rows]:
            for number, name in enumerate(names):
                value = row[name] if row[name] is not None else "–"
                cell = ", ".join(value) if isinstance(value, list) else str(value)
                code = name in {"name", "example"} and row["name"] != "name"
                cell = f"``{cell}``" if code else cell.replace("*", r"\*")
                text.append(f"   {'* -' if number == 0 else '  -'} {cell}")
        write(GENERATED / f"{kind}.rst", "\n".join([*text, ""]))


def formulations() -> None:
    """Write the pages of the formulations; what docs/formulations adds prose to is a part that its pages include."""
    import formulation_pages

    from opticoll.formulations import formulations

    written = set()
    for name in formulations():
        text = formulation_pages.page(name)
        alone = not (formulation_pages.PAGES / f"{name}.md").exists()
        written.add(f"{name}.md" if alone else f"{name}.inc")
        write(
            GENERATED / "formulations" / (f"{name}.md" if alone else f"{name}.inc"),
            f"# `{name}`\n\n{text}" if alone else text,
        )
    for path in (GENERATED / "formulations").iterdir():
        if path.name not in written:
            path.unlink()


def notebooks() -> None:
    """Write the notebooks as pages, with the outputs of an execution; only those that changed are executed."""
    import execute
    from nbconvert import MarkdownExporter
    from nbformat.v4 import new_markdown_cell

    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = execute.executed(path, GENERATED / "notebooks")
        cells = []
        for cell in notebook.cells:
            folded = execute.ANSWER in cell.metadata.get("tags", [])
            title = cell.source.partition(".")[0].removeprefix("# ")
            opening, closing = f"<details>\n<summary>{title}</summary>", "</details>"
            cells += [new_markdown_cell(opening), cell, new_markdown_cell(closing)] if folded else [cell]
        notebook.cells = cells
        text, resources = MarkdownExporter().from_notebook_node(notebook, {"output_files_dir": f"{path.stem}_files"})
        for name, data in resources["outputs"].items():
            target = GENERATED / "notebooks" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            text = text.replace(f"![png]({name})", _image(name, data))
        text = re.sub(r"\((\d\d-[\w-]+)\.ipynb\)", r"(\1.md)", text)
        text = text.replace("](../docs/", "](../../")
        write(GENERATED / "notebooks" / f"{path.stem}.md", text)


def _image(name: str, png: bytes) -> str:
    """An image of a notebook in its size: figures have two dots per dot of a page."""
    wide = int.from_bytes(png[16:20], "big")
    return f'<img src="{name}" alt="Figure drawn by the cell above" width="{wide // 2}px">'


def pages() -> None:
    """Copy README, other documents and notes, with links to pages of the site."""
    links = {
        r"\(notebooks/([\w-]+)\.ipynb\)": r"(notebooks/\1.md)",
        r"\(docs/": "(../",
        r"\[CITATION\.cff\]\(CITATION\.cff\)": "`CITATION.cff`",
    }
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for old, new in links.items():
            text = re.sub(old, new, text)
        write(GENERATED / name, text)
    for path in sorted((ROOT / "notes").glob("*.md")):
        write(GENERATED / "notes" / path.name, path.read_text(encoding="utf-8"))


def of_matplotlib(_app: Any, _what: str, name: str, member: Any, skip: bool, _options: Any) -> bool | None:
    """Leave out ``set``, which matplotlib writes into every class derived from one of its artists."""
    ours = str(getattr(member, "__module__", "")).startswith("opticoll")
    return True if name == "set" and not ours else None


def setup(app: Any) -> None:
    """Write the generated pages before Sphinx looks for them."""
    reference()
    tables()
    formulations()
    import_types()
    notebooks()
    pages()
    app.connect("autodoc-skip-member", of_matplotlib)
    app.connect("autodoc-process-docstring", verbatim, priority=100)
    app.connect("autodoc-process-signature", plain_defaults)
