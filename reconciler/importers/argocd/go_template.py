"""Go's text templates, as far as templates of applications use them; definitions and jumps are refused by name.

Source: pkg.go.dev/text/template. Functions stand in `go_functions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from reconciler.importers.argocd.go_functions import FUNCTIONS, is_true, printed
from reconciler.importers.argocd.go_limits import LENGTH_MAX, GoFailure, bounded
from reconciler.importers.reading import Uncarried

_OPEN: Final = re.compile(r"\{\{(- )?")
_COMMENT: Final = re.compile(r"\s*/\*.*?\*/\s*?(?: -)?\}\}", re.DOTALL)
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<end>(?: -)?\}\})|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`)|(?P<number>[-+]?\d+(?:\.\d+)?)"
    r"|(?P<variable>\$\w*)|(?P<field>(?:\.[A-Za-z_]\w*)+)|(?P<dot>\.)|(?P<word>[A-Za-z_]\w*)|(?P<sign>:=|[=|(),]))",
    re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(?:([abfnrtv\\\"'])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))")
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DEPTH_MAX: Final = 50
_STEPS_MAX: Final = 100_000


class MissingParameter(Uncarried):
    """A template that names a parameter which is not there."""


class _Token(NamedTuple):
    """`is_tight`: nothing stands before it."""

    kind: str
    text: str
    is_tight: bool


class _Block(NamedTuple):
    """An `if`, `range` or `with`. `names`: the variables that it declares; `action`: its text."""

    kind: str
    action: str
    names: tuple[str, ...]
    pipe: list[list[Any]]
    body: list[Any]
    other: list[Any]


def render(text: str, params: Mapping[str, Any], *, is_strict: bool) -> str:
    """Return a text with its templates filled in. `is_strict`: as with `missingkey=error`.

    Raises Uncarried: it is no template, names what is not there, or does what is not evaluated here.
    """
    body = _Parser(text).nodes(())
    output: list[str] = []
    try:
        _Run(params, output, is_strict=is_strict).nodes(body, params, {"$": params})
    except GoFailure as error:
        why = f"the template {error.action[:80]} {error}"
        raise (MissingParameter(why) if error.is_missing else Uncarried(why)) from error
    return "".join(output)


class _Action(NamedTuple):
    text: str
    tokens: list[_Token]


class _Parser:
    def __init__(self, text: str) -> None:
        self._parts = list(self._split(text))
        self._at = 0
        self._depth = 0

    def _split(self, text: str) -> Iterator[str | _Action]:
        place, trims = 0, False
        while (match := _OPEN.search(text, place)) is not None:
            before = text[place : match.start()]
            before = before.lstrip() if trims else before
            yield before.rstrip() if match[1] else before
            comment = _COMMENT.match(text, match.end())
            if comment is not None:
                place = comment.end()
            else:
                tokens, place = self._tokens(text, match.end())
                yield _Action(text[match.start() : place], tokens)
            trims = text.endswith(" -}}", 0, place)
        yield text[place:].lstrip() if trims else text[place:]

    def _tokens(self, text: str, place: int) -> tuple[list[_Token], int]:
        tokens: list[_Token] = []
        start = place
        while (match := _TOKEN.match(text, place)) is not None and match.lastgroup != "end":
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match[kind], match.start(kind) == place and place > start))
            place = match.end()
        if match is None or not tokens:
            _refuse(text[start - 2 : start + 60].splitlines()[0])
        return tokens, match.end()

    def nodes(self, ends: tuple[str, ...]) -> list[Any]:
        """Return what stands before one of the words, which is the next part then."""
        nodes: list[Any] = []
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise Uncarried("the template is too deep; write the applications out")
        while self._at < len(self._parts):
            part = self._parts[self._at]
            if isinstance(part, str):
                nodes.append(part)
                self._at += 1
            elif (word := _first(part.tokens)) in ends:
                self._depth -= 1
                return nodes
            elif word in ("if", "range", "with"):
                nodes.append(self._block(word, part.text, part.tokens[1:]))
            elif word in ("define", "template", "block", "break", "continue", "else", "end"):
                _refuse(word)
            else:
                self._at += 1
                nodes.append((*_pipeline(part.tokens), part.text))
        if ends:
            _refuse(f"without {ends[-1]}")
        return nodes

    def _block(self, word: str, action: str, tokens: list[_Token]) -> _Block:
        names, pipe = _pipeline(tokens)
        self._at += 1
        body = self.nodes(("else", "end"))
        last = self._parts[self._at]
        other: list[Any] = []
        if isinstance(last, _Action) and _first(last.tokens) == "else":
            if len(last.tokens) > 1:
                inner, rest = last.tokens[1].text, last.tokens[2:]
                other = [self._block(inner, last.text, rest)] if inner in ("if", "with") else _refuse("else")
                return _Block(word, action, names, pipe, body, other)
            self._at += 1
            other = self.nodes(("end",))
        self._at += 1
        return _Block(word, action, names, pipe, body, other)


def _first(tokens: list[_Token]) -> str:
    return tokens[0].text if tokens[0].kind == "word" else ""


def _refuse(action: str) -> NoReturn:
    raise Uncarried(
        f"the template {{{{ {action.removeprefix('{{').strip()} }}}} is not evaluated: write the applications out"
    )


def _pipeline(tokens: list[_Token]) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Return the declared variables and the commands of a pipeline. A name with "=" before it is assigned again."""
    texts = [token.text for token in tokens]
    names: tuple[str, ...] = ()
    for sign in (":=", "="):
        if sign in texts[:4] and tokens[0].kind == "variable":
            place = texts.index(sign)
            names = tuple(text if sign == ":=" else f"={text}" for text in texts[:place] if text != ",")
            tokens = tokens[place + 1 :]
            break
    commands, rest = _commands(tokens, 0, 0)
    if rest != len(tokens):
        _refuse(" ".join(texts))
    return names, commands


def _commands(tokens: list[_Token], place: int, depth: int) -> tuple[list[list[Any]], int]:
    """Return the commands up to a closing bracket or the end, and that place."""
    parts: list[list[Any]] = [[]]
    while place < len(tokens):
        token = tokens[place]
        if token.text == ")" and token.kind == "sign":
            break
        place += 1
        if token.kind == "sign" and token.text == "|":
            parts.append([])
        elif token.kind == "sign" and token.text == "(":
            if depth > _DEPTH_MAX:
                _refuse("(")
            inner, place = _commands(tokens, place, depth + 1)
            if place >= len(tokens):
                _refuse("(")
            place += 1
            parts[-1].append(("pipe", inner))
        elif token.kind == "field" and token.is_tight and parts[-1] and parts[-1][-1][0] in ("pipe", "variable", "of"):
            parts[-1].append(("of", parts[-1].pop(), token.text.split(".")[1:]))
        elif token.kind == "sign":
            _refuse(token.text)
        else:
            parts[-1].append(_operand(token))
    if not all(parts):
        _refuse(" ".join(token.text for token in tokens) or "nothing")
    return parts, place


def _operand(token: _Token) -> tuple[Any, ...]:
    match token.kind:
        case "text" if token.text[0] == "`":
            return ("value", token.text[1:-1])
        case "text":
            return ("value", _ESCAPE.sub(_unescaped, token.text[1:-1]))
        case "number":
            return ("value", float(token.text) if "." in token.text else int(token.text))
        case "variable":
            return ("variable", token.text)
        case "field":
            return ("of", ("dot",), token.text.split(".")[1:])
        case "dot":
            return ("dot",)
    constants = {"true": True, "false": False, "nil": None}
    return ("value", constants[token.text]) if token.text in constants else ("word", token.text)


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return _ESCAPED.get(match[1], match[1])
    return chr(int(match[2] or match[3], 16))


class _Run:
    """One evaluation. Variables are by name; `$` is the parameters."""

    def __init__(self, params: Mapping[str, Any], output: list[str], *, is_strict: bool) -> None:
        self._params, self._output, self._is_strict = params, output, is_strict
        self._length, self._steps = 0, 0

    def nodes(self, body: list[Any], dot: Any, variables: dict[str, Any]) -> None:
        self._steps += 1 + len(body)
        if self._steps > _STEPS_MAX:
            raise GoFailure("takes too many steps")
        for node in body:
            if isinstance(node, str):
                self._write(node)
                continue
            try:
                if isinstance(node, _Block):
                    self._block(node, dot, variables)
                else:
                    self._value(node[0], node[1], dot, variables)
            except GoFailure as error:
                error.action = error.action or (node.action if isinstance(node, _Block) else node[2])
                raise

    def _value(self, names: tuple[str, ...], pipe: list[list[Any]], dot: Any, variables: dict[str, Any]) -> None:
        """Write the value of a pipeline, or give it to a variable."""
        value = self._pipe(pipe, dot, variables)
        if names:
            self._assign(names[0], value, variables)
        else:
            self._write(printed(value))

    def _write(self, text: str) -> None:
        self._length += len(text)
        if self._length > LENGTH_MAX:
            raise GoFailure("makes too long a text")
        self._output.append(text)

    @staticmethod
    def _assign(name: str, value: Any, variables: dict[str, Any]) -> None:
        """Declare a variable, or change one in place: scopes share the cell of a variable."""
        if name.startswith("="):
            if f"{name[1:]}@" not in variables:
                raise GoFailure(f"names no variable {name[1:]}")
            variables[f"{name[1:]}@"][0] = value
        else:
            variables[f"{name}@"] = [value]

    def _block(self, block: _Block, dot: Any, variables: dict[str, Any]) -> None:
        value = self._pipe(block.pipe, dot, variables)
        inner = dict(variables)
        if block.kind == "range":
            items = _items(value)
            for key, item in items:
                each = dict(inner)
                for name, bound in zip(reversed(block.names), (item, key), strict=False):
                    self._assign(name, bound, each)
                self.nodes(block.body, item, each)
            if not items:
                self.nodes(block.other, dot, inner)
            return
        if block.names:
            self._assign(block.names[0], value, inner)
        if is_true(value):
            self.nodes(block.body, value if block.kind == "with" else dot, inner)
        else:
            self.nodes(block.other, dot, inner)

    def _pipe(self, commands: list[list[Any]], dot: Any, variables: dict[str, Any]) -> Any:
        value: list[Any] = []
        for command in commands:
            value = [self._command(command, value, dot, variables)]
        return value[0]

    def _command(self, command: list[Any], last: list[Any], dot: Any, variables: dict[str, Any]) -> Any:
        kind, *rest = command[0]
        if kind != "word":
            if last or len(command) > 1:
                raise GoFailure("gives arguments to what is no function; write the applications out")
            return self._operand(command[0], dot, variables)
        name = rest[0]
        if name in ("and", "or"):
            value: Any = None
            for operand in command[1:]:
                value = self._operand(operand, dot, variables)
                if is_true(value) == (name == "or"):
                    return value
            return last[0] if last else value
        function = FUNCTIONS.get(name)
        if function is None:
            raise GoFailure(f"has the function {name}, which is not evaluated: write the applications out")
        arguments = [self._operand(operand, dot, variables) for operand in command[1:]]
        try:
            return bounded(function(*arguments, *last))
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, re.error) as error:
            raise GoFailure(f"gives {name} what it cannot take") from error

    def _operand(self, operand: tuple[Any, ...], dot: Any, variables: dict[str, Any]) -> Any:
        match operand:
            case ("value", value):
                return value
            case ("dot",):
                return dot
            case ("variable", "$"):
                return self._params
            case ("variable", name):
                if f"{name}@" not in variables:
                    raise GoFailure(f"names no variable {name}")
                return variables[f"{name}@"][0]
            case ("pipe", commands):
                return self._pipe(commands, dot, variables)
            case ("word", name):
                return self._command([("word", name)], [], dot, variables)
        value = self._operand(operand[1], dot, variables)
        for step in operand[2]:
            if value is None and not self._is_strict:
                return None
            if not isinstance(value, Mapping) or (self._is_strict and step not in value):
                raise GoFailure(f"names no parameter of the generator: .{step}", is_missing=True)
            value = value.get(step)
        return value


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return sorted(value.items())
    if isinstance(value, list):
        return list(enumerate(value))
    if value is None:
        return []
    raise GoFailure("ranges over what is no list")
