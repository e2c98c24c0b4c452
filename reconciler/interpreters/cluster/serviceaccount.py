"""ServiceAccount: nothing of it is divided, refers to anything or has a health rule."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter

INTERPRETER = Interpreter(kinds=(("", "ServiceAccount"),))
