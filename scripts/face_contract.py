"""A contract for import-linter: from outside, a package is imported through its face alone.

The face is the package's `__init__`: its verb and its values. What lies behind it may be moved and renamed freely.
"""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class FaceContract(Contract):
    """`packages`: the packages that have faces."""

    packages = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find each import of something behind a face."""
        past = [found for package in self.packages for found in _past(graph, package)]  # type: ignore[attr-defined]
        return ContractCheck(kept=not past, metadata={"past": past})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print importer and imported module, one pair a line."""
        for importer, imported in check.metadata["past"]:
            output.print_error(f"{importer} imports {imported}, which lies behind the face of its package")


def _past(graph: ImportGraph, package: str) -> list[tuple[str, str]]:
    inside = graph.find_descendants(package)
    return [
        (importer, imported)
        for imported in sorted(inside)
        for importer in sorted(graph.find_modules_that_directly_import(imported))
        if importer != package and importer not in inside and not _is_met_at_face(graph, importer, imported, package)
    ]


def _is_met_at_face(graph: ImportGraph, importer: str, imported: str, package: str) -> bool:
    """Return whether it is a verb with the name of its module: the graph takes it for the module itself."""
    details = graph.get_import_details(importer=importer, imported=imported)
    return all(detail["line_contents"].startswith(f"from {package} import ") for detail in details)
