"""Gaps in the check of pull requests that a repository shows: a pull request could bring its own judge.

Source: docs/how-to/pull-request-check.md#what-must-be-protected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final

from reconciler.api.content import Json, JsonObject, dig
from reconciler.yaml import read_yaml

PROGRAM: Final = ".reconciler"
OWNER_FILES: Final = ("CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "docs/CODEOWNERS")
GITLAB: Final = ".gitlab-ci.yml"
WORKFLOWS: Final = ".github/workflows"
NOT_SEEN: Final = (
    "not seen from here: protection of branches and of the branch observations, required checks, scopes of tokens"
)
_JUDGE: Final = re.compile(
    r"\.(?:reconciler|github|gitlab|gitea|forgejo|circleci|woodpecker|buildkite|tekton|bitbucket)(?:/.*)?|"
    r"(?:.*[/.-])?\.?gitlab-ci\.ya?ml|(?:.*/)?Jenkinsfile(?:\..*)?|azure-pipelines.*\.ya?ml|bitbucket-pipelines\.ya?ml"
    r"|\.(?:drone|woodpecker|travis|cirrus|appveyor|pre-commit-config)\.(?:ya?ml|jsonnet|star)|(?:atlantis|appveyor)\.ya?ml"
)
"""The program of the check, and definitions of jobs by their usual names, of whatever runs them."""
_JUDGES: Final = "it takes part in judging pull requests: the next ones are judged by it"
_BESIDE: Final = {
    ".gitattributes": "the forge may show differences of files collapsed, or none, by what it says",
    ".gitmodules": "other repositories are bound in: what is in them is neither read nor planned",
    ".sops.yaml": "from the next edit on sops encrypts by it: other values, or for other keys",
}
"""Files that steer neither clusters nor the check, and yet what reviewers see, by name."""


def repository_effect(path: str) -> str:
    """Return what a change of a file of the repository means, which is no document of the store; empty: nothing."""
    return _JUDGES if is_judge(path) else _BESIDE.get(path.rpartition("/")[2], "")


def is_judge(path: str) -> bool:
    """Return whether a file of a repository takes part in judging its pull requests."""
    # A link or a submodule may stand in the place of a folder.
    return path in OWNER_FILES or _JUDGE.fullmatch(path) is not None


def review_faults(files: Mapping[str, bytes]) -> list[str]:
    """Return a sentence for each gap, with the file that has it. `files`: those of `is_judge`, by path."""
    return [*_program(files), *_jobs(files), *_owners(files)]


def _program(files: Mapping[str, bytes]) -> Iterator[str]:
    names = [path.removeprefix(f"{PROGRAM}/") for path in files if path.startswith(f"{PROGRAM}/")]
    if "requirements.lock" not in names or not any(name.endswith(".whl") for name in names):
        yield f"{PROGRAM}/ has no wheel with its requirements.lock; `make wheel` makes both"
    elif b"--hash=" not in files[f"{PROGRAM}/requirements.lock"]:
        yield f"{PROGRAM}/requirements.lock has no hashes; `make wheel` writes one with them"


def _jobs(files: Mapping[str, bytes]) -> Iterator[str]:
    used = 0
    for path in sorted(files):
        if not path.startswith(f"{WORKFLOWS}/") or not path.endswith((".yml", ".yaml")):
            continue
        read = read_yaml(path, files[path])
        if read.broken:
            yield f"{path}: it cannot be read, so nothing is known of it"
        for document in read.documents:
            jobs = document.body.get("jobs")
            planning = {name: job for name, job in (jobs.items() if isinstance(jobs, dict) else ()) if _action(job)}
            used += len(planning)
            triggers = document.body.get("on", document.body.get("true"))
            if planning and "pull_request" in ([triggers] if isinstance(triggers, str) else list(triggers or ())):
                yield f"{path}: on pull_request a pull request defines its own check; run it on pull_request_target"
            for name, job in sorted(planning.items()):
                yield from (f"{path}: job {name} {fault}" for fault in _job(job))
    if not used and f"{PROGRAM}/gitlab.yml".encode() not in files.get(GITLAB, b""):
        yield f"no workflow uses {PROGRAM}/action.yml, and {GITLAB} does not include {PROGRAM}/gitlab.yml"


def _job(job: Json) -> Iterator[str]:
    action = _action(job)
    checkouts = [step.get("with") for step in _steps(job) if "actions/checkout@" in str(step.get("uses"))]
    given = [each if isinstance(each, dict) else {} for each in checkouts]
    heads = [str(each.get("path", ".")) for each in given if "pull" in str(each.get("ref", ""))]
    if any(head == "." or action.startswith(f"{head}/") for head in heads):
        yield f"takes {action} from the head of the pull request; check the base out beside it, and use that one"
    if any(each.get("persist-credentials") is not False for each in given):
        yield "leaves its token in .git/config; set persist-credentials: false"
    permissions = dig(job, "permissions")
    if permissions == "write-all" or (isinstance(permissions, dict) and "write" in permissions.values()):
        yield f"plans with a token that may write; comment in a job of its own, with {PROGRAM}/comment"
    elif permissions is None:
        yield "has the permissions of the workflow; give it `permissions: {contents: read}`"


def _owners(files: Mapping[str, bytes]) -> Iterator[str]:
    found = next((files[path].decode(errors="replace") for path in OWNER_FILES if path in files), None)
    if found is None:
        yield f"no CODEOWNERS says who reviews {PROGRAM}/, {WORKFLOWS}/ and CODEOWNERS itself"
        return
    lines = [line.split() for line in found.splitlines() if line.strip() and not line.lstrip().startswith(("#", "["))]
    patterns = [words[0] for words in lines if len(words) > 1]
    for path in sorted(files):
        if not any(_covers(pattern, path) for pattern in patterns):
            yield f"{path} has no owner in CODEOWNERS"


def _covers(pattern: str, path: str) -> bool:
    """Return whether a pattern of CODEOWNERS names a path. Source: gitignore, as far as both forges have it."""
    plain = pattern.lstrip("/").rstrip("/")
    if fnmatchcase(path, plain) or path.startswith(f"{plain}/") or plain in ("*", "**"):
        return True
    return "/" not in plain and any(fnmatchcase(part, plain) for part in path.split("/"))


def _action(job: Json) -> str:
    """Return the path of our action that a job uses; empty: none."""
    used = (str(step.get("uses", "")) for step in _steps(job))
    return next((name.removeprefix("./") for name in used if name.rstrip("/").endswith(PROGRAM)), "")


def _steps(job: Json) -> list[JsonObject]:
    steps = dig(job, "steps")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
