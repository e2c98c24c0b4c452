"""`postBuild.substitute`: variables in the text of manifests, for the forms whose meaning is plain.

Source: fluxcd.io/flux/components/kustomize/kustomizations/#post-build-variable-substitution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from reconciler.api.content import Json, dig
from reconciler.hydration import is_kustomization, named_files, resolved
from reconciler.importers.reading import Uncarried
from reconciler.yaml import read_yaml

_DISABLED: Final = re.compile(rb"kustomize\.toolkit\.fluxcd\.io/substitute[\"']?\s*:\s*[\"']?disabled")
_KEY: Final = "kustomize.toolkit.fluxcd.io/substitute"
_DOCUMENTS: Final = re.compile(r"(^---.*\n)", re.MULTILINE)
_GENERATORS: Final = ("configMapGenerator", "secretGenerator")
_VARIABLE: Final = re.compile(r"\$(\$)?\{((?:[^{}]|\{[^{}]*+\})*+)(\}|)")
"""A default may have a variable in it. One that is not closed reaches to the end or the next brace: no search begins
again within it."""
_FORM: Final = re.compile(r"([A-Za-z_]\w*)(?::?[=-](.*))?", re.ASCII | re.DOTALL)


class Substitution:
    """Substitutes variables in the text of files; an unset one is empty, as with Flux.

    Objects that turn it off stay as they are, and so do files of which a generator makes such an object: a
    kustomization is to be edited before the files that it names.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Know the variables. As with Flux, their values lose line breaks."""
        self._variables = {key: value.replace("\n", "") for key, value in variables.items()}
        self._unchanged: set[str] = set()

    def __call__(self, path: str, data: bytes) -> bytes:
        """Return a file with its variables.

        Raises Uncarried: it has a form that is not evaluated, or turns substitution off in another way.
        """
        if path in self._unchanged:
            return data
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data
        if is_kustomization(path) and _DISABLED.search(data):
            self._keep(path, data)
            return self._filled(text, path).encode()
        parts = _DOCUMENTS.split(text) if _DISABLED.search(data) else [text]
        return "".join(part if _DISABLED.search(part.encode()) else self._filled(part, path) for part in parts).encode()

    def _keep(self, path: str, data: bytes) -> None:
        """Know the files of generators whose objects turn substitution off."""
        documents = read_yaml(path, data).documents
        body = documents[0].body if documents else {}
        is_for_all = _is_off(dig(body, "generatorOptions"))
        count = int(is_for_all)
        for key in _GENERATORS:
            for entry in dig(body, key) or []:
                is_off = _is_off(dig(entry, "options"))
                count += is_off
                if not (is_off or is_for_all):
                    continue
                if any("${" in str(literal) for literal in dig(entry, "literals") or []):
                    raise Uncarried(f"{path} turns substitution off for a literal with ${{; write it into a file")
                named = named_files({key: [entry]})
                self._unchanged |= {str(resolved(path.rpartition("/")[0], text)) for text, _ in named}
        if count != len(_DISABLED.findall(data)):
            raise Uncarried(f"{path} turns substitution off for some of its objects; write the values out")

    def _filled(self, text: str, path: str) -> str:
        return _VARIABLE.sub(lambda match: self._value(match, path), text)

    def _value(self, match: re.Match[str], path: str) -> str:
        if not match[3] and match.end() == len(match.string):
            return match[0]
        if match[1] and match[3]:
            return f"${{{match[2]}}}"
        form = _FORM.fullmatch(match[2]) if match[3] else None
        if form is None or "$" in _VARIABLE.sub("", form[2] or ""):
            raise Uncarried(f"{path} has the variable ${{{match[2]}}}, a form that is not evaluated; write it out")
        return self._variables.get(form[1]) or self._filled(form[2] or "", path)


def _is_off(options: Json) -> bool:
    return any(dig(options, field, _KEY) == "disabled" for field in ("annotations", "labels"))
